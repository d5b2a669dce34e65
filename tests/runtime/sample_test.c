// Unit test of runtime/sample/sample: a bigram model whose table says what follows what.
#include "runtime/sample/sample.h"
#include "runtime/train/create.h"

#include <math.h>

#include "runtime/params/tensor.h"
#include "tests/runtime/support/case.h"

static struct hrt_placement bigram_here = {.program = &bigram};

// After byte b comes b + 1 with logit 8, b + 2 with logit 7, everything else with logit 0.
static void create(struct hrt_state *state) {
    struct hrt_error error = {0};
    assert_true(hrt_train_state_create(state, &bigram_here, NULL, HRT_NO_TRAINING, &error));
    float *params = state->values[HRT_PARAMETERS];
    for (int i = 0; i < 256; i++) {
        params[bigram.param[1].offset + i] = 1;
        params[hrt_params_stored_index(&bigram.param[0], i * 256 + (i + 1) % 256)] = 8;
        params[hrt_params_stored_index(&bigram.param[0], i * 256 + (i + 2) % 256)] = 7;
    }
}

static struct hrt_sampler sampler_of(struct hrt_draw_rule rule, const char *stop) {
    struct hrt_error error = {0};
    struct hrt_sampler sampler;
    assert_true(hrt_sample_sampler_open(&sampler, rule, 256, NULL, stop, &error));
    return sampler;
}

// The output of sampling `count` tokens; freed by the caller.
static char *sampled_to(const char *stop, const char *prompt, int64_t count,
                        struct hrt_draw_rule rule) {
    struct hrt_error error = {0};
    struct hrt_state state;
    struct hrt_sampler sampler = sampler_of(rule, stop);
    char *printed = NULL;
    size_t bytes;
    FILE *out = open_memstream(&printed, &bytes);
    create(&state);
    assert_true(hrt_sample(&sampler, &state, prompt, count, out, &error));
    fclose(out);
    hrt_train_state_destroy(&state);
    hrt_sample_sampler_close(&sampler);
    return printed;
}

static char *sampled(const char *prompt, int64_t count, struct hrt_draw_rule rule) {
    return sampled_to(NULL, prompt, count, rule);
}

static void expect_sample(const char *prompt, int64_t count, struct hrt_draw_rule rule,
                          const char *expected) {
    char *printed = sampled(prompt, count, rule);
    assert_string_equal(printed, expected);
    free(printed);
}

static void temperature_zero_takes_the_likeliest(void **state) {
    (void)state;
    expect_sample("a", 4, (struct hrt_draw_rule){.temperature = 0}, "abcde\n");
}

static void topk_one_takes_the_likeliest(void **state) {
    (void)state;
    expect_sample("a", 4, (struct hrt_draw_rule){.temperature = 1, .topk = 1}, "abcde\n");
}

static void without_a_prompt_a_newline_is_continued(void **state) {
    (void)state;
    expect_sample(NULL, 2, (struct hrt_draw_rule){.temperature = 0}, "\v\f\n");
}

// Longer than the 16 positions of the model, in the prompt and in what follows.
static void the_window_moves_on(void **state) {
    (void)state;
    expect_sample("ABCDEFGHIJKLMNOPQRSTU", 20, (struct hrt_draw_rule){.temperature = 0},
                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghi\n");
}

// The last 16 of the prompt; when they are full, the last 8 and what follows.
static void the_model_sees_the_last_tokens(void **state) {
    (void)state;
    struct hrt_error error = {0};
    struct hrt_state s;
    create(&s);
    FILE *out = fopen("/dev/null", "w");
    struct hrt_sampler sampler = sampler_of((struct hrt_draw_rule){0}, NULL);
    assert_true(hrt_sample(&sampler, &s, "0123456789ABCDEFGHIJ", 3, out, &error));
    for (int i = 0; i < 11; i++) assert_int_equal(s.ids[i], "CDEFGHIJKLM"[i]);
    fclose(out);
    hrt_train_state_destroy(&s);
}

static void the_seed_decides(void **state) {
    (void)state;
    char *one = sampled("a", 100, (struct hrt_draw_rule){.temperature = 3, .seed = 1});
    char *again = sampled("a", 100, (struct hrt_draw_rule){.temperature = 3, .seed = 1});
    char *other = sampled("a", 100, (struct hrt_draw_rule){.temperature = 3, .seed = 2});
    assert_string_equal(one, again);
    assert_string_not_equal(one, other);
    free(one);
    free(again);
    free(other);
}

// Among the two likeliest, a logit apart, at temperature 2 the second has the share
// 1 / (1 + exp(1 / 2)).
static void shares_follow_the_scores(void **state) {
    (void)state;
    enum { DRAWS = 4000 };
    char *text = sampled("a", DRAWS, (struct hrt_draw_rule){.temperature = 2, .topk = 2});
    int second = 0;
    for (int i = 0; i < DRAWS; i++) {
        const int gap = (unsigned char)(text[i + 1] - text[i]);
        assert_true(gap == 1 || gap == 2);
        second += gap == 2;
    }
    const double share = 1 / (1 + exp(0.5));
    assert_true(fabs((double)second / DRAWS - share) < 5 * sqrt(share * (1 - share) / DRAWS));
    free(text);
}

// At temperature 1 the shares of the first two are 0.731 and 0.269 of what they have together, and the others have 0.06 of all.
static void unlikely_tokens_are_left_out(void **state) {
    (void)state;
    const struct hrt_draw_rule first[] = {{.temperature = 1, .topp = 0.6},
                                          {.temperature = 1, .minp = 0.4},
                                          {.temperature = 1, .topk = 2, .topp = 0.73},
                                          {.temperature = 1, .topp = 1e-9, .minp = 1}};
    for (size_t i = 0; i < sizeof first / sizeof *first; i++)
        expect_sample(
            "a", 40, first[i],
            "abcdefghijklmnopqrstuvwxyz{|}~\x7f\x80\x81\x82\x83\x84\x85\x86\x87\x88\x89\n");
    const struct hrt_draw_rule two[] = {{.temperature = 1, .topp = 0.8},
                                        {.temperature = 1, .minp = 0.3},
                                        {.temperature = 1, .topk = 2, .topp = 0.74}};
    for (size_t i = 0; i < sizeof two / sizeof *two; i++) {
        char *text = sampled("a", 200, two[i]);
        int second = 0;
        for (int at = 0; at < 200; at++) {
            const int gap = (unsigned char)(text[at + 1] - text[at]);
            assert_true(gap == 1 || gap == 2);
            second += gap == 2;
        }
        assert_true(second > 20 && second < 100);
        free(text);
    }
}

// It may come in pieces; text that only begins like it is printed. A prompt that has it goes on.
static void a_stop_text_ends_the_sample(void **state) {
    (void)state;
    const struct {
        const char *stop, *printed;
    } sample[] = {{"h", "abcdefg\n"},      {"ghi", "abcdef\n"},      {"b", "a\n"},
                  {"gi", "abcdefghijk\n"}, {"jkx", "abcdefghijk\n"}, {"ab", "abcdefghijk\n"}};
    for (size_t i = 0; i < sizeof sample / sizeof *sample; i++) {
        char *text = sampled_to(sample[i].stop, "a", 10, (struct hrt_draw_rule){0});
        assert_string_equal(text, sample[i].printed);
        free(text);
    }
}

static void scores_that_are_not_finite_are_an_error(void **state) {
    (void)state;
    struct hrt_error error = {0};
    struct hrt_state s;
    create(&s);
    ((float *)s.values[HRT_PARAMETERS])[0] = NAN;
    FILE *out = fopen("/dev/null", "w");
    struct hrt_sampler sampler = sampler_of((struct hrt_draw_rule){0}, NULL);
    const bool done = hrt_sample(&sampler, &s, NULL, 300, out, &error);
    test_expect_error(done, &error, HRT_EXIT_FAILED,
                      "the model's scores are not finite; nothing can be drawn");
    fclose(out);
    hrt_train_state_destroy(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(temperature_zero_takes_the_likeliest),
        cmocka_unit_test(topk_one_takes_the_likeliest),
        cmocka_unit_test(without_a_prompt_a_newline_is_continued),
        cmocka_unit_test(the_window_moves_on),
        cmocka_unit_test(the_model_sees_the_last_tokens),
        cmocka_unit_test(the_seed_decides),
        cmocka_unit_test(shares_follow_the_scores),
        cmocka_unit_test(unlikely_tokens_are_left_out),
        cmocka_unit_test(a_stop_text_ends_the_sample),
        cmocka_unit_test(scores_that_are_not_finite_are_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
