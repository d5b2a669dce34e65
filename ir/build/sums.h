// The sums over layers for the loss.
#ifndef HECATE_IR_BUILD_SUMS_H
#define HECATE_IR_BUILD_SUMS_H

#include "ir/build/scope.h"

extern const char *const hec_build_sum_name[HEC_SUMS];

// Whether layers in `body` add to `sum`.
bool hec_build_body_has(const struct hec_body *body, enum hec_sum sum);
// Adds `more` to `sums`, at the place of the builder.
void hec_build_sum(struct hec_scope *scope, struct hec_sums *sums, const struct hec_sums *more);
// A sum that nothing was added to yet.
MlirValue hec_build_no_sum(struct hec_scope *scope, enum hec_sum sum);
// The layers that have one auxiliary loss together, and one of their mixtures; 0: there are none.
int64_t hec_build_joint(const struct hec_program *program, const struct hec_moe **moe);

#endif
