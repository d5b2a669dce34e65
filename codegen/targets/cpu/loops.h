// Loops over the elements of a tensor, shared among threads.
#ifndef HECATE_CODEGEN_TARGETS_CPU_LOOPS_H
#define HECATE_CODEGEN_TARGETS_CPU_LOOPS_H

#include "codegen/host/nest.h"

struct hec_loops {
    struct hec_nest nest;
    bool parallel;
    bool block; // Over a part of the rows and columns: those of `block`, a struct hk_block.
};

// The loops over `space` in which tensors of these types are accessed (codegen/host/nest.h).
struct hec_loops hec_loops_of(struct hec_tensor space, int types, const MlirType *type);

// Those of a nest that has been made.
struct hec_loops hec_loops_of_nest(struct hec_nest nest);

// Two loops over a block of a GEMM's result: its first `rows` dimensions, the others. Tensors that
// are accessed have all dimensions of either, or none.
struct hec_loops hec_loops_of_block(struct hec_tensor space, int rows);

// Writes the heads of the loops, whose body follows; and the ends of them. No iteration may depend
// on another.
// hec_loops_heads writes those of loops from .. to-1 only, serial but for the first of the nest.
void hec_loops_heads(struct hec_emitter *e, const struct hec_loops *loops, int from, int to);
void hec_loops_open(struct hec_emitter *e, const struct hec_loops *loops);
void hec_loops_close(struct hec_emitter *e, const struct hec_loops *loops);
// The same for a body of one statement.
void hec_loops_statement(struct hec_emitter *e, const struct hec_loops *loops,
                         const char *statement);

// to[...] = from[...], or +=, for tensors of one type; the texts are pointers.
void hec_loops_copy(struct hec_emitter *e, const char *to, const char *from, MlirType type,
                    bool adds);

#endif
