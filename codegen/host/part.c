// The loops over the elements of a part of a tensor, and where each lies in the whole.
#include "codegen/host/part.h"

#include "codegen/host/dims.h"
#include "ir/ops/rule.h"

// Before the dimension of the parts no loop goes on: steps of outer loops are of the whole, those behind it of both.
struct hec_nest hec_part_nest(const struct hec_parts *parts, int index) {
    const struct hec_part *part = &parts->part[index];
    const MlirType type = mlirValueGetType(part->value);
    const struct hec_nest joined = hec_nest_of(part->space, 1, &type);
    struct hec_nest nest = {.space = part->space};
    int loop = 0;
    for (int d = 0; d < part->space.rank; d++) {
        const bool first = loop < joined.loops && joined.first[loop] == d;
        loop += first;
        if (first || d == parts->at) nest.first[nest.loops++] = d;
    }
    nest.first[nest.loops] = part->space.rank;
    return nest;
}

const char *hec_part_index(struct hec_emitter *e, const struct hec_nest *nest,
                           const struct hec_parts *parts, int index) {
    const struct hec_tensor whole = hec_tensor_at(parts->whole);
    const int64_t begin = parts->part[index].begin;
    const char *text = NULL;
    bool sum = false;
    for (int loop = 0; loop < nest->loops; loop++) {
        const int from = nest->first[loop], to = nest->first[loop + 1];
        const char *v = hec_nest_variable(nest, loop);
        const char *factor = hec_factor(e, &whole, from, to);
        text = text ? HEC_TEXT(e, sum ? "(%s) * %s + %s" : "%s * %s + %s", text, factor, v) : v;
        sum = loop > 0;
        if (from != parts->at || begin == 0) continue;
        const char *inner =
            to - from > 1 ? HEC_TEXT(e, " * %s", hec_factor(e, &whole, from + 1, to)) : "";
        text = HEC_TEXT(e, "%s + %" PRId64 "%s", text, begin, inner);
        sum = true;
    }
    return text ? text : "0";
}

const char *hec_part_steps(struct hec_emitter *e, const struct hec_nest *nest,
                           const struct hec_parts *parts, int index, int width) {
    const struct hec_tensor whole = hec_tensor_at(parts->whole);
    const int from = nest->first[nest->loops - 1], to = nest->first[nest->loops];
    const int64_t begin = parts->part[index].begin;
    const char *text = "";
    if (nest->loops > 1)
        text = HEC_TEXT(e, " && %s %% %d == 0", hec_factor(e, &whole, from, to), width);
    if (from != parts->at || begin == 0) return text;
    const char *inner =
        to - from > 1 ? HEC_TEXT(e, " * %s", hec_factor(e, &whole, from + 1, to)) : "";
    return HEC_TEXT(e, "%s && %" PRId64 "%s %% %d == 0", text, begin, inner, width);
}

struct hec_nest hec_whole_nest(const struct hec_parts *parts) {
    const MlirType type = mlirValueGetType(parts->whole);
    return hec_nest_of(hec_tensor_of(type), 1, &type);
}
