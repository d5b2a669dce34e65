// The update of selection biases.
#include "runtime/train/bias.h"

#include "runtime/params/tensor.h"

// Integers decide the sign: load * experts against the sum, so no rounding is involved.
static void update_layer(struct hrt_state *state, const struct hrt_tensor *tensor,
                         const int64_t *count, int64_t experts, double rate) {
    const enum hrt_precision precision = state->program->precision;
    const int64_t element = hrt_element_bytes(precision);
    char *biases = state->values[HRT_PARAMETERS];
    int64_t sum = 0;
    for (int64_t e = 0; e < experts; e++) sum += count[e];
    for (int64_t e = 0; e < experts; e++) {
        const int64_t excess = count[e] * experts - sum;
        const int64_t at = tensor->offset + hrt_stored_index(tensor->param, e);
        const double move = excess > 0 ? -rate : excess < 0 ? rate : 0;
        double bias; // Or a float.
        hrt_device_read(&state->device, &bias, biases + at * element, (size_t)element,
                        HRT_WHY_VALUES);
        hrt_element_set(&bias, precision, 0, hrt_element(&bias, precision, 0) + move);
        hrt_device_write(&state->device, biases + at * element, &bias, (size_t)element);
    }
}

void hrt_bias_update(struct hrt_state *state, const struct hrt_load_counts *loads) {
    const struct hrt_program *program = state->program;
    for (int i = 0; i < program->loads; i++) {
        const struct hrt_loads *load = &program->load[i];
        if (load->select_bias < 0) continue;
        const struct hrt_set *set = &program->set[load->set];
        const struct hrt_param *bias = &program->param[load->select_bias];
        const int64_t *count = hrt_load_counts_of(loads, i);
        for (int64_t layer = 0; layer < set->layers; layer++) {
            const struct hrt_tensor tensor = hrt_tensor_at(program, bias, layer, 0);
            update_layer(state, &tensor, count + layer * set->experts, set->experts,
                         load->bias_rate);
        }
    }
}
