// AdamW by spans; clipping.
#include "runtime/train/optimizer.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/adamw/adamw.h"
#include "kernels/sum_squares/sum_squares.h"
#include "runtime/device/device.h"
#include "runtime/net/comm.h"
#include "runtime/params/placement.h"
#include "runtime/params/rounded.h"
#include "runtime/params/snapshot.h"
#include "runtime/params/tensor.h"
#include "runtime/train/dense.h"
#include "runtime/train/ranks.h"

static int by_offset(const void *a, const void *b) {
    const struct hrt_span *left = a, *right = b;
    return (left->offset > right->offset) - (left->offset < right->offset);
}

static enum hrt_copy copy_of(const struct hrt_param *param) {
    if (!param->rounded) return HRT_COPY_NONE;
    if (param->layout == HRT_ROWS) return HRT_COPY_ROWS;
    const bool pairs = param->rows % 2 == 0 && param->elements % (2 * HK_PANEL) == 0;
    return pairs ? HRT_COPY_PAIRS : HRT_COPY_APART;
}

static bool are_alike(const struct hrt_span *a, const struct hrt_span *b) {
    return a->rates.lr_scale == b->rates.lr_scale && a->rates.decay == b->rates.decay &&
           a->copy == b->copy && a->copy != HRT_COPY_APART && !a->matrix && !b->matrix;
}

static struct hrt_param_rates rates_of(const struct hrt_tensor *tensor) {
    const struct hrt_param *param = tensor->param;
    if (param->layer_rates) return param->layer_rates[tensor->layer];
    return (struct hrt_param_rates){.lr_scale = param->lr_scale > 0 ? param->lr_scale : 1,
                                    .decay = param->decay ? param->decay_rate : -1};
}

// Joins neighbours. AdamW is elementwise, so this changes no result.
static int64_t join(struct hrt_span *span, int64_t spans) {
    int64_t joined = 0;
    for (int64_t i = 0; i < spans; i++) {
        struct hrt_span *last = joined ? &span[joined - 1] : NULL;
        if (last && last->offset + last->count == span[i].offset && are_alike(last, &span[i])) {
            last->count += span[i].count;
        } else {
            span[joined++] = span[i];
        }
    }
    return joined;
}

bool hrt_train_optimizer_create(struct hrt_optimizer *optimizer,
                                const struct hrt_placement *placement, struct hrt_error *error) {
    const struct hrt_program *program = placement->program;
    int64_t tensors = 0;
    for (int i = 0; i < program->params; i++)
        tensors += hrt_params_tensors(program, &program->param[i]);
    *optimizer = (struct hrt_optimizer){
        .span = malloc(((size_t)tensors + 1) * sizeof *optimizer->span),
    };
    if (!optimizer->span) return hrt_fail(error, "out of memory");
    hrt_train_optimizer_collect(optimizer, placement);
    return true;
}

bool hrt_train_optimizer_use_muon(struct hrt_optimizer *optimizer, struct hrt_state *state,
                                  struct hrt_error *error) {
    if (!hrt_train_muon_create(&optimizer->muon, state->program, &state->device, error))
        return false;
    optimizer->matrices = true;
    hrt_train_optimizer_collect(optimizer, state->placement);
    return true;
}

void hrt_train_optimizer_collect(struct hrt_optimizer *optimizer,
                                 const struct hrt_placement *placement) {
    const struct hrt_program *program = placement->program;
    struct hrt_tensor tensor = {0};
    struct hrt_span *span = optimizer->span;
    int64_t spans = 0;
    while (hrt_params_tensor_next_here(placement, &tensor)) {
        const struct hrt_param *param = tensor.param;
        const struct hrt_params_part part =
            hrt_params_part(program, &tensor, HRT_MEANS, placement->rank);
        const bool shared = hrt_params_is_cut(program, param, HRT_MEANS);
        if (!param->trainable || part.count == 0) continue;
        span[spans++] = (struct hrt_span){
            .offset = part.offset,
            .count = part.count,
            .rates = rates_of(&tensor),
            .matrix = optimizer->matrices && param->muon,
            .shared = shared,
            .copy = shared ? HRT_COPY_NONE : copy_of(param), // No rank has all of it yet.
            .param = param,
        };
    }
    qsort(span, (size_t)spans, sizeof *span, by_offset);
    optimizer->spans = join(span, spans);
}

void hrt_train_optimizer_destroy(struct hrt_optimizer *optimizer) {
    free(optimizer->span);
    hrt_train_muon_destroy(&optimizer->muon);
    *optimizer = (struct hrt_optimizer){0};
}

// The learning rate and decay of a span.
static void set_rates(struct hk_adamw_rule *rule, const struct hrt_span *span, double lr,
                      double decay) {
    const double own = span->rates.decay;
    rule->lr = lr * span->rates.lr_scale;
    rule->decay = own < 0 ? 0 : own > 0 ? own : decay;
}

static void update(struct hrt_state *state, const struct hrt_span *span,
                   const struct hk_adamw_rule *rule) {
    const int64_t at = span->offset;
    if (state->program->precision == HRT_FP64) {
        double *const *values = (double *const *)state->values;
        hk_adamw_f64(values[HRT_PARAMETERS] + at, values[HRT_GRADIENTS] + at,
                     values[HRT_MEANS] + at, values[HRT_VARIANCES] + at, span->count, rule);
        return;
    }
    float *const *values = (float *const *)state->values;
    float *param = values[HRT_PARAMETERS] + at, *grad = values[HRT_GRADIENTS] + at;
    float *mean = values[HRT_MEANS] + at, *variance = values[HRT_VARIANCES] + at;
    struct hrt_device *device = &state->device;
    if (hrt_device_is_apart(device)) {
        assert(span->copy == HRT_COPY_NONE || span->copy == HRT_COPY_ROWS); // It has no panels.
        hk_bf16 *rounded = span->copy == HRT_COPY_ROWS ? (hk_bf16 *)state->rounded + at : NULL;
        device->backend->adamw(device, param, rounded, grad, mean, variance, span->count, rule);
        return;
    }
    if (span->copy == HRT_COPY_ROWS || span->copy == HRT_COPY_PAIRS) {
        hk_adamw_rounded_f32(param, (hk_bf16 *)state->rounded + at, grad, mean, variance,
                             span->count, span->copy == HRT_COPY_ROWS ? HK_ROWS : HK_PANELS, rule);
        return;
    }
    hk_adamw_f32(param, grad, mean, variance, span->count, rule);
    if (span->copy == HRT_COPY_APART) // While it is in cache.
        hrt_params_round_tensor(span->param, param, (hk_bf16 *)state->rounded + at);
}

// ---- matrices of Muon

static void *place_of(const struct hrt_state *state, enum hrt_values values, int64_t offset) {
    return (char *)state->values[values] +
           offset * hrt_params_element_bytes(state->program->precision);
}

// `count` elements from those of the span on: neighbours, on a device.
static void round_matrices(struct hrt_state *state, const struct hrt_span *span, int64_t count) {
    struct hrt_device *device = &state->device;
    const int64_t at = span->offset;
    if (span->copy == HRT_COPY_NONE) return;
    if (hrt_device_is_apart(device))
        device->backend->round(device, (hk_bf16 *)state->rounded + at,
                               place_of(state, HRT_PARAMETERS, at), count);
    else
        hrt_params_round_tensor(span->param, place_of(state, HRT_PARAMETERS, at),
                                (hk_bf16 *)state->rounded + at);
}

static struct hk_muon_rule muon_rule_of(const struct hk_adamw_rule *rule,
                                        const struct hrt_config *config) {
    return (struct hk_muon_rule){.lr = rule->lr,
                                 .momentum = config->train_optimizer_momentum,
                                 .norm_eps = config->train_optimizer_norm_eps,
                                 .decay = rule->decay,
                                 .grad_scale = rule->grad_scale,
                                 .clipped = rule->clipped};
}

// The gradients of tensors that lie one behind the other become the matrices that have to be orthogonal; those of
// tensors that ranks share, once their parts have come together (move_shared).
static void look_ahead(const struct hrt_optimizer *optimizer, struct hrt_state *state,
                       const struct hrt_span *span, int64_t count,
                       const struct hk_muon_rule *rule) {
    hrt_train_muon_look_ahead(&optimizer->muon, state->program->precision,
                              place_of(state, HRT_GRADIENTS, span->offset),
                              place_of(state, HRT_MEANS, span->offset), count, rule);
}

static bool are_moved_alike(const struct hrt_span *a, const struct hrt_span *b) {
    return a->param == b->param && a->rates.lr_scale == b->rates.lr_scale &&
           a->rates.decay == b->rates.decay;
}

// Moves the tensors among `spans` that are like the first one and not moved yet, as many as Muon takes at a time.
static void move_alike(const struct hrt_optimizer *optimizer, struct hrt_state *state,
                       struct hrt_span *span, int64_t spans, const struct hk_muon_rule *rule) {
    struct hrt_muon_matrix matrix[HRT_MUON_MOST];
    int64_t matrices = 0;
    for (int64_t i = 0; i < spans && matrices < optimizer->muon.most; i++) {
        if (!span[i].waits || !are_moved_alike(span, &span[i])) continue;
        span[i].waits = false;
        matrix[matrices++] =
            (struct hrt_muon_matrix){place_of(state, HRT_PARAMETERS, span[i].offset),
                                     place_of(state, HRT_GRADIENTS, span[i].offset)};
    }
    hrt_train_muon_move(&optimizer->muon, span->param, state->program->precision, matrix, matrices,
                        0, span->count, rule);
}

// The matrices among the spans that lie behind the first one without a gap, and are kept as it is; on the host the
// first one alone, which is in cache then.
static int64_t neighbours_of(const struct hrt_state *state, const struct hrt_span *span,
                             int64_t spans, int64_t *count) {
    int64_t found = 1;
    *count = span->count;
    while (found < spans && hrt_device_is_apart(&state->device) && span[found].matrix &&
           span[found].offset == span->offset + *count && span[found].copy == span->copy &&
           span[found].shared == span->shared)
        *count += span[found++].count;
    return found;
}

// The first of `spans`, which is a matrix, and its neighbours. Returns how many.
static int64_t begin_matrices(const struct hrt_optimizer *optimizer, struct hrt_state *state,
                              struct hrt_span *span, int64_t spans,
                              const struct hk_muon_rule *rule) {
    int64_t count;
    const int64_t found = neighbours_of(state, span, spans, &count);
    hrt_params_snapshot_change(state->snapshot, span->offset, count);
    look_ahead(optimizer, state, span, count, rule);
    for (int64_t i = 0; i < found; i++) span[i].waits = !span->shared;
    return found;
}

// Moves all of `spans` that wait for it, then clears their gradients and rounds them.
static void end_matrices(const struct hrt_optimizer *optimizer, struct hrt_state *state,
                         struct hrt_span *span, int64_t spans, struct hk_adamw_rule *rule,
                         double lr, const struct hrt_config *config) {
    const size_t element = (size_t)hrt_params_element_bytes(state->program->precision);
    for (int64_t i = 0; i < spans; i++) {
        if (!span[i].waits) continue;
        set_rates(rule, &span[i], lr, config->train_optimizer_decay);
        const struct hk_muon_rule muon = muon_rule_of(rule, config);
        move_alike(optimizer, state, span + i, spans - i, &muon);
    }
    for (int64_t i = 0, count; i < spans;) {
        const struct hrt_span *first = &span[i];
        if (!first->matrix || first->shared) {
            i++;
            continue;
        }
        i += neighbours_of(state, first, spans - i, &count);
        hrt_device_clear(&state->device, place_of(state, HRT_GRADIENTS, first->offset),
                         (size_t)count * element);
        round_matrices(state, first, count);
    }
}

// All matrices among the spans; on the host one after the other.
static void update_matrices(const struct hrt_optimizer *optimizer, struct hrt_state *state,
                            struct hk_adamw_rule *rule, double lr,
                            const struct hrt_config *config) {
    const bool apart = hrt_device_is_apart(&state->device);
    const struct hk_muon_rule ahead = muon_rule_of(rule, config);
    for (int64_t i = 0; i < optimizer->spans;) {
        struct hrt_span *span = &optimizer->span[i];
        if (!span->matrix) {
            i++;
            continue;
        }
        i += begin_matrices(optimizer, state, span, optimizer->spans - i, &ahead);
        if (!apart) end_matrices(optimizer, state, span, 1, rule, lr, config);
    }
    if (apart) end_matrices(optimizer, state, optimizer->span, optimizer->spans, rule, lr, config);
}

// Brings the matrices that ranks share, one after the other, and moves this rank's parts of them. Collective.
static void move_shared(const struct hrt_optimizer *optimizer, struct hrt_state *state,
                        const struct hrt_config *config, struct hk_adamw_rule *rule, double lr) {
    const struct hrt_program *program = state->program;
    const int64_t element = hrt_params_element_bytes(program->precision);
    struct hrt_tensor tensor = {0};
    while (hrt_params_tensor_next(program, &tensor)) {
        const struct hrt_param *param = tensor.param;
        if (!param->muon || !param->trainable || !hrt_params_is_cut(program, param, HRT_MEANS))
            continue;
        const void *ahead =
            hrt_train_dense_bring_gradient(state->dense, &tensor, optimizer->muon.shared);
        const struct hrt_params_part part =
            hrt_params_part(program, &tensor, HRT_MEANS, state->placement->rank);
        if (part.count == 0) continue;
        const struct hrt_span span = {.rates = rates_of(&tensor)};
        set_rates(rule, &span, lr, config->train_optimizer_decay);
        const struct hk_muon_rule muon = muon_rule_of(rule, config);
        const struct hrt_muon_matrix matrix = {place_of(state, HRT_PARAMETERS, part.offset), ahead};
        hrt_train_muon_move(&optimizer->muon, param, program->precision, &matrix, 1, part.first,
                            part.count, &muon);
        hrt_device_clear(&state->device, place_of(state, HRT_GRADIENTS, part.offset),
                         (size_t)(part.count * element));
    }
}

void hrt_train_optimizer_step(const struct hrt_optimizer *optimizer, struct hrt_state *state,
                              const struct hrt_config *config, int64_t step, double lr,
                              double grad_scale) {
    const struct hrt_program *program = state->program;
    struct hk_adamw_rule rule = {
        .beta1 = config->train_optimizer_betas[0],
        .beta2 = config->train_optimizer_betas[1],
        .eps = config->train_optimizer_eps,
        .grad_scale = grad_scale,
        .correction1 = 1 - pow(config->train_optimizer_betas[0], (double)(step + 1)),
        .correction2 = 1 - pow(config->train_optimizer_betas[1], (double)(step + 1)),
        .clipped = state->clipped,
    };
    for (int64_t i = 0; i < optimizer->spans; i++) {
        const struct hrt_span *span = &optimizer->span[i];
        if (span->matrix) continue;
        set_rates(&rule, span, lr, config->train_optimizer_decay);
        hrt_params_snapshot_change(state->snapshot, span->offset, span->count);
        update(state, span, &rule);
    }
    if (optimizer->matrices) update_matrices(optimizer, state, &rule, lr, config);
    if (state->dense && optimizer->matrices) move_shared(optimizer, state, config, &rule, lr);
    if (program->dense == HRT_DENSE_STATES) // Parts of others come, too.
        hrt_params_snapshot_change(state->snapshot, 0, program->param_elements);
    if (state->dense) hrt_train_dense_publish(state->dense);
    if (program->dense == HRT_DENSE_STATES) hrt_params_state_round(state);
}

// Sums the squares of `arrays` arrays of `count` gradients, one behind the other.
static void sum_squares(struct hrt_state *state, double *sum, int64_t offset, int64_t count,
                        int64_t arrays) {
    const void *grads = state->values[HRT_GRADIENTS];
    struct hrt_device *device = &state->device;
    if (hrt_device_is_apart(device)) {
        device->backend->sum_squares(device, sum, (const float *)grads + offset, count, arrays);
        return;
    }
    for (int64_t i = 0; i < arrays; i++, offset += count)
        sum[i] = state->program->precision == HRT_FP64
                     ? hk_sum_squares_f64((const double *)grads + offset, count)
                     : hk_sum_squares_f32((const float *)grads + offset, count);
}

// The sums of `count` chunks that lie side by side, from chunk `first` of a set on. Frozen parameters have no
// gradient.
static void sum_run(struct hrt_state *state, double *sum, int index, int64_t first, int64_t count) {
    const struct hrt_set *set = &state->program->set[index];
    int64_t begin;
    const int64_t trained = hrt_params_trained(state->program, index, &begin);
    const int64_t offset = set->offset + first * set->chunk_elements;
    if (trained == set->chunk_elements) {
        sum_squares(state, sum, offset, set->chunk_elements, count);
        return;
    }
    if (trained == 0) hrt_device_clear(&state->device, sum, (size_t)count * sizeof *sum);
    for (int64_t i = 0; trained && i < count; i++)
        sum_squares(state, sum + i, offset + i * set->chunk_elements + begin, trained, 1);
}

// The chunks' sums of squares, [chunks] in global order; a rank fills in those that it holds.
static void sum_chunks(struct hrt_state *state, double *sum) {
    const struct hrt_program *program = state->program;
    for (int i = 0; i < program->sets; i++) {
        const struct hrt_set *set = &program->set[i];
        const int64_t chunks = set->layers * set->experts;
        int64_t held = 0; // Right before the chunk.
        for (int64_t chunk = 0; chunk <= chunks; chunk++) {
            if (chunk < chunks &&
                hrt_params_owns(state->placement, i, chunk / set->experts, chunk % set->experts)) {
                held++;
                continue;
            }
            if (held > 0) sum_run(state, sum + chunk - held, i, chunk - held, held);
            held = 0;
        }
        sum += chunks;
    }
}

// Those of one rank, in the order that hrt_train_grad_norm gives.
static void sum_all(struct hrt_state *state) {
    const struct hrt_program *program = state->program;
    double *sum = state->sums;
    for (int i = 0; i < program->params; i++) {
        const struct hrt_param *param = &program->param[i];
        if (param->set >= 0 || !param->trainable) continue;
        const int64_t tensors = hrt_params_tensors(program, param);
        sum_squares(state, sum, param->offset, param->elements, tensors);
        sum += tensors;
    }
    sum_chunks(state, sum);
}

// How many there are.
static int64_t sums_of(const struct hrt_program *program) {
    int64_t sums = hrt_train_ranks_chunks(program);
    for (int i = 0; i < program->params; i++) {
        const struct hrt_param *param = &program->param[i];
        if (param->set < 0 && param->trainable) sums += hrt_params_tensors(program, param);
    }
    return sums;
}

// Sums the squares of this rank's part, on the device, and waits for it. `sum`: scratch, one per tensor.
static double ask_own_squares(struct hrt_state *state, double *sum) {
    const int64_t tensors = hrt_train_dense_ask_squares(state->dense, sum);
    double all = 0;
    hrt_device_join(&state->device, HRT_WHY_NORM);
    for (int64_t i = 0; i < tensors; i++) all += sum[i];
    return all;
}

// The ranks' own sums, then the chunks': [world + chunks], each filled in by one rank.
static double sum_ranks(struct hrt_state *state) {
    const struct hrt_program *program = state->program;
    const int64_t sums = program->world + (program->owned ? hrt_train_ranks_chunks(program) : 0);
    double *all = state->sums, sum = 0;
    memset(all, 0, (size_t)sums * sizeof *all);
    if (program->owned) sum_chunks(state, all + program->world);
    all[state->comm->rank] = hrt_device_is_apart(&state->device)
                                 ? ask_own_squares(state, all + sums)
                                 : hrt_train_dense_own_squares(state->dense);
    hrt_net_comm_all_reduce(state->comm, all, sums, HRT_DOUBLE);
    for (int64_t i = 0; i < sums; i++) sum += all[i];
    return sum;
}

double hrt_train_grad_norm(struct hrt_state *state) {
    if (state->dense) return sqrt(sum_ranks(state));
    const int64_t sums = sums_of(state->program);
    double sum = 0;
    sum_all(state);
    for (int64_t i = 0; i < sums; i++) sum += state->sums[i];
    return sqrt(sum);
}

void hrt_train_grad_clip(struct hrt_state *state, struct hrt_graph *squares, const float *losses,
                         int64_t count, double clip, int64_t skips) {
    struct hrt_device *device = &state->device;
    if (!hrt_device_graph_run(squares, device)) {
        sum_all(state);
        hrt_device_graph_end(squares);
    }
    device->backend->clip(device, state->clipped, state->sums, sums_of(state->program), losses,
                          count, clip, skips);
}
