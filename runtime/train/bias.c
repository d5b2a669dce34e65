// The update of selection biases.
#include "runtime/train/bias.h"

#include "runtime/params/tensor.h"

// Integers decide the sign: load * experts against the sum, so no rounding is involved.
static void update_layer(const struct hrt_state *state, int64_t offset, const int64_t *count,
                         int64_t experts, double rate) {
    const enum hrt_precision precision = state->program->precision;
    int64_t sum = 0;
    for (int64_t e = 0; e < experts; e++) sum += count[e];
    for (int64_t e = 0; e < experts; e++) {
        const int64_t excess = count[e] * experts - sum;
        const double bias = hrt_element(state->params, precision, offset + e);
        const double move = excess > 0 ? -rate : excess < 0 ? rate : 0;
        hrt_element_set(state->params, precision, offset + e, bias + move);
    }
}

void hrt_bias_update(const struct hrt_state *state, const struct hrt_load_counts *loads) {
    const struct hrt_program *program = state->program;
    for (int i = 0; i < program->loads; i++) {
        const struct hrt_loads *load = &program->load[i];
        if (load->select_bias < 0) continue;
        const struct hrt_set *set = &program->set[load->set];
        const struct hrt_param *bias = &program->param[load->select_bias];
        const int64_t *count = hrt_load_counts_of(loads, i);
        for (int64_t layer = 0; layer < set->layers; layer++) {
            update_layer(state, bias->offset + layer * bias->elements, count + layer * set->experts,
                         set->experts, load->bias_rate);
        }
    }
}
