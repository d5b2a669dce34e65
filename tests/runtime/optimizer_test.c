// Unit test of runtime/train: the learning rate, AdamW over a program's parameters, the norm, clipping.
#include "runtime/train/create.h"
#include "runtime/train/optimizer.h"

#include <float.h>
#include <math.h>

#include "kernels/bf16.h"
#include "runtime/base/random.h"
#include "runtime/params/init.h"
#include "runtime/params/rounded.h"
#include "runtime/params/tensor.h"
#include "runtime/train/learning_rate.h"
#include "tests/runtime/support/case.h"

static void expect_lr(const struct hrt_config *config, int64_t step, double expected) {
    struct hrt_rates rates;
    struct hrt_error error = {0};
    assert_true(hrt_train_rates(&rates, config, &error));
    assert_true(fabs(hrt_train_learning_rate(&rates, step) - expected) <= 1e-15);
}

static void warmup_rises_to_lr_at_its_end(void **state) {
    (void)state;
    for (int schedule = 0; schedule < 4; schedule++) {
        const struct hrt_config config = {.train_steps = 20,
                                          .train_optimizer_lr = 0.1,
                                          .train_schedule = schedule,
                                          .train_schedule_warmup = 4,
                                          .train_schedule_final = 0.2};
        expect_lr(&config, 0, 0.025);
        expect_lr(&config, 3, 0.1);
        expect_lr(&config, 4, 0.1);
    }
}

static void schedules_fall_to_their_end(void **state) {
    (void)state;
    struct hrt_config config = {.train_steps = 21,
                                .train_optimizer_lr = 0.1,
                                .train_schedule_warmup = 4,
                                .train_schedule_final = 0.2};
    config.train_schedule = HRT_SCHEDULE_cosine;
    expect_lr(&config, 8, 0.1 * (0.2 + 0.8 * 0.5 * (1 + cos(acos(-1) / 4))));
    expect_lr(&config, 12, 0.06);
    expect_lr(&config, 20, 0.02);
    config.train_schedule = HRT_SCHEDULE_linear;
    expect_lr(&config, 8, 0.08);
    expect_lr(&config, 20, 0.02);
    config.train_schedule_cycles = 3; // Steps 4 to 9, to 15, and to 20.
    expect_lr(&config, 3, 0.1);
    expect_lr(&config, 4, 0.1);
    expect_lr(&config, 9, 0.02);
    expect_lr(&config, 10, 0.1);
    expect_lr(&config, 12, 0.1 * (0.2 + 0.8 * 0.6));
    expect_lr(&config, 15, 0.02);
    expect_lr(&config, 16, 0.1);
    expect_lr(&config, 18, 0.06);
    expect_lr(&config, 20, 0.02);
    expect_lr(&config, 30, 0.02);
    config.train_schedule = HRT_SCHEDULE_cosine;
    expect_lr(&config, 17, 0.1 * (0.2 + 0.8 * 0.5 * (1 + cos(acos(-1) / 4))));
    config.train_schedule = HRT_SCHEDULE_wsd;
    config.train_steps = 20;
    config.train_schedule_decay = 0.25; // The last 5 steps of 20.
    expect_lr(&config, 4, 0.1);
    expect_lr(&config, 15, 0.1);
    expect_lr(&config, 16, 0.1 * (0.2 + 0.8 * 0.75));
    expect_lr(&config, 19, 0.02);
    config.train_schedule_decay = 0.01; // One step at least.
    expect_lr(&config, 18, 0.1);
    expect_lr(&config, 19, 0.02);
    config.train_steps = 21;
    config.train_schedule_decay = 1; // Behind the warmup.
    expect_lr(&config, 3, 0.1);
    expect_lr(&config, 12, 0.06);
    config.train_schedule_decay = 0;
    expect_lr(&config, 20, 0.1);
    config.train_schedule = HRT_SCHEDULE_constant;
    expect_lr(&config, 20, 0.1);
}

// Also for a run that warms up for all but its last step.
static void the_last_step_has_the_last_rate(void **state) {
    (void)state;
    for (int64_t steps = 1; steps < 40; steps++) {
        for (int64_t warmup = 0; warmup < steps; warmup++) {
            struct hrt_config config = {.train_steps = steps,
                                        .train_optimizer_lr = 0.1,
                                        .train_schedule_warmup = warmup,
                                        .train_schedule_final = 0.2,
                                        .train_schedule_decay = 0.3};
            for (config.train_schedule = HRT_SCHEDULE_cosine;
                 config.train_schedule <= HRT_SCHEDULE_wsd; config.train_schedule++)
                expect_lr(&config, steps - 1,
                          config.train_schedule == HRT_SCHEDULE_constant ? config.train_optimizer_lr
                                                                         : 0.02);
        }
    }
}

static void warmup_may_be_longer_than_the_run(void **state) {
    (void)state;
    const struct hrt_config config = {
        .train_steps = 2, .train_optimizer_lr = 0.1, .train_schedule_warmup = 10};
    expect_lr(&config, 1, 0.02);
}

static struct hrt_placement bigram_here = {.program = &bigram};

// A state of the bigram model with drawn gradients.
static void create(struct hrt_state *state, struct hrt_optimizer *optimizer) {
    struct hrt_error error = {0};
    assert_true(hrt_train_state_create(state, &bigram_here, NULL, HRT_BY_ADAMW, &error));
    assert_true(hrt_train_optimizer_create(optimizer, &bigram_here, &error));
    hrt_params_init(TEST_BUFFER(&bigram_here, state->values[HRT_PARAMETERS]), 1);
}

static void draw_gradients(const struct hrt_state *state, const char *name) {
    const struct hrt_stream stream = hrt_stream_make(1, "test", name);
    for (int64_t i = 0; i < bigram.param_elements; i++)
        hrt_params_element_set(state->values[HRT_GRADIENTS], bigram.precision, i,
                               hrt_draw_uniform(stream, (uint64_t)i) - 0.5);
}

struct plain {
    double param, mean, variance;
};

// AdamW as its paper writes it, for one element.
static void plain_step(struct plain *plain, double gradient, const struct hrt_config *config,
                       double decay, int step) {
    plain->mean = config->train_optimizer_betas[0] * plain->mean +
                  (1 - config->train_optimizer_betas[0]) * gradient;
    plain->variance = config->train_optimizer_betas[1] * plain->variance +
                      (1 - config->train_optimizer_betas[1]) * pow(gradient, 2);
    const double mean = plain->mean / (1 - pow(config->train_optimizer_betas[0], step));
    const double variance = plain->variance / (1 - pow(config->train_optimizer_betas[1], step));
    plain->param -= config->train_optimizer_lr *
                    (mean / (sqrt(variance) + config->train_optimizer_eps) + decay * plain->param);
}

static void adamw_treats_each_parameter_by_its_group(void **state) {
    (void)state;
    const struct hrt_config config = {.train_optimizer_lr = 0.01,
                                      .train_optimizer_betas = {0.9, 0.95},
                                      .train_optimizer_eps = 1e-8,
                                      .train_optimizer_decay = 0.1};
    struct hrt_state s;
    struct hrt_optimizer optimizer;
    create(&s, &optimizer);
    struct hrt_tensor tensor = {0};
    struct plain plain[7];
    double initial[7], gradient[7];
    for (int step = 0; step < 3; step++) {
        draw_gradients(&s, step == 1 ? "second" : "other");
        tensor = (struct hrt_tensor){0};
        for (int i = 0; hrt_params_tensor_next(&bigram, &tensor); i++) {
            const int64_t at = tensor.offset + tensor.param->elements - 1;
            gradient[i] = hrt_params_element(s.values[HRT_GRADIENTS], bigram.precision, at);
            if (step == 0)
                initial[i] = hrt_params_element(s.values[HRT_PARAMETERS], bigram.precision, at);
            if (step == 0) plain[i] = (struct plain){.param = initial[i]};
            plain_step(&plain[i], 0.5 * gradient[i], &config, tensor.param->decay ? 0.1 : 0,
                       step + 1);
        }
        hrt_train_optimizer_step(&optimizer, &s, &config, step, config.train_optimizer_lr, 0.5);
    }
    tensor = (struct hrt_tensor){0};
    for (int i = 0; hrt_params_tensor_next(&bigram, &tensor); i++) {
        const int64_t at = tensor.offset + tensor.param->elements - 1;
        const double got = hrt_params_element(s.values[HRT_PARAMETERS], bigram.precision, at);
        const double expected = tensor.param->trainable ? plain[i].param : initial[i];
        assert_true(fabs(got - expected) <= 8 * DBL_EPSILON);
        const double left = hrt_params_element(s.values[HRT_GRADIENTS], bigram.precision, at);
        assert_true(left == (tensor.param->trainable ? 0 : gradient[i]));
    }
    hrt_train_optimizer_destroy(&optimizer);
    hrt_train_state_destroy(&s);
}

static void neighbours_of_one_group_are_one_span(void **state) {
    (void)state;
    struct hrt_error error = {0};
    struct hrt_optimizer optimizer;
    assert_true(hrt_train_optimizer_create(&optimizer, &bigram_here, &error));
    assert_int_equal(optimizer.spans, 3); // table | gain | all chunks; the rope table is in none.
    assert_int_equal(optimizer.span[2].count, 4 * 256);
    hrt_train_optimizer_destroy(&optimizer);
}

static void the_norm_is_over_trainable_gradients(void **state) {
    (void)state;
    struct hrt_state s;
    struct hrt_optimizer optimizer;
    create(&s, &optimizer);
    draw_gradients(&s, "norm");
    double sum = 0;
    struct hrt_tensor tensor = {0};
    while (hrt_params_tensor_next(&bigram, &tensor)) {
        for (int64_t i = 0; tensor.param->trainable && i < tensor.param->elements; i++)
            sum += pow(
                hrt_params_element(s.values[HRT_GRADIENTS], bigram.precision, tensor.offset + i),
                2);
    }
    assert_true(fabs(hrt_train_grad_norm(&s) / sqrt(sum) - 1) < 1e-12);
    hrt_train_optimizer_destroy(&optimizer);
    hrt_train_state_destroy(&s);
}

static void clipping_brings_the_norm_down_to_its_bound(void **state) {
    (void)state;
    assert_true(hk_clip_scale(1, 4) == 0.25);
    assert_true(hk_clip_scale(1, 0.5) == 1);
    assert_true(hk_clip_scale(0, 1e9) == 1);
    assert_true(hk_clip_scale(1, 0) == 1);
}

static void bind_nothing(void *model, const void *rounded) {
    (void)model, (void)rounded;
}

// Parameters with copies in every layout, and one without.
static const struct hrt_param copied[] = {
    {.symbol = "rows",
     .rank = 2,
     .shape = {3, 50},
     .layers = 1,
     .trainable = true,
     .layout = HRT_ROWS,
     .rounded = true,
     .rows = 3,
     .columns = 50,
     .elements = 150,
     .set = -1},
    {.symbol = "even",
     .rank = 2,
     .shape = {6, 70},
     .layers = 2,
     .trainable = true,
     .layout = HRT_PANELS,
     .rounded = true,
     .rows = 6,
     .columns = 70,
     .elements = 768,
     .set = -1,
     .offset = 150},
    {.symbol = "plain",
     .rank = 1,
     .shape = {10},
     .layers = 1,
     .trainable = true,
     .rows = 1,
     .columns = 10,
     .elements = 10,
     .set = -1,
     .offset = 1686},
    {.symbol = "odd",
     .rank = 2,
     .shape = {5, 70},
     .layers = 1,
     .trainable = true,
     .layout = HRT_PANELS,
     .rounded = true,
     .rows = 5,
     .columns = 70,
     .elements = 768,
     .set = -1,
     .offset = 1696},
};

// bf16 copies equal all parameters rounded anew, in any layout: rows, panels
// with an even and with an odd number of rows, and a parameter without a copy between them.
static void copies_follow_their_parameters(void **state) {
    (void)state;
    enum { elements = 2464 };
    const struct hrt_program program = {
        .params = 4, .param = copied, .param_elements = elements, .bind_rounded = bind_nothing};
    static float params[elements], grads[elements], mean[elements], variance[elements];
    static hk_bf16 rounded[elements], want[elements];
    const struct hrt_stream stream = hrt_stream_make(1, "test", "copies");
    for (int i = 0; i < elements; i++) {
        params[i] = (float)hrt_draw_uniform(stream, (uint64_t)i);
        grads[i] = (float)hrt_draw_uniform(stream, (uint64_t)(elements + i)) - 0.5f;
    }
    struct hrt_placement here = {.program = &program};
    struct hrt_state all = {.program = &program,
                            .placement = &here,
                            .values = {params, grads, mean, variance},
                            .rounded = rounded};
    const struct hrt_config config = {.train_optimizer_betas = {0.9, 0.95},
                                      .train_optimizer_eps = 1e-8};
    struct hrt_optimizer optimizer;
    struct hrt_error error = {0};
    assert_true(hrt_train_optimizer_create(&optimizer, &here, &error));
    assert_int_equal(optimizer.spans, 4); // Both layers of `even` are one.
    hrt_train_optimizer_step(&optimizer, &all, &config, 0, 0.1, 1);
    hrt_params_round(&here, params, want);
    assert_memory_equal(rounded, want, sizeof want);
    hrt_train_optimizer_destroy(&optimizer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(warmup_rises_to_lr_at_its_end),
        cmocka_unit_test(schedules_fall_to_their_end),
        cmocka_unit_test(the_last_step_has_the_last_rate),
        cmocka_unit_test(warmup_may_be_longer_than_the_run),
        cmocka_unit_test(adamw_treats_each_parameter_by_its_group),
        cmocka_unit_test(neighbours_of_one_group_are_one_span),
        cmocka_unit_test(the_norm_is_over_trainable_gradients),
        cmocka_unit_test(clipping_brings_the_norm_down_to_its_bound),
        cmocka_unit_test(copies_follow_their_parameters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
