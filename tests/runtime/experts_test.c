// Test of runtime/experts, run by mpirun with 1, 2 and 4 ranks: every rank knows the inputs of all
// ranks, works out alone which rows it must get and what must come back, and compares bits.
#include "runtime/experts/experts.h"

#include <float.h>
#include <math.h>

#include "runtime/net/transport.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/share.h"
#include "tests/runtime/ranks_case.h"

enum { WIDTH = 5, RANKS_MAX = 8, EXPERTS_MAX = 16, ROWS = 1024 };

static struct hrt_comm world; // MPI starts once per process.

// How the pairs of a case choose.
enum choice { SPREAD, ALL_TO_ONE, SOME_UNUSED, SOME_DROPPED };

struct test_case {
    struct hrt_comm *comm;
    size_t element;
    int64_t experts, picks, tokens, wave_rows;
    enum choice choice;
    bool replicas;       // Expert e is also on the rank behind its owner's.
    bool once;           // Rows cross once to a node.
    int64_t waves_least; // The least number that the case needs.
    int64_t step;        // Every step routes anew.
};

#define CHECK(condition) RANKS_CHECK(c->comm, condition)

// Inputs, by rank. Rank 1 has no tokens; the others have fewer, the higher their number.
static int64_t tokens_of(const struct test_case *c, int rank) {
    return rank == 1 ? 0 : c->tokens - rank;
}

static double noise(int64_t a, int64_t b, int64_t d) {
    const uint64_t mixed =
        (uint64_t)(a * 1000003 + b * 7919 + d * 104729 + 12345) * 0x9e3779b97f4a7c15u;
    return (double)(mixed >> 40) / (1 << 24) - 0.5;
}

static int32_t id_of(const struct test_case *c, int64_t layer, int rank, int64_t pair) {
    const int64_t drawn =
        (int64_t)((noise(rank + 20 * c->step, pair, layer) + 0.5) * (double)c->experts);
    switch (c->choice) {
    case SPREAD:
        return (int32_t)drawn;
    case ALL_TO_ONE:
        return (int32_t)((layer + c->step) % c->experts);
    case SOME_UNUSED:
        return (int32_t)(drawn / 2 * 2);
    case SOME_DROPPED:
        return pair % 3 == 0 ? -1 : (int32_t)drawn;
    }
    return 0;
}

static double in_type(const struct test_case *c, double value) {
    return c->element == sizeof(float) ? (double)(float)value : value;
}

static double x_of(const struct test_case *c, int64_t layer, int rank, int64_t token, int64_t i) {
    return in_type(c, noise(rank + 10 * layer, token, i + 50));
}

static double weight_of(const struct test_case *c, int64_t layer, int rank, int64_t pair) {
    return in_type(c, noise(rank + 10 * layer, pair, 99));
}

static double dy_of(const struct test_case *c, int64_t layer, int rank, int64_t token, int64_t i) {
    return in_type(c, noise(rank + 10 * layer, token, i + 200));
}

// The expert's function and what stands for its gradients: each depends on all it is given.
static double expert(const struct test_case *c, int64_t e, double x, double gate) {
    return in_type(c, in_type(c, x + (double)e) * gate);
}

static double gate_grad(const struct test_case *c, int64_t e, double dy, double x) {
    return in_type(c, dy * 3 + x + (double)e);
}

static void put(const struct test_case *c, void *array, int64_t i, double value) {
    if (c->element == sizeof(float)) {
        ((float *)array)[i] = (float)value;
    } else {
        ((double *)array)[i] = value;
    }
}

static double get(const struct test_case *c, const void *array, int64_t i) {
    return c->element == sizeof(float) ? (double)((const float *)array)[i]
                                       : ((const double *)array)[i];
}

// Half to each of two holders, the odd row to the first.
static void split_in_two(void *context, int set, int64_t layer, const struct hpl_plan *plan,
                         const struct hpl_loads *loads, const struct hpl_part *part) {
    const struct test_case *c = context;
    uint32_t row[64];
    (void)set, (void)layer;
    CHECK(plan->first[plan->experts] <= 64);
    hpl_part_begin(part, plan);
    for (int32_t source = 0; source < loads->devices; source++) {
        for (int32_t e = 0; e < plan->experts; e++) {
            const uint32_t rows = loads->rows[source * plan->experts + e];
            const int32_t k = plan->first[e];
            const bool two = plan->first[e + 1] - k == 2;
            row[k] = two ? (rows + 1) / 2 : rows;
            if (two) row[k + 1] = rows / 2;
        }
        hpl_part_add(part, plan, c->comm->rank, source, row);
    }
}

// The holders of an expert, ascending.
static int holders_of(const struct test_case *c, int64_t e, int32_t holder[2]) {
    const int ranks = c->comm->size;
    const int32_t owner = hpl_even_owner(e, c->experts, ranks), other = (owner + 1) % ranks;
    holder[0] = other < owner && c->replicas ? other : owner;
    holder[1] = other < owner ? owner : other;
    return c->replicas && ranks > 1 ? 2 : 1;
}

struct row {
    int64_t expert, pair;
    int rank;
};

// All rows that this rank computes of a layer, in their order, and where each of its experts begins.
struct expected {
    struct row row[ROWS];
    int64_t rows, held, first[EXPERTS_MAX + 1];
};

static void expect_expert(const struct test_case *c, int64_t layer, int64_t e, bool last,
                          bool split, struct expected *all) {
    for (int r = 0; r < c->comm->size; r++) {
        const int64_t pairs = tokens_of(c, r) * c->picks;
        int64_t rows = 0, seen = 0;
        for (int64_t p = 0; p < pairs; p++) rows += id_of(c, layer, r, p) == e;
        for (int64_t p = 0; p < pairs; p++) {
            if (id_of(c, layer, r, p) != e) continue;
            const bool in_first_half = seen++ < (rows + 1) / 2;
            if (!split || in_first_half != last) all->row[all->rows++] = (struct row){e, p, r};
        }
    }
}

static void expect(const struct test_case *c, int64_t layer, struct expected *all) {
    all->rows = all->held = 0;
    for (int64_t e = 0; e < c->experts; e++) {
        int32_t holder[2];
        const int holders = holders_of(c, e, holder);
        for (int h = 0; h < holders; h++) {
            if (holder[h] != c->comm->rank) continue;
            all->first[all->held++] = all->rows;
            expect_expert(c, layer, e, h == 1, holders == 2, all);
        }
    }
    all->first[all->held] = all->rows;
}

static int64_t clip(int64_t value, int64_t low, int64_t high) {
    return value < low ? 0 : value > high ? high - low : value - low;
}

struct buffers {
    double rows[ROWS * WIDTH], gate[ROWS], y[ROWS * WIDTH], dgate[ROWS]; // Floats fit, too.
    double x[ROWS * WIDTH], weights[ROWS], out[ROWS * WIDTH], dweights[ROWS];
    int32_t ids[ROWS], first[EXPERTS_MAX + 1];
    struct expected expected;
};

static struct buffers b;

// Fills in what a wave's rows are expected to be, compares, and computes the experts.
static void check_wave(const struct test_case *c, int64_t layer, int64_t slots, int64_t wave) {
    const int64_t begin = wave * c->wave_rows, end = begin + c->wave_rows;
    for (int64_t n = 0; n <= slots; n++) {
        const int64_t from = n < b.expected.held ? b.expected.first[n] : b.expected.rows;
        CHECK(b.first[n] == clip(from, begin, end));
    }
    for (int64_t i = 0; i < c->wave_rows; i++) {
        const bool used = i < b.first[slots];
        const struct row row = b.expected.row[used ? begin + i : 0];
        for (int64_t k = 0; k < WIDTH; k++) {
            const double x = x_of(c, layer, row.rank, row.pair / c->picks, k);
            CHECK(get(c, b.rows, i * WIDTH + k) == (used ? x : -77));
        }
        const double gate = used ? weight_of(c, layer, row.rank, row.pair) : -77;
        CHECK(get(c, b.gate, i) == gate);
        for (int64_t k = 0; used && k < WIDTH; k++)
            put(c, b.y, i * WIDTH + k, expert(c, row.expert, get(c, b.rows, i * WIDTH + k), gate));
    }
}

static void place_replicas(const struct test_case *c, struct hrt_experts *experts, int64_t layer) {
    int32_t first[EXPERTS_MAX + 1], holder[2 * EXPERTS_MAX];
    const struct hpl_plan plan = {(int32_t)c->experts, 2 * EXPERTS_MAX, first, holder};
    first[0] = 0;
    for (int64_t e = 0; e < c->experts; e++)
        first[e + 1] = first[e] + holders_of(c, e, holder + first[e]);
    hrt_experts_place(experts, 0, layer, &plan);
}

// Whether a value is the sum of `picks` terms whose sizes sum up to `size`: `sum` adds them in their order, and so
// does the program, unless relays have added up some of them before. The error of an order is at most that of one
// addition less than there are terms.
static bool is_sum(const struct test_case *c, double value, double sum, double size) {
    const double half = c->element == sizeof(float) ? FLT_EPSILON / 2 : DBL_EPSILON / 2;
    if (!c->once || c->comm->nodes == 1) return value == sum;
    return fabs(value - sum) <= 2 * (double)(c->picks - 1) * half * size * (1 + 16 * half);
}

// Rows on their way home travel by themselves: their memory serves others at once.
static void overwrite(const struct test_case *c, void *rows, void *gate) {
    for (int64_t i = 0; i < c->wave_rows * WIDTH; i++) put(c, rows, i, -99);
    for (int64_t i = 0; gate && i < c->wave_rows; i++) put(c, gate, i, -99);
}

static void forward(const struct test_case *c, struct hrt_experts *experts, int64_t layer,
                    int64_t slots) {
    const int rank = c->comm->rank;
    const int64_t tokens = tokens_of(c, rank);
    for (int64_t p = 0; p < tokens * c->picks; p++) {
        b.ids[p] = id_of(c, layer, rank, p);
        put(c, b.weights, p, weight_of(c, layer, rank, p));
    }
    for (int64_t i = 0; i < tokens * WIDTH; i++)
        put(c, b.x, i, x_of(c, layer, rank, i / WIDTH, i % WIDTH));
    hrt_experts_route(experts, 0, layer, b.ids, tokens);
    hrt_experts_await_counts(experts, 0, layer);
    const uint32_t *counts = hrt_experts_counts(experts, 0, layer);
    if (c->replicas) place_replicas(c, experts, layer); // The counts are known, nothing is divided.
    for (int64_t e = 0; e < c->experts; e++) {
        for (int r = 0; r < c->comm->size; r++) {
            uint32_t load = 0;
            for (int64_t p = 0; p < tokens_of(c, r) * c->picks; p++)
                load += id_of(c, layer, r, p) == e;
            CHECK(counts[r * c->experts + e] == load);
        }
    }
    expect(c, layer, &b.expected);
    const int64_t waves = hrt_experts_waves(experts, 0, layer);
    CHECK(waves >= c->waves_least && waves * c->wave_rows >= b.expected.rows);
    for (int64_t wave = 0; wave < waves; wave++) {
        for (int64_t i = 0; i < c->wave_rows * WIDTH; i++) put(c, b.rows, i, -77);
        for (int64_t i = 0; i < c->wave_rows; i++) put(c, b.gate, i, -77);
        hrt_experts_dispatch(experts, 0, layer, wave, b.rows, b.gate, b.first, b.x, b.weights);
        check_wave(c, layer, slots, wave);
        hrt_experts_give_back(experts, 0, layer, wave, b.y);
        overwrite(c, b.y, NULL);
    }
    hrt_experts_combine(experts, 0, layer, b.out);
    for (int64_t i = 0; i < tokens * WIDTH; i++) {
        double sum = 0, size = 0;
        for (int64_t p = i / WIDTH * c->picks; p < (i / WIDTH + 1) * c->picks; p++) {
            const int32_t e = id_of(c, layer, rank, p);
            if (e < 0) continue;
            const double x = x_of(c, layer, rank, i / WIDTH, i % WIDTH);
            const double term = expert(c, e, x, weight_of(c, layer, rank, p));
            sum = in_type(c, sum + term);
            size += fabs(term);
        }
        CHECK(is_sum(c, get(c, b.out, i), sum, size));
    }
}

// Backward of one wave: the rows are dispatched again where the waves before have overwritten them.
static void backward_wave(const struct test_case *c, struct hrt_experts *experts, int64_t layer,
                          int64_t wave) {
    const int64_t begin = wave * c->wave_rows;
    hrt_experts_dispatch_grad(experts, 0, layer, wave, b.y, b.out);
    hrt_experts_dispatch(experts, 0, layer, wave, b.rows, b.gate, b.first, b.x, b.weights);
    const int64_t rows = clip(b.expected.rows, begin, begin + c->wave_rows);
    for (int64_t i = 0; i < rows; i++) {
        const struct row row = b.expected.row[begin + i];
        const double gate = get(c, b.gate, i);
        double dgate = 0;
        for (int64_t k = 0; k < WIDTH; k++) {
            const double dy = get(c, b.y, i * WIDTH + k);
            CHECK(dy == dy_of(c, layer, row.rank, row.pair / c->picks, k));
            dgate = gate_grad(c, row.expert, dy, get(c, b.rows, i * WIDTH + k));
            put(c, b.rows, i * WIDTH + k, expert(c, row.expert, dy, gate));
        }
        put(c, b.dgate, i, dgate);
    }
    hrt_experts_give_back_grad(experts, 0, layer, wave, b.rows, b.dgate);
    overwrite(c, b.rows, b.dgate);
}

static void backward(const struct test_case *c, struct hrt_experts *experts, int64_t layer) {
    const int rank = c->comm->rank;
    const int64_t tokens = tokens_of(c, rank);
    for (int64_t p = 0; p < tokens * c->picks; p++)
        put(c, b.weights, p, weight_of(c, layer, rank, p));
    for (int64_t i = 0; i < tokens * WIDTH; i++) {
        put(c, b.x, i, x_of(c, layer, rank, i / WIDTH, i % WIDTH));
        put(c, b.out, i, dy_of(c, layer, rank, i / WIDTH, i % WIDTH));
    }
    expect(c, layer, &b.expected);
    for (int64_t wave = hrt_experts_waves(experts, 0, layer) - 1; wave >= 0; wave--)
        backward_wave(c, experts, layer, wave);
    hrt_experts_combine_grad(experts, 0, layer, b.x, b.dweights);
    for (int64_t t = 0; t < tokens; t++) {
        double dx[WIDTH] = {0}, size[WIDTH] = {0};
        for (int64_t p = t * c->picks; p < (t + 1) * c->picks; p++) {
            const int32_t e = id_of(c, layer, rank, p);
            for (int64_t k = 0; e >= 0 && k < WIDTH; k++) {
                const double dy = dy_of(c, layer, rank, t, k);
                const double term = expert(c, e, dy, weight_of(c, layer, rank, p));
                dx[k] = in_type(c, dx[k] + term);
                size[k] += fabs(term);
            }
            const double dy = dy_of(c, layer, rank, t, WIDTH - 1);
            const double x = x_of(c, layer, rank, t, WIDTH - 1);
            CHECK(get(c, b.dweights, p) == (e < 0 ? 0 : gate_grad(c, e, dy, x)));
        }
        for (int64_t k = 0; k < WIDTH; k++)
            CHECK(is_sum(c, get(c, b.x, t * WIDTH + k), dx[k], size[k]));
    }
}

static int64_t slots_of(const struct test_case *c) {
    const int ranks = c->comm->size;
    return (c->experts + ranks - 1) / ranks * (c->replicas ? 2 : 1) + 1;
}

static void create(struct test_case *c, struct hrt_experts **experts) {
    const struct hrt_experts_set set = {.experts = c->experts,
                                        .picks = c->picks,
                                        .layers = 2,
                                        .width = WIDTH,
                                        .slots = slots_of(c),
                                        .wave_rows = c->wave_rows};
    const struct hrt_experts_shape shape = {.sets = 1,
                                            .set = &set,
                                            .tokens = c->tokens,
                                            .nodes = c->once ? c->comm->nodes : 0,
                                            .element = c->element,
                                            .quota = c->replicas ? split_in_two : NULL,
                                            .quota_context = (void *)c};
    struct hrt_error error = {0};
    CHECK(c->comm->size <= RANKS_MAX && c->tokens * c->picks * c->comm->size <= ROWS);
    CHECK(hrt_experts_create(experts, &shape, c->comm, &error));
}

static void run(struct test_case *c) {
    struct hrt_experts *experts = NULL;
    const int64_t slots = slots_of(c);
    create(c, &experts);
    for (c->step = 0; c->step < 2;
         c->step++) { // Layers keep their routes apart; steps leave nothing.
        forward(c, experts, 0, slots);
        forward(c, experts, 1, slots);
        backward(c, experts, 1);
        backward(c, experts, 0);
    }
    hrt_experts_destroy(experts);
}

// Every case as floats and doubles, on all ranks, on this rank alone with the back end self, and on all ranks with rows
// that cross once to a node.
static void run_all(struct test_case c) {
    struct hrt_comm self;
    hrt_net_comm_open_self(&self);
    for (int kind = 0; kind < 3; kind++) {
        c.comm = kind == 1 ? &self : &world;
        c.once = kind == 2;
        c.element = sizeof(float);
        run(&c);
        c.element = sizeof(double);
        run(&c);
    }
    hrt_net_comm_close(&self);
}

static void rows_go_to_their_experts_and_back(void **state) {
    (void)state;
    run_all((struct test_case){.experts = 8, .picks = 2, .tokens = 40, .wave_rows = 512});
    run_all((struct test_case){.experts = 15, .picks = 4, .tokens = 30, .wave_rows = 37});
}

static void experts_that_do_not_divide(void **state) {
    (void)state;
    run_all((struct test_case){.experts = 7, .picks = 3, .tokens = 33, .wave_rows = 512});
}

static void more_ranks_than_experts(void **state) {
    (void)state;
    run_all((struct test_case){.experts = 3, .picks = 1, .tokens = 30, .wave_rows = 128});
}

static void experts_without_rows(void **state) {
    (void)state;
    const struct test_case c = {
        .experts = 8, .picks = 2, .tokens = 20, .wave_rows = 256, .choice = SOME_UNUSED};
    run_all(c);
}

static void all_to_one_expert_takes_waves(void **state) {
    (void)state;
    const struct test_case c = {.experts = 4,
                                .picks = 2,
                                .tokens = 32,
                                .wave_rows = 24,
                                .choice = ALL_TO_ONE,
                                .waves_least = 3};
    run_all(c);
}

static void waves_cut_experts_anywhere(void **state) {
    (void)state;
    const struct test_case c = {
        .experts = 6, .picks = 2, .tokens = 32, .wave_rows = 7, .waves_least = 3};
    run_all(c);
}

static void a_dropped_pair_goes_nowhere(void **state) {
    (void)state;
    const struct test_case c = {
        .experts = 8, .picks = 2, .tokens = 32, .wave_rows = 16, .choice = SOME_DROPPED};
    run_all(c);
}

static void replicas_share_an_experts_rows(void **state) {
    (void)state;
    run_all((struct test_case){
        .experts = 6, .picks = 2, .tokens = 40, .wave_rows = 512, .replicas = true});
    run_all((struct test_case){
        .experts = 6, .picks = 2, .tokens = 40, .wave_rows = 11, .replicas = true});
}

// Lists of rows of this rank, looked at as they are handed to the lane, and as they grow.
static struct {
    const struct hrt_comm_ops *ops;
    bool (*next)(struct hrt_steps *steps);
    int64_t bytes; // That this rank sends to other nodes.
} seen;

static void look_at(const struct hrt_steps *steps) {
    for (int32_t i = 0; i < steps->count; i++) {
        const struct hrt_step *step = &steps->step[i];
        if (step->kind == HRT_SEND && world.node_of[step->peer] != world.node)
            seen.bytes += (int64_t)step->bytes;
    }
}

static bool next_and_look(struct hrt_steps *steps) {
    const bool more = seen.next(steps);
    if (more) look_at(steps);
    return more;
}

static void submit_and_look(struct hrt_comm *comm, int lane, struct hrt_steps *steps) {
    if (lane == HRT_LANE_ROWS) {
        look_at(steps);
        if (steps->next) {
            seen.next = steps->next;
            steps->next = next_and_look;
        }
    }
    seen.ops->submit(comm, lane, steps);
}

// Bytes that cross in a forward of one wave where rows cross once to a node, by the form of messages
// (runtime/experts/relay.h); `rows` gets the rows that then cross, `pairs` those that cross without relays.
static int64_t crossing(const struct test_case *c, int64_t *rows, int64_t *pairs) {
    const int64_t row = WIDTH * (int64_t)c->element;
    int64_t bytes = 0;
    *rows = *pairs = 0;
    for (int r = 0; r < world.size; r++) {
        for (int node = 0; node < world.nodes; node++) {
            int64_t own_rows = 0, own_pairs = 0, ranks = 0;
            for (int k = 0; k < world.size; k++) ranks += world.node_of[k] == node;
            if (node == world.node_of[r]) continue;
            for (int64_t t = 0; t < tokens_of(c, r); t++) {
                int64_t there = 0;
                for (int64_t p = t * c->picks; p < (t + 1) * c->picks; p++) {
                    const int32_t e = id_of(c, 0, r, p);
                    there += world.node_of[hpl_even_owner(e, c->experts, world.size)] == node;
                }
                own_pairs += there;
                own_rows += there > 0;
            }
            const int64_t padded = (own_rows * row + 15) / 16 * 16;
            bytes += (1 + ranks) * 4; // How much comes.
            bytes += (own_pairs * 4 + 15) / 16 * 16 + padded + own_pairs * (int64_t)c->element;
            bytes += padded; // Home.
            *rows += own_rows;
            *pairs += own_pairs;
        }
    }
    return bytes;
}

static int64_t crossed_by(struct test_case *c, bool once) {
    struct hrt_comm_ops ops = *world.ops;
    struct hrt_experts *experts = NULL;
    c->once = once;
    seen.ops = world.ops;
    seen.bytes = 0;
    ops.submit = submit_and_look;
    create(c, &experts);
    world.ops = &ops;
    forward(c, experts, 0, slots_of(c));
    world.ops = seen.ops;
    hrt_experts_destroy(experts);
    hrt_net_comm_all_reduce(&world, &seen.bytes, 1, HRT_INT64);
    return seen.bytes;
}

static void a_row_crosses_once_to_a_node(void **state) {
    (void)state;
    struct test_case test = {.comm = &world,
                             .element = sizeof(float),
                             .experts = 8,
                             .picks = 4,
                             .tokens = 30,
                             .wave_rows = 512};
    struct test_case *c = &test;
    int64_t rows, pairs, least = crossing(c, &rows, &pairs);
    const int64_t form = WIDTH * 4 + (WIDTH * 4 + 4 + 15) / 16 * 16; // Home, and out with the gate.
    CHECK(crossed_by(c, false) == pairs * form);
    CHECK(crossed_by(c, true) == least);
    CHECK(world.nodes == 1 || (10 * rows < 9 * pairs && least < pairs * form));
}

static void owners_are_consecutive(void **state) {
    (void)state;
    const int32_t seven_on_three[7] = {0, 0, 0, 1, 1, 2, 2};
    for (int e = 0; e < 7; e++) assert_int_equal(hpl_even_owner(e, 7, 3), seven_on_three[e]);
    for (int e = 0; e < 3; e++) assert_int_equal(hpl_even_owner(e, 3, 8), e);
    assert_int_equal(hpl_even_owner(5, 6, 1), 0);
}

static void too_many_rows_are_refused(void **state) {
    (void)state;
    struct hrt_comm self;
    hrt_net_comm_open_self(&self);
    const struct hrt_experts_set set = {
        .experts = 8, .picks = 8, .layers = 1, .width = WIDTH, .slots = 8, .wave_rows = 64};
    const struct hrt_experts_shape shape = {
        .sets = 1, .set = &set, .tokens = 400000000, .element = sizeof(float)};
    struct hrt_experts *experts;
    struct hrt_error error = {0};
    const bool created = hrt_experts_create(&experts, &shape, &self, &error);
    test_expect_error(
        created, &error, HRT_EXIT_FAILED,
        "400000000 tokens x 8 choices x 1 ranks are more rows than can be numbered; at "
        "most 2147483647");
    hrt_net_comm_close(&self);
}

static size_t bytes_of(const struct hrt_experts_shape *shape, int ranks) {
    const struct hrt_experts_bytes bytes = hrt_experts_bytes(shape, ranks);
    return bytes.here + bytes.there + bytes.both;
}

static void memory_grows_with_ranks_not_with_their_square(void **state) {
    (void)state;
    const struct hrt_experts_set set = {.name = "sparse",
                                        .layers = 4,
                                        .experts = 64,
                                        .picks = 2,
                                        .width = 8,
                                        .slots = 64,
                                        .wave_rows = 64};
    const struct hrt_experts_shape shape = {
        .sets = 1, .set = &set, .tokens = 64, .sequences = 1, .element = sizeof(float)};
    const size_t none = bytes_of(&shape, 64), few = bytes_of(&shape, 512),
                 many = bytes_of(&shape, 1024);
    assert_true(many - none < 3 * (few - none)); // The square would make it four times.
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_grows_with_ranks_not_with_their_square),
        cmocka_unit_test(rows_go_to_their_experts_and_back),
        cmocka_unit_test(experts_that_do_not_divide),
        cmocka_unit_test(more_ranks_than_experts),
        cmocka_unit_test(experts_without_rows),
        cmocka_unit_test(all_to_one_expert_takes_waves),
        cmocka_unit_test(waves_cut_experts_anywhere),
        cmocka_unit_test(a_dropped_pair_goes_nowhere),
        cmocka_unit_test(replicas_share_an_experts_rows),
        cmocka_unit_test(a_row_crosses_once_to_a_node),
        cmocka_unit_test(owners_are_consecutive),
        cmocka_unit_test(too_many_rows_are_refused),
    };
    ranks_open(&world, getenv("HECATE_TOPOLOGY")); // One machine stands for several nodes.
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    hrt_net_comm_close(&world);
    return failed;
}
