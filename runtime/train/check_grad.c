// Central differences. On several ranks all of them draw the same elements; a loss is the sum of theirs,
// and an element is changed wherever it is: on its owner, or everywhere.
#include "runtime/train/check_grad.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/random.h"
#include "runtime/experts/fssdp_run.h"
#include "runtime/params/tensor.h"
#include "runtime/train/dense.h"
#include "runtime/train/load_counts.h"
#include "runtime/train/optimizer.h"
#include "runtime/train/ranks.h"

static const double step_size[] = {3e-4, 3e-5, 3e-6};
static const double largest_error = 1e-5, floor_share = 1e-3, rounding_share = 1e6,
                    rough_share = 0.1;
enum { STEP_SIZES = sizeof step_size / sizeof *step_size };
enum { REDRAWS = 20 }; // Elements tried before the check gives up.

struct check {
    struct hrt_state *state;
    struct hrt_load_counts loads;
    int64_t *routed;  // Loads at the parameters themselves.
    double loss;      // There.
    double magnitude; // Below this, gradients count as this large.
    struct hrt_stream stream;
    uint64_t drawn; // Numbers taken from the stream.
    int64_t redrawn;
};

struct finding {
    double error; // Relative.
    double gradient, difference;
};

static int64_t ranks_of(const struct check *check) {
    return check->state->comm ? check->state->comm->size : 1;
}

static double scale_of(const struct check *check) {
    const struct hrt_program *program = check->state->program;
    return 1 / (double)(program->batch * program->positions * ranks_of(check));
}

// The loss over all ranks; `training`: a backward follows.
static double loss_now(struct check *check, bool training) {
    struct hrt_state *state = check->state;
    if (state->fssdp) hrt_experts_fssdp_begin(state->fssdp, training, 0, 1);
    double loss = hrt_params_state_forward(state, state->program->batch, scale_of(check), 1).loss;
    hrt_train_load_counts_clear(&check->loads);
    hrt_train_load_counts_add(&check->loads, state->arena);
    hrt_train_load_counts_collect(&check->loads);
    if (state->comm) hrt_net_comm_all_reduce(state->comm, &loss, 1, HRT_DOUBLE);
    return loss;
}

// Whether all ranks' tokens go where they went at the parameters themselves.
static bool same_routing(const struct check *check) {
    int64_t other = memcmp(check->routed, check->loads.count,
                           (size_t)check->loads.counts * sizeof *check->routed) != 0;
    if (check->state->comm) hrt_net_comm_all_reduce(check->state->comm, &other, 1, HRT_INT64);
    return other == 0;
}

// An element of the parameters. `here`: it is on this rank. `told`: this rank tells its gradient, the only one.
struct element {
    int64_t at;
    bool here, told;
};

static struct element element_at(const struct check *check, const struct hrt_tensor *tensor,
                                 int64_t logical) {
    const struct hrt_state *state = check->state;
    const struct hrt_placement *placement = state->placement;
    const int64_t stored = hrt_params_stored_index(tensor->param, logical);
    struct hrt_params_part part[HRT_VALUES];
    bool has[HRT_VALUES];
    for (int i = 0; i < HRT_VALUES; i++) {
        part[i] = hrt_params_part(state->program, tensor, i, placement->rank);
        has[i] = stored >= part[i].first && stored < part[i].first + part[i].count &&
                 hrt_params_tensor_is_here(placement, tensor);
    }
    // Sums of gradients are where states are; those that all ranks have are of rank 0.
    const bool owned = placement->owner && tensor->param->set >= 0;
    const bool one = owned || hrt_params_is_cut(state->program, tensor->param, HRT_MEANS) ||
                     placement->rank == 0;
    return (struct element){part[HRT_PARAMETERS].offset + stored - part[HRT_PARAMETERS].first,
                            has[HRT_PARAMETERS], has[HRT_MEANS] && one};
}

// The loss with `delta` added to the element; false when tokens went to other experts.
static bool loss_at(struct check *check, struct element element, double delta, double *loss) {
    struct hrt_device *device = &check->state->device;
    double *param = (double *)check->state->values[HRT_PARAMETERS] + element.at, kept = 0;
    if (element.here) hrt_device_read(device, &kept, param, sizeof kept, HRT_WHY_VALUES);
    const double changed = kept + delta;
    if (element.here) hrt_device_write(device, param, &changed, sizeof changed);
    *loss = loss_now(check, false);
    if (element.here) hrt_device_write(device, param, &kept, sizeof kept);
    return same_routing(check);
}

// The derivative by central differences, and how rough the loss is there: the difference of its second differences
// at two widths, per h. For a smooth loss that vanishes like h^3; a kink or a jump between the four points
// leaves at least as much as it adds to the difference, but for a narrow range of places.
static bool difference_at(struct check *check, struct element element, double h, double *difference,
                          double *rough) {
    double near[2], far[2];
    if (!loss_at(check, element, h, &near[0]) || !loss_at(check, element, -h, &near[1]) ||
        !loss_at(check, element, 2 * h, &far[0]) || !loss_at(check, element, -2 * h, &far[1]))
        return false;
    *difference = (8 * (near[0] - near[1]) - (far[0] - far[1])) / (12 * h);
    const double twice = 2 * check->loss;
    *rough = fabs((near[0] + near[1] - twice) - (far[0] + far[1] - twice) / 4) / h;
    return true;
}

// The gradient, that all ranks know.
static double gradient_at(const struct check *check, struct element element) {
    const struct hrt_comm *comm = check->state->comm;
    const double *grads = check->state->values[HRT_GRADIENTS];
    double gradient = 0;
    if (element.told)
        hrt_device_read(&check->state->device, &gradient, grads + element.at, sizeof gradient,
                        HRT_WHY_VALUES);
    if (comm) hrt_net_comm_all_reduce(check->state->comm, &gradient, 1, HRT_DOUBLE);
    return gradient;
}

// Compares at an element; false when every step changes the routing or crosses a kink (of relu, maximum) or
// a jump (of a pick that a capacity drops). Where neither is seen, a bad comparison gets its chance at
// smaller steps.
static bool compare_at(struct check *check, struct element element, struct finding *finding) {
    const double gradient = gradient_at(check, element);
    *finding = (struct finding){.error = -1};
    for (int i = 0; i < STEP_SIZES; i++) {
        double difference, rough;
        if (!difference_at(check, element, step_size[i], &difference, &rough)) continue;
        const double rounding = DBL_EPSILON * fabs(check->loss) / step_size[i];
        const double floor = fmax(check->magnitude, rounding_share * rounding);
        const double size = fmax(floor, fmax(fabs(difference), fabs(gradient)));
        const double error = fabs(difference - gradient) / size;
        if (error > largest_error && rough / size > rough_share * error) continue;
        if (finding->error == -1 || error < finding->error)
            *finding = (struct finding){error, gradient, difference};
        if (error <= largest_error) break;
    }
    return finding->error != -1;
}

static int64_t draw_below(struct check *check, int64_t count) {
    return (int64_t)hrt_draw_below(check->stream, check->drawn++, (uint64_t)count);
}

// Compares at a random element of (param, layer); false when no try was of a smooth place.
static bool check_element(struct check *check, const struct hrt_param *param, int64_t layer,
                          struct finding *finding) {
    const struct hrt_program *program = check->state->program;
    const struct hrt_set *set = param->set < 0 ? NULL : &program->set[param->set];
    for (int try = 0; try < REDRAWS; try++) {
        const int64_t expert = set ? draw_below(check, set->experts) : 0;
        const struct hrt_tensor tensor = hrt_params_tensor_at(program, param, layer, expert);
        const int64_t drawn = draw_below(check, hrt_params_size(param));
        if (compare_at(check, element_at(check, &tensor, drawn), finding)) return true;
        check->redrawn++;
    }
    return false;
}

// The same tokens as one rank that has those of all would draw.
static void draw_tokens(struct check *check) {
    const struct hrt_state *state = check->state;
    const struct hrt_program *program = state->program;
    const int64_t tokens = program->batch * program->positions;
    for (int64_t r = 0; r < ranks_of(check); r++) {
        const bool mine = !state->comm || r == state->comm->rank;
        for (int64_t i = 0; i < tokens; i++) {
            const int32_t id = (int32_t)draw_below(check, program->vocabulary);
            const int32_t target = (int32_t)draw_below(check, program->vocabulary);
            if (!mine) continue;
            state->ids[i] = id;
            state->targets[i] = target;
        }
    }
}

// And teacher entries of them, none for one in five.
static void draw_teacher(struct check *check) {
    const struct hrt_state *state = check->state;
    const struct hrt_program *program = state->program;
    const int64_t count = state->teacher.count;
    for (int64_t r = 0; count && r < ranks_of(check); r++) {
        const bool mine = !state->comm || r == state->comm->rank;
        for (int64_t i = 0; i < program->batch * program->positions * count; i++) {
            const int32_t id = (int32_t)draw_below(check, program->vocabulary);
            const float log_prob = -0.01f * (float)draw_below(check, 500);
            if (!mine) continue;
            state->said.ids[i] = id;
            state->said.log_probs[i] = i / count % 5 == 4 ? -INFINITY : log_prob;
        }
    }
}

static void compute_gradients(struct check *check) {
    struct hrt_state *state = check->state;
    const struct hrt_program *program = state->program;
    draw_tokens(check);
    draw_teacher(check);
    check->loss = loss_now(check, true);
    memcpy(check->routed, check->loads.count, (size_t)check->loads.counts * sizeof *check->routed);
    hrt_train_dense_last(state->dense, true);
    program->backward(state->model, program->batch, state->ids, state->targets, scale_of(check), 1);
    hrt_train_ranks_sum_gradients(state);
    check->magnitude =
        floor_share * hrt_train_grad_norm(state) / sqrt((double)hrt_params_all(program));
}

static bool worse(double error, double than) {
    return !isnan(than) && !(error <= than); // A NaN is the worst and stays.
}

// The worst of `draws` elements in each layer of `param`.
static bool check_param(struct check *check, const struct hrt_param *param, int64_t draws,
                        struct finding *worst, struct hrt_error *error) {
    *worst = (struct finding){0};
    for (int64_t n = 0; n < draws * param->layers; n++) {
        struct finding found;
        if (!check_element(check, param, n / draws, &found))
            return hrt_fail(error,
                            "%s: every small change of an element changes the routing or "
                            "crosses a kink",
                            param->symbol);
        if (worse(found.error, worst->error)) *worst = found;
    }
    return true;
}

static bool check_params(struct check *check, int64_t draws, FILE *out, struct hrt_error *error) {
    const struct hrt_program *program = check->state->program;
    const char *worst_symbol = "";
    struct finding worst = {0}, found;
    for (int i = 0; i < program->params; i++) {
        const struct hrt_param *param = &program->param[i];
        if (!param->trainable) continue;
        if (!check_param(check, param, draws, &found, error)) return false;
        fprintf(out, "%-40s %.3e\n", param->symbol, found.error);
        if (!worse(found.error, worst.error)) continue;
        worst = found;
        worst_symbol = param->symbol;
    }
    fprintf(out, "worst relative error %.3e (%" PRId64 " elements drawn again)\n", worst.error,
            check->redrawn);
    if (worst.error <= largest_error) return true;
    return hrt_fail(error, "a gradient of %s is %.9g, and the difference %.9g: %.3e off",
                    worst_symbol, worst.gradient, worst.difference, worst.error);
}

// All ranks find the same error: one tells.
static bool fail_once(const struct hrt_state *state, struct hrt_error *error) {
    return state->comm ? hrt_train_ranks_agree(state->comm, false, error) : false;
}

bool hrt_train_check_grad(struct hrt_state *state, int64_t draws, uint64_t seed, FILE *out,
                          struct hrt_error *error) {
    if (state->program->precision != HRT_FP64) {
        hrt_fail_usage(error, "--check-grad needs a program of double precision: compile with "
                              "--set train.precision=fp64");
        return fail_once(state, error);
    }
    struct check check = {.state = state, .stream = hrt_stream_make(seed, "check", "")};
    if (!hrt_train_load_counts_create(&check.loads, state->program, &state->device, error))
        return false;
    check.routed = calloc((size_t)check.loads.counts + 1, sizeof *check.routed);
    bool done = check.routed || hrt_fail(error, "out of memory");
    if (done) {
        compute_gradients(&check);
        done = check_params(&check, draws, out, error) || fail_once(state, error);
    }
    free(check.routed);
    hrt_train_load_counts_destroy(&check.loads);
    return done;
}
