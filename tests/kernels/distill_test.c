// distill against its definition; gradient against central differences.
//
// Bound of lse: as cross_entropy's, with |logit / temperature| for |logit|, which itself is off by three roundings. A
// probability is off by the rounding of its argument and of the sum, in double; a loss is rounded once when it is stored.
#include "kernels/distill/distill.h"

#include "tests/kernels/kernel_case.h"

// Tokens, vocabulary, entries.
static const int64_t shapes[][3] = {{1, 1, 1}, {0, 8, 3},    {5, 64, 4},   {7, 1000, 33},
                                    {3, 9, 0}, {33, 257, 1}, {4, 70, 300}, {6, 72, 5}};
static const double temperatures[] = {1, 2.5, 0.5};

struct distill_case {
    int64_t tokens, vocabulary;
    const real *logits, *scale, *dloss, *lse;
    struct hk_teacher teacher;
    double temperature;
};

static void run(const void *context, real *out) {
    const struct distill_case *x = context;
    HK(distill, out, out + 1, out + 1 + x->tokens, x->logits, x->teacher, x->scale, x->tokens,
       x->vocabulary, x->temperature);
}

// Every third token has no entry, some others miss one; their log-probabilities are shifted by different amounts.
static struct hk_teacher teacher_of(int64_t tokens, int64_t vocabulary, int64_t count) {
    float *log_probs = test_array(tokens * count, sizeof *log_probs);
    const real *drawn = test_reals(tokens * count, 5);
    for (int64_t i = 0; i < tokens * count; i++) {
        const int64_t t = i / count, k = i % count;
        const bool none = t % 3 == 2 || (k > 0 && (k + t) % 4 == 3);
        log_probs[i] = none ? -INFINITY : (float)(4 * drawn[i] - 5 + 30 * (real)(t % 2));
    }
    return (struct hk_teacher){.ids = test_ints(tokens * count, (int32_t)vocabulary, 2),
                               .log_probs = log_probs,
                               .count = count};
}

static struct distill_case distill_case(const int64_t *shape, real spread, double temperature) {
    struct distill_case x = {
        .tokens = shape[0], .vocabulary = shape[1], .temperature = temperature};
    real *logits = test_reals(x.tokens * x.vocabulary, 1);
    for (int64_t i = 0; i < x.tokens * x.vocabulary; i++)
        logits[i] = test_value(logits[i] * spread);
    x.logits = logits;
    x.teacher = teacher_of(x.tokens, x.vocabulary, shape[2]);
    x.scale = test_reals(1, 3);
    x.dloss = test_reals(1, 4);
    return x;
}

// The token's loss and logarithm; `sum` of its probabilities' numerators is 0 where it has none.
struct want {
    wide lse, loss, sum;
};

static struct want want_of(const struct distill_case *x, int64_t t) {
    struct want want = {0};
    const real *row = x->logits + t * x->vocabulary;
    wide total = 0;
    for (int64_t v = 0; v < x->vocabulary; v++) total += expl((wide)row[v] / x->temperature);
    for (int64_t k = 0; k < x->teacher.count; k++)
        want.sum += expl((wide)x->teacher.log_probs[t * x->teacher.count + k] / x->temperature);
    if (want.sum == 0) return want;
    want.lse = logl(total);
    for (int64_t k = 0; k < x->teacher.count; k++) {
        const int64_t i = t * x->teacher.count + k;
        want.loss += expl((wide)x->teacher.log_probs[i] / x->temperature) / want.sum *
                     (want.lse - (wide)row[x->teacher.ids[i]] / x->temperature);
    }
    want.loss *= (wide)(x->temperature * x->temperature);
    return want;
}

static void check(const int64_t *shape, real spread, double temperature) {
    const struct distill_case x = distill_case(shape, spread, temperature);
    const int64_t size = 1 + 2 * x.tokens;
    real *out = test_nans(size);
    run_with_threads(run, &x, out, size);
    wide sum = 0;
    const double warm = (double)spread / temperature;
    const double bound = EPSILON * (4 + 8 * warm + 256 + log((double)x.vocabulary));
    const double entries = DBL_EPSILON * (double)(x.teacher.count + 64 / temperature + 16);
    double of_losses = 0;
    for (int64_t t = 0; t < x.tokens; t++) {
        const struct want want = want_of(&x, t);
        const double large = fabs((double)want.lse) + warm;
        const double of_loss = temperature * temperature * (bound + entries * large) +
                               EPSILON * fabs((double)want.loss);
        assert_near("lse", t, out[1 + x.tokens + t], want.lse, bound);
        assert_near("losses", t, out[1 + t], want.loss, of_loss);
        sum += want.loss;
        of_losses += of_loss;
    }
    const wide want = sum * x.scale[0];
    assert_near("loss", 0, out[0], want, of_losses + EPSILON * fabs((double)want));
    test_free_all();
}

static void forward_is_within_the_bound(void **state) {
    (void)state;
    for (int64_t s = 0; s < COUNT(shapes); s++) {
        for (int64_t i = 0; i < COUNT(temperatures); i++) {
            check(shapes[s], 1, temperatures[i]);
            check(shapes[s], 300, temperatures[i]); // exp of the logits themselves would overflow.
        }
    }
}

struct loss_of_logits {
    const struct distill_case *x;
    double *logits, *rows;
};

static double loss(const void *context) {
    const struct loss_of_logits *l = context;
    const double scale = (double)l->x->scale[0];
    double out;
    hk_distill_f64(&out, l->rows, l->rows + l->x->tokens, l->logits, l->x->teacher, &scale,
                   l->x->tokens, l->x->vocabulary, l->x->temperature);
    return out * (double)l->x->dloss[0];
}

static void run_gradient(const void *context, real *out) {
    const struct distill_case *x = context;
    HK(distill_grad, out, x->dloss, x->logits, x->lse, x->teacher, x->scale, x->tokens,
       x->vocabulary, x->temperature);
}

static void gradients_match_central_differences(void **state) {
    (void)state;
    for (int64_t s = 0; s < COUNT(shapes); s++) {
        if (shapes[s][1] > 100) continue; // Two sums over all tokens for each element.
        struct distill_case x = distill_case(shapes[s], 2, temperatures[s % 3]);
        const int64_t size = x.tokens * x.vocabulary;
        real *forward = test_nans(1 + 2 * x.tokens), *grad = test_nans(size);
        run(&x, forward);
        x.lse = forward + 1 + x.tokens;
        run_with_threads(run_gradient, &x, grad, size);
        const struct loss_of_logits l = {&x, test_widened(x.logits, size),
                                         test_doubles(2 * x.tokens)};
        check_value_gradient("dlogits", grad, grad, l.logits, size, loss, &l, 300 * EPSILON);

        real *in_place = test_copy(x.logits, size);
        HK(distill_grad, in_place, x.dloss, in_place, x.lse, x.teacher, x.scale, x.tokens,
           x.vocabulary, x.temperature);
        assert_same_bits("in place", in_place, grad, size);
        test_free_all();
    }
}

// Without a temperature, a teacher that is sure of a token is a target.
static void a_sure_teacher_is_a_target(void **state) {
    (void)state;
    const int64_t shape[] = {9, 130, 1};
    struct distill_case x = distill_case(shape, 3, 1);
    float *log_probs = test_array(x.tokens, sizeof *log_probs);
    x.teacher.log_probs = log_probs;
    for (int64_t t = 0; t < x.tokens; t++) log_probs[t] = -7;
    double *rows = test_doubles(2 * x.tokens), *logits = test_widened(x.logits, 9 * 130);
    double soft, lse[9], scale = 0.25, hard = 0;
    hk_distill_f64(&soft, rows, lse, logits, x.teacher, &scale, x.tokens, x.vocabulary, 1);
    for (int64_t t = 0; t < x.tokens; t++)
        hard += scale * (lse[t] - logits[t * x.vocabulary + x.teacher.ids[t]]);
    assert_true(fabs(soft - hard) < 1e-13);
    test_free_all();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_is_within_the_bound),
        cmocka_unit_test(gradients_match_central_differences),
        cmocka_unit_test(a_sure_teacher_is_a_target),
    };
    return RUN_KERNEL_TESTS(tests);
}
