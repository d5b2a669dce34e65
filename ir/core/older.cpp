// Functions that the C API lacks (older.h). They are weak, since a version between has some of them.
#include <mlir/CAPI/IR.h>
#include <mlir/IR/Location.h>
#include <mlir/IR/Operation.h>

#include "ir/core/older.h"

#define WEAK __attribute__((weak))

WEAK bool mlirLocationIsAFileLineColRange(MlirLocation location) {
    return mlir::isa<mlir::FileLineColLoc>(unwrap(location));
}

WEAK MlirIdentifier mlirLocationFileLineColRangeGetFilename(MlirLocation location) {
    return wrap(mlir::cast<mlir::FileLineColLoc>(unwrap(location)).getFilename());
}

WEAK int mlirLocationFileLineColRangeGetStartLine(MlirLocation location) {
    return (int)mlir::cast<mlir::FileLineColLoc>(unwrap(location)).getLine();
}

WEAK int mlirLocationFileLineColRangeGetStartColumn(MlirLocation location) {
    return (int)mlir::cast<mlir::FileLineColLoc>(unwrap(location)).getColumn();
}

WEAK bool mlirLocationIsACallSite(MlirLocation location) {
    return mlir::isa<mlir::CallSiteLoc>(unwrap(location));
}

WEAK MlirLocation mlirLocationCallSiteGetCallee(MlirLocation location) {
    return wrap(mlir::Location(mlir::cast<mlir::CallSiteLoc>(unwrap(location)).getCallee()));
}

WEAK MlirLocation mlirLocationCallSiteGetCaller(MlirLocation location) {
    return wrap(mlir::Location(mlir::cast<mlir::CallSiteLoc>(unwrap(location)).getCaller()));
}

WEAK bool mlirLocationIsAName(MlirLocation location) {
    return mlir::isa<mlir::NameLoc>(unwrap(location));
}

WEAK MlirIdentifier mlirLocationNameGetName(MlirLocation location) {
    return wrap(mlir::cast<mlir::NameLoc>(unwrap(location)).getName());
}

WEAK MlirLocation mlirLocationNameGetChildLoc(MlirLocation location) {
    return wrap(mlir::Location(mlir::cast<mlir::NameLoc>(unwrap(location)).getChildLoc()));
}

WEAK MlirLocation mlirValueGetLocation(MlirValue value) {
    return wrap(unwrap(value).getLoc());
}

WEAK bool mlirOperationIsBeforeInBlock(MlirOperation operation, MlirOperation other) {
    return unwrap(operation)->isBeforeInBlock(unwrap(other));
}

WEAK void mlirOperationSetLocation(MlirOperation operation, MlirLocation location) {
    unwrap(operation)->setLoc(unwrap(location));
}

WEAK void mlirOpPrintingFlagsPrintNameLocAsPrefix(MlirOpPrintingFlags) {
}
