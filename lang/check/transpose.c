// Dims in another order: operators and functions need it where dims do not stand as kernels want them.
#include "lang/check/unit.h"

bool hec_stand_at(const struct hec_shape *dims, const struct hec_shape *shape, int first) {
    if (first < 0) return false;
    for (int i = 0; i < dims->rank; i++) {
        if (shape->dim[first + i].name != dims->dim[i].name) return false;
    }
    return true;
}

struct hec_shape hec_shape_with(const struct hec_shape *shape, const struct hec_shape *dims,
                                bool last) {
    struct hec_shape result = {0};
    for (int i = 0; !last && i < dims->rank; i++) result.dim[result.rank++] = dims->dim[i];
    for (int i = 0; i < shape->rank; i++) {
        if (hec_shape_find(dims, shape->dim[i].name) < 0) result.dim[result.rank++] = shape->dim[i];
    }
    for (int i = 0; last && i < dims->rank; i++) result.dim[result.rank++] = dims->dim[i];
    return result;
}

bool hec_may_transpose(const struct hec_site *site, const struct hec_node *x) {
    return !site->expert_of || x->batched;
}

const struct hec_node *hec_transpose(struct hec_site *site, const struct hec_node *x,
                                     const struct hec_shape *shape, struct hec_span at) {
    if (hec_stand_at(shape, &x->shape, 0)) return x;
    return hec_add_node(site, (struct hec_node){.kind = HEC_NODE_BUILTIN,
                                                .builtin = HEC_BUILTIN_transpose,
                                                .shape = *shape,
                                                .batched = x->batched,
                                                .at = at,
                                                .operands = 1,
                                                .operand = {x}});
}
