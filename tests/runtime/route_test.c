// Unit test of runtime/route: spreads, files, and the routing that a step of forced routing sets and records.
#include "runtime/route/forced.h"

#include <math.h>
#include <unistd.h>

#include "tests/runtime/support/case.h"

// ---- spreads

// Spreads one sequence, checks that the experts of each token differ, and counts them.
static void spread(struct hrt_spread s, const int64_t *mass, uint64_t sequence, int64_t *count) {
    int32_t *ids = malloc((size_t)(s.positions * s.topk) * sizeof *ids);
    int32_t *order = malloc((size_t)s.positions * sizeof *order);
    hrt_route_spread_sequence(ids, mass, s, hrt_stream_make(1, "test", ""), sequence, order);
    for (int64_t e = 0; e < s.experts; e++) count[e] = 0;
    for (int64_t t = 0; t < s.positions; t++) {
        for (int64_t j = 0; j < s.topk; j++) {
            const int32_t id = ids[t * s.topk + j];
            assert_in_range(id, 0, s.experts - 1);
            for (int64_t k = 0; k < j; k++) assert_int_not_equal(id, ids[t * s.topk + k]);
            count[id]++;
        }
    }
    free(ids);
    free(order);
}

static void equal_shares_give_equal_loads(void **state) {
    (void)state;
    const struct hrt_spread s = {8, 3, 64};
    const double share[8] = {2, 2, 2, 2, 2, 2, 2, 2};
    int64_t mass[8], count[8];
    hrt_route_spread_masses(mass, share, s);
    spread(s, mass, 5, count);
    for (int e = 0; e < 8; e++) assert_int_equal(count[e], 24);
}

// 100 x 2 top-k choices over shares of 1, 2, 3 and 4 tenths, and over a share that 100 tokens cannot hold:
// 90 % of 200 would be 180.
static void loads_follow_shares_up_to_every_token(void **state) {
    (void)state;
    const struct hrt_spread s = {4, 2, 100};
    const double steps[4] = {1, 2, 3, 4}, steep[4] = {1, 90, 0, 9};
    const int64_t wanted[2][4] = {{20, 40, 60, 80}, {10, 100, 0, 90}};
    int64_t mass[4], count[4];
    for (int k = 0; k < 2; k++) {
        hrt_route_spread_masses(mass, k ? steep : steps, s);
        spread(s, mass, 0, count);
        for (int e = 0; e < 4; e++) assert_in_range(count[e] - wanted[k][e] + 1, 0, 2);
    }
}

// Experts without a share get tokens only when there is nobody else; then all alike.
static void tokens_go_to_shareless_experts_last(void **state) {
    (void)state;
    const struct hrt_spread s = {5, 3, 32};
    const double share[5] = {0, 7, 0, 0, 0};
    int64_t mass[5], count[5];
    hrt_route_spread_masses(mass, share, s);
    spread(s, mass, 0, count);
    const int64_t wanted[5] = {16, 32, 16, 16, 16};
    for (int e = 0; e < 5; e++) assert_int_equal(count[e], wanted[e]);
}

static void any_shares_make_valid_picks(void **state) {
    (void)state;
    const struct hrt_stream stream = hrt_stream_make(3, "shares", "");
    for (uint64_t n = 0; n < 300; n++) {
        double share[33];
        int64_t mass[33], count[33], sum = 0;
        struct hrt_spread s = {1 + (int64_t)hrt_draw_below(stream, 3 * n, 33), 0, 0};
        s.topk = 1 + (int64_t)hrt_draw_below(stream, 3 * n + 1, (uint64_t)s.experts);
        s.positions = 1 + (int64_t)hrt_draw_below(stream, 3 * n + 2, 50);
        for (int64_t e = 0; e < s.experts; e++) {
            const double u = hrt_draw_uniform(stream, 1000 + n * 33 + (uint64_t)e);
            share[e] = u < 0.2 ? 0 : pow(u, 1 + (double)(n % 40));
        }
        hrt_route_spread_masses(mass, share, s);
        for (int64_t e = 0; e < s.experts; e++) sum += mass[e];
        assert_int_equal(sum, s.positions * s.topk << 24);
        spread(s, mass, n, count);
        for (int64_t e = 0; e < s.experts; e++) {
            assert_true(llabs((count[e] << 24) - mass[e]) < 1 << 24);
        }
    }
}

static void every_sequence_is_spread_its_own_way(void **state) {
    (void)state;
    const struct hrt_spread s = {4, 1, 16};
    const double share[4] = {1, 1, 1, 1};
    const struct hrt_stream stream = hrt_stream_make(1, "test", "");
    int64_t mass[4];
    int32_t ids[3][16], order[16];
    hrt_route_spread_masses(mass, share, s);
    for (int n = 0; n < 3; n++) hrt_route_spread_sequence(ids[n], mass, s, stream, n % 2, order);
    assert_memory_equal(ids[0], ids[2], sizeof *ids);
    assert_memory_not_equal(ids[0], ids[1], sizeof *ids);
}

// ---- a model of two sets: 2 layers of 2 of 4 experts, and one of 1 of 4

enum { POSITIONS = 6, BATCH = 2, LAYERS = 3 };

struct model {
    int64_t batch;
    struct hrt_routing wide[2], narrow[1];
};

static const struct hrt_set sets[] = {{.name = "wide", .experts = 4, .topk = 2, .layers = 2},
                                      {.name = "narrow", .experts = 4, .topk = 1, .layers = 1}};
static const struct hrt_loads loads[] = {
    {.set = 0,
     .arena_offset = 0,
     .arena_stride = 16,
     .routing_offset = offsetof(struct model, wide)},
    {.set = 1, .arena_offset = 64, .routing_offset = offsetof(struct model, narrow)}};
static const struct hrt_program program = {.name = "model",
                                           .positions = POSITIONS,
                                           .batch = BATCH,
                                           .sets = 2,
                                           .set = sets,
                                           .loads = 2,
                                           .load = loads};

struct fixture {
    struct hrt_route route;
    struct hrt_comm comm;
    struct model model;
    int32_t arena[20];
    struct hrt_route_request request;
    struct hrt_error error;
};

static bool open_route(struct fixture *f, struct hrt_route_request request) {
    *f = (struct fixture){.request = request};
    f->request.seed = 1;
    f->request.batch = BATCH;
    if (!f->request.steps) f->request.steps = 3;
    if (!f->request.iterations) f->request.iterations = 2;
    hrt_net_comm_open_self(&f->comm);
    return hrt_route_open(&f->route, &f->request, &program, &f->comm, &f->model, f->arena,
                          &f->error);
}

static void expect_refusal(struct hrt_route_request request, enum hrt_exit code, const char *text) {
    struct fixture f;
    const bool opened = open_route(&f, request);
    test_expect_error(opened, &f.error, code, text);
    hrt_route_close(&f.route);
}

static struct hrt_routing *routing_of(struct fixture *f, int layer) {
    return layer < 2 ? &f->model.wide[layer] : f->model.narrow;
}

static int64_t topk_of(int layer) {
    return layer < 2 ? 2 : 1;
}

// Acts as a router: takes the forced choice, or `first + token`, and counts.
static void route_layer(struct fixture *f, int layer, int64_t first) {
    const struct hrt_routing *routing = routing_of(f, layer);
    int32_t *count = f->arena + (layer < 2 ? 4 * layer : 16);
    for (int e = 0; e < 4; e++) count[e] = 0;
    for (int64_t p = 0; p < BATCH * POSITIONS * topk_of(layer); p++) {
        const int32_t id =
            routing->forced ? routing->forced[p] : (int32_t)((first + layer + p) % 4);
        count[id]++;
        if (routing->record) routing->record[p] = id;
    }
}

// Runs the steps; `each` is called behind every forward.
static void run(struct fixture *f, void (*each)(struct fixture *f, int64_t first)) {
    for (int64_t step = 0; step < f->request.steps; step++) {
        for (int64_t i = 0; i < f->request.iterations; i++) {
            const int64_t first = (step * f->request.iterations + i) * BATCH;
            assert_true(hrt_route_force(&f->route, step, first, &f->error));
            for (int layer = 0; layer < LAYERS; layer++) route_layer(f, layer, first);
            if (each) each(f, first);
            hrt_route_record(&f->route, i, first);
        }
        hrt_route_end_step(&f->route);
        for (int layer = 0; layer < LAYERS; layer++) {
            assert_null(routing_of(f, layer)->forced);
            assert_null(routing_of(f, layer)->record);
        }
    }
    hrt_route_finish(&f->route);
    hrt_route_close(&f->route);
}

static void expect_free(struct fixture *f, int64_t first) {
    (void)first;
    for (int layer = 0; layer < LAYERS; layer++) assert_null(routing_of(f, layer)->forced);
}

static void without_a_wish_routers_are_left_alone(void **state) {
    (void)state;
    struct fixture f;
    assert_true(open_route(&f, (struct hrt_route_request){0}));
    run(&f, expect_free);
    assert_true(open_route(&f, (struct hrt_route_request){.route = "model"}));
    run(&f, expect_free);
}

static void expect_balance(struct fixture *f, int64_t first) {
    (void)first;
    for (int e = 0; e < 4; e++) {
        assert_int_equal(f->arena[e], 6);
        assert_int_equal(f->arena[4 + e], 6);
        assert_in_range(f->arena[16 + e], 2, 4); // 6 tokens of each sequence: 1 or 2.
    }
}

static void balanced_is_balanced_in_each_sequence(void **state) {
    (void)state;
    struct fixture f;
    assert_true(open_route(&f, (struct hrt_route_request){.route = "balanced"}));
    run(&f, expect_balance);
}

static int32_t hottest[LAYERS];

static void expect_one_expert(struct fixture *f, int64_t first) {
    for (int layer = 0; layer < LAYERS; layer++) {
        const int32_t *count = f->arena + (layer < 2 ? 4 * layer : 16);
        int32_t hot = 0;
        for (int32_t e = 1; e < 4; e++) hot = count[e] > count[hot] ? e : hot;
        if (layer == 2) assert_int_equal(count[hot], BATCH * POSITIONS);
        if (first > 0) assert_int_equal(hot, hottest[layer]);
        hottest[layer] = hot;
    }
}

static void a_steep_zipf_sends_all_to_one_expert(void **state) {
    (void)state;
    struct fixture f;
    assert_true(open_route(&f, (struct hrt_route_request){.route = "zipf:20"}));
    run(&f, expect_one_expert);
}

// ---- records

static int32_t seen[64][LAYERS][BATCH * POSITIONS * 2];

static void remember(struct fixture *f, int64_t first) {
    for (int layer = 0; layer < LAYERS; layer++) {
        const struct hrt_routing *routing = routing_of(f, layer);
        for (int64_t p = 0; p < BATCH * POSITIONS * topk_of(layer); p++)
            seen[first][layer][p] = routing->record[p];
    }
}

static void expect_remembered(struct fixture *f, int64_t first) {
    for (int layer = 0; layer < LAYERS; layer++) {
        const struct hrt_routing *routing = routing_of(f, layer);
        for (int64_t p = 0; p < BATCH * POSITIONS * topk_of(layer); p++)
            assert_int_equal(routing->forced[p], seen[first][layer][p]);
    }
}

static void recorded_ids_are_forced_again(void **state) {
    (void)state;
    static const char *const from[] = {"model", "zipf:1"};
    for (int k = 0; k < 2; k++) {
        struct fixture f;
        assert_true(
            open_route(&f, (struct hrt_route_request){.route = from[k], .record_ids = "ids"}));
        run(&f, remember);
        assert_true(open_route(&f, (struct hrt_route_request){.route = "ids:ids"}));
        run(&f, expect_remembered);
    }
}

// The same ids whatever the microbatches: two runs, of other divisions of one step, record alike.
static void forced_ids_depend_on_the_sequence_alone(void **state) {
    (void)state;
    struct fixture f;
    size_t bytes[2];
    char *file[2];
    for (int k = 0; k < 2; k++) {
        const struct hrt_route_request request = {
            .route = "zipf:0.7", .record_ids = "ids", .steps = k ? 2 : 6, .iterations = k ? 3 : 1};
        assert_true(open_route(&f, request));
        run(&f, NULL);
        file[k] = test_read("ids", &bytes[k]);
    }
    assert_int_equal(bytes[0], bytes[1]);
    assert_memory_equal(file[0], file[1], bytes[0]);
    const size_t record = POSITIONS * 5 * sizeof(uint16_t); // Behind the head: one per sequence.
    for (int n = 1; n < 6 * BATCH; n++)
        assert_memory_not_equal(file[0] + 44, file[0] + 44 + (size_t)n * record, record);
    free(file[0]);
    free(file[1]);
}

static void recorded_loads_are_followed_again(void **state) {
    (void)state;
    struct fixture f;
    char *file[2];
    size_t bytes;
    assert_true(
        open_route(&f, (struct hrt_route_request){.route = "zipf:1", .record_loads = "a.loads"}));
    run(&f, NULL);
    assert_true(open_route(
        &f, (struct hrt_route_request){.route = "trace:a.loads", .record_loads = "b.loads"}));
    run(&f, NULL);
    for (int k = 0; k < 2; k++) {
        file[k] = test_read(k ? "b.loads" : "a.loads", &bytes);
        assert_int_equal(bytes, 8 + 5 * 4 + 2 * 3 * LAYERS * 2 * 4);
    }
    const uint32_t head[] = {3, LAYERS, 1, 2, 4};
    assert_memory_equal(file[0], "HLOADS1\n", 8);
    assert_memory_equal(file[0] + 8, head, sizeof head);
    const uint16_t *a = (uint16_t *)(file[0] + 28), *b = (uint16_t *)(file[1] + 28);
    for (int row = 0; row < 3 * LAYERS; row++) {
        for (int e = 0; e < 4; e++) { // 4 sequences, each rounded.
            const int want = a[row * 8 + e] + a[row * 8 + 4 + e];
            const int got = b[row * 8 + e] + b[row * 8 + 4 + e];
            assert_in_range(got - want + 4, 0, 8);
        }
    }
    free(file[0]);
    free(file[1]);
}

// ---- what is refused

static void words_that_say_nothing_are_refused(void **state) {
    (void)state;
    static const char *const wrong[] = {"uniform", "zipf", "trace:", "balanced:2", "model:", ":"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char text[160];
        snprintf(text, sizeof text,
                 "--route cannot be '%s'; it may be: model, balanced, zipf:S, trace:FILE, ids:FILE",
                 wrong[i]);
        expect_refusal((struct hrt_route_request){.route = wrong[i]}, HRT_EXIT_USAGE, text);
    }
    static const char *const exponents[] = {"zipf:x", "zipf:-1", "zipf:21", "zipf:1e999",
                                            "zipf:nan"};
    for (size_t i = 0; i < sizeof exponents / sizeof *exponents; i++)
        expect_refusal((struct hrt_route_request){.route = exponents[i]}, HRT_EXIT_USAGE,
                       "--route zipf needs an exponent from 0 to 20, as in zipf:1.2");
}

static void record(const char *ids, const char *loads_path) {
    struct fixture f;
    assert_true(
        open_route(&f, (struct hrt_route_request){.record_ids = ids, .record_loads = loads_path}));
    run(&f, NULL);
}

// Changes the file and expects a message when it is opened for a route.
static void expect_damage(const char *name, const char *route, int at, int byte, const char *text) {
    size_t bytes;
    char *file = test_read(name, &bytes);
    const char kept = file[at];
    file[at] = (char)byte;
    test_write(name, file, bytes);
    expect_refusal((struct hrt_route_request){.route = route}, HRT_EXIT_FAILED, text);
    file[at] = kept;
    test_write(name, file, bytes);
    free(file);
}

static void files_of_ids_that_do_not_fit_are_refused(void **state) {
    (void)state;
    record("ids", NULL);
    expect_refusal((struct hrt_route_request){.route = "ids:none"}, HRT_EXIT_FAILED,
                   "cannot open 'none': No such file or directory");
    expect_damage("ids", "ids:ids", 0, 'X',
                  "'ids' is no file of expert ids: it does not begin with HROUTE1");
    expect_damage("ids", "ids:ids", 8, 0,
                  "'ids' is unfinished: the run that recorded it did not end");
    expect_damage("ids", "ids:ids", 8, 11,
                  "'ids' is damaged: its head says 11 sequences, which take 704 bytes, but it has "
                  "764");
    expect_damage("ids", "ids:ids", 12, 9, "'ids' has 9 positions, this model has 6");
    expect_damage("ids", "ids:ids", 16, 2, "'ids' has 2 layers of experts, this model has 3");
    expect_damage("ids", "ids:ids", 20, 8, "'ids' has 8 experts in layer 0, this model has 4");
    expect_damage("ids", "ids:ids", 40, 2,
                  "'ids' has 2 experts per token in layer 2, this model has 1");
    expect_refusal((struct hrt_route_request){.route = "ids:ids", .steps = 4}, HRT_EXIT_FAILED,
                   "'ids' has 12 sequences, this run takes 16");
}

static void ids_that_no_router_could_choose_are_refused(void **state) {
    (void)state;
    const int first = 44; // Sequence 0, layer 0, position 0.
    static const int wrong[] = {4, 1};
    record("ids", NULL);
    for (int k = 0; k < 2; k++) {
        struct fixture f;
        size_t bytes;
        char *file = test_read("ids", &bytes);
        file[first] = (char)(wrong[k]); // No expert; or the one that pick 1 has.
        test_write("ids", file, bytes);
        assert_true(open_route(&f, (struct hrt_route_request){.route = "ids:ids"}));
        const bool forced = hrt_route_force(&f.route, 0, 0, &f.error);
        test_expect_error(
            forced, &f.error, HRT_EXIT_FAILED,
            "'ids' is damaged: the experts of sequence 0, layer 0, position 0 are not "
            "2 different ones of 4");
        // They are not handed out: a rank whose data fails computes on until the others know.
        assert_int_not_equal(f.route.layer[0].ids[0], wrong[k]);
        hrt_route_close(&f.route);
        free(file);
    }
}

// The ids of a step's first call are kept once they are counted: the file is gone before they are forced.
static void counted_ids_are_not_read_again(void **state) {
    (void)state;
    struct fixture f;
    uint32_t count[12];
    int32_t expected[BATCH * POSITIONS * 2];
    record("ids", NULL);
    assert_true(open_route(&f, (struct hrt_route_request){.route = "ids:ids"}));
    assert_true(hrt_route_force(&f.route, 1, 4, &f.error));
    memcpy(expected, f.model.wide[1].forced, sizeof expected);
    assert_true(hrt_route_force(&f.route, 0, 0, &f.error)); // Others lie there.
    assert_true(hrt_route_count(&f.route, 1, 4, BATCH, 2, count, &f.error));
    assert_int_equal(truncate("ids", 0), 0);
    assert_true(hrt_route_force(&f.route, 1, 4, &f.error));
    assert_memory_equal(f.model.wide[1].forced, expected, sizeof expected);
    assert_false(hrt_route_force(&f.route, 1, 6, &f.error));
    // A failed read leaves ids of no call.
    assert_false(hrt_route_force(&f.route, 1, 4, &f.error));
    hrt_route_close(&f.route);
}

static void files_of_loads_that_do_not_fit_are_refused(void **state) {
    (void)state;
    record(NULL, "loads");
    expect_damage("loads", "trace:loads", 3, 'x',
                  "'loads' is no file of loads: it does not begin with HLOADS1");
    expect_damage("loads", "trace:loads", 8, 0,
                  "'loads' is unfinished: the run that recorded it did not end");
    expect_damage("loads", "trace:loads", 24, 5, "'loads' has 5 experts, this model has 4");
    expect_damage("loads", "trace:loads", 16, 0,
                  "'loads' is damaged: a size in its head is zero or too large");
    expect_damage(
        "loads", "trace:loads", 8, 4,
        "'loads' is damaged: its head says 4 iterations of 48 bytes, and 144 bytes follow");
    test_write("loads", "\x28\xb5\x2f\xfd and more", 13);
    expect_refusal((struct hrt_route_request){.route = "trace:loads"}, HRT_EXIT_FAILED,
                   "'loads' is compressed: decompress it first, zstd -d loads");
    expect_refusal((struct hrt_route_request){.record_loads = "no/loads"}, HRT_EXIT_FAILED,
                   "cannot write 'no/loads': No such file or directory");
    expect_refusal((struct hrt_route_request){.record_ids = "no/ids"}, HRT_EXIT_FAILED,
                   "cannot write 'no/ids': No such file or directory");
}

static void a_model_without_experts_cannot_be_routed(void **state) {
    (void)state;
    struct hrt_error error = {0};
    struct hrt_route route;
    struct hrt_comm comm;
    hrt_net_comm_open_self(&comm);
    const struct hrt_program plain = {.positions = 4, .batch = 1};
    const struct hrt_route_request request = {.route = "balanced", .batch = 1, .iterations = 1};
    const bool opened = hrt_route_open(&route, &request, &plain, &comm, NULL, NULL, &error);
    test_expect_error(opened, &error, HRT_EXIT_USAGE,
                      "--route and --record: the model has no experts to choose");
    hrt_route_close(&route);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_shares_give_equal_loads),
        cmocka_unit_test(loads_follow_shares_up_to_every_token),
        cmocka_unit_test(tokens_go_to_shareless_experts_last),
        cmocka_unit_test(any_shares_make_valid_picks),
        cmocka_unit_test(every_sequence_is_spread_its_own_way),
        cmocka_unit_test(without_a_wish_routers_are_left_alone),
        cmocka_unit_test(balanced_is_balanced_in_each_sequence),
        cmocka_unit_test(a_steep_zipf_sends_all_to_one_expert),
        cmocka_unit_test(recorded_ids_are_forced_again),
        cmocka_unit_test(forced_ids_depend_on_the_sequence_alone),
        cmocka_unit_test(recorded_loads_are_followed_again),
        cmocka_unit_test(words_that_say_nothing_are_refused),
        cmocka_unit_test(files_of_ids_that_do_not_fit_are_refused),
        cmocka_unit_test(ids_that_no_router_could_choose_are_refused),
        cmocka_unit_test(counted_ids_are_not_read_again),
        cmocka_unit_test(files_of_loads_that_do_not_fit_are_refused),
        cmocka_unit_test(a_model_without_experts_cannot_be_routed),
    };
    return cmocka_run_group_tests(tests, test_enter_directory, test_leave_directory);
}
