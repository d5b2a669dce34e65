// Functions of MLIR's C API that versions before 22 lack, under the names and with the meanings that 22 has. older.cpp
// defines them there by the C++ classes; with 22 nothing of this is compiled.
#ifndef HECATE_IR_CORE_OLDER_H
#define HECATE_IR_CORE_OLDER_H

#ifdef HEC_OLDER_MLIR
#include <mlir-c/IR.h>

#ifdef __cplusplus
extern "C" {
#endif

bool mlirLocationIsAFileLineColRange(MlirLocation location);
MlirIdentifier mlirLocationFileLineColRangeGetFilename(MlirLocation location);
int mlirLocationFileLineColRangeGetStartLine(MlirLocation location);
int mlirLocationFileLineColRangeGetStartColumn(MlirLocation location);
bool mlirLocationIsACallSite(MlirLocation location);
MlirLocation mlirLocationCallSiteGetCallee(MlirLocation location);
MlirLocation mlirLocationCallSiteGetCaller(MlirLocation location);
bool mlirLocationIsAName(MlirLocation location);
MlirIdentifier mlirLocationNameGetName(MlirLocation location);
MlirLocation mlirLocationNameGetChildLoc(MlirLocation location);
MlirLocation mlirValueGetLocation(MlirValue value);
bool mlirOperationIsBeforeInBlock(MlirOperation operation, MlirOperation other);
void mlirOperationSetLocation(MlirOperation operation, MlirLocation location);
// Does nothing: values have numbers in what is printed.
void mlirOpPrintingFlagsPrintNameLocAsPrefix(MlirOpPrintingFlags flags);

#ifdef __cplusplus
}
#endif
#endif

#endif
