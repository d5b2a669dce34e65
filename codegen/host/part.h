// The loops over the elements of a part of a tensor, and where each lies in the whole.
#ifndef HECATE_CODEGEN_HOST_PART_H
#define HECATE_CODEGEN_HOST_PART_H

#include "codegen/host/nest.h"
#include "ir/ops/parts.h"

// The loops over part `index`, or over the tensor that it is broadcast to.
struct hec_nest hec_part_nest(const struct hec_parts *parts, int index);

// The position of the current element in the whole: "r * A + 128 + j".
const char *hec_part_index(struct hec_emitter *e, const struct hec_nest *nest,
                           const struct hec_parts *parts, int index);

// Whether the innermost loop begins at multiples of `width` elements of the whole for all others: " && A % 8 == 0 &&
// 128 % 8 == 0"; "" if it always does.
const char *hec_part_steps(struct hec_emitter *e, const struct hec_nest *nest,
                           const struct hec_parts *parts, int index, int width);

// Stands for the whole where there is no part: the loops over all of it.
struct hec_nest hec_whole_nest(const struct hec_parts *parts);

#endif
