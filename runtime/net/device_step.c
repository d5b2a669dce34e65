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
