// The loops over the elements of a tensor, and where each element lies.
#ifndef HECATE_CODEGEN_HOST_NEST_H
#define HECATE_CODEGEN_HOST_NEST_H

#include "codegen/host/emitter.h"

// Dimensions that every tensor involved has side by side (or not at all) are one loop.
struct hec_nest {
    struct hec_tensor space;
    int loops;
    int first[HEC_IR_RANK_MAX + 1]; // Dimension of `space` each loop starts with; then the rank.
};

// The loops over `space` in which tensors of these types are accessed; their dimensions are among
// those of `space`.
struct hec_nest hec_nest_of(struct hec_tensor space, int types, const MlirType *type);

// The variable of a loop, and how often it runs.
const char *hec_nest_variable(const struct hec_nest *nest, int loop);
const char *hec_nest_extent(struct hec_emitter *e, const struct hec_nest *nest, int loop);

// The position of the current element in a tensor of type `type`: "r * D + j"; "0" for a scalar.
const char *hec_nest_index(struct hec_emitter *e, const struct hec_nest *nest, MlirType type);

#endif
