// Unit test of runtime/log: the progress line and the JSON lines.
#include <jansson.h>
#include <math.h>

#include "runtime/log/jsonl.h"
#include "runtime/log/numbers.h"
#include "runtime/log/progress.h"
#include "tests/runtime/support/case.h"

static const struct hrt_step_report step = {.step = 120,
                                            .loss = 3.21454,
                                            .cross_entropy = 3.2,
                                            .auxiliary = 1.0249,
                                            .grad_norm = 0.841,
                                            .lr = 3e-4,
                                            .seconds = 0.8123,
                                            .tokens_per_s = 5164200,
                                            .imbalance = 2.871,
                                            .watched.slowest = -1};

static void expect_count(double number, const char *expected) {
    char text[32];
    hrt_format_count(text, sizeof text, number);
    assert_string_equal(text, expected);
}

static void counts_have_three_digits(void **state) {
    (void)state;
    expect_count(0, "0");
    expect_count(7, "7");
    expect_count(999, "999");
    expect_count(999.7, "1.00k");
    expect_count(1234, "1.23k");
    expect_count(99960, "100k");
    expect_count(5164200, "5.16M");
    expect_count(2.5e9, "2.50G");
}

static void the_line_says_what_a_step_did(void **state) {
    (void)state;
    char line[256];
    struct hrt_step_report evaluated = step;
    struct hrt_progress progress = {.steps = 20000, .experts = true};
    hrt_progress_format(line, sizeof line, &progress, &step);
    assert_string_equal(line, "step 120/20000 | loss 3.2145 | aux 1.025 | gnorm 0.841 | "
                              "lr 3.0e-04 | 812.3 ms | 5.16M tok/s | load 2.87");
    progress.experts = false;
    evaluated.evaluated = true;
    evaluated.validation_loss = 3.5;
    hrt_progress_format(line, sizeof line, &progress, &evaluated);
    assert_string_equal(line, "step 120/20000 | loss 3.2145 | aux 1.025 | gnorm 0.841 | "
                              "lr 3.0e-04 | 812.3 ms | 5.16M tok/s | val 3.5000");
}

static void columns_are_added_where_they_fit(void **state) {
    (void)state;
    char line[256];
    struct hrt_step_report watched = step;
    watched.watched = (struct hrt_watch_sums){
        .after = 1.042, .before = 3, .replicas = 14, .waited = 0.123, .memory = 1.25e9};
    watched.left = 8000;
    watched.flops = 43e9;
    const struct hrt_progress progress = {.steps = 200, .experts = true, .peak = 1e11};
    watched.loss = 3;
    hrt_progress_format(line, sizeof line, &progress, &watched);
    assert_string_equal(line, "step 120/200 | loss 3.0000 | aux 1.025 | gnorm 0.841 | lr 3.0e-04 | "
                              "812.3 ms | 5.16M tok/s | load 2.87 | dev 1.04 | +14");
    watched.tokens_per_s = watched.grad_norm = watched.auxiliary = 1;
    watched.seconds = 0.001;
    hrt_progress_format(line, sizeof line, &progress, &watched);
    assert_string_equal(line,
                        "step 120/200 | loss 3.0000 | aux 1 | gnorm 1 | lr 3.0e-04 | 1.0 ms | "
                        "1 tok/s | load 2.87 | dev 1.04 | wait 12% | +14");
}

static const struct hrt_loss losses[] = {{.name = "mtp"}, {.name = "early"}};

static void losses_are_shown_by_name(void **state) {
    (void)state;
    char line[256];
    struct hrt_step_report named = step;
    const struct hrt_progress progress = {.steps = 200};
    named.named = (struct hrt_named_losses){.count = 2, .loss = losses, .value = {4.25, 5}};
    hrt_progress_format(line, sizeof line, &progress, &named);
    assert_string_equal(line,
                        "step 120/200 | loss 3.2145 | mtp 4.2500 | early 5.0000 | aux 1.025 | "
                        "gnorm 0.841 | lr 3.0e-04 | 812.3 ms | 5.16M tok/s");
}

static void losses_are_logged_by_name(void **state) {
    (void)state;
    struct hrt_error error = {0};
    struct hrt_jsonl log;
    struct hrt_number_of number[HRT_NUMBERS_OF];
    struct hrt_step_report named = step;
    named.named = (struct hrt_named_losses){
        .count = 2, .loss = losses, .value = {4.25, NAN}, .validation = {4.5, 6}};
    assert_true(hrt_jsonl_open(&log, "log", 0, &error));
    assert_true(hrt_jsonl_step(&log, &named, NULL, NULL, &error));
    named.evaluated = true;
    assert_true(hrt_jsonl_step(&log, &named, NULL, NULL, &error));
    assert_true(hrt_jsonl_close(&log, &error));
    char *text = test_read("log", NULL), *second = strchr(text, '\n') + 1;
    assert_non_null(strstr(text, "\"losses\":{\"mtp\":4.25,\"early\":null},\"watch\""));
    assert_non_null(strstr(second, "\"val_losses\":{\"mtp\":4.5,\"early\":6.0}"));
    free(text);

    const int count = hrt_numbers_of(&named, 0, number);
    assert_true(count <= HRT_NUMBERS_OF);
    const char *const tags[] = {"train/loss_mtp", "val/loss_mtp", "train/loss_early",
                                "val/loss_early"};
    for (int i = 0; i < 4; i++) assert_string_equal(number[count - 4 + i].tag, tags[i]);
    assert_true(number[count - 4].value == 4.25 && number[count - 3].value == 4.5);
}

// Shows steps 1 to 7 of 7, the 5th evaluated, and returns what was printed.
static char *shown(bool terminal) {
    char *printed = NULL;
    size_t bytes;
    FILE *out = open_memstream(&printed, &bytes);
    struct hrt_progress progress;
    hrt_progress_start(&progress, out, 7, 3, false);
    assert_false(progress.terminal);
    progress.terminal = terminal;
    for (int i = 1; i <= 7; i++) {
        struct hrt_step_report shown_step = step;
        shown_step.step = i;
        shown_step.evaluated = i == 5;
        hrt_progress_step(&progress, &shown_step);
    }
    hrt_progress_end_line(&progress);
    fclose(out);
    return printed;
}

static void a_file_gets_a_line_every_n_steps(void **state) {
    (void)state;
    char *printed = shown(false);
    static const char *const expected[] = {"step 1/7 ", "step 3/7 ", "step 5/7 ", "step 6/7 ",
                                           "step 7/7 "};
    int lines = 0;
    for (char *line = strtok(printed, "\n"); line; line = strtok(NULL, "\n")) {
        assert_true(lines < 5);
        assert_memory_equal(line, expected[lines], strlen(expected[lines]));
        lines++;
    }
    assert_int_equal(lines, 5);
    free(printed);
}

static void a_terminal_is_redrawn(void **state) {
    (void)state;
    char *printed = shown(true);
    int drawn = 0, kept = 0;
    for (const char *at = printed; *at; at++) {
        drawn += *at == '\r';
        kept += *at == '\n';
    }
    assert_int_equal(drawn, 7);
    assert_int_equal(kept, 3); // The first, the evaluated, the last.
    free(printed);
}

static void a_json_line_holds_the_step(void **state) {
    (void)state;
    struct hrt_error error = {0};
    struct hrt_jsonl log;
    struct hrt_load_counts loads;
    struct hrt_device host = {0};
    struct hrt_step_report evaluated = step;
    evaluated.evaluated = true;
    evaluated.validation_loss = 3.5;
    assert_true(hrt_load_counts_create(&loads, &bigram, &host, &error));
    memcpy(loads.count, ((int64_t[]){1, 2, 3, 4}), 4 * sizeof *loads.count);
    assert_true(hrt_jsonl_open(&log, "log", 0, &error));
    assert_true(hrt_jsonl_step(&log, &step, NULL, NULL, &error));
    assert_true(hrt_jsonl_step(&log, &evaluated, &loads, NULL, &error));
    assert_true(hrt_jsonl_close(&log, &error));

    char *text = test_read("log", NULL), *second = strchr(text, '\n') + 1;
    json_t *line = json_loads(text, JSON_DISABLE_EOF_CHECK, NULL);
    assert_int_equal(json_object_size(line), 9);
    assert_int_equal(json_integer_value(json_object_get(line, "step")), 120);
    static const char *const key[] = {"loss", "cross_entropy", "aux", "grad_norm",
                                      "lr",   "tokens_per_s",  "ms"};
    const double expected[] = {3.21454, 3.2, 1.0249, 0.841, 3e-4, 5164200, 812.3};
    for (int i = 0; i < 7; i++)
        assert_true(fabs(json_real_value(json_object_get(line, key[i])) - expected[i]) < 1e-9);
    json_decref(line);

    int count[4];
    double loss;
    line = json_loads(second, 0, NULL);
    assert_int_equal(json_unpack(line, "{s:f, s:{s:[[ii!][ii!]!]!}}", "val_loss", &loss,
                                 "tokens_per_expert", "sparse", &count[0], &count[1], &count[2],
                                 &count[3]),
                     0);
    assert_memory_equal(count, ((int[]){1, 2, 3, 4}), sizeof count);
    assert_true(loss == 3.5);
    json_decref(line);
    free(text);
    hrt_load_counts_destroy(&loads);
}

static void a_full_disk_is_an_error(void **state) {
    (void)state;
    struct hrt_error error = {0};
    struct hrt_jsonl log;
    assert_true(hrt_jsonl_open(&log, "/dev/full", 0, &error));
    test_expect_error(hrt_jsonl_step(&log, &step, NULL, NULL, &error), &error, HRT_EXIT_FAILED,
                      "cannot write '/dev/full': No space left on device");
    hrt_jsonl_close(&log, &error);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_have_three_digits),
        cmocka_unit_test(the_line_says_what_a_step_did),
        cmocka_unit_test(columns_are_added_where_they_fit),
        cmocka_unit_test(losses_are_shown_by_name),
        cmocka_unit_test(losses_are_logged_by_name),
        cmocka_unit_test(a_file_gets_a_line_every_n_steps),
        cmocka_unit_test(a_terminal_is_redrawn),
        cmocka_unit_test(a_json_line_holds_the_step),
        cmocka_unit_test(a_full_disk_is_an_error),
    };
    return cmocka_run_group_tests(tests, test_enter_directory, test_leave_directory);
}
