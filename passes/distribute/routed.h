// The rows of one route, which distribute-experts puts into waves: the operations on them in @forward and in
// @backward, and the builders that its steps share.
#ifndef HECATE_PASSES_DISTRIBUTE_ROUTED_H
#define HECATE_PASSES_DISTRIBUTE_ROUTED_H

#include "ir/core/op.h"

struct hec_routed {
    MlirOperation module, backward, route, set;
    MlirOperation limit;                  // Where experts have a capacity. Gone when it is settled.
    MlirOperation permute, gate, combine; // @forward. Gone when it is distributed.
    MlirOperation dispatch;               // In place of permute and gate.
    MlirValue layer;                      // Null: the set has no layers.
    struct hec_ops region;                // Operations on rows, in their order.
    MlirOperation from, to, to_gate;      // @backward: permute of dy, combine, gate_rows_grad.
    MlirValue layer_back;
    struct hec_ops back;
    bool move; // Rows go to the ranks of their experts; else every rank has all experts.
    bool sound;
};

// Reports at `op`; the exchange is not sound any more.
void hec_routed_fail(struct hec_routed *x, MlirOperation op, const char *text);

// Whether `v` is numbers for each row.
bool hec_routed_has_rows(MlirValue v);

// The layer of the loop around `op`; null outside of loops.
MlirValue hec_routed_layer(MlirOperation op);

// Builds an operation on the set: `operand`, the wave where there is one, the layer.
MlirOperation hec_routed_build(struct hec_builder *b, struct hec_routed *x, int id, int operands,
                               const MlirValue *operand, MlirValue wave, MlirValue layer,
                               int results, const MlirType *result);
// The same for one that gives a count.
MlirValue hec_routed_count(struct hec_builder *b, struct hec_routed *x, int id, MlirValue wave,
                           MlirValue layer);

MlirOperation hec_routed_stash(MlirValue v); // The stash of `v`; null when it has none.

#endif
