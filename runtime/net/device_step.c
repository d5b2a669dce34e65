#include "runtime/net/device_step.h"

#include <assert.h>

#include "runtime/device/pages.h"

cudaError_t hrt_net_device_step(struct hkc_lane *lane, const struct hrt_step *step) {
    const int64_t narrow = (int64_t)(step->bytes / sizeof(hk_bf16));
    switch (step->kind) {
    case HRT_COPY:
        return hrt_device_pages_copy(step->to, step->from, step->bytes, lane->stream);
    case HRT_ADD:
        assert(step->type == HRT_FLOAT);
        hkc_add_f32(lane, step->to, step->from, (int64_t)(step->bytes / sizeof(float)));
        break;
    case HRT_NARROW:
        hkc_round_bf16(lane, step->to, step->from, narrow);
        break;
    case HRT_WIDEN:
        hkc_widen_bf16(lane, step->to, step->from, narrow);
        break;
    case HRT_ADD_NARROW:
        hkc_add_bf16(lane, step->to, step->from, narrow);
        break;
    case HRT_NARROW_PAIRS: // Devices have no panels.
    case HRT_SEND:
    case HRT_RECV:
    case HRT_SAME:
        assert(!"a step of the transport");
    }
    return (cudaError_t)lane->error;
}

// ---- batches

static size_t written_bytes(const struct hrt_step *step) {
    return step->kind == HRT_WIDEN ? 2 * step->bytes : step->bytes;
}

static size_t read_bytes(const struct hrt_step *step) {
    return step->kind == HRT_NARROW ? 2 * step->bytes : step->bytes;
}

static bool meet(const void *a, size_t a_bytes, const void *b, size_t b_bytes) {
    return (const char *)a < (const char *)b + b_bytes &&
           (const char *)b < (const char *)a + a_bytes;
}

// Whether the two may be done in any order.
static bool are_apart(const struct hrt_step *a, const struct hrt_step *b) {
    return !meet(a->to, written_bytes(a), b->to, written_bytes(b)) &&
           !meet(a->to, written_bytes(a), b->from, read_bytes(b)) &&
           !meet(a->from, read_bytes(a), b->to, written_bytes(b));
}

static bool is_of_batch(const struct hrt_net_batch *batch, const struct hrt_step *step) {
    bool fits =
        batch->count == 0 || (batch->count < HKC_PIECES_MOST && step->kind == batch->step[0].kind);
    for (int i = 0; i < batch->count && fits; i++) fits = are_apart(&batch->step[i], step);
    return fits;
}

// Whether kernels/cuda/pieces has the kind; the bytes of an element of it.
static bool find_kind(const struct hrt_step *step, enum hkc_pieces_kind *kind, size_t *element) {
    *element = sizeof(hk_bf16);
    switch (step->kind) {
    case HRT_COPY:
        *kind = HKC_PIECES_COPY;
        return step->bytes % sizeof(hk_bf16) == 0;
    case HRT_ADD:
        *kind = HKC_PIECES_ADD;
        *element = sizeof(float);
        return true;
    case HRT_NARROW:
        *kind = HKC_PIECES_NARROW;
        return true;
    case HRT_WIDEN:
        *kind = HKC_PIECES_WIDEN;
        return true;
    default:
        return false;
    }
}

cudaError_t hrt_net_device_flush(struct hrt_net_batch *batch) {
    struct hkc_piece piece[HKC_PIECES_MOST];
    enum hkc_pieces_kind kind = HKC_PIECES_COPY;
    size_t element;
    const int count = batch->count;
    batch->count = 0;
    if (count == 0) return cudaSuccess;
    if (count == 1) return hrt_net_device_step(batch->lane, &batch->step[0]);
    for (int i = 0; i < count; i++) {
        const struct hrt_step *step = &batch->step[i];
        find_kind(step, &kind, &element);
        piece[i] = (struct hkc_piece){step->to, step->from, (int64_t)(step->bytes / element)};
    }
    hkc_pieces(batch->lane, kind, piece, count);
    return (cudaError_t)batch->lane->error;
}

cudaError_t hrt_net_device_gather(struct hrt_net_batch *batch, const struct hrt_step *step) {
    enum hkc_pieces_kind kind;
    size_t element;
    cudaError_t status = cudaSuccess;
    const bool has_kind = find_kind(step, &kind, &element);
    if (!has_kind || !is_of_batch(batch, step)) status = hrt_net_device_flush(batch);
    if (status != cudaSuccess) return status;
    if (!has_kind) return hrt_net_device_step(batch->lane, step);
    batch->step[batch->count++] = *step;
    return cudaSuccess;
}
