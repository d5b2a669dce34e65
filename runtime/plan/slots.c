// slots.c: how many replicas a policy may ask of a device, and their bytes.
#include "runtime/plan/slots.h"

#include "runtime/plan/schedule.h"
#include "runtime/plan/work.h"

// A chunk is passed on piece by piece, so there are a few even of a small one, as long as each is worth a
// message.
enum { SEGMENT_BYTES = 256 << 10, SEGMENT_LEAST = 16 << 10, SEGMENTS = 4, LINE = 64 };

static int64_t most_replicas(const struct hpl_slots_request *request) {
    const int64_t even = (request->experts + request->devices - 1) / request->devices;
    switch (request->policy->replicas) {
    case HPL_REPLICAS_NONE:
        return 0;
    case HPL_REPLICAS_SLOTS:
        return request->slots;
    case HPL_REPLICAS_EVEN:
        return even + request->slots;
    case HPL_REPLICAS_OWNED:
        return hpl_max(even, request->owned) + request->slots;
    case HPL_REPLICAS_EVERY:
        return request->experts;
    }
    return request->experts;
}

static int64_t divide_up(int64_t count, int64_t by) {
    return (count + by - 1) / by;
}

static int64_t segments_of(int64_t bytes) {
    const int64_t few = hpl_min(SEGMENTS, bytes / SEGMENT_LEAST);
    return hpl_min(HPL_SEGMENTS_MAX, hpl_max(1, hpl_max(few, divide_up(bytes, SEGMENT_BYTES))));
}

struct hpl_slots hpl_slots_of(const struct hpl_slots_request *request) {
    const int64_t experts = request->experts, devices = request->devices;
    const int64_t replicas = devices == 1 ? 0 : hpl_min(most_replicas(request), experts);
    struct hpl_slots slots = {
        .replicas = (int32_t)replicas,
        .holders = (int32_t)hpl_min(experts * devices, experts + devices * replicas),
        .grad_layers = (int32_t)(request->for_step ? request->layers : hpl_min(request->layers, 2)),
        .segments = (int32_t)segments_of(hpl_max(request->grad_bytes, request->param_bytes)),
        .param_stride = divide_up(request->param_bytes, LINE) * LINE,
        .grad_stride = divide_up(request->grad_bytes, LINE) * LINE,
    };
    if (replicas == 0) return slots;
    const int64_t segment = divide_up(divide_up(request->grad_bytes, slots.segments), LINE) * LINE;
    slots.params = replicas * slots.param_stride * (request->rematerialize ? 1 : request->layers);
    slots.grads = replicas * slots.grad_stride * slots.grad_layers;
    slots.staging = HPL_STAGED * segment;
    return slots;
}

int32_t hpl_paying_rows(int64_t param_bytes, int64_t grad_bytes, int64_t row_bytes) {
    const int64_t rows = divide_up(param_bytes + grad_bytes, 4 * hpl_max(row_bytes, 1));
    return (int32_t)hpl_max(1, hpl_min(rows, HPL_ROWS_MAX));
}
