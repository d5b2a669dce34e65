// Loops over the elements of a tensor, as few as the tensors involved allow.
#include "codegen/host/nest.h"

#include "codegen/host/dims.h"

static const char *const variables[][3] = {{"j"}, {"r", "j"}, {"n", "r", "j"}};
static const char *const deep_variables[] = {"n", "n1", "n2", "n3", "n4", "n5", "r", "j"};

const char *hec_nest_variable(const struct hec_nest *nest, int loop) {
    if (nest->loops <= 3) return variables[nest->loops - 1][loop];
    return loop + 2 < nest->loops ? deep_variables[loop]
                                  : deep_variables[6 + loop - (nest->loops - 2)];
}

// Whether dimensions `d` and `d + 1` of the space stand side by side in `t`, or are both missing.
static bool joined(const struct hec_tensor *space, int d, const struct hec_tensor *t) {
    const int a = hec_tensor_find(t, space->dim[d]), b = hec_tensor_find(t, space->dim[d + 1]);
    return a < 0 ? b < 0 : b == a + 1;
}

struct hec_nest hec_nest_of(struct hec_tensor space, int types, const MlirType *type) {
    struct hec_nest nest = {.space = space};
    for (int d = 0; d < space.rank; d++) {
        bool together = d > 0;
        for (int i = 0; together && i < types; i++) {
            const struct hec_tensor t = hec_tensor_of(type[i]);
            together = joined(&space, d - 1, &t);
        }
        if (!together) nest.first[nest.loops++] = d;
    }
    nest.first[nest.loops] = space.rank;
    return nest;
}

const char *hec_nest_extent(struct hec_emitter *e, const struct hec_nest *nest, int loop) {
    return hec_product(e, &nest->space, nest->first[loop], nest->first[loop + 1]);
}

static int loop_of(const struct hec_nest *nest, MlirStringRef dim) {
    const int at = hec_tensor_find(&nest->space, dim);
    for (int loop = 0; at >= 0 && loop < nest->loops; loop++) {
        if (at < nest->first[loop + 1]) return loop;
    }
    return -1;
}

const char *hec_nest_index(struct hec_emitter *e, const struct hec_nest *nest, MlirType type) {
    const struct hec_tensor t = hec_tensor_of(type);
    const char *text = NULL;
    bool sum = false;
    for (int d = 0; d < t.rank; d++) {
        const int loop = loop_of(nest, t.dim[d]);
        if (loop < 0) continue; // Reported by the verifier: no dimension of the space.
        if (!mlirStringRefEqual(t.dim[d], nest->space.dim[nest->first[loop]])) continue;
        const char *v = hec_nest_variable(nest, loop);
        if (!text) {
            text = v;
            continue;
        }
        text = HEC_TEXT(e, sum ? "(%s) * %s + %s" : "%s * %s + %s", text,
                        hec_factor(e, &nest->space, nest->first[loop], nest->first[loop + 1]), v);
        sum = true;
    }
    return text ? text : "0";
}
