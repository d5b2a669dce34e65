// Functions of MLIR's C API that versions before 22 lack, under the names and with the meanings that 22 has. older.cpp
// defines them there by the C++ classes. And names that versions have differently.
#ifndef HECATE_IR_CORE_OLDER_H
#define HECATE_IR_CORE_OLDER_H

// Attributes in which the dialects' loader looks for the lengths of groups of operands and of results.
#ifdef HEC_OLDER_SEGMENTS
#define HEC_OPERAND_SEGMENTS "operand_segment_sizes"
#define HEC_RESULT_SEGMENTS "result_segment_sizes"
#else
#define HEC_OPERAND_SEGMENTS "operandSegmentSizes"
#define HEC_RESULT_SEGMENTS "resultSegmentSizes"
#endif

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
// Does nothing: printed values have numbers.
void mlirOpPrintingFlagsPrintNameLocAsPrefix(MlirOpPrintingFlags flags);

#ifdef __cplusplus
}
#endif
#endif

#endif
