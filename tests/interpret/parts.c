// Dimensions in another order, and parts of tensors along one dimension. A part has another dimension there, whose elements are the whole's from
// `begin` on; further dimensions that it lacks are broadcast.
#include "ir/accessors.h"
#include "tests/interpret/machine.h"

// The one dimension that `t` does not share with either of the others.
static int own_dim(const struct tensor *t, const struct tensor *a, const struct tensor *b) {
    for (int i = 0; i < t->shape.rank; i++) {
        if (hec_tensor_find(&a->shape, t->shape.dim[i]) < 0 &&
            hec_tensor_find(&b->shape, t->shape.dim[i]) < 0)
            return i;
    }
    return 0;
}

// Calls back for each element of the part, broadcast: where it lies in the whole, and in the part.
static void walk(const struct tensor *whole, int at, const struct tensor *part, int64_t begin,
                 struct tensor *to_whole, struct tensor *to_part) {
    struct hec_tensor space = whole->shape;
    const int own = own_dim(part, whole, whole);
    space.dim[at] = part->shape.dim[own], space.size[at] = part->shape.size[own];
    int64_t from[HEC_IR_RANK_MAX], in_whole[HEC_IR_RANK_MAX];
    strides_of(&part->shape, &space, from);
    strides_of(&whole->shape, &space, in_whole);
    in_whole[at] = 1;
    for (int i = at + 1; i < whole->shape.rank; i++) in_whole[at] *= whole->shape.size[i];
    for (int64_t e = 0; e < elements(&space); e++) {
        const int64_t there = offset_of(&space, in_whole, e) + begin * in_whole[at];
        const int64_t here = offset_of(&space, from, e);
        if (to_whole) to_whole->at[there] = part->at[here];
        if (to_part) to_part->at[here] = whole->at[there];
    }
}

void run_slice(struct machine *m, MlirOperation op) {
    const struct tensor *a = in(m, op, 0);
    struct tensor *r = out(m, op, 0);
    walk(a, own_dim(a, r, r), r, hec_get_int(op, "begin"), NULL, r);
}

void run_transpose(struct machine *m, MlirOperation op) {
    const struct tensor *a = in(m, op, 0);
    struct tensor *r = out(m, op, 0);
    int64_t from[HEC_IR_RANK_MAX];
    strides_of(&a->shape, &r->shape, from);
    for (int64_t e = 0; e < elements(&r->shape); e++)
        r->at[e] = a->at[offset_of(&r->shape, from, e)];
}

void run_slice_grad(struct machine *m, MlirOperation op) {
    const struct tensor *dr = in(m, op, 0);
    struct tensor *da = out(m, op, 0);
    fill(da, 0);
    walk(da, own_dim(da, dr, dr), dr, hec_get_int(op, "begin"), da, NULL);
}

void run_concat(struct machine *m, MlirOperation op) {
    const struct tensor *a = in(m, op, 0), *b = in(m, op, 1);
    struct tensor *r = out(m, op, 0);
    const int at = own_dim(r, a, b);
    walk(r, at, a, 0, r, NULL);
    walk(r, at, b, a->shape.size[own_dim(a, r, r)], r, NULL);
}
