// Test of experts that move, under every policy, run by mpirun: a layer of toy experts is trained, and
// everything it computes is what one process that holds all experts computes, exactly. Inputs are small
// integers, so that sums do not depend on their order.
//
// Expert: y = gate * (w * x), element by element; its chunk begins with w.
#include "runtime/experts/change_owners.h"
#include "runtime/experts/experts.h"
#include "runtime/experts/moves.h"
#include "tests/runtime/ranks_case.h"
#include "tests/runtime/support/moving.h"

static struct hrt_comm comm;

#define CHECK(condition) RANKS_CHECK(&comm, condition)

enum {
    LAYERS = 3,
    EXPERTS_MAX = 8,
    PICKS = 2,
    WIDTH = 3,
    TOKENS = 24,
    CHUNK = 3000, // More than two pages, so that some are given back.
    STEPS = 8,
    ITERATIONS = 3,
};

struct shape {
    const char *policy;
    int64_t experts, slots, overlap;
    bool rematerialize, even, one_expert; // All tokens pick the same experts.
    enum hpl_calibrates calibrate;
    enum hpl_lifetime lifetime;
};

struct run {
    struct shape shape;
    const struct hpl_policy *policy;
    struct moving m;
    int64_t time;                        // Iterations so far.
    int64_t replicas, calibrated, moved; // Seen.
    // The state of one process: parameters, gradients of the step, their sums over steps.
    float w[LAYERS][EXPERTS_MAX][WIDTH], g[LAYERS][EXPERTS_MAX][WIDTH];
    float mean[LAYERS][EXPERTS_MAX][WIDTH];
};

static struct {
    int32_t ids[TOKENS * PICKS], first[EXPERTS_MAX + 1];
    float x[TOKENS * WIDTH], weights[TOKENS * PICKS], dy[TOKENS * WIDTH], out[TOKENS * WIDTH];
    float dweights[TOKENS * PICKS];
    float rows[TOKENS * PICKS * WIDTH], gate[TOKENS * PICKS], results[TOKENS * PICKS * WIDTH];
    float drows[TOKENS * PICKS * WIDTH], dgate[TOKENS * PICKS];
} b;

// ---- inputs, by rank, layer and time

static uint32_t mixed(int64_t a, int64_t c, int64_t d, int64_t e) {
    uint64_t sequence = (uint64_t)(a * 1000003 + c * 10007 + d * 101 + e);
    for (int i = 0; i < 3; i++) moving_draw(&sequence, 2);
    return moving_draw(&sequence, 1u << 30);
}

// Skewed: low numbers are picked more often, and which ones drifts.
static int32_t id_of(const struct run *run, int rank, int64_t layer, int64_t pair) {
    const int64_t experts = run->shape.experts, token = pair / PICKS;
    if (run->shape.one_expert) return (int32_t)((layer + pair % PICKS) % experts);
    const uint32_t a = mixed(run->time, rank, layer, token) % 64;
    const int64_t e = (a < 30 ? 0 : a < 45 ? 1 : a) + run->time / 6;
    const int64_t second = 1 + mixed(rank, token, 5, run->time) % (experts > 1 ? experts - 1 : 1);
    return (int32_t)((pair % PICKS == 0 ? e : e + second) % experts);
}

static float small(uint32_t number) {
    return (float)(number % 5) - 2;
}

static float x_of(const struct run *run, int rank, int64_t token, int64_t i) {
    return small(mixed(run->time, rank, token, i + 100));
}

static float dy_of(const struct run *run, int rank, int64_t token, int64_t i) {
    return small(mixed(run->time, rank, token, i + 200));
}

static float weight_of(const struct run *run, int rank, int64_t pair) {
    return (float)(1 + mixed(run->time, rank, pair, 300) % 2);
}

static void fill_inputs(const struct run *run, int64_t layer) {
    for (int64_t p = 0; p < TOKENS * PICKS; p++) {
        b.ids[p] = id_of(run, comm.rank, layer, p);
        b.weights[p] = weight_of(run, comm.rank, p);
    }
    for (int64_t i = 0; i < TOKENS * WIDTH; i++) {
        b.x[i] = x_of(run, comm.rank, i / WIDTH, i % WIDTH);
        b.dy[i] = dy_of(run, comm.rank, i / WIDTH, i % WIDTH);
    }
}

// ---- what one process computes

static void check_output(const struct run *run, int64_t layer) {
    for (int64_t t = 0; t < TOKENS; t++) {
        for (int64_t i = 0; i < WIDTH; i++) {
            float y = 0;
            for (int64_t p = t * PICKS; p < (t + 1) * PICKS; p++)
                y += b.weights[p] * run->w[layer][b.ids[p]][i] * b.x[t * WIDTH + i];
            CHECK(b.out[t * WIDTH + i] == y);
        }
    }
}

static void check_input_grads(const struct run *run, int64_t layer) {
    for (int64_t p = 0; p < TOKENS * PICKS; p++) {
        const int64_t t = p / PICKS;
        float dweight = 0;
        for (int64_t i = 0; i < WIDTH; i++)
            dweight += run->w[layer][b.ids[p]][i] * b.x[t * WIDTH + i] * b.dy[t * WIDTH + i];
        CHECK(b.dweights[p] == dweight);
    }
    for (int64_t t = 0; t < TOKENS; t++) {
        for (int64_t i = 0; i < WIDTH; i++) {
            float dx = 0;
            for (int64_t p = t * PICKS; p < (t + 1) * PICKS; p++)
                dx += b.weights[p] * run->w[layer][b.ids[p]][i] * b.dy[t * WIDTH + i];
            CHECK(b.out[t * WIDTH + i] == dx);
        }
    }
}

static void add_expected_grads(struct run *run, int64_t layer) {
    for (int r = 0; r < comm.size; r++) {
        for (int64_t p = 0; p < TOKENS * PICKS; p++) {
            const int64_t t = p / PICKS, e = id_of(run, r, layer, p);
            for (int64_t i = 0; i < WIDTH; i++)
                run->g[layer][e][i] +=
                    weight_of(run, r, p) * x_of(run, r, t, i) * dy_of(run, r, t, i);
        }
    }
}

// ---- one layer

// n-th expert's rows of the wave: b.first[n] .. b.first[n + 1] - 1.
static void compute(const struct run *run, int64_t layer) {
    for (int64_t n = 0; n < run->shape.experts; n++) {
        const float *w = moving_chunk(&run->m, layer, n);
        for (int64_t r = b.first[n]; r < b.first[n + 1]; r++) {
            for (int64_t i = 0; i < WIDTH; i++)
                b.results[r * WIDTH + i] = b.gate[r] * (w[i] * b.rows[r * WIDTH + i]);
        }
    }
}

static void compute_grads(const struct run *run, int64_t layer) {
    for (int64_t n = 0; n < run->shape.experts; n++) {
        const float *w = moving_chunk(&run->m, layer, n);
        float *grad = moving_grad(&run->m, layer, n);
        for (int64_t r = b.first[n]; r < b.first[n + 1]; r++) {
            b.dgate[r] = 0;
            for (int64_t i = 0; i < WIDTH; i++) {
                const float x = b.rows[r * WIDTH + i], dy = b.drows[r * WIDTH + i];
                grad[i] += b.gate[r] * x * dy;
                b.dgate[r] += w[i] * x * dy;
                b.results[r * WIDTH + i] = b.gate[r] * w[i] * dy;
            }
        }
    }
}

static void watch_plan(struct run *run, int64_t layer, bool calibrated) {
    const struct hpl_plan *plan = &run->m.state.fssdp->set[0].layer[layer].plan;
    const int64_t replicas = plan->first[plan->experts] - plan->experts;
    if (calibrated) run->calibrated += replicas;
    run->replicas += replicas;
}

// Whether this iteration begins, or ends, the life of replicas.
static bool begins(const struct run *run) {
    return run->shape.lifetime == HPL_LIFETIME_ITERATION ||
           hrt_experts_step_begins(run->m.state.fssdp);
}

static bool ends(const struct run *run) {
    return run->shape.lifetime == HPL_LIFETIME_ITERATION ||
           hrt_experts_step_ends(run->m.state.fssdp);
}

static void forward(struct run *run, int64_t layer) {
    struct hrt_fssdp *fssdp = run->m.state.fssdp;
    struct hrt_experts *experts = run->m.state.experts;
    const bool exact = run->policy->when == HPL_WHEN_EXACT;
    fill_inputs(run, layer);
    if (exact) {
        hrt_experts_route(experts, 0, layer, b.ids, TOKENS);
        hrt_experts_await_counts(experts, 0, layer);
    }
    if (begins(run)) hrt_experts_plan(fssdp, 0, layer);
    if (begins(run) || run->shape.rematerialize) hrt_experts_materialize(fssdp, 0, layer, false);
    if (!exact) hrt_experts_route(experts, 0, layer, b.ids, TOKENS);
    run->replicas = run->calibrated = 0;
    watch_plan(run, layer, false);
    hrt_experts_await_counts(experts, 0, layer);
    if (!exact) hrt_experts_calibrate(fssdp, 0, layer);
    watch_plan(run, layer, true);
    hrt_experts_await(fssdp, 0, layer);
    for (int64_t wave = 0; wave < hrt_experts_waves(experts, 0, layer); wave++) {
        hrt_experts_dispatch(experts, 0, layer, wave, b.rows, b.gate, b.first, b.x, b.weights);
        compute(run, layer);
        hrt_experts_give_back(experts, 0, layer, wave, b.results);
    }
    hrt_experts_combine(experts, 0, layer, b.out);
    check_output(run, layer);
    if (run->shape.rematerialize) hrt_experts_release_params(fssdp, 0, layer);
}

static void backward(struct run *run, int64_t layer) {
    struct hrt_fssdp *fssdp = run->m.state.fssdp;
    struct hrt_experts *experts = run->m.state.experts;
    const int64_t waves = hrt_experts_waves(experts, 0, layer);
    fill_inputs(run, layer);
    if (run->shape.rematerialize) hrt_experts_await(fssdp, 0, layer);
    for (int64_t wave = waves - 1; wave >= 0; wave--) {
        hrt_experts_dispatch(experts, 0, layer, wave, b.rows, b.gate, b.first, b.x, b.weights);
        hrt_experts_dispatch_grad(experts, 0, layer, wave, b.drows, b.dy);
        compute_grads(run, layer);
        hrt_experts_give_back_grad(experts, 0, layer, wave, b.results, b.dgate);
    }
    hrt_experts_combine_grad(experts, 0, layer, b.out, b.dweights);
    check_input_grads(run, layer);
    if (ends(run)) hrt_experts_reduce(fssdp, 0, layer);
    if (ends(run) || run->shape.rematerialize) hrt_experts_release_params(fssdp, 0, layer);
    if (run->shape.rematerialize) hrt_experts_materialize(fssdp, 0, layer - 1, true);
    if (ends(run)) hrt_experts_release_grads(fssdp, 0, layer);
    add_expected_grads(run, layer);
}

// ---- steps

static bool owns(const struct run *run, int64_t layer, int64_t e) {
    return run->m.placement.owner[0][layer * run->shape.experts + e] == comm.rank;
}

// The owners have the step's gradients; they update as gradient descent would, with the sum of all
// gradients as a state.
static void update(struct run *run) {
    for (int64_t layer = 0; layer < LAYERS; layer++) {
        for (int64_t e = 0; e < run->shape.experts; e++) {
            float *w = moving_own_chunk(&run->m, layer, e), *g = moving_own_grad(&run->m, layer, e);
            const ptrdiff_t at = w - (float *)run->m.state.values[HRT_PARAMETERS];
            float *mean = (float *)run->m.state.values[HRT_MEANS] + at;
            for (int64_t i = 0; i < WIDTH; i++) {
                const float expected = run->g[layer][e][i];
                run->w[layer][e][i] -= expected;
                run->mean[layer][e][i] += expected;
                run->g[layer][e][i] = 0;
                if (!owns(run, layer, e)) continue;
                CHECK(g[i] == expected);
                w[i] -= g[i];
                mean[i] += g[i];
                g[i] = 0;
            }
        }
    }
}

static void check_owned(const struct run *run) {
    for (int64_t layer = 0; layer < LAYERS; layer++) {
        for (int64_t e = 0; e < run->shape.experts; e++) {
            if (!owns(run, layer, e)) continue;
            const float *w = moving_own_chunk(&run->m, layer, e);
            const float *g = moving_own_grad(&run->m, layer, e);
            const ptrdiff_t at = w - (const float *)run->m.state.values[HRT_PARAMETERS];
            for (int64_t i = 0; i < WIDTH; i++) {
                CHECK(w[i] == run->w[layer][e][i]);
                CHECK(((const float *)run->m.state.values[HRT_MEANS])[at + i] ==
                      run->mean[layer][e][i]);
            }
            CHECK(w[CHUNK - 1] == (float)(layer * 100 + e));
            for (int64_t i = 0; i < CHUNK; i++) CHECK(g[i] == 0);
        }
    }
}

static void take_step(struct run *run) {
    struct hrt_fssdp *fssdp = run->m.state.fssdp;
    for (int iteration = 0; iteration < ITERATIONS; iteration++, run->time++) {
        hrt_experts_fssdp_begin(fssdp, true, iteration, ITERATIONS);
        for (int64_t layer = 0; layer < LAYERS; layer++) forward(run, layer);
        if (run->shape.rematerialize) hrt_experts_materialize(fssdp, 0, LAYERS - 1, true);
        for (int64_t layer = LAYERS - 1; layer >= 0; layer--) backward(run, layer);
    }
    update(run);
    run->moved += hrt_experts_fssdp_end_step(fssdp) > 0;
    check_owned(run);
}

// A forward alone uses what is there and leaves no trace in forecasts.
static void evaluate(struct run *run) {
    struct hrt_fssdp *fssdp = run->m.state.fssdp;
    hrt_experts_fssdp_begin(fssdp, false, 0, 1);
    for (int64_t layer = 0; layer < LAYERS; layer++) {
        const int64_t seen = fssdp->set[0].layer[layer].seen;
        forward(run, layer);
        CHECK(fssdp->set[0].layer[layer].seen == seen);
    }
}

static void fill_owned(struct run *run) {
    for (int64_t layer = 0; layer < LAYERS; layer++) {
        for (int64_t e = 0; e < run->shape.experts; e++) {
            for (int64_t i = 0; i < WIDTH; i++)
                run->w[layer][e][i] = (float)(layer + 2 * e + i % 2);
            if (!owns(run, layer, e)) continue;
            float *w = moving_own_chunk(&run->m, layer, e);
            for (int64_t i = 0; i < WIDTH; i++) w[i] = run->w[layer][e][i];
            w[CHUNK - 1] = (float)(layer * 100 + e);
        }
    }
}

// Returns replicas of the last iteration's last layer, and through `moved` how often owners changed.
static int64_t train(struct shape shape, int64_t *moved) {
    struct hpl_movement movement = {.even = shape.even,
                                    .overlap = shape.overlap,
                                    .slots = shape.slots,
                                    .calibrate = shape.calibrate,
                                    .rematerialize = shape.rematerialize,
                                    .lifetime = shape.lifetime,
                                    .iterations = ITERATIONS,
                                    .window = 3,
                                    .reshard_every = 5,
                                    .row_compute = 10,
                                    .row_send = 1,
                                    .chunk_send = 10};
    strcpy(movement.policy, shape.policy);
    static struct run run;
    run = (struct run){.shape = shape, .policy = hpl_policy_find(shape.policy)};
    moving_open(&run.m, &comm, &movement,
                (struct moving_sizes){.experts = shape.experts,
                                      .topk = PICKS,
                                      .layers = LAYERS,
                                      .chunk = CHUNK,
                                      .width = WIDTH,
                                      .tokens = TOKENS});
    fill_owned(&run);
    for (int step = 0; step < STEPS; step++) {
        take_step(&run);
        if (step % 3 == 1) evaluate(&run);
    }
    if (moved) *moved = run.moved;
    moving_close(&run.m);
    return run.replicas;
}

// ---- cases

static int64_t places(int64_t experts) {
    return (experts + comm.size - 1) / comm.size;
}

static void every_policy(void **state) {
    (void)state;
    for (int32_t p = 0; p < hpl_policy_count; p++) {
        const struct hpl_policy *policy = &hpl_policies[p];
        struct shape shape = {
            policy->name, EXPERTS_MAX,          places(EXPERTS_MAX) + 1, 4, false, false,
            false,        HPL_CALIBRATES_NEVER, HPL_LIFETIME_ITERATION};
        int64_t moved;
        const int64_t replicas = train(shape, &moved);
        const bool alone =
            (policy->collective == HPL_COLLECTIVE_RELAY && comm.nodes == comm.size) ||
            (strcmp(policy->name, "edp") == 0 && comm.nodes == 1);
        const bool copies = policy->replicas != HPL_REPLICAS_NONE && !alone;
        if (comm.size > 1 && strcmp(policy->name, "llep") != 0) CHECK((replicas > 0) == copies);
        if (comm.size > 1 && comm.size <= 4 &&
            (policy->calibrates ||
             (policy->when == HPL_WHEN_PERIODIC && policy->replicas == HPL_REPLICAS_NONE)))
            CHECK(moved > 0);
        shape.rematerialize = true;
        train(shape, NULL);
        shape.one_expert = true; // The others have no rows.
        train(shape, NULL);
    }
}

// Plans are a step's; calibration adds replicas in each of its iterations.
static void replicas_live_for_a_step(void **state) {
    (void)state;
    for (int32_t p = 0; p < hpl_policy_count; p++) {
        const struct hpl_policy *policy = &hpl_policies[p];
        for (int again = 0; again < 2 && hpl_may_last(policy); again++) {
            struct shape shape = {.policy = policy->name,
                                  .experts = EXPERTS_MAX,
                                  .slots = places(EXPERTS_MAX) + 1,
                                  .overlap = 4,
                                  .rematerialize = again,
                                  .lifetime = HPL_LIFETIME_STEP};
            train(shape, NULL);
            shape.calibrate = HPL_CALIBRATES_ALWAYS;
            train(shape, NULL);
        }
    }
}

static void calibration_and_even_split(void **state) {
    (void)state;
    const char *const policies[] = {"fssdp", "hecate"};
    for (int i = 0; i < 8; i++) {
        const enum hpl_calibrates calibrate = i & 1 ? HPL_CALIBRATES_ALWAYS : HPL_CALIBRATES_WORTH;
        train((struct shape){policies[i & 4 ? 1 : 0], EXPERTS_MAX, 2, EXPERTS_MAX, i & 2, i & 2,
                             false, calibrate, HPL_LIFETIME_ITERATION},
              NULL);
    }
}

static void no_slots_no_entries_all_slots(void **state) {
    (void)state;
    const char *const policies[] = {"fssdp", "hecate"};
    for (int i = 0; i < 2; i++) {
        const int64_t most[][2] = {{0, 4}, {2, 0}, {EXPERTS_MAX, EXPERTS_MAX}};
        for (int k = 0; k < 3; k++)
            train((struct shape){policies[i], EXPERTS_MAX, most[k][0], most[k][1], true, false,
                                 false, HPL_CALIBRATES_ALWAYS, HPL_LIFETIME_ITERATION},
                  NULL);
    }
}

// A profile's forecast is there before the first iteration; without one owners are alone then.
static void the_first_iteration_has_replicas_only_with_a_profile(void **state) {
    (void)state;
    const struct hpl_movement movement = {
        .policy = "fssdp", .overlap = EXPERTS_MAX, .slots = 2, .window = 3};
    static uint32_t forecast[LAYERS * 8 * EXPERTS_MAX];
    struct moving m;
    CHECK(comm.size <= 8);
    for (int64_t cell = 0; cell < LAYERS * comm.size; cell++) forecast[cell * EXPERTS_MAX] = 1000;
    moving_open(&m, &comm, &movement,
                (struct moving_sizes){.experts = EXPERTS_MAX,
                                      .topk = PICKS,
                                      .layers = LAYERS,
                                      .chunk = CHUNK,
                                      .width = WIDTH,
                                      .tokens = TOKENS});
    for (int with = 0; with < 2; with++) {
        const struct hpl_plan *plan = &m.state.fssdp->set[0].layer[1].plan;
        m.state.fssdp->set[0].episode.given = with ? forecast : NULL;
        m.state.fssdp->set[0].layer[1].is_ahead = false;
        hrt_experts_fssdp_begin(m.state.fssdp, true, 0, 1);
        hrt_experts_plan(m.state.fssdp, 0, 1);
        CHECK((plan->first[EXPERTS_MAX] > EXPERTS_MAX) == (with && comm.size > 1));
    }
    moving_close(&m);
}

static void few_experts(void **state) {
    (void)state;
    const int64_t experts[] = {2, 3, comm.size > 1 ? comm.size : 2};
    for (int i = 0; i < 3; i++) {
        for (int32_t p = 0; p < hpl_policy_count; p++)
            train((struct shape){hpl_policies[p].name, experts[i], places(experts[i]), 2, i & 1,
                                 false, false, HPL_CALIBRATES_WORTH, HPL_LIFETIME_ITERATION},
                  NULL);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_policy),
        cmocka_unit_test(replicas_live_for_a_step),
        cmocka_unit_test(calibration_and_even_split),
        cmocka_unit_test(no_slots_no_entries_all_slots),
        cmocka_unit_test(the_first_iteration_has_replicas_only_with_a_profile),
        cmocka_unit_test(few_experts),
    };
    ranks_open(&comm, getenv("HECATE_TOPOLOGY"));
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    hrt_net_comm_close(&comm);
    return failed;
}
