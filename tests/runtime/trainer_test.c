// Unit test of runtime/train/trainer: the results of a step, on the bigram model in double.
#include "runtime/train/create.h"
#include "runtime/train/trainer.h"

#include <malloc.h>
#include <math.h>
#include <omp.h>

#include "runtime/log/jsonl.h"
#include "runtime/params/init.h"
#include "runtime/params/tensor.h"
#include "tests/runtime/support/case.h"

static struct hrt_placement bigram_here = {.program = &bigram};

struct fixture {
    struct hrt_config config;
    struct hrt_comm comm;
    struct hrt_data data;
    struct hrt_state state;
    struct hrt_trainer trainer;
};

static struct hrt_config config_of(int64_t tokens) {
    return (struct hrt_config){.train_steps = 50,
                               .train_tokens = tokens,
                               .train_seed = 1,
                               .train_optimizer_lr = 0.01,
                               .train_optimizer_decay = 0.1,
                               .train_optimizer_betas = {0.9, 0.95},
                               .train_optimizer_eps = 1e-8,
                               .train_optimizer_clip = 1,
                               .train_schedule_final = 0.1};
}

static bool create(struct fixture *f, struct hrt_error *error) {
    return hrt_train_trainer_plan(&f->trainer, &bigram, &f->config, &f->comm, &f->data, error) &&
           hrt_train_rates(&f->trainer.rates, &f->config, error) &&
           hrt_train_trainer_create(&f->trainer, &f->state, error);
}

static void open_masked(struct fixture *f, int64_t tokens, double mask_rate) {
    static const char *const path = "text";
    struct hrt_error error = {0};
    *f = (struct fixture){.config = config_of(tokens)};
    test_write_text("text", 4000);
    const struct hrt_data_request request = {.train = &path,
                                             .trains = 1,
                                             .positions = bigram.positions,
                                             .vocabulary = 256,
                                             .mask_rate = mask_rate};
    hrt_net_comm_open_self(&f->comm);
    assert_true(hrt_data_open(&f->data, &request, &error));
    assert_true(hrt_train_state_create(&f->state, &bigram_here, NULL, HRT_BY_ADAMW, &error));
    hrt_params_init(TEST_BUFFER(&bigram_here, f->state.values[HRT_PARAMETERS]), 1);
    assert_true(create(f, &error));
}

static void open_fixture(struct fixture *f, int64_t tokens) {
    open_masked(f, tokens, 0);
}

static void close_fixture(struct fixture *f) {
    hrt_train_trainer_destroy(&f->trainer);
    hrt_train_state_destroy(&f->state);
    hrt_data_close(&f->data);
    hrt_net_comm_close(&f->comm);
}

// Sums of the first step over `sequences`, computed by single forward and backward calls.
static double loss_of_sequences(struct fixture *f, int64_t sequences) {
    struct hrt_error error = {0};
    double sum = 0;
    for (int64_t n = 0; n < sequences; n++) {
        assert_true(
            hrt_data_draw(&f->data, 1, (uint64_t)n, f->state.ids, f->state.targets, &error));
        const double scale = 1 / (double)(sequences * f->data.targets);
        sum += bigram.forward(f->state.model, 1, f->state.ids, f->state.targets, scale, 0).loss;
        bigram.backward(f->state.model, 1, f->state.ids, f->state.targets, scale, 0);
    }
    return sum;
}

static void a_step_averages_over_all_targets_of_all_iterations(void **state) {
    (void)state;
    struct fixture f;
    struct hrt_step_report step;
    struct hrt_error error = {0};
    open_fixture(&f, 3 * 4 * 16);
    assert_int_equal(f.trainer.iterations, 3);
    assert_int_equal(f.trainer.batch, 4);
    const double loss = loss_of_sequences(&f, 12), norm = hrt_train_grad_norm(&f.state);
    memset(f.state.values[HRT_GRADIENTS], 0, hrt_params_state_bytes(&bigram));
    assert_true(hrt_train_trainer_step(&f.trainer, 0, &step, &error));
    assert_true(fabs(step.loss - loss) < 1e-12); // Biases are zero: no auxiliary loss yet.
    assert_true(fabs(step.grad_norm / norm - 1) < 1e-12);
    assert_int_equal(step.step, 1);
    assert_int_equal(hrt_train_load_counts_of(&f.trainer.loads, 0)[0] +
                         hrt_train_load_counts_of(&f.trainer.loads, 0)[1],
                     12 * 16);
    close_fixture(&f);
}

static void a_masked_step_averages_over_masked_tokens(void **state) {
    (void)state;
    struct fixture f;
    struct hrt_step_report step;
    struct hrt_error error = {0};
    open_masked(&f, 3 * 4 * 16, 0.25);
    assert_int_equal(f.trainer.targets, 12 * 4);
    const double loss = loss_of_sequences(&f, 12), norm = hrt_train_grad_norm(&f.state);
    memset(f.state.values[HRT_GRADIENTS], 0, hrt_params_state_bytes(&bigram));
    assert_true(hrt_train_trainer_step(&f.trainer, 0, &step, &error));
    assert_true(fabs(step.loss - loss) < 1e-12);
    assert_true(fabs(step.loss - log(256)) < 0.1); // A mean over tokens, for any share.
    assert_true(fabs(step.grad_norm / norm - 1) < 1e-12);
    struct hrt_validation validation;
    assert_true(hrt_train_evaluate(&f.state, &f.data, 5, NULL, &validation, &error));
    assert_int_equal(validation.targets, 5 * 4);
    assert_true(fabs(validation.loss - log(256)) < 0.2);
    close_fixture(&f);
}

// Without a learning rate the model stays as it is, so only the sequences tell steps apart.
static void every_step_draws_its_own_sequences(void **state) {
    (void)state;
    struct fixture f;
    struct hrt_step_report first, second, again;
    struct hrt_error error = {0};
    open_fixture(&f, 2 * 4 * 16);
    f.trainer.rates.lr = 0;
    assert_true(hrt_train_trainer_step(&f.trainer, 0, &first, &error));
    assert_true(hrt_train_trainer_step(&f.trainer, 1, &second, &error));
    assert_true(first.loss != second.loss);
    assert_true(hrt_train_trainer_step(&f.trainer, 0, &again, &error));
    assert_true(first.loss == again.loss && first.grad_norm == again.grad_norm);
    const int64_t *loads = hrt_train_load_counts_of(&f.trainer.loads, 0);
    assert_int_equal(loads[0] + loads[1], 2 * 4 * 16); // The last step's alone.
    close_fixture(&f);
}

// The auxiliary loss is a mean over iterations: with equal parameters it does not depend on them.
static void the_auxiliary_loss_is_shared_by_iterations(void **state) {
    (void)state;
    double auxiliary[2];
    for (int i = 0; i < 2; i++) {
        struct fixture f;
        struct hrt_step_report step;
        struct hrt_error error = {0};
        open_fixture(&f, (i ? 3 : 1) * 4 * 16);
        double *biases = (double *)f.state.values[HRT_PARAMETERS] + bigram.set[0].offset;
        for (int k = 0; k < 4 * 256; k++) biases[k] = 0.1;
        assert_true(hrt_train_trainer_step(&f.trainer, 0, &step, &error));
        assert_true(fabs(step.loss - step.cross_entropy - step.auxiliary) < 1e-12);
        auxiliary[i] = step.auxiliary;
        close_fixture(&f);
    }
    assert_true(fabs(auxiliary[0] - 0.01 * 0.01 * 4 * 256) < 1e-12);
    assert_true(fabs(auxiliary[1] - auxiliary[0]) < 1e-12);
}

static void the_loss_falls(void **state) {
    (void)state;
    struct fixture f;
    struct hrt_step_report step;
    struct hrt_error error = {0};
    open_fixture(&f, 0);
    for (int i = 0; i < 50; i++) assert_true(hrt_train_trainer_step(&f.trainer, i, &step, &error));
    assert_true(step.cross_entropy < 4.5); // From log 256 = 5.55.
    close_fixture(&f);
}

static void train_with_threads(int threads, void *params) {
    struct fixture f;
    struct hrt_step_report step;
    struct hrt_error error = {0};
    const int before = omp_get_max_threads();
    omp_set_num_threads(threads);
    open_fixture(&f, 0);
    for (int i = 0; i < 5; i++) assert_true(hrt_train_trainer_step(&f.trainer, i, &step, &error));
    memcpy(params, f.state.values[HRT_PARAMETERS], hrt_params_state_bytes(&bigram));
    close_fixture(&f);
    omp_set_num_threads(before);
}

static void the_number_of_threads_changes_no_bit(void **state) {
    (void)state;
    const size_t bytes = hrt_params_state_bytes(&bigram);
    void *one = malloc(bytes), *three = malloc(bytes);
    train_with_threads(1, one);
    train_with_threads(3, three);
    assert_memory_equal(one, three, bytes);
    free(one);
    free(three);
}

static void memory_does_not_grow_after_the_first_step(void **state) {
    (void)state;
    struct fixture f;
    struct hrt_step_report step;
    struct hrt_jsonl log;
    struct hrt_error error = {0};
    open_fixture(&f, 2 * 4 * 16);
    assert_true(hrt_log_jsonl_open(&log, "log", 0, &error));
    struct mallinfo2 first = {0};
    const struct hrt_log_layers layers = {&f.trainer.loads, &f.trainer.loads, &f.trainer.watch,
                                          NULL};
    for (int i = 0; i < 20; i++) {
        assert_true(hrt_train_trainer_step(&f.trainer, i, &step, &error));
        assert_true(hrt_log_jsonl_step(&log, &step, &layers, &error));
        if (i == 1) first = mallinfo2(); // The allocator keeps what the first one has freed.
    }
    const struct mallinfo2 last = mallinfo2();
    assert_int_equal(last.uordblks, first.uordblks);
    assert_int_equal(last.hblkhd, first.hblkhd);
    assert_int_equal(last.arena, first.arena);
    assert_true(hrt_log_jsonl_close(&log, &error));
    close_fixture(&f);
}

static void evaluation_changes_nothing(void **state) {
    (void)state;
    struct fixture f;
    struct hrt_step_report step;
    struct hrt_error error = {0};
    struct hrt_validation loss, again;
    const size_t bytes = hrt_params_state_bytes(&bigram);
    void *params = malloc(bytes), *zeros = calloc(1, bytes);
    open_fixture(&f, 0);
    assert_true(hrt_train_trainer_step(&f.trainer, 0, &step, &error));
    memcpy(params, f.state.values[HRT_PARAMETERS], bytes);
    assert_true(hrt_train_evaluate(&f.state, &f.data, 0, NULL, &loss, &error));
    assert_int_equal(loss.targets, 199 / 16 * 16); // 200 tokens: twelve windows, three batches.
    assert_memory_equal(f.state.values[HRT_PARAMETERS], params, bytes);
    assert_memory_equal(f.state.values[HRT_GRADIENTS], zeros, bytes);
    assert_true(hrt_train_evaluate(&f.state, &f.data, 12, NULL, &again, &error));
    assert_true(loss.loss == again.loss && again.targets == 192);
    assert_true(hrt_train_evaluate(&f.state, &f.data, 5, NULL, &again, &error));
    assert_int_equal(again.targets, 5 * 16);
    close_fixture(&f);
    free(params);
    free(zeros);
}

static void evaluation_is_the_mean_over_targets(void **state) {
    (void)state;
    struct fixture f;
    struct hrt_error error = {0};
    struct hrt_validation loss;
    open_fixture(&f, 0);
    memset(f.state.values[HRT_PARAMETERS], 0,
           hrt_params_state_bytes(&bigram)); // Every token is equally likely.
    assert_true(hrt_train_evaluate(&f.state, &f.data, 6, NULL, &loss, &error));
    assert_true(fabs(loss.loss - log(256)) < 1e-12);
    close_fixture(&f);
}

static void tokens_that_do_not_divide_are_refused(void **state) {
    (void)state;
    struct fixture f;
    struct hrt_error error = {0};
    open_fixture(&f, 0);
    hrt_train_trainer_destroy(&f.trainer);
    f.config.train_tokens = 100;
    test_expect_error(
        create(&f, &error), &error, HRT_EXIT_USAGE,
        "train.tokens is 100, which is not a multiple of 64 (positions 16 x microbatch 4 x ranks "
        "1); nearest: 64 or 128");
    f.config.train_tokens = 8;
    test_expect_error(
        create(&f, &error), &error, HRT_EXIT_USAGE,
        "train.tokens is 8, which is not a multiple of 16 (positions 16 x microbatch 1 x ranks "
        "1); nearest: 16");
    f.config.train_tokens = 32;
    f.config.train_group = 4;
    test_expect_error(
        create(&f, &error), &error, HRT_EXIT_USAGE,
        "train.tokens is 32, 2 sequences, but train.group is 4: they have to be whole groups");
    f.config.train_group = 2;
    assert_true(create(&f, &error));
    assert_int_equal(f.trainer.batch, 2);
    assert_int_equal(f.trainer.iterations, 1);
    close_fixture(&f);
}

// Losses of one step from `step` on, of so many tokens a step, by parameters that do not change.
static double loss_of_step(int64_t tokens, int64_t step, int64_t from, int64_t drawn) {
    struct fixture f;
    struct hrt_step_report report;
    struct hrt_error error = {0};
    open_fixture(&f, tokens);
    hrt_train_trainer_go_on(&f.trainer, from, drawn, 0);
    assert_int_equal(hrt_train_trainer_sequences(&f.trainer, step),
                     drawn + (step - from) * tokens / 16);
    assert_true(hrt_train_trainer_step(&f.trainer, step, &report, &error));
    close_fixture(&f);
    return report.loss;
}

static void data_goes_on_behind_the_last_sequence(void **state) {
    (void)state;
    // Three steps of 8 sequences, then steps of 4: the next one has the sequences 24 to 27.
    assert_true(loss_of_step(4 * 16, 3, 3, 24) == loss_of_step(4 * 16, 6, 0, 0));
    assert_true(loss_of_step(4 * 16, 4, 3, 24) == loss_of_step(4 * 16, 7, 0, 0));
    assert_true(loss_of_step(4 * 16, 3, 3, 24) != loss_of_step(4 * 16, 3, 0, 0));
    // And of as many sequences as before nothing changes.
    assert_true(loss_of_step(4 * 16, 5, 3, 12) == loss_of_step(4 * 16, 5, 0, 0));
}

static void steps_that_were_skipped_before_count(void **state) {
    (void)state;
    for (int64_t before = 1; before <= 2; before++) {
        struct fixture f;
        struct hrt_step_report step;
        struct hrt_error error = {0};
        open_fixture(&f, 0);
        f.config.train_skip_max = 2;
        hrt_train_trainer_go_on(&f.trainer, 4, 16, before);
        ((double *)f.state.values[HRT_GRADIENTS])[bigram.set[0].offset + 7] = INFINITY;
        assert_true(hrt_train_trainer_step(&f.trainer, 4, &step, &error) == (before == 1));
        assert_true(before > 1 || step.skipped);
        close_fixture(&f);
    }
}

static void a_gradient_that_is_not_finite_is_named(void **state) {
    (void)state;
    struct fixture f;
    struct hrt_step_report step;
    struct hrt_error error = {0};
    open_fixture(&f, 0);
    const size_t bytes = hrt_params_state_bytes(&bigram);
    void *params = malloc(bytes);
    memcpy(params, f.state.values[HRT_PARAMETERS], bytes);
    ((double *)f.state.values[HRT_GRADIENTS])[bigram.set[0].offset + 3 * 256 + 7] = INFINITY;
    test_expect_error(hrt_train_trainer_step(&f.trainer, 4, &step, &error), &error, HRT_EXIT_FAILED,
                      "step 5: the gradient of layers.1.sparse.experts.1.bias is not finite "
                      "(inf); training stops");
    assert_memory_equal(f.state.values[HRT_PARAMETERS], params, bytes);
    free(params);
    close_fixture(&f);
}

static void imbalance_is_the_worst_layers(void **state) {
    (void)state;
    struct hrt_error error = {0};
    struct hrt_load_counts loads;
    struct hrt_device host = {0};
    assert_true(hrt_train_load_counts_create(&loads, &bigram, &host, &error));
    struct hrt_routers routers = hrt_train_routers_of(&loads); // Without any token.
    assert_true(routers.load == 1 && routers.entropy == 1 && routers.dead == 0);
    memcpy(loads.count, ((int64_t[]){5, 5, 9, 1}), 4 * sizeof *loads.count);
    routers = hrt_train_routers_of(&loads);
    assert_true(routers.load == 1.8 && routers.dead == 0 && routers.load_index == 0);
    assert_true(routers.layer == 1 && fabs(routers.share - 0.9) < 1e-12);
    const double entropy = -(0.9 * log(0.9) + 0.1 * log(0.1)) / log(2);
    assert_true(fabs(routers.entropy - entropy) < 1e-12);
    memcpy(loads.count, ((int64_t[]){0, 10, 9, 1}), 4 * sizeof *loads.count);
    routers = hrt_train_routers_of(&loads);
    assert_true(routers.load == 2 && routers.dead == 1 && routers.layer == 0);
    assert_true(routers.share == 1 && fabs(routers.entropy) < 1e-12);
    hrt_train_load_counts_destroy(&loads);
}

static void a_collapse_is_told_once_when_it_lasts(void **state) {
    (void)state;
    struct hrt_collapse collapse = {0};
    struct hrt_routers even = {.share = 0.5}, alone = {.share = 0.97};
    int told = 0;
    for (int i = 1; i < HRT_COLLAPSED; i++) told += hrt_train_collapse_step(&collapse, &alone);
    told += hrt_train_collapse_step(&collapse, &even); // It has got better.
    for (int i = 1; i < HRT_COLLAPSED; i++) told += hrt_train_collapse_step(&collapse, &alone);
    assert_int_equal(told, 0);
    assert_true(hrt_train_collapse_step(&collapse, &alone));
    for (int i = 0; i < 3 * HRT_COLLAPSED; i++) told += hrt_train_collapse_step(&collapse, &alone);
    assert_int_equal(told, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_averages_over_all_targets_of_all_iterations),
        cmocka_unit_test(a_masked_step_averages_over_masked_tokens),
        cmocka_unit_test(every_step_draws_its_own_sequences),
        cmocka_unit_test(the_auxiliary_loss_is_shared_by_iterations),
        cmocka_unit_test(the_loss_falls),
        cmocka_unit_test(the_number_of_threads_changes_no_bit),
        cmocka_unit_test(memory_does_not_grow_after_the_first_step),
        cmocka_unit_test(evaluation_changes_nothing),
        cmocka_unit_test(evaluation_is_the_mean_over_targets),
        cmocka_unit_test(tokens_that_do_not_divide_are_refused),
        cmocka_unit_test(data_goes_on_behind_the_last_sequence),
        cmocka_unit_test(steps_that_were_skipped_before_count),
        cmocka_unit_test(a_gradient_that_is_not_finite_is_named),
        cmocka_unit_test(imbalance_is_the_worst_layers),
        cmocka_unit_test(a_collapse_is_told_once_when_it_lasts),
    };
    return cmocka_run_group_tests(tests, test_enter_directory, test_leave_directory);
}
