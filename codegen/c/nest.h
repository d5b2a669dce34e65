// Loops over the elements of a tensor.
#ifndef HECATE_CODEGEN_C_NEST_H
#define HECATE_CODEGEN_C_NEST_H

#include "codegen/host/emitter.h"

// Dimensions that every tensor involved has side by side (or not at all) are one loop.
struct hec_nest {
    struct hec_tensor space;
    int loops;
    int first[HEC_IR_RANK_MAX + 1]; // Dimension of `space` each loop starts with; then the rank.
    bool parallel;
    bool block; // Over a part of the rows and columns: those of `block`, a struct hk_block.
};

// The loops over `space` in which tensors of these types are accessed; their dimensions are among
// those of `space`.
struct hec_nest hec_nest_of(struct hec_tensor space, int types, const MlirType *type);

// Two loops over a block of a product's result: its first `rows` dimensions, the others. Tensors that
// are accessed have all dimensions of either, or none.
struct hec_nest hec_nest_of_block(struct hec_tensor space, int rows);

// The position of the current element in a tensor of type `type`: "r * D + j"; "0" for a scalar.
const char *hec_nest_index(struct hec_emitter *e, const struct hec_nest *nest, MlirType type);

// Writes the heads of the loops, whose body follows; and the ends of them. No iteration may depend
// on another.
// hec_nest_heads writes those of loops from .. to-1 only, serial but for the first of the nest.
void hec_nest_heads(struct hec_emitter *e, const struct hec_nest *nest, int from, int to);
void hec_nest_open(struct hec_emitter *e, const struct hec_nest *nest);
void hec_nest_close(struct hec_emitter *e, const struct hec_nest *nest);
// The same for a body of one statement.
void hec_nest_statement(struct hec_emitter *e, const struct hec_nest *nest, const char *statement);

// to[...] = from[...], or +=, for tensors of one type; the texts are pointers.
void hec_nest_copy(struct hec_emitter *e, const char *to, const char *from, MlirType type,
                   bool adds);

#endif
