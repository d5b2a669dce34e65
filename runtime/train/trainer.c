// The training step.
#include "runtime/train/trainer.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/noise/noise.h"
#include "runtime/base/clock.h"
#include "runtime/experts/change_owners.h"
#include "runtime/experts/experts.h"
#include "runtime/experts/fssdp_run.h"
#include "runtime/params/tensor.h"
#include "runtime/train/bias.h"
#include "runtime/train/dense.h"
#include "runtime/train/outputs.h"
#include "runtime/train/ranks.h"
#include "runtime/train/teacher.h"

enum { FORWARDS = 0 }; // A mark behind all forwards of a step, on several ranks.

// Sets batch, iterations and tokens.
static bool divide_tokens(struct hrt_trainer *trainer, struct hrt_error *error) {
    const struct hrt_program *program = trainer->program;
    const int64_t ranks = trainer->comm->size;
    const int64_t iteration = program->positions * program->batch * ranks;
    const int64_t row = program->positions * ranks; // One sequence on each rank.
    const int64_t tokens =
        trainer->config->train_tokens ? trainer->config->train_tokens : iteration;
    const int64_t unit = tokens < iteration ? row : iteration;
    if (tokens % unit) {
        const int64_t below = tokens / unit * unit;
        char nearest[96];
        if (below > 0)
            snprintf(nearest, sizeof nearest, "%" PRId64 " or %" PRId64, below, below + unit);
        else
            snprintf(nearest, sizeof nearest, "%" PRId64, unit);
        return hrt_fail_usage(error,
                              "train.tokens is %" PRId64 ", which is not a multiple of %" PRId64
                              " (positions %" PRId64 " x microbatch %" PRId64 " x ranks %" PRId64
                              "); nearest: %s",
                              tokens, unit, program->positions, unit / row, ranks, nearest);
    }
    trainer->batch = tokens < iteration ? tokens / row : program->batch;
    const int64_t group = trainer->config->train_group, sequences = trainer->batch * ranks;
    if (group && sequences % group)
        return hrt_fail_usage(error,
                              "train.tokens is %" PRId64 ", %" PRId64 " sequences, but train.group "
                              "is %" PRId64 ": they have to be whole groups",
                              tokens, sequences, group);
    if (trainer->batch % trainer->data->group)
        return hrt_fail_usage(error,
                              "train.tokens is %" PRId64 ", one sequence a rank, but "
                              "train.objective = dpo compares two; nearest: %" PRId64,
                              tokens, 2 * row);
    trainer->iterations = tokens / (row * trainer->batch);
    trainer->tokens = tokens;
    trainer->targets = (double)(tokens / program->positions * trainer->data->targets);
    return true;
}

static bool create_flights(struct hrt_trainer *trainer, struct hrt_error *error) {
    struct hrt_state *state = trainer->state;
    const int64_t tokens = trainer->batch * state->program->positions;
    trainer->ahead = state->clipped;
    trainer->flights = trainer->ahead ? 2 : hrt_device_is_apart(&state->device) ? 1 : 0;
    for (int i = 0; i < trainer->flights; i++) {
        if (!hrt_train_flight_create(&trainer->flight[i], state, trainer->iterations, tokens,
                                     trainer->loads.counts, error))
            return false;
    }
    return true;
}

static bool create_passes(struct hrt_trainer *trainer, struct hrt_error *error) {
    if (!hrt_train_batch_create(&trainer->passes, trainer->state, trainer->batch, error))
        return false;
    trainer->passes.scale = 1 / trainer->targets;
    trainer->passes.auxiliary_scale = 1 / (double)trainer->iterations;
    return true;
}

bool hrt_train_trainer_plan(struct hrt_trainer *trainer, const struct hrt_program *program,
                            const struct hrt_config *config, struct hrt_comm *comm,
                            const struct hrt_data *data, struct hrt_error *error) {
    *trainer =
        (struct hrt_trainer){.program = program, .config = config, .comm = comm, .data = data};
    return divide_tokens(trainer, error);
}

bool hrt_train_trainer_create(struct hrt_trainer *trainer, struct hrt_state *state,
                              struct hrt_error *error) {
    trainer->state = state;
    if (hrt_train_optimizer_create(&trainer->optimizer, state->placement, error) &&
        (trainer->config->train_optimizer != HRT_OPTIMIZER_muon ||
         hrt_train_optimizer_use_muon(&trainer->optimizer, state, error)) &&
        hrt_train_load_counts_create(&trainer->loads, state->program, &state->device, error) &&
        hrt_train_watch_create(&trainer->watch, state, trainer->comm, error) &&
        create_flights(trainer, error) && create_passes(trainer, error))
        return true;
    hrt_train_trainer_destroy(trainer);
    return false;
}

void hrt_train_trainer_destroy(struct hrt_trainer *trainer) {
    for (int i = 0; i < trainer->flights; i++)
        hrt_train_flight_destroy(&trainer->flight[i], trainer->state);
    hrt_train_batch_destroy(&trainer->passes);
    hrt_device_graph_destroy(&trainer->squares);
    hrt_train_optimizer_destroy(&trainer->optimizer);
    hrt_train_load_counts_destroy(&trainer->loads);
    hrt_train_watch_destroy(&trainer->watch);
}

void hrt_train_trainer_go_on(struct hrt_trainer *trainer, int64_t from, int64_t drawn,
                             int64_t skipped) {
    trainer->from = from;
    trainer->drawn = drawn;
    trainer->skipped = skipped;
}

bool hrt_train_note_evaluation(struct hrt_trainer *trainer, int64_t step, double loss) {
    struct hrt_best *best = &trainer->best;
    const bool better = isfinite(loss) && (best->step == 0 || loss < best->loss);
    best->worse = better ? 0 : best->worse + 1;
    if (!better) return false;
    best->step = step;
    best->loss = loss;
    return true;
}

static int64_t sequences_of_step(const struct hrt_trainer *trainer) {
    return trainer->iterations * trainer->comm->size * trainer->batch;
}

int64_t hrt_train_last_step(const struct hrt_trainer *trainer, double epochs) {
    const double left = epochs * (double)hrt_data_epoch(trainer->data) - (double)trainer->drawn;
    const double steps = ceil(left / (double)sequences_of_step(trainer));
    const int64_t last = trainer->from + (int64_t)fmin(fmax(steps, 0), 1e12);
    return last > 1 ? last : 1;
}

int64_t hrt_train_trainer_sequences(const struct hrt_trainer *trainer, int64_t step) {
    return trainer->drawn + (step - trainer->from) * sequences_of_step(trainer);
}

int64_t hrt_train_first_sequence(const struct hrt_trainer *trainer, int64_t step,
                                 int64_t iteration) {
    const int64_t before = iteration * trainer->comm->size + trainer->comm->rank;
    return hrt_train_trainer_sequences(trainer, step) + before * trainer->batch;
}

// The flight of the step that is being queued, or NULL where the host computes.
static const struct hrt_flight *flight_of(const struct hrt_trainer *trainer) {
    return trainer->flights ? &trainer->flight[trainer->asked % trainer->flights] : NULL;
}

// Draws this rank's sequences of an iteration, from number `first` on, and where their tokens are forced to.
static bool draw_batch(struct hrt_trainer *trainer, int64_t step, int64_t iteration, int64_t first,
                       struct hrt_error *error) {
    const int64_t positions = trainer->program->positions;
    const struct hrt_flight *flight = flight_of(trainer);
    int32_t *ids = flight ? flight->ids + iteration * flight->tokens : trainer->state->ids;
    int32_t *targets =
        flight ? flight->targets + iteration * flight->tokens : trainer->state->targets;
    const struct hrt_said said =
        flight ? hrt_train_flight_values(flight, iteration) : trainer->state->said;
    if (trainer->route && !hrt_route_force(trainer->route, step, first, error)) return false;
    for (int64_t i = 0; i < trainer->batch; i++) {
        const uint64_t seed = (uint64_t)trainer->config->train_seed, number = (uint64_t)(first + i);
        if (!hrt_data_draw(trainer->data, seed, number, ids + i * positions,
                           targets + i * positions, error) ||
            !hrt_train_teacher_draw(trainer->state, trainer->data, seed, number, said, i, error))
            return false;
    }
    return true;
}

// Where routes are known before a step, ranks tell each other their counts, from which the next plans are made.
// A rank that cannot read its routes tells the counts that it has, as the others wait for it.
static bool foresee(const struct hrt_trainer *trainer, int64_t step, int64_t iteration,
                    struct hrt_error *error) {
    struct hrt_fssdp *fssdp = trainer->state->fssdp;
    uint32_t *known = hrt_experts_fssdp_known(fssdp);
    if (!known) return true;
    const bool lasts = trainer->program->movement->lifetime == HPL_LIFETIME_STEP;
    if (lasts && iteration > 0) return true;
    const bool sound = hrt_route_count(
        trainer->route, step, hrt_train_first_sequence(trainer, step, iteration),
        trainer->comm->size * trainer->batch, lasts ? trainer->iterations : 1, known, error);
    hrt_experts_fssdp_foresee(fssdp);
    return sound;
}

// Switches jitter and dropout on for the sequences from number `first` on, or off. A device finds the number where
// it was told last: kernels that are recorded have no other.
static void set_noise(const struct hrt_trainer *trainer, bool on, int64_t first) {
    const struct hrt_state *state = trainer->state;
    if (!state->program->noise_offset) return;
    struct hk_noise *noise = (void *)((char *)state->model + state->program->noise_offset);
    const uint64_t number = (uint64_t)first;
    *noise =
        (struct hk_noise){.on = on, .seed = (uint64_t)trainer->config->train_seed, .first = number};
    if (!on || !trainer->passes.first) return;
    hrt_device_write(&trainer->state->device, trainer->passes.first, &number, sizeof number);
    noise->first_then = trainer->passes.first;
}

// Tells losses per batch which iteration of the step follows; 0: none of a step.
static void set_iteration(const struct hrt_state *state, int64_t iteration) {
    if (!state->program->iteration_offset) return;
    *(int64_t *)((char *)state->model + state->program->iteration_offset) = iteration;
}

// Adds the losses of an iteration to those of its step, sum [HRT_LOSSES_MOST]: as struct hrt_losses has them, but for the
// auxiliary ones, which are a mean.
static void add_losses(const struct hrt_trainer *trainer, const struct hrt_losses *losses,
                       double *sum) {
    sum[0] += losses->loss;
    sum[1] += losses->cross_entropy;
    sum[2] += losses->auxiliary * trainer->passes.auxiliary_scale;
    for (int i = 0; i < trainer->program->losses; i++) sum[HRT_LOSSES + i] += losses->named[i];
}

static void report_losses(struct hrt_step_report *report, const double *sum) {
    report->loss = sum[0];
    report->cross_entropy = sum[1];
    report->auxiliary = sum[2];
    memcpy(report->named.value, sum + HRT_LOSSES, sizeof report->named.value);
}

// Sets the sum of the weights of a step's targets, over all iterations and ranks, and with it the scale of losses.
// Each rank counts those of all, so all have the same scale before the first iteration, and nothing is sent.
static bool count_targets(struct hrt_trainer *trainer, int64_t step, struct hrt_error *error) {
    const uint64_t seed = (uint64_t)trainer->config->train_seed;
    const uint64_t first = (uint64_t)hrt_train_trainer_sequences(trainer, step);
    if (!trainer->data->weighted) return true;
    if (!hrt_data_draw_targets(trainer->data, seed, first, sequences_of_step(trainer),
                               &trainer->targets, error))
        return false;
    trainer->passes.scale = trainer->targets > 0 ? 1 / trainer->targets : 0;
    return true;
}

// Forward and backward of every iteration. `sum`: of the losses where the host computes; a device with separate memory
// leaves them in the step's flight. A rank whose data fails goes on with what it has, as the others wait for it.
static bool iterate(struct hrt_trainer *trainer, int64_t step, double *sum,
                    struct hrt_error *error) {
    struct hrt_state *state = trainer->state;
    const struct hrt_flight *flight = flight_of(trainer);
    const bool repeats =
        !trainer->data->weighted && (!trainer->route || hrt_route_is_free(trainer->route));
    bool sound = count_targets(trainer, step, error);
    state->device.losses_later = flight;
    hrt_train_load_counts_clear(&trainer->loads);
    for (int64_t i = 0; i < trainer->iterations; i++) {
        const int64_t first = hrt_train_first_sequence(trainer, step, i);
        hrt_profile_enter(trainer->profile, HRT_PHASE_DATA);
        const bool foreseen = foresee(trainer, step, i, error);
        sound = sound && foreseen && draw_batch(trainer, step, i, first, error);
        if (flight) hrt_train_batch_bring(&trainer->passes, flight, i);
        set_noise(trainer, true, first);
        set_iteration(state, i + 1);
        hrt_profile_enter(trainer->profile, HRT_PHASE_FORWARD);
        if (state->fssdp) hrt_experts_fssdp_begin(state->fssdp, true, i, trainer->iterations);
        const struct hrt_losses losses = hrt_train_batch_forward(&trainer->passes, repeats);
        hrt_profile_enter(trainer->profile, HRT_PHASE_OTHER);
        if (flight)
            hrt_device_fetch_losses(&state->device, flight->losses + i * state->device.loss_count);
        hrt_train_load_counts_add(&trainer->loads, state->arena);
        // Fetches the sums before backward is done; sums over ranks then need not wait for it.
        if (flight && !trainer->ahead && i + 1 == trainer->iterations) {
            hrt_train_flight_fetch_counts(flight, state, &trainer->loads);
            hrt_device_mark(&state->device, FORWARDS);
        }
        if (trainer->route) hrt_route_record(trainer->route, i, first);
        hrt_profile_enter(trainer->profile, HRT_PHASE_BACKWARD);
        hrt_train_dense_last(state->dense, i + 1 == trainer->iterations);
        hrt_train_batch_backward(&trainer->passes, repeats);
        hrt_profile_enter(trainer->profile, HRT_PHASE_OTHER);
        set_noise(trainer, false, 0);
        set_iteration(state, 0);
        add_losses(trainer, &losses, sum);
    }
    state->device.losses_later = false;
    if (trainer->route) hrt_route_end_step(trainer->route);
    return sound;
}

// The losses, summed over iterations, and the counts of a step whose flight the device has done.
static void read_flight(struct hrt_trainer *trainer, const struct hrt_flight *flight, double *sum) {
    const int count = trainer->state->device.loss_count;
    for (int64_t i = 0; i < trainer->iterations; i++) {
        const float *left = flight->losses + i * count;
        struct hrt_losses losses = {
            .loss = left[0], .cross_entropy = left[1], .auxiliary = left[2]};
        for (int k = HRT_LOSSES; k < count; k++) losses.named[k - HRT_LOSSES] = left[k];
        add_losses(trainer, &losses, sum);
    }
    memcpy(trainer->loads.count, flight->count, (size_t)flight->counts * sizeof *flight->count);
}

// The same; losses are summed over iterations and ranks. With the sums all ranks learn of one whose data has failed.
static bool accumulate(struct hrt_trainer *trainer, int64_t step, struct hrt_step_report *report,
                       struct hrt_error *error) {
    double sum[HRT_WATCH_OWN] = {0}; // Behind the losses: ranks that failed.
    const struct hrt_flight *flight = flight_of(trainer);
    double none[HRT_LOSSES_MOST] = {0};
    trainer->passes.sums = sum + HRT_WATCH_POLICY;
    const bool sound = iterate(trainer, step, flight ? none : sum, error);
    trainer->passes.sums = NULL;
    hrt_profile_enter(trainer->profile, HRT_PHASE_RANKS);
    if (flight) {
        hrt_device_await(&trainer->state->device, FORWARDS, HRT_WHY_LOSSES);
        read_flight(trainer, flight, sum);
    }
    sum[HRT_LOSSES_MOST] = !sound;
    hrt_train_watch_gather(&trainer->watch, sum);
    hrt_net_comm_all_reduce(trainer->comm, trainer->loads.count, trainer->loads.counts, HRT_INT64);
    if (flight) hrt_train_flight_return_counts(flight, trainer->state, &trainer->loads);
    hrt_train_watch_layers(&trainer->watch, &trainer->loads);
    report->moved = hrt_train_watch_moved(&trainer->watch);
    report_losses(report, sum);
    memcpy(report->policy, sum + HRT_WATCH_POLICY, sizeof report->policy);
    return sum[HRT_LOSSES_MOST] == 0 || hrt_train_ranks_agree(trainer->comm, sound, error);
}

// Names the tensor if a gradient of the slice is not finite.
static bool fail_slice(const struct hrt_program *program, const struct hrt_slice *slice,
                       int64_t step, struct hrt_error *error) {
    enum { BLOCK = 1024 };
    double block[BLOCK]; // Or floats.
    for (int64_t i = 0; i < slice->run; i++) {
        const int64_t left = slice->run - i;
        if (i % BLOCK == 0)
            hrt_params_slice_read(program, slice, slice->first + i, left < BLOCK ? left : BLOCK,
                                  block);
        const double value = hrt_params_element(block, program->precision, i % BLOCK);
        if (isfinite(value)) continue;
        char path[HRT_PATH_MAX];
        hrt_params_tensor_path(&slice->tensor, path);
        hrt_fail(error, "step %" PRId64 ": the gradient of %s is not finite (%g); training stops",
                 step + 1, path, value);
        return true;
    }
    return false;
}

// Names the first tensor of this rank whose gradient is not finite. False, and no error: none.
static bool find_not_finite(struct hrt_state *state, int64_t step, struct hrt_error *error) {
    const struct hrt_buffer grads = hrt_params_state_buffer(state, HRT_GRADIENTS);
    struct hrt_tensor tensor = {0};
    while (hrt_params_tensor_next_here(state->placement, &tensor)) {
        struct hrt_slice slice = {.tensor = tensor};
        if (!tensor.param->trainable) continue; // It has none.
        while (hrt_params_slice_visit(&grads, &slice)) {
            if (fail_slice(state->program, &slice, step, error)) return true;
        }
    }
    return false;
}

// The norm, which all ranks know, is not finite: the first rank that finds a tensor names it.
static bool fail_not_finite(const struct hrt_trainer *trainer, int64_t step,
                            struct hrt_error *error) {
    const bool found = find_not_finite(trainer->state, step, error);
    if (!hrt_train_ranks_agree(trainer->comm, !found, error)) return false;
    hrt_fail(error,
             "step %" PRId64 ": the norm of the gradients is too large for a number; "
             "training stops",
             step + 1);
    return hrt_train_ranks_agree(trainer->comm, false, error);
}

static bool fail_loss(const struct hrt_trainer *trainer, const struct hrt_step_report *step,
                      struct hrt_error *error) {
    hrt_fail(error, "step %" PRId64 ": the loss is not finite (%g); training stops", step->step,
             step->loss);
    return hrt_train_ranks_agree(trainer->comm, false, error); // All of them find it.
}

// Whether one more step may change nothing. All ranks know the numbers that it depends on.
static bool may_skip(const struct hrt_trainer *trainer) {
    return trainer->skipped < trainer->config->train_skip_max;
}

// Leaves the parameters as they are, and no gradient behind.
static void skip(struct hrt_trainer *trainer, struct hrt_step_report *report) {
    struct hrt_state *state = trainer->state;
    const int64_t bytes = hrt_params_element_bytes(state->program->precision);
    struct hrt_tensor tensor = {0};
    while (hrt_params_tensor_next_here(state->placement, &tensor)) {
        if (!tensor.param->trainable) continue; // Its gradient is 0.
        const struct hrt_params_part part =
            hrt_params_part(state->program, &tensor, HRT_GRADIENTS, state->placement->rank);
        hrt_device_clear(&state->device, (char *)state->values[HRT_GRADIENTS] + part.offset * bytes,
                         (size_t)(part.count * bytes));
    }
    report->skipped = true;
    trainer->skipped++;
}

static void update(struct hrt_trainer *trainer, int64_t step,
                   const struct hrt_step_report *report) {
    hrt_train_optimizer_step(
        &trainer->optimizer, trainer->state, trainer->config, step, report->lr,
        hk_clip_scale(trainer->config->train_optimizer_clip, report->grad_norm));
    hrt_profile_enter(trainer->profile, HRT_PHASE_OTHER);
    hrt_train_bias_update(trainer->state, &trainer->loads);
    trainer->skipped = 0;
}

// A step that the host waits for where it needs a number.
static bool take(struct hrt_trainer *trainer, int64_t step, struct hrt_step_report *report,
                 struct hrt_error *error) {
    if (!accumulate(trainer, step, report, error)) return false;
    if (!isfinite(report->loss) && !may_skip(trainer)) return fail_loss(trainer, report, error);
    hrt_train_ranks_sum_gradients(
        trainer->state); // Also of a step that is skipped: they are under way.
    hrt_profile_enter(trainer->profile, HRT_PHASE_OPTIMIZER);
    report->grad_norm = hrt_train_grad_norm(trainer->state);
    const bool finite = isfinite(report->loss) && isfinite(report->grad_norm);
    if (!finite && !may_skip(trainer)) return fail_not_finite(trainer, step, error);
    if (finite)
        update(trainer, step, report);
    else
        skip(trainer, report);
    if (trainer->state->fssdp)
        report->resharded = hrt_experts_fssdp_end_step(trainer->state->fssdp);
    if (report->resharded)
        hrt_train_optimizer_collect(&trainer->optimizer, trainer->state->placement);
    return true;
}

// A step that the device takes by itself. The host then waits for the one before.
static bool launch(struct hrt_trainer *trainer, int64_t step, struct hrt_step_report *report,
                   struct hrt_error *error) {
    struct hrt_state *state = trainer->state;
    const int slot = (int)(trainer->asked % 2);
    const struct hrt_flight *flight = flight_of(trainer);
    double none[HRT_LOSSES_MOST] = {0};
    if (!iterate(trainer, step, none, error)) return false;
    hrt_profile_enter(trainer->profile, HRT_PHASE_OPTIMIZER);
    hrt_train_grad_clip(state, &trainer->squares, flight->losses,
                        trainer->iterations * state->device.loss_count,
                        trainer->config->train_optimizer_clip, trainer->config->train_skip_max);
    hrt_train_optimizer_step(&trainer->optimizer, state, trainer->config, step, report->lr, 1);
    hrt_train_bias_update(state, &trainer->loads);
    hrt_profile_enter(trainer->profile, HRT_PHASE_OTHER);
    hrt_train_flight_fetch(flight, state, &trainer->loads);
    hrt_device_mark(&state->device, slot);
    if (trainer->reported < trainer->asked)
        hrt_device_await(&state->device, 1 - slot, HRT_WHY_REPORT);
    return true;
}

bool hrt_train_trainer_ask(struct hrt_trainer *trainer, int64_t step, struct hrt_error *error) {
    struct hrt_step_report *report = &trainer->step[trainer->asked % 2];
    if (trainer->asked == trainer->reported) trainer->since = hrt_base_now();
    const struct hrt_program *program = trainer->program;
    *report = (struct hrt_step_report){
        .step = step + 1,
        .lr = hrt_train_learning_rate(&trainer->rates, step),
        .objective = (enum hrt_objective)trainer->config->train_objective,
        .named = {.count = program->losses, .loss = program->loss},
    };
    hrt_profile_begin_step(trainer->profile, step + 1);
    hrt_train_watch_begin(&trainer->watch);
    if (!(trainer->ahead ? launch : take)(trainer, step, report, error)) return false;
    trainer->asked++;
    hrt_train_watch_end(&trainer->watch);
    hrt_profile_end_step(trainer->profile);
    return true;
}

// Waits for what the device has left.
static bool land(struct hrt_trainer *trainer, struct hrt_step_report *report,
                 struct hrt_error *error) {
    const int slot = (int)(trainer->reported % 2);
    const struct hrt_flight *flight = &trainer->flight[slot];
    double sum[HRT_LOSSES_MOST] = {0};
    hrt_device_await(&trainer->state->device, slot, HRT_WHY_REPORT);
    read_flight(trainer, flight, sum);
    report_losses(report, sum);
    report->grad_norm = flight->clipped->norm;
    report->skipped = flight->clipped->stopped == HK_STEP_SKIPPED;
    if (report->skipped) return true;
    if (!isfinite(report->loss)) return fail_loss(trainer, report, error);
    return isfinite(report->grad_norm) || fail_not_finite(trainer, report->step - 1, error);
}

// By the mean of steps, in which a step counts a tenth less than the one after it.
static double time_left(struct hrt_trainer *trainer, const struct hrt_step_report *report) {
    const double share = trainer->pace > 0 ? 0.1 : 1;
    trainer->pace += share * (report->seconds - trainer->pace);
    return trainer->pace * (double)(trainer->config->train_steps - report->step);
}

bool hrt_train_trainer_report(struct hrt_trainer *trainer, struct hrt_step_report *report,
                              struct hrt_error *error) {
    *report = trainer->step[trainer->reported % 2];
    if (trainer->ahead && !land(trainer, report, error)) {
        trainer->reported = trainer->asked;
        return false;
    }
    const double now = hrt_base_now();
    report->routers = hrt_train_routers_of(&trainer->loads);
    report->seconds = now - trainer->since;
    report->tokens_per_s = (double)trainer->tokens / report->seconds;
    report->watched = hrt_train_watch_sums(&trainer->watch);
    report->left = time_left(trainer, report);
    report->flops = trainer->program->flops_per_token * report->tokens_per_s;
    trainer->since = now;
    trainer->reported++;
    return true;
}

bool hrt_train_trainer_step(struct hrt_trainer *trainer, int64_t step,
                            struct hrt_step_report *report, struct hrt_error *error) {
    return hrt_train_trainer_ask(trainer, step, error) &&
           hrt_train_trainer_report(trainer, report, error);
}
