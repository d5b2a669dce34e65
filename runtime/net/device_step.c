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

// Floats that a step adds to those at `to`, or brings there; 0: it is of another kind.
static size_t floats_of(const struct hrt_step *step, bool adds) {
    switch (step->kind) {
    case HRT_ADD:
        return step->bytes / sizeof(float);
    case HRT_ADD_NARROW:
        return step->bytes / sizeof(hk_bf16);
    case HRT_COPY:
        return adds || step->bytes % sizeof(float) ? 0 : step->bytes / sizeof(float);
    case HRT_WIDEN:
        return adds ? 0 : step->bytes / sizeof(hk_bf16);
    default:
        return 0;
    }
}

// Whether the step adds to the place that those of the batch bring something to.
static bool is_term(const struct hrt_net_batch *batch, const struct hrt_step *step) {
    const struct hrt_step *first = &batch->step[0];
    const size_t floats = floats_of(step, true);
    return (batch->count == 1 || batch->sums) && batch->count < HKC_TERMS_MOST && floats > 0 &&
           step->to == first->to && floats_of(first, false) == floats &&
           !meet(step->to, floats * sizeof(float), step->from, read_bytes(step)) &&
           !meet(first->to, floats * sizeof(float), first->from, read_bytes(first));
}

static bool is_of_batch(const struct hrt_net_batch *batch, const struct hrt_step *step) {
    bool fits = !batch->sums && batch->count < HKC_PIECES_MOST && step->kind == batch->step[0].kind;
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

static void sum_terms(const struct hrt_net_batch *batch) {
    const struct hrt_step *step = batch->step;
    struct hkc_term term[HKC_TERMS_MOST];
    for (int i = 0; i < batch->count; i++) {
        const bool narrow = step[i].kind == HRT_ADD_NARROW || step[i].kind == HRT_WIDEN;
        term[i] = (struct hkc_term){step[i].from, narrow};
    }
    const bool adds = floats_of(&step[0], true) > 0;
    hkc_sum_terms(batch->lane, step[0].to, adds, term, batch->count,
                  (int64_t)floats_of(&step[0], false));
}

static void run_pieces(const struct hrt_net_batch *batch) {
    struct hkc_piece piece[HKC_PIECES_MOST];
    enum hkc_pieces_kind kind = HKC_PIECES_COPY;
    size_t element;
    for (int i = 0; i < batch->count; i++) {
        const struct hrt_step *step = &batch->step[i];
        find_kind(step, &kind, &element);
        piece[i] = (struct hkc_piece){step->to, step->from, (int64_t)(step->bytes / element)};
    }
    hkc_pieces(batch->lane, kind, piece, batch->count);
}

cudaError_t hrt_net_device_flush(struct hrt_net_batch *batch) {
    cudaError_t status = cudaSuccess;
    if (batch->count == 1) {
        status = hrt_net_device_step(batch->lane, &batch->step[0]);
    } else if (batch->count > 1) {
        if (batch->sums) {
            sum_terms(batch);
        } else {
            run_pieces(batch);
        }
        status = (cudaError_t)batch->lane->error;
    }
    batch->count = 0;
    batch->sums = false;
    return status;
}

cudaError_t hrt_net_device_gather(struct hrt_net_batch *batch, const struct hrt_step *step) {
    enum hkc_pieces_kind kind;
    size_t element;
    cudaError_t status = cudaSuccess;
    const bool is_piece = find_kind(step, &kind, &element), adds = floats_of(step, true) > 0;
    const bool sums = is_term(batch, step);
    const bool joins = batch->count == 0 || sums || (is_piece && is_of_batch(batch, step));
    if (!joins || !(is_piece || adds)) status = hrt_net_device_flush(batch);
    if (status != cudaSuccess) return status;
    if (!is_piece && !adds) return hrt_net_device_step(batch->lane, step);
    batch->sums = sums;
    batch->step[batch->count++] = *step;
    return cudaSuccess;
}
