// The update of selection biases, where they lie.
#include "runtime/train/bias.h"

#include <assert.h>

#include "kernels/select_bias/select_bias.h"
#include "runtime/params/snapshot.h"

static void update(struct hrt_state *state, const struct hrt_loads *load, const int64_t *counts,
                   const int64_t *counted) {
    const struct hrt_program *program = state->program;
    const struct hrt_set *set = &program->set[load->set];
    const struct hrt_param *bias = &program->param[load->select_bias];
    const int64_t layers = set->layers, experts = set->experts, stride = bias->elements;
    float *values = (float *)state->values[HRT_PARAMETERS] + bias->offset;
    struct hrt_device *device = &state->device;
    assert(bias->layout == HRT_ROWS && bias->layers == layers);
    hrt_params_snapshot_change(state->snapshot, bias->offset, layers * stride);
    if (hrt_device_is_apart(device)) {
        device->backend->select_bias(device, values, counted, layers, experts, stride,
                                     load->bias_rate, state->clipped);
    } else if (program->precision == HRT_FP64) {
        hk_select_bias_f64((double *)state->values[HRT_PARAMETERS] + bias->offset, counts, layers,
                           experts, stride, load->bias_rate, NULL);
    } else {
        hk_select_bias_f32(values, counts, layers, experts, stride, load->bias_rate, NULL);
    }
}

void hrt_train_bias_update(struct hrt_state *state, const struct hrt_load_counts *loads) {
    const struct hrt_program *program = state->program;
    for (int i = 0; i < program->loads; i++) {
        const struct hrt_loads *load = &program->load[i];
        if (load->select_bias < 0) continue;
        const int64_t *counts = hrt_train_load_counts_of(loads, i);
        const int64_t *counted = loads->counted ? loads->counted + (counts - loads->count) : NULL;
        update(state, load, counts, counted);
    }
}
