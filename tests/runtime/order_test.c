// Unit test of runtime/data/order: permutations, and the tokens of an epoch with any ranks, microbatches and stops.
#include "runtime/data/order.h"

#include <math.h>
#include <time.h>
#include <unistd.h>

#include "runtime/train/trainer.h"
#include "tests/runtime/support/case.h"

static struct hrt_stream key_of(uint64_t name) {
    return (struct hrt_stream){7, name};
}

static void every_index_has_one_image(void **state) {
    (void)state;
    static const uint64_t more[] = {1000, 4096, 4097, 65535, 65536, 65537};
    for (uint64_t i = 0; i < 300 + sizeof more / sizeof *more; i++) {
        const uint64_t count = i < 300 ? i + 1 : more[i - 300];
        char *seen = calloc(count, 1);
        for (uint64_t k = 0; k < count; k++) {
            const uint64_t image = hrt_data_permute(key_of(count), count, k);
            assert_true(image < count);
            assert_false(seen[image]++);
        }
        free(seen);
    }
    const uint64_t large = UINT64_MAX; // Halves of 32 bits.
    assert_true(hrt_data_permute(key_of(1), large, large - 1) < large);
}

static void orders_look_random(void **state) {
    (void)state;
    enum { COUNT = 1000 };
    int fixed = 0, ascents = 0, same = 0;
    for (uint64_t k = 0; k < COUNT; k++) {
        const uint64_t image = hrt_data_permute(key_of(1), COUNT, k);
        fixed += image == k;
        same += image == hrt_data_permute(key_of(2), COUNT, k);
        ascents += k > 0 && image > hrt_data_permute(key_of(1), COUNT, k - 1);
    }
    assert_true(fixed < 10 && same < 10); // 1 each in the mean.
    assert_in_range(ascents, 450, 550);   // 499.5; the standard deviation is 9.
}

// A step of the smallest model of `examples/` takes some 1e9 operations for each sequence: 1 % of it is 5 ms.
static void an_order_costs_next_to_nothing(void **state) {
    (void)state;
    enum { DRAWS = 20000 };
    int64_t sum = 0;
    const clock_t begun = clock();
    for (uint64_t n = 0; n < DRAWS; n++)
        sum += hrt_data_order_place(HRT_DATA_ORDER_shuffle, 1, 1000000000000, 1024, 1, n);
    const double seconds = (double)(clock() - begun) / CLOCKS_PER_SEC;
    assert_true(sum > 0);
    printf("%.2f us for a sequence of 1e12 tokens\n", 1e6 * seconds / DRAWS);
    assert_true(seconds / DRAWS < 50e-6);
}

// ---- which tokens are read

enum { FILES = 3, MOST = 4000, CASES = 200 };

struct reading {
    struct hrt_program program;
    struct hrt_config config;
    struct hrt_comm comm;
    struct hrt_data data;
    struct hrt_trainer trainer;
    bool packed, pairs; // Files of sequences of whole documents; two of them are a pair.
    int length[FILES];  // Tokens.
    int count[FILES][MOST];
    bool counts[FILES][MOST]; // Their weights, of packed files.
    int64_t tokens;
};

static int below(struct hrt_stream stream, uint64_t *index, int count) {
    return (int)hrt_draw_below(stream, (*index)++, (uint64_t)count);
}

// Each token tells where it stands.
static void write_files(struct reading *r, struct hrt_stream stream, uint64_t *index) {
    r->tokens = 0;
    for (int i = 0; i < FILES; i++) {
        char name[16];
        uint32_t token[MOST];
        const int positions = (int)r->program.positions;
        r->length[i] = 40 + below(stream, index, 1200);
        const int unit = r->pairs ? 2 * positions : positions;
        if (r->packed) r->length[i] += unit - r->length[i] % unit;
        for (int k = 0; k < r->length[i]; k++) {
            token[k] = (uint32_t)(i * MOST + k);
            r->counts[i][k] = below(stream, index, 3) > 0;
        }
        snprintf(name, sizeof name, "part%d", i);
        test_write_llmc(name,
                        (struct test_llmc){20240520, 1, r->length[i], 2, token, r->length[i], 0});
        if (r->packed)
            test_pack_llmc(name, positions, r->pairs ? 2 : 0, r->counts[i], r->length[i]);
        r->tokens += r->length[i];
    }
}

static void open_files(struct reading *r, enum hrt_data_order order) {
    static const char *const pattern = "part?", *const none = "part0";
    struct hrt_error error = {0};
    const struct hrt_data_request request = {.train = &pattern,
                                             .trains = 1,
                                             .validation = &none,
                                             .validations = 1,
                                             .format = HRT_DATA_FORMAT_llmc,
                                             .order = order,
                                             .positions = r->program.positions,
                                             .pairs = r->pairs,
                                             .vocabulary = FILES * MOST};
    if (!hrt_data_open(&r->data, &request, &error)) fail_msg("%s", error.text);
    assert_int_equal(r->data.train.tokens, r->tokens);
}

// Plans steps of other ranks, microbatches and tokens, which go on behind step `from`.
static void plan(struct reading *r, struct hrt_stream stream, uint64_t *index, int64_t from,
                 int64_t drawn) {
    struct hrt_error error = {0};
    r->program.batch = (1 + below(stream, index, 3)) * (r->pairs ? 2 : 1);
    r->comm.size = 1 + below(stream, index, 4);
    r->config.train_tokens =
        r->program.positions * r->program.batch * r->comm.size * (1 + below(stream, index, 3));
    if (!hrt_train_trainer_plan(&r->trainer, &r->program, &r->config, &r->comm, &r->data, &error))
        fail_msg("%s", error.text);
    hrt_train_trainer_go_on(&r->trainer, from, drawn, 0);
}

// Reads sequence `number`, and counts its tokens and targets: target i is token i + 1.
static void read_sequence(struct reading *r, int64_t number) {
    struct hrt_error error = {0};
    int32_t ids[64], targets[64];
    const int64_t positions = r->program.positions;
    assert_true(hrt_data_draw(&r->data, (uint64_t)r->config.train_seed, (uint64_t)number, ids,
                              targets, &error));
    for (int64_t i = 0; i < positions; i++) {
        const int file = ids[i] / MOST, at = ids[i] % MOST;
        const bool last = at + 1 == r->length[file];
        r->count[file][at]++;
        if (r->packed) {
            assert_int_equal(at % positions, i); // As the file has it.
            if (r->pairs) assert_int_equal(at / positions % 2, number % 2);
            assert_int_equal(targets[i], !last && r->counts[file][at + 1] ? ids[i] + 1 : -1);
            continue;
        }
        assert_int_equal(targets[i], last ? (file + 1) % FILES * MOST : ids[i] + 1);
        if (i) assert_int_equal(ids[i], targets[i - 1]);
    }
}

// All ranks' sequences of a step, up to number `end`. Returns those read.
static int64_t take_step(struct reading *r, int64_t step, int64_t end) {
    int64_t taken = 0;
    for (r->comm.rank = 0; r->comm.rank < r->comm.size; r->comm.rank++) {
        for (int64_t i = 0; i < r->trainer.iterations; i++) {
            const int64_t first = hrt_train_first_sequence(&r->trainer, step, i);
            for (int64_t k = 0; k < r->trainer.batch && first + k < end; k++, taken++)
                read_sequence(r, first + k);
        }
    }
    return taken;
}

// Reads up to sequence `end`, and is stopped now and then, to go on with other ranks and microbatches.
static void run_to(struct reading *r, struct hrt_stream stream, uint64_t *index, int64_t end) {
    int64_t step = 0, read = 0;
    plan(r, stream, index, 0, 0);
    while (read < end) {
        const bool stopped = below(stream, index, 4) == 0;
        if (stopped) plan(r, stream, index, step, hrt_train_trainer_sequences(&r->trainer, step));
        read += take_step(r, step++, end);
    }
    assert_int_equal(read, end);
}

static int64_t count_read(const struct reading *r, int times) {
    int64_t found = 0;
    for (int i = 0; i < FILES; i++) {
        for (int k = 0; k < r->length[i]; k++) found += r->count[i][k] == times;
    }
    return found;
}

static void read_an_epoch(bool packed, bool pairs) {
    static struct reading r;
    for (int i = 0; i < CASES; i++) {
        const struct hrt_stream stream = key_of((uint64_t)i);
        uint64_t index = 0;
        r = (struct reading){.config = {.train_seed = i},
                             .program = {.name = "m"},
                             .packed = packed,
                             .pairs = pairs};
        r.program.positions = 1 + below(stream, &index, 39);
        write_files(&r, stream, &index);
        open_files(&r, i % 4 ? HRT_DATA_ORDER_shuffle : HRT_DATA_ORDER_sequential);
        const int64_t windows = hrt_data_epoch(&r.data), rest = r.tokens % r.program.positions;
        run_to(&r, stream, &index, windows);
        assert_int_equal(windows, r.tokens / r.program.positions);
        assert_int_equal(count_read(&r, 0), rest);
        assert_int_equal(count_read(&r, 1), r.tokens - rest);
        assert_true(!packed || rest == 0);
        hrt_data_close(&r.data);
        for (int k = 0; k < FILES; k++) {
            char name[24];
            snprintf(name, sizeof name, "part%d.weights", k);
            unlink(name);
        }
    }
}

static void an_epoch_reads_each_token_once(void **state) {
    (void)state;
    read_an_epoch(false, false);
}

static void an_epoch_reads_each_packed_sequence_once(void **state) {
    (void)state;
    read_an_epoch(true, false);
}

static void an_epoch_reads_each_pair_once(void **state) {
    (void)state;
    read_an_epoch(true, true);
}

static void epochs_are_cut_and_ordered_differently(void **state) {
    (void)state;
    int64_t place[2][50];
    for (int epoch = 0; epoch < 2; epoch++) {
        for (int k = 0; k < 50; k++)
            place[epoch][k] = hrt_data_order_place(HRT_DATA_ORDER_shuffle, 3, 50 * 16, 16, 1,
                                                   (uint64_t)(epoch * 50 + k));
    }
    assert_int_not_equal(place[0][0] % 16, place[1][0] % 16);
    int same = 0; // Steps between sequences.
    for (int k = 1; k < 50; k++)
        same += place[0][k] - place[0][k - 1] == place[1][k] - place[1][k - 1];
    assert_true(same < 10);
}

static void sequential_goes_on_over_the_end(void **state) {
    (void)state;
    for (uint64_t n = 0; n < 100; n++)
        assert_int_equal(hrt_data_order_place(HRT_DATA_ORDER_sequential, n, 103, 10, 1, n),
                         n * 10 % 103);
}

static void sources_have_their_shares_and_orders(void **state) {
    (void)state;
    enum { SOURCES = 4, MANY = 40000 };
    static const double share[SOURCES] = {0.5, 3, 0.01, 1.2};
    static char seen[SOURCES][MANY];
    const struct hrt_mixture mixture = hrt_data_mixture(share, SOURCES);
    uint64_t read[SOURCES] = {0}, count[SOURCES];
    int same = 0, before = -1;
    memset(seen, 0, sizeof seen);
    for (uint64_t n = 0; n < MANY; n++) {
        if (n % 61 == 0 || n % 256 == 0) {
            hrt_data_mixture_count(&mixture, 9, n, count);
            assert_memory_equal(count, read, sizeof read);
        }
        for (int i = 0; i < SOURCES && n % 256 == 0; i++) {
            const double wanted = share[i] / 4.71 * (double)n;
            assert_true(fabs((double)read[i] - wanted) <= SOURCES);
            for (uint64_t k = 0; k < read[i]; k++) assert_true(seen[i][k]); // None is left out.
        }
        const struct hrt_turn turn = hrt_data_mixture_turn(&mixture, 9, n);
        assert_false(seen[turn.source][turn.sequence]++); // Nor read twice.
        read[turn.source]++;
        same += turn.source == before;
        before = turn.source;
    }
    assert_in_range(same, MANY * 45 / 100, MANY * 53 / 100); // The sum of squares of shares, 0.48.
}

static void epochs_become_steps(void **state) {
    (void)state;
    static struct reading r;
    const struct hrt_stream stream = key_of(1);
    uint64_t index = 0;
    r = (struct reading){.config = {.train_tokens = 40}, .comm = {.size = 1}};
    r.program = (struct hrt_program){.name = "m", .positions = 10, .batch = 2};
    write_files(&r, stream, &index);
    open_files(&r, HRT_DATA_ORDER_shuffle);
    struct hrt_error error = {0};
    assert_true(
        hrt_train_trainer_plan(&r.trainer, &r.program, &r.config, &r.comm, &r.data, &error));
    const int64_t windows = hrt_data_epoch(&r.data);
    assert_int_equal(hrt_train_last_step(&r.trainer, 1), (windows + 3) / 4);
    assert_int_equal(hrt_train_last_step(&r.trainer, 2), (2 * windows + 3) / 4);
    assert_int_equal(hrt_train_last_step(&r.trainer, 1e-9), 1);
    hrt_train_trainer_go_on(&r.trainer, 5, 8, 0); // Five steps, smaller than these.
    assert_int_equal(hrt_train_last_step(&r.trainer, 1), 5 + (windows - 8 + 3) / 4);
    hrt_data_close(&r.data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_index_has_one_image),
        cmocka_unit_test(orders_look_random),
        cmocka_unit_test(an_order_costs_next_to_nothing),
        cmocka_unit_test(an_epoch_reads_each_token_once),
        cmocka_unit_test(an_epoch_reads_each_packed_sequence_once),
        cmocka_unit_test(an_epoch_reads_each_pair_once),
        cmocka_unit_test(epochs_are_cut_and_ordered_differently),
        cmocka_unit_test(sequential_goes_on_over_the_end),
        cmocka_unit_test(sources_have_their_shares_and_orders),
        cmocka_unit_test(epochs_become_steps),
    };
    return cmocka_run_group_tests(tests, test_enter_directory, test_leave_directory);
}
