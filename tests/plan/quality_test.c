// The figures of policies on drawn loads: guards those of docs/planner.md, which come from a
// recording that tests do not have. Limits lie a little above the measured figures.
#include "runtime/plan/loads/synthesize.h"
#include "tests/plan/plan_case.h"
#include "tools/replay/replay.h"

enum { NODES = 2, SIZE = 8, DEVICES = NODES * SIZE };

static struct loads drawn;
static int32_t first[NODES + 1], node[DEVICES], speed[DEVICES];

static int draw(void **state) {
    (void)state;
    const struct synthesis wanted = {.iterations = 6,
                                     .layers = 4,
                                     .devices = DEVICES,
                                     .microbatches = 4,
                                     .experts = 32,
                                     .rows = 4096,
                                     .skew = 1.6,
                                     .drift = 0.2,
                                     .bias = 0.2,
                                     .seed = 11};
    for (int32_t n = 0; n <= NODES; n++) first[n] = n * SIZE;
    for (int32_t d = 0; d < DEVICES; d++) node[d] = d / SIZE, speed[d] = 1;
    return synthesize(&wanted, &drawn) ? 0 : -1;
}

static int drop(void **state) {
    (void)state;
    loads_free(&drawn);
    return 0;
}

static struct setting setting_of(int32_t slots, int32_t entries) {
    return (struct setting){.topology = {DEVICES, NODES, first, node, speed},
                            .budget = {.slots = slots, .entries = entries, .slack = 10},
                            .costs = {1, 1, 1500},
                            .window = 1,
                            .period = 4,
                            .dispatch = -1};
}

static struct summary reach(const char *policy, const struct setting *setting) {
    struct series series;
    assert_true(replay_run(&drawn, setting, hpl_policy_find(policy), &series));
    const struct summary summary = summarize(&series, 0, UINT32_MAX, NODES);
    print_message("%s, %d slots, %d entries: %.4f (worst %.3f), cross %.4f (bound %.4f), intra "
                  "%.4f\n",
                  policy, setting->budget.slots, setting->budget.entries, summary.mean,
                  summary.worst, summary.cross, summary.cross_bound, summary.intra);
    series_free(&series);
    return summary;
}

static void quota_is_balanced_and_near(void **state) {
    (void)state;
    struct setting setting = setting_of(2, 4);
    struct summary got = reach("fssdp", &setting);
    assert_true(got.mean <= 1.012 && got.worst <= 1.05);
    assert_true(got.cross <= 1.01 * got.cross_bound);
    assert_true(got.intra <= 0.42);
    setting = setting_of(4, 8);
    got = reach("fssdp", &setting);
    assert_true(got.mean <= 1.0101 && got.worst <= 1.0101);
    assert_true(got.cross <= 1.01 * got.cross_bound);
    assert_true(got.intra <= 0.28);
    setting = setting_of(1, 4);
    got = reach("fssdp", &setting);
    assert_true(got.mean <= 1.015);
}

// Nothing given up for nearness: the mean itself, to a row.
static void quota_without_slack_reaches_the_mean(void **state) {
    (void)state;
    struct setting setting = setting_of(4, 8);
    setting.budget.slack = 0;
    assert_true(reach("fssdp", &setting).mean <= 1.0001);
}

// An older forecast, and a budget that is spent after the gate.
static void calibration_repairs_an_old_forecast(void **state) {
    (void)state;
    struct setting setting = setting_of(2, 4);
    setting.forecast_age = 3;
    setting.window = 4;
    const struct summary before = reach("fssdp", &setting);
    setting.calibrate = setting.calibrate_always = true;
    const struct summary after = reach("fssdp", &setting);
    assert_true(before.mean >= 1.03);
    assert_true(after.mean <= 1.02 && after.mean < before.mean);
}

// Order among the policies that the recording shows too.
static void rivals_rank_as_recorded(void **state) {
    (void)state;
    struct setting two = setting_of(2, 4), four = setting_of(4, 16);
    const double ep = reach("ep", &two).mean, smartmoe = reach("smartmoe", &two).mean;
    const double eplb = reach("eplb", &two).mean, llep = reach("llep", &two).mean;
    const double hecate = reach("hecate", &four).mean, quota = reach("fssdp", &two).mean;
    assert_true(quota < llep && llep < ep);
    assert_true(quota < eplb && eplb < smartmoe);
    assert_true(quota < hecate && hecate < smartmoe && smartmoe <= ep * 1.001);
    assert_true(reach("fsdp", &two).mean < 1.0001);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quota_is_balanced_and_near),
        cmocka_unit_test(quota_without_slack_reaches_the_mean),
        cmocka_unit_test(calibration_repairs_an_old_forecast),
        cmocka_unit_test(rivals_rank_as_recorded),
    };
    return cmocka_run_group_tests(tests, draw, drop);
}
