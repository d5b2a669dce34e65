// Unit test of runtime/train/learning_rate and rate_pieces: pieces against closed forms, schedules of one form against
// the lists that they stand for, and lists that are refused.
#include "runtime/train/learning_rate.h"

#include <math.h>

#include "tests/runtime/support/case.h"

static struct hrt_config config_of(const char *pieces, int64_t steps) {
    return (struct hrt_config){.train_steps = steps,
                               .train_optimizer_lr = 0.3,
                               .train_schedule = HRT_SCHEDULE_pieces,
                               .train_schedule_pieces = pieces};
}

static void read_pieces(struct hrt_rates *rates, const char *pieces, int64_t steps) {
    struct hrt_error error = {0};
    const struct hrt_config config = config_of(pieces, steps);
    if (!hrt_train_rates(rates, &config, &error)) fail_msg("%s: %s", pieces, error.text);
}

// Rates take a few operations each.
static void expect(const struct hrt_rates *rates, int64_t step, double share) {
    const double rate = hrt_train_learning_rate(rates, step);
    if (!(fabs(rate - 0.3 * share) <= 8 * 0x1p-53 * 0.3 * share))
        fail_msg("step %d: %.17g, expected %.17g", (int)step, rate, 0.3 * share);
}

static void forms_are_their_formulas(void **state) {
    (void)state;
    struct hrt_rates rates;
    read_pieces(&rates,
                "[warmup(10), constant(5), cosine(20, to = 0.5), linear(to = 0.25, steps = 8), "
                "sqrt(9, 0.125), exponential(12, 0.0625), inverse_sqrt(7, to = 0.03125), "
                "inverse_sqrt]",
                100);
    assert_int_equal(rates.count, 8);
    for (int j = 1; j <= 10; j++) expect(&rates, j - 1, j / 10.0);
    for (int j = 1; j <= 5; j++) expect(&rates, 9 + j, 1);
    for (int j = 1; j <= 20; j++)
        expect(&rates, 14 + j, 0.5 + 0.5 * (1 + cos(acos(-1) * j / 20)) / 2);
    for (int j = 1; j <= 8; j++) expect(&rates, 34 + j, 0.5 - 0.25 * j / 8);
    for (int j = 1; j <= 9; j++) expect(&rates, 42 + j, 0.125 + 0.125 * (1 - sqrt(j / 9.0)));
    for (int j = 1; j <= 12; j++) expect(&rates, 51 + j, 0.125 * exp2(-j / 12.0));
    for (int j = 1; j <= 7; j++) expect(&rates, 63 + j, 0.0625 / sqrt(1 + 3 * j / 7.0));
    for (int j = 1; j <= 29; j++) expect(&rates, 70 + j, 0.03125 / sqrt((71.0 + j) / 71));
    expect(&rates, 5000, 0.03125 / sqrt(100.0 / 71)); // It stays.
}

// "Attention is all you need": rises for w steps, then falls with the root of the step.
static void inverse_square_root_is_that_of_steps(void **state) {
    (void)state;
    struct hrt_rates rates;
    read_pieces(&rates, "warmup(400), inverse_sqrt", 5000);
    for (int64_t step = 0; step < 5000; step++) {
        const double s = (double)step + 1;
        expect(&rates, step, sqrt(400) * fmin(1 / sqrt(s), s * pow(400, -1.5)));
    }
}

// A piece with `from` has it in its first step: a warm restart. Shares of the steps are rounded.
static void pieces_restart(void **state) {
    (void)state;
    struct hrt_rates rates;
    read_pieces(&rates,
                "[linear(0.29, to = 0.5), cosine(0.5, from = 1, to = 0), constant(0.1, to = 0.7), "
                "warmup(1), linear(from = 0.9, to = 0.1)]",
                100);
    assert_int_equal(rates.piece[1].begin, 29);
    assert_int_equal(rates.piece[2].begin, 79);
    assert_int_equal(rates.piece[4].steps, 10);
    expect(&rates, 0, 1 - 0.5 / 29);
    expect(&rates, 28, 0.5);
    expect(&rates, 29, 1);
    expect(&rates, 30, 0.5 * (1 + cos(acos(-1) / 49)));
    expect(&rates, 78, 0);
    expect(&rates, 79, 0.7);
    expect(&rates, 88, 0.7);
    expect(&rates, 89, 1);
    expect(&rates, 90, 0.9);
    expect(&rates, 93, 0.9 - 0.8 / 3);
    expect(&rates, 99, 0.1);
}

static void one_form_stands_for_a_list(void **state) {
    (void)state;
    static const struct {
        enum hrt_schedule schedule;
        int64_t cycles;
        const char *list;
    } cases[] = {
        {HRT_SCHEDULE_constant, 1, "warmup(7), constant"},
        {HRT_SCHEDULE_cosine, 1, "warmup(7), cosine(to = 0.2, from = 1)"},
        {HRT_SCHEDULE_linear, 1, "warmup(7), linear(to = 0.2, from = 1)"},
        {HRT_SCHEDULE_wsd, 1, "warmup(7), constant, linear(0.25, to = 0.2, from = 1)"},
        {HRT_SCHEDULE_cosine, 3,
         "warmup(7), cosine(31, to = 0.2, from = 1), cosine(31, to = 0.2, from = 1), "
         "cosine(to = 0.2, from = 1)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hrt_error error = {0};
        struct hrt_rates one, list;
        struct hrt_config config = config_of(NULL, 100);
        config.train_schedule = cases[i].schedule;
        config.train_schedule_cycles = cases[i].cycles;
        config.train_schedule_warmup = 7;
        config.train_schedule_final = 0.2;
        config.train_schedule_decay = 0.25;
        assert_true(hrt_train_rates(&one, &config, &error));
        read_pieces(&list, cases[i].list, 100);
        for (int64_t step = 0; step < 110; step++) {
            const double rate = hrt_train_learning_rate(&one, step);
            if (rate != hrt_train_learning_rate(&list, step))
                fail_msg("%s, step %d", cases[i].list, (int)step);
        }
    }
}

static void wrong_lists_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *list, *says;
    } cases[] = {
        {NULL, "needs train.schedule.pieces"},
        {"[]", "piece 1 of train.schedule.pieces has no name at ']'"},
        {"warmup(4), constnt",
         "piece 2 of train.schedule.pieces is 'constnt'; did you mean 'const"},
        {"warmup(1.5)", "1.5 steps"},
        {"warmup(0)", "0 steps"},
        {"warmup(-3)", "-3 steps"},
        {"warmup(1e13)", "1e+13 steps"},
        {"warmup(4, 2)", "has to = 2; it is a share"},
        {"linear(to = -0.1)", "has to = -0.1"},
        {"linear(to = nan)", "has to = nan"},
        {"linear(to = inf)", "has to = inf"},
        {"linear(to = 0, to = 0)", "has to twice"},
        {"linear(4, 0, 1)", "too many numbers without a name"},
        {"linear(until = 4)", "has 'until'"},
        {"linear(to 4)", "has 'to'"},
        {"linear(0x10, to = 0)", "needs a number for steps"},
        {"linear(, to = 0)", "needs a number for steps"},
        {"linear(to = 0", "needs ')'"},
        {"[linear(to = 0)", "ends before ''"},
        {"linear(to = 0)]", "ends before ']'"},
        {"linear(10, to = 0) constant", "ends before 'constant'"},
        {"linear(10), constant", "needs the share of lr that it ends with"},
        {"constant(from = 1)", "which has one share of lr"},
        {"exponential(to = 0)", "never is 0"},
        {"linear(50, to = 0), exponential(to = 0.1)", "piece 2 of train.schedule.pieces is exp"},
        {"inverse_sqrt", "without steps before it"},
        {"constant(9, to = 0.1), inverse_sqrt(to = 0.2)", "does not rise: from 0.1 to 0.2"},
        {"warmup(4), constant, linear(to = 0)", "pieces 2 and 3"},
        {"warmup(90), linear(11, to = 0)", "take 101 steps, but the run has 100"},
        {"warmup(90), linear(10, to = 0), constant", "take 100 steps and a rest, but the run"},
        {"warmup(90), linear(9, to = 0)", "take 99 steps, but the run has 100: a piece without"},
        {"constant(0.6), linear(0.6, to = 0)", "take 120 steps"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hrt_error error = {0};
        struct hrt_rates rates;
        const struct hrt_config config = config_of(cases[i].list, 100);
        const bool read = hrt_train_rates(&rates, &config, &error);
        if (read || error.code != HRT_EXIT_USAGE || !strstr(error.text, cases[i].says))
            fail_msg("%s: %s", cases[i].list, read ? "accepted" : error.text);
    }
    char many[1024] = "";
    for (int i = 0; i < HRT_RATE_PIECES_MOST; i++) strcat(many, "constant(1),");
    strcat(many, "constant");
    struct hrt_error error = {0};
    struct hrt_rates rates;
    const struct hrt_config config = config_of(many, 100);
    assert_false(hrt_train_rates(&rates, &config, &error));
    assert_non_null(strstr(error.text, "more than 64 pieces"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forms_are_their_formulas),
        cmocka_unit_test(inverse_square_root_is_that_of_steps),
        cmocka_unit_test(pieces_restart),
        cmocka_unit_test(one_form_stands_for_a_list),
        cmocka_unit_test(wrong_lists_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
