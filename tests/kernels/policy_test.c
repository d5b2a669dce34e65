// dpo and policy against their definitions; gradients against central differences.
//
// Bound of lse: as cross_entropy's. A pair's loss changes by at most beta times the errors of its log-probabilities, a
// token's by its slope times that.
#include "kernels/policy/policy.h"

#include "tests/kernels/kernel_case.h"

// Sequences, positions, vocabulary, entries of the reference.
static const int64_t shapes[][4] = {{2, 1, 1, 1}, {0, 3, 8, 1},   {2, 5, 64, 1}, {4, 7, 300, 2},
                                    {3, 4, 9, 1}, {6, 11, 33, 3}, {2, 3, 9, 0},  {2, 150, 5, 1}};
static const double betas[] = {0.1, 2.5};

struct dpo_case {
    int64_t sequences, tokens, entries;
    struct hk_dpo_dims dims;
    const real *logits, *scale, *dloss, *slopes, *lse;
    const int32_t *targets;
    struct hk_teacher reference;
};

static void run(const void *context, real *out) {
    const struct dpo_case *x = context;
    HK(dpo, out, out + 1, out + 1 + x->tokens, x->logits, x->reference, x->targets, x->scale,
       x->dims);
}

// The entry of a target is the last one that is there; others are of other tokens, or missing.
static void set_reference(struct dpo_case *x) {
    float *log_probs = test_array(x->tokens * x->entries, sizeof *log_probs);
    int32_t *ids = test_array(x->tokens * x->entries, sizeof *ids);
    const real *drawn = test_reals(x->tokens * x->entries, 5);
    for (int64_t i = 0; i < x->tokens * x->entries; i++) {
        const int64_t t = i / x->entries, k = i % x->entries;
        const bool last = k + 1 == x->entries;
        ids[i] = last || k % 2 ? x->targets[t] : (x->targets[t] + 1) % (int32_t)x->dims.vocabulary;
        log_probs[i] = !last && k % 2 ? -INFINITY : (float)(2 * drawn[i] - 3);
        if (ids[i] < 0) ids[i] = 0;
    }
    x->reference = (struct hk_teacher){.ids = ids, .log_probs = log_probs, .count = x->entries};
}

static struct dpo_case dpo_case(const int64_t *shape, real spread, double beta) {
    struct dpo_case x = {.sequences = shape[0], .tokens = shape[0] * shape[1], .entries = shape[3]};
    x.dims = (struct hk_dpo_dims){x.tokens, shape[1], shape[2], beta};
    real *logits = test_reals(x.tokens * shape[2], 1);
    int32_t *targets = test_ints(x.tokens, (int32_t)shape[2], 2);
    for (int64_t i = 0; i < x.tokens * shape[2]; i++) logits[i] = test_value(logits[i] * spread);
    for (int64_t t = 2; t < x.tokens; t += 3) targets[t] = -1;
    x.logits = logits;
    x.targets = targets;
    x.scale = test_reals(1, 3);
    x.dloss = test_reals(1, 4);
    set_reference(&x);
    return x;
}

static wide lse_of(const struct dpo_case *x, int64_t t) {
    wide total = 0;
    for (int64_t v = 0; v < x->dims.vocabulary; v++)
        total += expl((wide)x->logits[t * x->dims.vocabulary + v]);
    return logl(total);
}

static wide gain_of(const struct dpo_case *x, int64_t sequence) {
    wide sum = 0;
    for (int64_t i = 0; i < x->dims.positions; i++) {
        const int64_t t = sequence * x->dims.positions + i;
        if (x->targets[t] < 0) continue;
        sum += (wide)x->logits[t * x->dims.vocabulary + x->targets[t]] - lse_of(x, t) -
               (wide)x->reference.log_probs[(t + 1) * x->entries - 1];
    }
    return sum;
}

#ifndef HK_TARGET_CUDA
static void check_sum(int i, double sum, wide want, double bound) {
    if (!(fabsl((wide)sum - want) <= (wide)bound))
        fail_msg("sum %d is %.17g, not %.17Lg", i, sum, (long double)want);
}

static void check_pair_sums(const struct dpo_case *x, const real *out, double bound) {
    double sums[HK_POLICY_SUMS] = {0};
    struct dpo_case summed = *x;
    real *again = test_nans(1 + 2 * x->tokens);
    summed.reference.sums = sums;
    run(&summed, again);
    assert_same_bits("loss, slopes and lse", again, out, 1 + 2 * x->tokens);
    wide want[HK_POLICY_SUMS] = {0};
    for (int64_t i = 0; i < x->sequences / 2 && x->entries; i++) {
        const wide chosen = gain_of(x, 2 * i), rejected = gain_of(x, 2 * i + 1);
        want[HK_DPO_PAIRS]++;
        want[HK_DPO_CHOSEN] += (wide)x->dims.beta * chosen;
        want[HK_DPO_REJECTED] += (wide)x->dims.beta * rejected;
        want[HK_DPO_RIGHT] += chosen > rejected;
    }
    for (int i = 0; i < HK_POLICY_SUMS; i++)
        check_sum(i, sums[i], want[i], (double)x->sequences * bound);
}
#endif

static void check(const int64_t *shape, real spread, double beta) {
    const struct dpo_case x = dpo_case(shape, spread, beta);
    const int64_t size = 1 + 2 * x.tokens, positions = x.dims.positions;
    real *out = test_nans(size);
    run_with_threads(run, &x, out, size);
    const double bound = EPSILON * (260 + 12 * (double)spread + log((double)x.dims.vocabulary));
    const double of_gain = 2 * beta * (double)positions * bound;
    wide sum = 0;
    for (int64_t t = 0; t < x.tokens; t++)
        assert_near("lse", t, out[1 + x.tokens + t], lse_of(&x, t), bound);
    for (int64_t t = x.tokens - x.tokens % (2 * positions); t < x.tokens; t++)
        assert_true(out[1 + t] == 0); // A sequence without a second one.
    for (int64_t i = 0; i < x.sequences / 2 && x.entries; i++) {
        const wide h = (wide)beta * (gain_of(&x, 2 * i) - gain_of(&x, 2 * i + 1));
        const wide slope = (wide)beta / (1 + expl(h));
        sum += log1pl(expl(-h));
        for (int64_t k = 0; k < 2 * positions; k++) {
            const int64_t t = 2 * i * positions + k;
            const wide want = x.targets[t] < 0 ? 0 : k < positions ? -slope : slope;
            assert_near("slopes", t, out[1 + t], want, beta * (of_gain + 2 * EPSILON));
        }
    }
    const wide want = sum * x.scale[0];
    assert_near("loss", 0, out[0], want,
                (double)x.sequences * of_gain + 4 * EPSILON * fabs((double)want));
#ifndef HK_TARGET_CUDA
    check_pair_sums(&x, out, of_gain);
#endif
    test_free_all();
}

static void forward_is_within_the_bound(void **state) {
    (void)state;
    for (int64_t s = 0; s < COUNT(shapes); s++) {
        for (int64_t i = 0; i < COUNT(betas); i++) {
            check(shapes[s], 1, betas[i]);
            check(shapes[s], 80, betas[i]); // Gains of hundreds: exp(-h) overflows.
        }
    }
}

struct loss_of_logits {
    const struct dpo_case *x;
    double *logits, *rows;
};

static double loss(const void *context) {
    const struct loss_of_logits *l = context;
    const double scale = (double)l->x->scale[0];
    double out;
    hk_dpo_f64(&out, l->rows, l->rows + l->x->tokens, l->logits, l->x->reference, l->x->targets,
               &scale, l->x->dims);
    return out * (double)l->x->dloss[0];
}

static void run_gradient(const void *context, real *out) {
    const struct dpo_case *x = context;
    HK(policy_grad, out, x->dloss, x->logits, x->slopes, x->lse, x->targets, x->scale, x->tokens,
       x->dims.vocabulary);
}

static void gradients_match_central_differences(void **state) {
    (void)state;
    for (int64_t s = 0; s < COUNT(shapes); s++) {
        if (shapes[s][2] > 100) continue; // Two sums over all tokens for each element.
        struct dpo_case x = dpo_case(shapes[s], 2, betas[s % 2]);
        const int64_t size = x.tokens * x.dims.vocabulary;
        real *forward = test_nans(1 + 2 * x.tokens), *grad = test_nans(size);
        run(&x, forward);
        x.slopes = forward + 1;
        x.lse = forward + 1 + x.tokens;
        run_with_threads(run_gradient, &x, grad, size);
        const struct loss_of_logits l = {&x, test_widened(x.logits, size),
                                         test_doubles(2 * x.tokens)};
        check_value_gradient("dlogits", grad, grad, l.logits, size, loss, &l, 1000 * EPSILON);

        real *in_place = test_copy(x.logits, size);
        HK(policy_grad, in_place, x.dloss, in_place, x.slopes, x.lse, x.targets, x.scale, x.tokens,
           x.dims.vocabulary);
        assert_same_bits("in place", in_place, grad, size);
        test_free_all();
    }
}

// Where the model says as the reference does, no answer is preferred.
static void a_model_that_is_its_reference_loses_log_2(void **state) {
    (void)state;
    struct dpo_case x = dpo_case((const int64_t[]){2, 6, 17, 1}, 1, 0.7);
    double *rows = test_doubles(2 * x.tokens), *logits = test_widened(x.logits, x.tokens * 17);
    float *log_probs = test_array(x.tokens, sizeof *log_probs);
    double out, scale = 1;
    for (int64_t i = 0; i < x.tokens * 17; i++) logits[i] = 0;
    for (int64_t t = 0; t < x.tokens; t++) log_probs[t] = -logf(17);
    x.reference.log_probs = log_probs;
    hk_dpo_f64(&out, rows, rows + x.tokens, logits, x.reference, x.targets, &scale, x.dims);
    assert_true(fabs(out - log(2)) < 1e-6);
    test_free_all();
}

// ---- clipped ratios with advantages

// Tokens, vocabulary, entries.
static const int64_t rollouts[][3] = {{1, 1, 2},    {0, 8, 3},  {5, 64, 2},
                                      {33, 257, 3}, {9, 12, 3}, {4, 9, 0}};

struct policy_case {
    int64_t entries;
    struct hk_policy_dims dims;
    const real *logits, *scale, *dloss, *slopes, *lse;
    const int32_t *targets;
    struct hk_teacher rollout;
};

static void run_policy(const void *context, real *out) {
    const struct policy_case *x = context;
    const int64_t tokens = x->dims.tokens;
    HK(policy, out, out + 1, out + 1 + tokens, x->logits, x->rollout, x->targets, x->scale,
       x->dims);
}

// Log-probabilities near the model's own, so that some ratios are clipped and some are not.
static struct policy_case policy_case(const int64_t *shape, double clip) {
    const int64_t tokens = shape[0], vocabulary = shape[1], entries = shape[2];
    struct policy_case x = {.entries = entries,
                            .dims = {tokens, vocabulary, clip, entries > 2 ? 0.3 : 0}};
    real *logits = test_reals(tokens * vocabulary, 1);
    int32_t *targets = test_ints(tokens, (int32_t)vocabulary, 2);
    float *said = test_array(tokens * entries, sizeof *said);
    const real *drawn = test_reals(tokens * entries, 5);
    for (int64_t i = 0; i < tokens * vocabulary; i++) logits[i] = test_value(logits[i]);
    for (int64_t t = 2; t < tokens; t += 3) targets[t] = -1;
    for (int64_t i = 0; i < tokens * entries; i++)
        said[i] =
            (float)(i % entries == 1 ? 2 * drawn[i] : drawn[i] - (real)log((double)vocabulary));
    x.logits = logits;
    x.targets = targets;
    x.scale = test_reals(1, 3);
    x.dloss = test_reals(1, 4);
    x.rollout = (struct hk_teacher){.ids = targets, .log_probs = said, .count = entries};
    return x;
}

static wide token_loss(const struct policy_case *x, int64_t t, wide own) {
    const float *said = x->rollout.log_probs + t * x->entries;
    const wide ratio = expl(own - (wide)said[0]), low = 1 - (wide)x->dims.clip,
               high = 1 + (wide)x->dims.clip;
    const wide kept = ratio < low ? low : ratio > high ? high : ratio;
    const wide plain = ratio * (wide)said[1], clipped = kept * (wide)said[1];
    const wide apart = x->entries > 2 ? (wide)said[2] - own : 0;
    return -(plain < clipped ? plain : clipped) + (wide)x->dims.kl * (expl(apart) - apart - 1);
}

#ifndef HK_TARGET_CUDA
// The sums for logs: they leave the rest as it is, and a second call adds to them.
static void check_policy_sums(const struct policy_case *x, const real *out) {
    const int64_t tokens = x->dims.tokens, size = 1 + 2 * tokens;
    double sums[HK_POLICY_SUMS] = {0};
    struct policy_case summed = *x;
    real *again = test_nans(size);
    summed.rollout.sums = sums;
    run_policy(&summed, again);
    assert_same_bits("loss, slopes and lse", again, out, size);
    run_policy(&summed, again);
    wide want[HK_POLICY_SUMS] = {0};
    for (int64_t t = 0; t < tokens; t++) {
        if (x->targets[t] < 0 || x->entries == 0) continue;
        const float *said = x->rollout.log_probs + t * x->entries;
        const wide own =
            (wide)x->logits[t * x->dims.vocabulary + x->targets[t]] - (wide)out[1 + tokens + t];
        const wide change = own - (wide)said[0], ratio = expl(change), clip = (wide)x->dims.clip;
        want[HK_POLICY_TOKENS] += 2;
        want[HK_POLICY_ADVANTAGE] += 2 * (wide)said[1];
        want[HK_POLICY_RATIO] += 2 * ratio;
        want[HK_POLICY_CLIPPED] += said[1] > 0   ? 2 * (ratio > 1 + clip)
                                   : said[1] < 0 ? 2 * (ratio < 1 - clip)
                                                 : 0;
        want[HK_POLICY_KL_OLD] += 2 * (ratio - 1 - change);
        if (x->entries < 3) continue;
        const wide apart = (wide)said[2] - own;
        want[HK_POLICY_REFERENCES] += 2;
        want[HK_POLICY_KL] += 2 * (expl(apart) - apart - 1);
    }
    for (int i = 0; i < HK_POLICY_SUMS; i++)
        check_sum(i, sums[i], want[i],
                  (double)(tokens + 8) * 0x1p-50 * (1 + fabs((double)want[i])));
}
#endif

static void check_policy(const int64_t *shape, double clip) {
    const struct policy_case x = policy_case(shape, clip);
    const int64_t tokens = x.dims.tokens, size = 1 + 2 * tokens;
    real *out = test_nans(size);
    run_with_threads(run_policy, &x, out, size);
    const double bound = EPSILON * (280 + log((double)x.dims.vocabulary));
    wide sum = 0;
    double of_losses = 0;
    for (int64_t t = 0; t < tokens; t++) {
        wide total = 0;
        for (int64_t v = 0; v < x.dims.vocabulary; v++)
            total += expl((wide)x.logits[t * x.dims.vocabulary + v]);
        assert_near("lse", t, out[1 + tokens + t], logl(total), bound);
        if (x.targets[t] < 0 || x.entries == 0) {
            assert_true(out[1 + t] == 0);
            continue;
        }
        const wide own = (wide)x.logits[t * x.dims.vocabulary + x.targets[t]] - logl(total);
        const wide step = 1e-6L;
        const wide slope = (token_loss(&x, t, own + step) - token_loss(&x, t, own - step)) /
                           (2 * step); // Where the ratio is not at the edge.
        assert_near("slopes", t, out[1 + t], slope, 40 * bound + 1e-9);
        sum += token_loss(&x, t, own);
        of_losses += 40 * bound;
    }
    const wide want = sum * x.scale[0];
    assert_near("loss", 0, out[0], want, of_losses + 4 * EPSILON * fabs((double)want));
#ifndef HK_TARGET_CUDA
    check_policy_sums(&x, out);
#endif
    test_free_all();
}

static void rollouts_are_within_the_bound(void **state) {
    (void)state;
    for (int64_t s = 0; s < COUNT(rollouts); s++) {
        check_policy(rollouts[s], 0.2);
        check_policy(rollouts[s], 5); // Nothing is clipped from below.
    }
}

struct loss_of_rollout {
    const struct policy_case *x;
    double *logits, *rows;
};

static double rollout_loss(const void *context) {
    const struct loss_of_rollout *l = context;
    const double scale = (double)l->x->scale[0];
    double out;
    hk_policy_f64(&out, l->rows, l->rows + l->x->dims.tokens, l->logits, l->x->rollout,
                  l->x->targets, &scale, l->x->dims);
    return out * (double)l->x->dloss[0];
}

static void run_policy_gradient(const void *context, real *out) {
    const struct policy_case *x = context;
    HK(policy_grad, out, x->dloss, x->logits, x->slopes, x->lse, x->targets, x->scale,
       x->dims.tokens, x->dims.vocabulary);
}

static void gradients_of_rollouts_match_central_differences(void **state) {
    (void)state;
    for (int64_t s = 0; s < COUNT(rollouts); s++) {
        if (rollouts[s][1] > 100) continue;
        struct policy_case x = policy_case(rollouts[s], 0.2);
        const int64_t tokens = x.dims.tokens, size = tokens * x.dims.vocabulary;
        real *forward = test_nans(1 + 2 * tokens), *grad = test_nans(size);
        run_policy(&x, forward);
        x.slopes = forward + 1;
        x.lse = forward + 1 + tokens;
        run_with_threads(run_policy_gradient, &x, grad, size);
        const struct loss_of_rollout l = {&x, test_widened(x.logits, size),
                                          test_doubles(2 * tokens)};
        check_value_gradient("dlogits", grad, grad, l.logits, size, rollout_loss, &l,
                             1000 * EPSILON);
        test_free_all();
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_is_within_the_bound),
        cmocka_unit_test(gradients_match_central_differences),
        cmocka_unit_test(a_model_that_is_its_reference_loses_log_2),
        cmocka_unit_test(rollouts_are_within_the_bound),
        cmocka_unit_test(gradients_of_rollouts_match_central_differences),
    };
    return RUN_KERNEL_TESTS(tests);
}
