// Unit test of runtime/log: the progress line and the JSON lines.
#define _GNU_SOURCE // memmem
#include <jansson.h>
#include <math.h>
#include <pty.h>
#include <unistd.h>

#include "runtime/log/jsonl.h"
#include "runtime/log/numbers.h"
#include "runtime/log/progress.h"
#include "runtime/log/tensorboard.h"
#include "runtime/train/routers.h"
#include "tests/runtime/support/case.h"

static const struct hrt_log_layers no_layers;
static const struct hrt_step_report step = {.step = 120,
                                            .loss = 3.21454,
                                            .cross_entropy = 3.2,
                                            .auxiliary = 1.0249,
                                            .grad_norm = 0.841,
                                            .lr = 3e-4,
                                            .seconds = 0.8123,
                                            .tokens_per_s = 5164200,
                                            .routers.load_index = -1,
                                            .watched.slowest = -1};

static void expect_count(double number, const char *expected) {
    char text[32];
    hrt_log_format_count(text, sizeof text, number);
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

static void expect_line(const struct hrt_progress *progress, size_t width,
                        const struct hrt_step_report *report, const char *expected) {
    char line[512];
    hrt_log_progress_format(line, sizeof line, width, progress, report);
    assert_string_equal(line, expected);
}

static struct hrt_step_report of_ranks(void) {
    struct hrt_step_report report = step;
    report.watched = (struct hrt_watch_sums){
        .after = 1.042, .before = 3, .replicas = 14, .waited = 0.123, .memory = 1.25e9};
    report.routers = (struct hrt_routers){.load = 2.871, .entropy = 0.934, .dead = 3};
    report.left = 8000;
    report.flops = 43e9;
    return report;
}

static void the_line_says_what_a_step_did(void **state) {
    (void)state;
    struct hrt_progress progress = {.steps = 20000};
    struct hrt_step_report report = step;
    report.left = 59;
    expect_line(&progress, 0, &report,
                "step 120/20000   | loss 3.2145 | 5.16M tok/s |   59s left | lr 3.0e-04 | gnorm "
                "0.841 |  812.3 ms | aux 1.025");
    progress = (struct hrt_progress){.steps = 20000, .experts = true, .peak = 1e11};
    report = of_ranks();
    expect_line(
        &progress, 0, &report,
        "step 120/20000   | loss 3.2145 | 5.16M tok/s |  2h13 left | load 2.87 | lr 3.0e-04 "
        "| gnorm 0.841 |  812.3 ms | wait 12% | rank load 1.04 | replicas 14 | mfu 43% | "
        "entropy 0.93 | dead 3 | mem 1.25GB | aux 1.025");
}

// The most important columns are there in any terminal, and no column is there in part.
static void columns_are_those_that_fit(void **state) {
    (void)state;
    struct hrt_progress progress = {.steps = 20000, .experts = true};
    struct hrt_step_report report = of_ranks();
    char whole[512], line[512];
    hrt_log_progress_format(whole, sizeof whole, 0, &progress, &report);
    expect_line(&progress, 79, &report,
                "step 120/20000   | loss 3.2145 | 5.16M tok/s |  2h13 left | load 2.87");
    for (size_t width = 1; width < 200; width++) {
        hrt_log_progress_format(line, sizeof line, width, &progress, &report);
        const size_t used = strlen(line);
        assert_true(used <= width);
        assert_memory_equal(line, whole, used);
        assert_true(used == 0 || !whole[used] || strncmp(whole + used, " | ", 3) == 0);
        if (used < strlen(whole)) { // The next one would not have fitted.
            const char *next = strstr(whole + used + (used ? 3 : 0), " | ");
            assert_true((next ? (size_t)(next - whole) : strlen(whole)) > width);
        }
    }
}

static const struct hrt_loss losses[] = {{.name = "mtp"}, {.name = "early"}};

static void losses_are_shown_by_name(void **state) {
    (void)state;
    struct hrt_step_report named = step;
    const struct hrt_progress progress = {.steps = 200};
    named.named = (struct hrt_named_losses){.count = 2, .loss = losses, .value = {4.25, 5}};
    expect_line(&progress, 0, &named,
                "step 120/200 | loss 3.2145 | 5.16M tok/s |    0s left | mtp 4.2500 | early "
                "5.0000 | lr 3.0e-04 | gnorm 0.841 |  812.3 ms | aux 1.025");
}

static void losses_are_logged_by_name(void **state) {
    (void)state;
    struct hrt_error error = {0};
    struct hrt_jsonl log;
    struct hrt_number_of number[HRT_NUMBERS_OF];
    struct hrt_step_report named = step;
    named.named = (struct hrt_named_losses){.count = 2, .loss = losses, .value = {4.25, NAN}};
    named.validation = (struct hrt_validation){.named = {4.5, 6}};
    assert_true(hrt_log_jsonl_open(&log, "log", 0, &error));
    assert_true(hrt_log_jsonl_step(&log, &named, &no_layers, &error));
    named.evaluated = true;
    assert_true(hrt_log_jsonl_step(&log, &named, &no_layers, &error));
    assert_true(hrt_log_jsonl_close(&log, &error));
    char *text = test_read("log", NULL), *second = strchr(text, '\n') + 1;
    assert_non_null(strstr(text, "\"losses\":{\"mtp\":4.25,\"early\":null},\"watch\""));
    assert_non_null(strstr(second, "\"val_losses\":{\"mtp\":4.5,\"early\":6.0}"));
    free(text);

    const int count = hrt_log_numbers_of(&named, 0, number);
    assert_true(count <= HRT_NUMBERS_OF);
    const char *const tags[] = {"train/loss_mtp", "val/loss_mtp", "train/loss_early",
                                "val/loss_early"};
    for (int i = 0; i < 4; i++) assert_string_equal(number[count - 4 + i].tag, tags[i]);
    assert_true(number[count - 4].value == 4.25 && number[count - 3].value == 4.5);
}

// With a reference, and without.
static void preferences_and_rollouts_are_means(void **state) {
    (void)state;
    struct hrt_error error = {0};
    struct hrt_jsonl log;
    struct hrt_number_of number[HRT_NUMBERS_OF];
    const struct hrt_progress progress = {.steps = 200};
    struct hrt_step_report report = step;
    report.objective = HRT_OBJECTIVE_dpo;
    expect_line(&progress, 40, &report, "step 120/200 | loss 3.2145 | 5.16M tok/s"); // No pair.
    report.policy[HK_DPO_PAIRS] = 4;
    report.policy[HK_DPO_CHOSEN] = 2;
    report.policy[HK_DPO_REJECTED] = -1;
    report.policy[HK_DPO_RIGHT] = 3;
    expect_line(&progress, 0, &report,
                "step 120/200 | loss 3.2145 | 5.16M tok/s |    0s left | chosen 0.5 | rejected "
                "-0.25 | margin 0.75 | accuracy 0.75 | lr 3.0e-04 | gnorm 0.841 |  812.3 ms | aux "
                "1.025");
    const int count = hrt_log_numbers_of(&report, 0, number);
    assert_string_equal(number[count - 1].tag, "preferences/accuracy");
    assert_true(hrt_log_jsonl_open(&log, "log", 0, &error));
    report.objective = HRT_OBJECTIVE_policy;
    for (int i = 0; i < HK_POLICY_SUMS; i++) report.policy[i] = 0;
    report.policy[HK_POLICY_TOKENS] = 8;
    report.policy[HK_POLICY_ADVANTAGE] = -2;
    report.policy[HK_POLICY_RATIO] = 10;
    report.policy[HK_POLICY_CLIPPED] = 1;
    report.policy[HK_POLICY_KL_OLD] = 4;
    assert_true(hrt_log_jsonl_step(&log, &report, &no_layers, &error));
    report.policy[HK_POLICY_REFERENCES] = 4; // Half of them.
    report.policy[HK_POLICY_KL] = 1;
    assert_true(hrt_log_jsonl_step(&log, &report, &no_layers, &error));
    assert_true(hrt_log_jsonl_close(&log, &error));
    char *text = test_read("log", NULL), *second = strchr(text, '\n') + 1;
    assert_non_null(strstr(text, "\"rollout\":{\"advantage\":-0.25,\"ratio\":1.25,\"clipped\":"
                                 "0.125,\"kl_old\":0.5},"));
    assert_non_null(strstr(second, "\"kl_old\":0.5,\"kl\":0.25},"));
    free(text);
}

// Shows steps 1 to 7 of 7, the 5th evaluated, of `seconds` each, and returns what was printed.
static char *shown(bool redraws, double seconds) {
    char *printed = NULL;
    size_t bytes;
    FILE *out = open_memstream(&printed, &bytes);
    struct hrt_progress progress;
    hrt_log_progress_start(&progress, out, 7, 3, false, true);
    assert_false(progress.redraws);
    progress.redraws = redraws;
    for (int i = 1; i <= 7; i++) {
        struct hrt_step_report shown_step = step;
        shown_step.step = i;
        shown_step.seconds = seconds;
        shown_step.evaluated = i == 5;
        shown_step.validation.loss = 3.25;
        hrt_log_progress_step(&progress, &shown_step);
    }
    hrt_log_progress_end_line(&progress);
    fclose(out);
    return printed;
}

static void a_file_gets_a_line_every_n_steps(void **state) {
    (void)state;
    char *printed = shown(false, 1);
    static const char *const expected[] = {"step 1/7 | loss", "step 3/7 | loss",
                                           "step 5/7 | loss", "step 5/7 | val 3.2500",
                                           "step 6/7 | loss", "step 7/7 | loss"};
    int lines = 0;
    for (char *line = strtok(printed, "\n"); line; line = strtok(NULL, "\n")) {
        assert_true(lines < 6);
        assert_memory_equal(line, expected[lines], strlen(expected[lines]));
        lines++;
    }
    assert_int_equal(lines, 6);
    free(printed);
}

static void count_drawn(double seconds, int expected) {
    char *printed = shown(true, seconds);
    int drawn = 0, kept = 0;
    for (const char *at = printed; *at; at++) {
        drawn += *at == '\r';
        kept += *at == '\n';
    }
    assert_int_equal(drawn, expected);
    assert_int_equal(kept, 4); // The first, the evaluated with its loss, the last.
    free(printed);
}

static void a_terminal_is_redrawn(void **state) {
    (void)state;
    count_drawn(1, 7);
    count_drawn(0.001, 3); // Those that are kept.
    count_drawn(0.02, 4);  // And the fourth: the second and third were too soon.
}

// Two steps, the second evaluated, in a terminal of so many columns; 0: a launcher's, which has no width.
static void expect_in_terminal(unsigned short columns, bool alone, size_t longest) {
    const struct winsize size = {.ws_row = 24, .ws_col = columns};
    char text[4096] = "";
    size_t used = 0;
    int ours, theirs;
    assert_int_equal(openpty(&ours, &theirs, NULL, NULL, &size), 0);
    FILE *out = fdopen(theirs, "w");
    struct hrt_progress progress;
    setenv("TERM", "xterm", 1);
    hrt_log_progress_start(&progress, out, 20000, 1, true, alone);
    assert_int_equal(progress.redraws, alone);
    struct hrt_step_report report = of_ranks();
    assert_true(hrt_log_progress_step(&progress, &report));
    report.evaluated = true;
    report.validation.loss = 3.25;
    assert_true(hrt_log_progress_step(&progress, &report));
    while (!strstr(text, "| val 3.2500\r\n")) {
        const ssize_t got = read(ours, text + used, sizeof text - used - 1);
        assert_true(got > 0);
        used += (size_t)got;
        text[used] = '\0';
    }
    fclose(out);
    close(ours);
    size_t most = 0;
    for (char *line = strtok(text, "\r\n"); line; line = strtok(NULL, "\r\n")) {
        const size_t bytes = strlen(line) - (strstr(line, "\033[K") ? 3 : 0);
        assert_true(strstr(line, "| val ") || strstr(line, "2h13 left | load 2.87"));
        if (bytes > most) most = bytes;
    }
    assert_int_equal(most, longest);
}

static void a_line_is_as_wide_as_the_terminal(void **state) {
    (void)state;
    const size_t whole = 199;
    expect_in_terminal(80, true, 69);
    expect_in_terminal(80, false, 69); // As of ranks that torchrun starts.
    expect_in_terminal(100, true, 96);
    expect_in_terminal(200, true, whole);
    expect_in_terminal(199, true, whole - 12);
    expect_in_terminal(0, false, whole);
}

// Two layers have 1, 2 and 3, 0 tokens of their experts.
static void expect_routers(const json_t *line) {
    double worst[2], load[2], entropy[2];
    int all, dead[2];
    assert_int_equal(json_unpack((json_t *)line, "{s:{s:f, s:f, s:i!}}", "router", "load",
                                 &worst[0], "entropy", &worst[1], "dead", &all),
                     0);
    assert_int_equal(json_unpack((json_t *)line, "{s:{s:{s:[ff!], s:[ff!], s:[ii!]!}!}}", "routers",
                                 "sparse", "load", &load[0], &load[1], "entropy", &entropy[0],
                                 &entropy[1], "dead", &dead[0], &dead[1]),
                     0);
    assert_true(worst[0] == 2 && load[1] == 2 && fabs(load[0] - 4.0 / 3) < 1e-12);
    assert_true(worst[1] == entropy[1] && fabs(entropy[1]) < 1e-12);
    assert_true(fabs(entropy[0] - (log(3) - 2.0 / 3 * log(2)) / log(2)) < 1e-12);
    assert_true(all == 1 && dead[0] == 0 && dead[1] == 1);
}

static void a_json_line_holds_the_step(void **state) {
    (void)state;
    struct hrt_error error = {0};
    struct hrt_jsonl log;
    struct hrt_load_counts loads;
    struct hrt_device host = {0};
    struct hrt_step_report evaluated = step;
    evaluated.evaluated = true;
    evaluated.validation.loss = 3.5;
    assert_true(hrt_train_load_counts_create(&loads, &bigram, &host, &error));
    memcpy(loads.count, ((int64_t[]){1, 2, 3, 0}), 4 * sizeof *loads.count);
    const struct hrt_log_layers layers = {.routers = &loads, .loads = &loads};
    evaluated.routers = hrt_train_routers_of(&loads);
    assert_true(hrt_log_jsonl_open(&log, "log", 0, &error));
    assert_true(hrt_log_jsonl_step(&log, &step, &no_layers, &error));
    assert_true(hrt_log_jsonl_step(&log, &evaluated, &layers, &error));
    assert_true(hrt_log_jsonl_close(&log, &error));

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
    assert_memory_equal(count, ((int[]){1, 2, 3, 0}), sizeof count);
    assert_true(loss == 3.5);
    expect_routers(line);
    json_decref(line);
    free(text);
    hrt_train_load_counts_destroy(&loads);
}

// They do not fit into one event.
static void many_layers_are_events_of_one_step(void **state) {
    (void)state;
    enum { LAYERS = 300 };
    struct hrt_set set = bigram.set[0];
    struct hrt_program deep = bigram;
    struct hrt_load_counts loads;
    struct hrt_device host = {0};
    struct hrt_error error = {0};
    struct hrt_tensorboard board;
    set.layers = LAYERS;
    deep.set = &set;
    assert_true(hrt_train_load_counts_create(&loads, &deep, &host, &error));
    assert_true(hrt_log_tensorboard_open(&board, "board", &error));
    assert_true(hrt_log_tensorboard_step(&board, &step, &loads, 0, &error));
    size_t bytes;
    char *data = test_read(board.path, &bytes);
    assert_true(hrt_log_tensorboard_close(&board, &error));
    for (int layer = 0; layer < LAYERS; layer++) {
        const char *const name[] = {"load", "entropy", "dead"};
        for (int n = 0; n < 3; n++) {
            char tag[64];
            const int length = snprintf(tag, sizeof tag, "router_%s/sparse.%d\x15", name[n], layer);
            assert_non_null(memmem(data, bytes, tag, (size_t)length));
        }
    }
    free(data);
    hrt_train_load_counts_destroy(&loads);
}

static void a_full_disk_is_an_error(void **state) {
    (void)state;
    struct hrt_error error = {0};
    struct hrt_jsonl log;
    assert_true(hrt_log_jsonl_open(&log, "/dev/full", 0, &error));
    test_expect_error(hrt_log_jsonl_step(&log, &step, &no_layers, &error), &error, HRT_EXIT_FAILED,
                      "cannot write '/dev/full': No space left on device");
    hrt_log_jsonl_close(&log, &error);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_have_three_digits),
        cmocka_unit_test(the_line_says_what_a_step_did),
        cmocka_unit_test(columns_are_those_that_fit),
        cmocka_unit_test(losses_are_shown_by_name),
        cmocka_unit_test(losses_are_logged_by_name),
        cmocka_unit_test(preferences_and_rollouts_are_means),
        cmocka_unit_test(a_file_gets_a_line_every_n_steps),
        cmocka_unit_test(a_terminal_is_redrawn),
        cmocka_unit_test(a_line_is_as_wide_as_the_terminal),
        cmocka_unit_test(a_json_line_holds_the_step),
        cmocka_unit_test(many_layers_are_events_of_one_step),
        cmocka_unit_test(a_full_disk_is_an_error),
    };
    return cmocka_run_group_tests(tests, test_enter_directory, test_leave_directory);
}
