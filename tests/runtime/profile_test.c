// Unit test of runtime/profile: the counts, the table, and the trace. Times are
// given, so every figure is exact.
#include <jansson.h>
#include <math.h>

#include "runtime/profile/record.h"
#include "tests/runtime/support/case.h"

static const char *const product_sizes = "m n k";

static struct hrt_comm comm; // One rank, but where a test says otherwise.

static struct hrt_profile *new_profile(void) {
    struct hrt_profile *p = calloc(1, sizeof *p);
    assert_non_null(p);
    p->process = (struct hrt_trace_process){"a \"b\"", 0};
    p->isa = "avx2";
    p->threads = 2;
    p->ranks = 1;
    p->tokens = 64;
    p->peak = 4;
    hrt_profile_tally_init(&p->tally);
    return p;
}

static void call_product(struct hrt_profile *p, int64_t start, int64_t end, int64_t m) {
    const struct hk_call call = {
        .name = "matmul_nn",
        .work = {HK_KIND_PRODUCT, product_sizes, {m, 8, 4}, 2 * 8 * 4 * (double)m, 1000},
        .start = start,
        .end = end,
    };
    hrt_profile_called(p, &call);
}

static void call_grouped(struct hrt_profile *p, int64_t start, int64_t end, int64_t rows) {
    const struct hk_call call = {
        .name = "grouped_nn",
        .work = {HK_KIND_PRODUCT, "~rows experts n k", {rows, 2, 8, 4}, 64 * (double)rows, 500},
        .start = start,
        .end = end,
    };
    hrt_profile_called(p, &call);
}

static void call_pass(struct hrt_profile *p, const char *name, int64_t start, int64_t end) {
    const struct hk_call call = {
        .name = name,
        .work = {HK_KIND_PASS, "count", {100}, 0, 2000},
        .start = start,
        .end = end,
    };
    hrt_profile_called(p, &call);
}

// A step of 100 us from `at` on, after which 10 us pass; times in ns.
static void take_step(struct hrt_profile *p, int64_t number, int64_t at) {
    hrt_profile_begin_step_at(p, number, at);
    hrt_profile_enter_at(p, HRT_PHASE_DATA, at + 1000);
    hrt_profile_enter_at(p, HRT_PHASE_FORWARD, at + 3000);
    call_product(p, at + 4000, at + 14000, 16);
    call_product(p, at + 20000, at + 30000, 16);
    call_product(p, at + 30000, at + 34000, 32);
    call_grouped(p, at + 34000, at + 40000, number);
    call_grouped(p, at + 40000, at + 46000, 3 * number);
    hrt_profile_enter_at(p, HRT_PHASE_BACKWARD, at + 50000);
    call_pass(p, "rope", at + 52000, at + 60000);
    hrt_profile_enter_at(p, HRT_PHASE_OTHER, at + 70000);
    hrt_profile_enter_at(p, HRT_PHASE_OPTIMIZER, at + 75000);
    call_pass(p, "adamw", at + 76000, at + 96000);
    hrt_profile_end_step_at(p, at + 100000);
}

// Itself, 4 phases, 7 kernels, and 4 of 8 times between kernels: those of 2 us and more.
enum { events_of_step = 1 + 4 + 7 + 4 };

static char *printed(const struct hrt_profile *p) {
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    hrt_profile_print(out, p);
    fclose(out);
    return text;
}

// By hand: in 36 us of products 2 x 1024 + 2048 + 64 (2 + 6) flops, and so on.
static void the_table_says_what_was_counted(void **state) {
    (void)state;
    struct hrt_profile *p = new_profile();
    take_step(p, 2, 1000000);
    char *text = printed(p);
    assert_string_equal(
        text,
        "\nprofile of step 2: 64 tokens each; 2 threads, avx2, peak 4.0 GFLOP/s\n"
        "                                                 calls        ms   share  GFLOP/s   peak"
        "    GB/s\n"
        "GEMMs                                                5     0.036  36.0 %      0.1    3 %"
        "     0.1\n"
        "  matmul_nn  (m n k)                                 3     0.024  24.0 %      0.2    4 %"
        "     0.1\n"
        "    16 x 8 x 4                                       2     0.020  20.0 %      0.1    3 %"
        "     0.1\n"
        "    32 x 8 x 4                                       1     0.004   4.0 %      0.5   13 %"
        "     0.2\n"
        "  grouped_nn  ~4 x 2 x 8 x 4                         2     0.012  12.0 %      0.0    1 %"
        "     0.1\n"
        "other kernels                                        1     0.008   8.0 %"
        "                     0.2\n"
        "  rope  100                                          1     0.008   8.0 %"
        "                     0.2\n"
        "between kernels                                      8     0.023  23.0 %\n"
        "  backward                                           2     0.012  12.0 %\n"
        "    rope .. end                                      1     0.010  10.0 %\n"
        "    begin .. rope                                    1     0.002   2.0 %\n"
        "  forward                                            6     0.011  11.0 %\n"
        "    matmul_nn .. matmul_nn                           2     0.006   6.0 %\n"
        "    grouped_nn .. end                                1     0.004   4.0 %\n"
        "    begin .. matmul_nn                               1     0.001   1.0 %\n"
        "    2 more                                           2     0.000   0.0 %\n"
        "optimizer                                            1     0.025  25.0 %"
        "                     0.1\n"
        "  adamw  100                                         1     0.020  20.0 %"
        "                     0.1\n"
        "data                                                       0.002   2.0 %\n"
        "other                                                      0.006   6.0 %\n"
        "step                                                       0.100 100.0 %\n"
        "not in GEMMs and attention: 64.0 % of a step; without the optimizer, 52.0 %\n");
    free(text);
    free(p);
}

// Waits between steps, and those of the first step, are not counted.
static void waits_for_other_ranks_are_counted_by_purpose(void **state) {
    (void)state;
    static struct hrt_wait device[HRT_WHYS] = {{.why = "losses"}};
    struct hrt_profile *p = new_profile();
    p->ranks = 2;
    p->waits[HRT_AWAITED_RANKS] = (struct hrt_waits_of){.now = comm.wait, .room = HRT_WAITS};
    p->waits[HRT_AWAITED_DEVICE] = (struct hrt_waits_of){.now = device, .room = HRT_WHYS};
    for (int step = 1; step <= 2; step++) {
        comm.wait[0] = (struct hrt_wait){"rows", comm.wait[0].calls + 7, comm.wait[0].ns + 77000};
        hrt_profile_begin_step_at(p, step, step * 1000000);
        device[0].calls += 3;
        device[0].ns += 6000;
        comm.wait[0].calls += 2;
        comm.wait[0].ns += 5000 * step;
        comm.wait[1] = (struct hrt_wait){"counts", comm.wait[1].calls + 1, comm.wait[1].ns + 4000};
        hrt_profile_end_step_at(p, step * 1000000 + 100000);
    }
    char *text = printed(p);
    assert_non_null(strstr(text, "part of it: waits for ranks                          3     0.014"
                                 "  14.0 %\n"
                                 "  rows                                               2     0.010"
                                 "  10.0 %\n"
                                 "  counts                                             1     0.004"
                                 "   4.0 %\n"
                                 "part of it: waits for device                         3     0.006"
                                 "   6.0 %\n"
                                 "  losses                                             3     0.006"
                                 "   6.0 %\n"));
    free(text);
    free(p);
    memset(&comm, 0, sizeof comm);
}

// 1000 flops in 1000 ns each: a quarter of 4 GFLOP/s and an eighth of 8, together 3/16.
static void bf16_kernels_have_their_own_peak(void **state) {
    (void)state;
    struct hrt_profile *p = new_profile();
    p->peak_bf16 = 8;
    struct hk_call call = {.work = {HK_KIND_PRODUCT, "m", {9}, 1000, 0}, .start = 0, .end = 1000};
    hrt_profile_begin_step_at(p, 1, 0);
    hrt_profile_enter_at(p, HRT_PHASE_FORWARD, 0);
    call.name = "matmul_nn";
    hrt_profile_called(p, &call);
    call.name = "matmul_nn_bf16";
    call.start += 1000, call.end += 1000;
    hrt_profile_called(p, &call);
    hrt_profile_end_step_at(p, 2000);
    char *text = printed(p);
    assert_non_null(strstr(text, "peak 4.0 GFLOP/s, bf16 8.0\n"));
    assert_non_null(strstr(text, "GEMMs                                                2     0.002 "
                                 "100.0 %      1.0   19 %"));
    assert_non_null(strstr(text, "  matmul_nn  9                                       1     0.001 "
                                 " 50.0 %      1.0   25 %"));
    assert_non_null(strstr(text, "  matmul_nn_bf16  9                                  1     0.001 "
                                 " 50.0 %      1.0   12 %"));
    free(text);
    free(p);
}

static void the_first_of_several_steps_is_left_out(void **state) {
    (void)state;
    struct hrt_profile *p = new_profile();
    take_step(p, 1, 0);
    hrt_profile_begin_step_at(p, 2, 110000);
    hrt_profile_enter_at(p, HRT_PHASE_FORWARD, 110000);
    call_product(p, 110000, 115000, 16);
    hrt_profile_end_step_at(p, 120000);
    hrt_profile_begin_step_at(p, 3, 120000);
    hrt_profile_end_step_at(p, 150000);
    char *text = printed(p);
    assert_non_null(strstr(text, "profile of steps 2 to 3 (the first is left out): "));
    assert_non_null(strstr(text, "\n  matmul_nn  16 x 8 x 4                            0.5"
                                 "     0.003  12.5 %"));
    assert_non_null(strstr(text, "\nstep                                                  "
                                 "     0.020 100.0 %\n"));
    assert_null(strstr(text, "rope"));
    free(text);
    free(p);
}

static void without_a_step_there_is_no_table(void **state) {
    (void)state;
    struct hrt_profile *p = new_profile();
    char *text = printed(p);
    assert_string_equal(text, "profile: no step was taken\n");
    free(text);
    free(p);
}

static void shapes_beyond_the_table_share_a_row(void **state) {
    (void)state;
    struct hrt_tally *tally = calloc(1, sizeof *tally);
    hrt_profile_tally_init(tally);
    for (int i = 1; i < HRT_TALLY_ROWS + 10; i++) {
        const struct hk_work work = {.sizes = "m n", .size = {i % 7, i}};
        const int row =
            hrt_profile_tally_row_of(tally, HRT_SECTION_PASSES, i % 2 ? "odd" : "even", &work);
        assert_int_equal(row, i < HRT_TALLY_ROWS ? i : 0);
        assert_int_equal(
            hrt_profile_tally_row_of(tally, HRT_SECTION_PASSES, i % 2 ? "odd" : "even", &work),
            row);
        hrt_profile_tally_add(tally, row, &work, 5);
    }
    assert_int_equal(tally->row[0].calls, 10);
    assert_int_equal(tally->row[0].ns, 50);
    assert_int_equal(hrt_profile_tally_family(tally, 9), 1);
    assert_int_equal(hrt_profile_tally_family(tally, 10), 2);

    // In another section the same kernel has another row; a size that varies makes none.
    hrt_profile_tally_init(tally);
    struct hk_work work = {.sizes = "~rows n", .size = {1, 2}};
    const int row = hrt_profile_tally_row_of(tally, HRT_SECTION_PASSES, "spread", &work);
    work.size[0] = 9;
    assert_int_equal(hrt_profile_tally_row_of(tally, HRT_SECTION_PASSES, "spread", &work), row);
    assert_int_not_equal(hrt_profile_tally_row_of(tally, HRT_SECTION_OPTIMIZER, "spread", &work),
                         row);
    free(tally);
}

static void open_trace(struct hrt_profile *p) {
    struct hrt_error error = {0};
    assert_true(hrt_profile_trace_open(&p->trace, "trace", &error));
}

static json_t *read_events(json_t **root) {
    *root = json_load_file("trace", 0, NULL);
    json_t *events = json_object_get(*root, "traceEvents");
    assert_true(json_is_array(events));
    return events;
}

static const char *text_of(const json_t *event, const char *key) {
    return json_string_value(json_object_get(event, key));
}

static double number_of(const json_t *event, const char *key) {
    return json_number_value(json_object_get(event, key));
}

// Fails unless events that begin inside another end inside it, too.
static void expect_nested(json_t *events) {
    double end[8];
    int depth = 0;
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *event = json_array_get(events, i);
        if (strcmp(text_of(event, "ph"), "X") != 0) continue;
        const double start = number_of(event, "ts"), stop = start + number_of(event, "dur");
        while (depth > 0 && end[depth - 1] <= start + 1e-6) depth--;
        assert_true(depth == 0 || stop <= end[depth - 1] + 1e-6);
        assert_true(depth < 8);
        end[depth++] = stop;
    }
}

static const json_t *find_event(json_t *events, const char *name) {
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *event = json_array_get(events, i);
        if (strcmp(text_of(event, "name"), name) == 0) return event;
    }
    return NULL;
}

static void a_trace_holds_steps_phases_and_kernels(void **state) {
    (void)state;
    struct hrt_profile *p = new_profile();
    struct hrt_trace_written written;
    struct hrt_error error = {0};
    open_trace(p);
    take_step(p, 1, 1000);
    take_step(p, 2, 111000);
    assert_true(hrt_profile_trace_write(&p->trace, &p->tally, &p->process, &written, &error));
    assert_int_equal(written.first_step, 1);
    assert_int_equal(written.last_step, 2);
    assert_false(written.left_out);

    json_t *root, *events = read_events(&root);
    assert_int_equal(json_array_size(events), 2 + 2 * events_of_step);
    assert_int_equal(written.events, json_array_size(events) - 2);
    expect_nested(events);
    const json_t *process = json_array_get(events, 0);
    assert_string_equal(text_of(process, "ph"), "M");
    assert_string_equal(text_of(json_object_get(process, "args"), "name"), "a \"b\", rank 0");
    const json_t *step = find_event(events, "step 2");
    assert_true(fabs(number_of(step, "ts") - 111) < 1e-9);
    assert_true(fabs(number_of(step, "dur") - 100) < 1e-9);
    const json_t *grouped = find_event(events, "grouped_nn 6 x 2 x 8 x 4"); // The second of step 2.
    const json_t *args = json_object_get(grouped, "args");
    assert_string_equal(text_of(grouped, "cat"), "product");
    assert_true(number_of(args, "rows") == 6 && number_of(args, "k") == 4);
    assert_true(number_of(args, "GFLOP/s") == 0.1 && number_of(args, "GB/s") == 0.1);
    const json_t *between = json_object_get(find_event(events, "between kernels"), "args");
    assert_string_equal(text_of(between, "after"), "matmul_nn");
    assert_string_equal(text_of(between, "before"), "matmul_nn");
    assert_non_null(find_event(events, "backward"));
    json_decref(root);
    hrt_profile_close(p);
}

static void call_of_line(struct hrt_profile *p, const char *line, int64_t start) {
    const struct hk_call call = {.name = "pass",
                                 .work = {HK_KIND_PASS, "count", {1}, 0, 4},
                                 .start = start,
                                 .end = start + 1000,
                                 .line = line};
    hrt_profile_called(p, &call);
}

// Kernels of one line lie in one event, with anything between them; those of a phase's end and of no line in none.
static void a_trace_names_the_lines_of_the_model(void **state) {
    (void)state;
    static const char seven[] = "m.moe:7", eight[] = "m.moe:8";
    struct hrt_profile *p = new_profile();
    struct hrt_trace_written written;
    struct hrt_error error = {0};
    open_trace(p);
    hrt_profile_begin_step_at(p, 1, 0);
    hrt_profile_enter_at(p, HRT_PHASE_FORWARD, 0);
    call_of_line(p, seven, 1000);
    call_of_line(p, seven, 10000); // Behind a loop of its own.
    call_of_line(p, eight, 11000);
    call_of_line(p, seven, 12000);
    hrt_profile_enter_at(p, HRT_PHASE_BACKWARD, 20000);
    call_of_line(p, seven, 21000);
    hrt_profile_enter_at(p, HRT_PHASE_OPTIMIZER, 30000);
    call_of_line(p, NULL, 31000);
    hrt_profile_end_step_at(p, 40000);
    assert_true(hrt_profile_trace_write(&p->trace, &p->tally, &p->process, &written, &error));

    const struct {
        const char *name;
        double from, us;
    } want[] = {{seven, 1, 10}, {eight, 11, 1}, {seven, 12, 1}, {seven, 21, 1}};
    json_t *root, *events = read_events(&root);
    size_t lines = 0;
    expect_nested(events);
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *event = json_array_get(events, i);
        if (!text_of(event, "cat") || strcmp(text_of(event, "cat"), "line") != 0) continue;
        assert_true(lines < 4);
        assert_string_equal(text_of(event, "name"), want[lines].name);
        assert_true(fabs(number_of(event, "ts") - want[lines].from) < 1e-9);
        assert_true(fabs(number_of(event, "dur") - want[lines++].us) < 1e-9);
    }
    assert_int_equal(lines, 4);
    json_decref(root);
    hrt_profile_close(p);
}

// A quarter of the first GEMM and three of the second's eight microseconds: the rest is
// 1000 and 2000 flops in 3 and 5 us. Backward has one GEMM more, without.
static void epilogues_are_counted_apart(void **state) {
    (void)state;
    struct hrt_profile *p = new_profile();
    struct hrt_trace_written written;
    struct hrt_error error = {0};
    open_trace(p);
    struct hk_call call = {
        .name = "matmul_nn", .work = {HK_KIND_PRODUCT, "m n", {9, 8}, 1000, 3000}, .end = 4000};
    hrt_profile_begin_step_at(p, 1, 0);
    hrt_profile_enter_at(p, HRT_PHASE_FORWARD, 0);
    call.epilogue_ns = 1000;
    hrt_profile_called(p, &call);
    call.start = 4000, call.end = 12000, call.epilogue_ns = 3000, call.work.flops = 2000;
    hrt_profile_called(p, &call);
    hrt_profile_enter_at(p, HRT_PHASE_BACKWARD, 12000);
    call.start = 12000, call.end = 20000, call.epilogue_ns = 0, call.name = "matmul_nt";
    hrt_profile_called(p, &call);
    hrt_profile_end_step_at(p, 40000);
    char *text = printed(p);
    assert_non_null(strstr(text,
                           "\n  matmul_nn  9 x 8                                   2     0.008 "
                           " 20.0 %      0.4    9 %     0.8\n"));
    assert_non_null(strstr(text,
                           "\nepilogues of GEMMs                                   2     0.004 "
                           " 10.0 %\n  matmul_nn  9 x 8                                   2     "
                           "0.004  10.0 %\nbetween kernels "));
    assert_non_null(strstr(text, "\nnot in GEMMs and attention: 60.0 % of a step"));
    free(text);

    assert_true(hrt_profile_trace_write(&p->trace, &p->tally, &p->process, &written, &error));
    json_t *root, *events = read_events(&root);
    const json_t *product = find_event(events, "matmul_nn 9 x 8");
    const json_t *args = json_object_get(product, "args");
    assert_true(number_of(product, "dur") == 4);
    assert_true(number_of(args, "GFLOP/s") == 0.3 && number_of(args, "GB/s") == 1);
    assert_true(number_of(args, "us in its epilogue") == 1);
    args = json_object_get(find_event(events, "matmul_nt 9 x 8"), "args");
    assert_null(json_object_get(args, "us in its epilogue"));
    json_decref(root);
    hrt_profile_close(p);
}

// More steps than the ring has room for: the newest whole ones are written.
static void a_long_trace_keeps_the_newest_steps(void **state) {
    (void)state;
    struct hrt_profile *p = new_profile();
    struct hrt_trace_written written;
    struct hrt_error error = {0};
    open_trace(p);
    const int64_t held = HRT_TRACE_EVENTS / events_of_step, steps = held + 100;
    for (int64_t i = 1; i <= steps; i++) take_step(p, i, i * 110000);
    // One event more of a step that does not end: of step 101, one found no place.
    hrt_profile_begin_step_at(p, steps + 1, (steps + 1) * 110000);
    hrt_profile_enter_at(p, HRT_PHASE_DATA, (steps + 1) * 110000);
    hrt_profile_enter_at(p, HRT_PHASE_FORWARD, (steps + 1) * 110000 + 1000);
    assert_true(hrt_profile_trace_write(&p->trace, &p->tally, &p->process, &written, &error));
    assert_true(written.left_out);
    assert_int_equal(written.last_step, steps);
    assert_int_equal(written.first_step, 102);
    assert_int_equal(written.events, (held - 1) * events_of_step + 1);
    json_t *root, *events = read_events(&root);
    assert_int_equal(json_array_size(events), written.events + 2);
    expect_nested(events);
    json_decref(root);
    hrt_profile_close(p);
}

static void what_is_not_asked_for_does_nothing(void **state) {
    (void)state;
    struct hrt_profile *profile;
    struct hrt_error error = {0};
    const struct hrt_profile_request request = {.tokens = 1};
    struct hrt_comm comm;
    const struct hrt_device device = {0};
    hrt_net_comm_open_self(&comm);
    assert_true(hrt_profile_open(&profile, &request, &bigram, &comm, &device, &error));
    assert_null(profile);
    hrt_profile_begin_step(profile, 1);
    hrt_profile_enter(profile, HRT_PHASE_FORWARD);
    hrt_profile_end_step(profile);
    assert_true(hrt_profile_finish(profile, stdout, &error));
    hrt_profile_close(profile);
    hrt_net_comm_close(&comm);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waits_for_other_ranks_are_counted_by_purpose),
        cmocka_unit_test(the_table_says_what_was_counted),
        cmocka_unit_test(bf16_kernels_have_their_own_peak),
        cmocka_unit_test(epilogues_are_counted_apart),
        cmocka_unit_test(the_first_of_several_steps_is_left_out),
        cmocka_unit_test(without_a_step_there_is_no_table),
        cmocka_unit_test(shapes_beyond_the_table_share_a_row),
        cmocka_unit_test(a_trace_holds_steps_phases_and_kernels),
        cmocka_unit_test(a_trace_names_the_lines_of_the_model),
        cmocka_unit_test(a_long_trace_keeps_the_newest_steps),
        cmocka_unit_test(what_is_not_asked_for_does_nothing),
    };
    return cmocka_run_group_tests(tests, test_enter_directory, test_leave_directory);
}
