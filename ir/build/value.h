// Values of the scope: of nodes, parameters, operations and products.
#ifndef HECATE_IR_BUILD_VALUE_H
#define HECATE_IR_BUILD_VALUE_H

#include "ir/build/scope.h"

// The value of a node that was built.
MlirValue hec_build_value_of(struct hec_scope *scope, const struct hec_node *node);
MlirValue hec_build_get(struct hec_scope *scope, const struct hec_param *param);
// One result (the first) of an operation whose types its row infers; null after an error.
MlirValue hec_build_one(struct hec_scope *scope, int op, int operands, const MlirValue *operand,
                        int attributes, const MlirNamedAttribute *attribute);
// The same where the type is the caller's choice.
MlirValue hec_build_of_type(struct hec_scope *scope, int op, int operands, const MlirValue *operand,
                            MlirType type, int attributes, const MlirNamedAttribute *attribute);
MlirValue hec_build_contract(struct hec_scope *scope, MlirValue a, MlirValue b);

// In the body of an expert: whether a value has a row for each row of all experts, or a part for each
// expert.
bool hec_build_has_rows(MlirValue v);
bool hec_build_is_by_expert(const struct hec_scope *scope, MlirValue v);

#endif
