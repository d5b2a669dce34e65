// Parts of tensors: slice, its gradient, concat. A kernel for each part.
#include "codegen/host/function.h"
#include "codegen/host/part.h"
#include "codegen/targets/cuda/ops.h"
#include "codegen/targets/cuda/store.h"

// Moves part `index` between the whole and where the part lies; `back`: to the whole.
static void move_part(struct hec_emitter *e, MlirOperation op, const struct hec_parts *parts,
                      int index, bool back) {
    const MlirValue value = parts->part[index].value;
    const MlirValue to = back ? parts->whole : value, from = back ? value : parts->whole;
    struct hec_device_loop loop = {.nest = hec_part_nest(parts, index)};
    loop.threads = loop.nest.loops;
    const int to_at = hec_cuda_point(e, &loop, to, HEC_DEVICE_WRITTEN);
    const int from_at = hec_cuda_point(e, &loop, from, HEC_DEVICE_READ);
    loop.pointer[back ? to_at : from_at].parts = parts;
    loop.pointer[back ? to_at : from_at].part = index;
    hec_device_loop_begin(e, &loop, hec_cuda_base(e, op));
    hec_cuda_store(e, &loop, hec_device_number(e, &loop, 1));
    hec_device_loop_end(e, &loop);
}

void hec_cuda_slice(struct hec_emitter *e, MlirOperation op) {
    struct hec_parts parts;
    if (hec_parts_of(op, &parts)) move_part(e, op, &parts, 0, false);
}

void hec_cuda_slice_grad(struct hec_emitter *e, MlirOperation op) {
    struct hec_parts parts;
    if (!hec_parts_of(op, &parts)) return;
    struct hec_device_loop loop = {.nest = hec_whole_nest(&parts)};
    loop.threads = loop.nest.loops;
    hec_cuda_point(e, &loop, parts.whole, HEC_DEVICE_WRITTEN);
    hec_device_loop_begin(e, &loop, hec_cuda_base(e, op));
    hec_cuda_store(e, &loop, "0");
    hec_device_loop_end(e, &loop);
    move_part(e, op, &parts, 0, true);
}

void hec_cuda_concat(struct hec_emitter *e, MlirOperation op) {
    struct hec_parts parts;
    if (!hec_parts_of(op, &parts)) return;
    for (int i = 0; i < parts.count; i++) move_part(e, op, &parts, i, true);
}
