#include "passes/distribute/forward.h"

#include "ir/accessors.h"

void hec_distribute_forward(struct hec_routed *x) {
    struct hec_builder b = hec_builder_before(x->combine);
    hec_builder_for(&b, x->permute);
    b.at = hec_loc_strip(b.at);
    hec_routed_build(&b, x, HEC_OP_await_counts, 0, NULL, (MlirValue){0}, x->layer, 0, NULL);
    const MlirValue waves = hec_routed_count(&b, x, HEC_OP_waves, (MlirValue){0}, x->layer);
    struct hec_for loop = hec_build_repeat(&b, waves, false);
    hec_for_yield(&loop, b.at, NULL);

    const MlirOperation yield = mlirBlockGetTerminator(loop.body);
    struct hec_builder in = hec_builder_before(yield);
    hec_builder_for(&in, x->permute);
    const MlirValue operand[] = {hec_permute_x(x->permute), hec_gate_rows_weights(x->gate)};
    const MlirValue replaced[] = {hec_permute_rows(x->permute), hec_gate_rows_g(x->gate),
                                  hec_route_first(x->route)};
    MlirType type[3];
    for (int i = 0; i < 3; i++) type[i] = mlirValueGetType(replaced[i]);
    const MlirOperation dispatch =
        hec_routed_build(&in, x, HEC_OP_dispatch, 2, operand, loop.layer, x->layer, 3, type);
    for (int k = 0; k < x->region.count; k++) mlirOperationMoveBefore(x->region.op[k], yield);
    const MlirValue by[] = {hec_dispatch_rows(dispatch), hec_dispatch_gate(dispatch),
                            hec_dispatch_first(dispatch)};
    for (int i = 0; i < 3; i++) mlirValueReplaceAllUsesOfWith(replaced[i], by[i]);
    in.at = b.at;
    in.unit = b.unit;
    const MlirValue rows = hec_combine_rows(x->combine);
    hec_routed_build(&in, x, HEC_OP_give_back, 1, &rows, loop.layer, x->layer, 0, NULL);
    hec_builder_for(&b, x->combine);
    const MlirType y = mlirValueGetType(hec_combine_y(x->combine));
    const MlirOperation collect =
        hec_routed_build(&b, x, HEC_OP_collect, 0, NULL, (MlirValue){0}, x->layer, 1, &y);
    mlirValueReplaceAllUsesOfWith(hec_combine_y(x->combine), hec_collect_y(collect));
    mlirOperationDestroy(x->combine);
    mlirOperationDestroy(x->permute);
    mlirOperationDestroy(x->gate);
    x->dispatch = dispatch;
}
