// z_loss against its definition; gradient against central differences.
#include "kernels/z_loss/z_loss.h"

#include "tests/kernels/kernel_case.h"

static const int64_t shapes[][2] = {{1, 1}, {0, 4}, {5, 8}, {130, 20}, {9, 300}};
static const double coef = 0.3;

struct z_case {
    int64_t tokens, experts;
    enum hk_write write;
    const real *logits, *dloss;
};

static void run(const void *context, real *out) {
    const struct z_case *x = context;
    HK(z_loss, out, x->logits, x->tokens, x->experts, coef);
}

static void run_gradient(const void *context, real *out) {
    const struct z_case *x = context;
    HK(z_loss_grad, out, x->dloss, x->logits, x->tokens, x->experts, coef, x->write);
}

struct loss_of_logits {
    const struct z_case *x;
    double *logits;
};

static double loss(const void *context) {
    const struct loss_of_logits *l = context;
    double out;
    hk_z_loss_f64(&out, l->logits, l->x->tokens, l->x->experts, coef);
    return out * (double)l->x->dloss[0];
}

// coef times the mean of the squares.
static wide mean_square(const struct z_case *x) {
    wide sum = 0;
    for (int64_t t = 0; t < x->tokens; t++) {
        wide total = 0;
        for (int64_t e = 0; e < x->experts; e++) total += expl(x->logits[t * x->experts + e]);
        sum += logl(total) * logl(total);
    }
    return x->tokens > 0 ? coef * sum / x->tokens : 0;
}

static void check(int64_t tokens, int64_t experts, enum hk_write write) {
    struct z_case x = {tokens, experts, write, NULL, test_reals(1, 2)};
    const int64_t count = tokens * experts;
    real *logits = test_reals(count, 1);
    for (int64_t i = 0; i < count; i++) logits[i] *= 4;
    x.logits = logits;
    real *out = test_nans(1);
    run_with_threads(run, &x, out, 1);
    const wide want = mean_square(&x);
    const double lse = 4 + log((double)experts + 1); // At most; off by exp, sum, difference.
    const double lse_error = EPSILON * (4 + 8 + 256 + lse);
    assert_near("loss", 0, out[0], want, 2 * coef * lse * lse_error + EPSILON * (double)want);

    real *grad = write == HK_ADD ? test_reals(count, 3) : test_nans(count);
    real *old = test_copy(grad, count);
    run_with_threads(run_gradient, &x, grad, count);
    for (int64_t i = 0; i < count && write == HK_ADD; i++) grad[i] -= old[i];
    const struct loss_of_logits l = {&x, test_widened(logits, count)};
    check_gradient("dlogits", grad, l.logits, count, loss, &l, 4 * lse * lse_error);
    test_free_all();
}

static void loss_and_gradient_are_right(void **state) {
    (void)state;
    for (int64_t s = 0; s < COUNT(shapes); s++) {
        check(shapes[s][0], shapes[s][1], HK_STORE);
        check(shapes[s][0], shapes[s][1], HK_ADD);
    }
}

static void losses_of_many_tokens_are_summed(void **state) {
    (void)state;
    enum { tokens = 4200, experts = 3 };
    const real *logits = test_reals(tokens * experts, 1);
    const struct z_case x = {tokens, experts, HK_STORE, logits, NULL};
    real *out = test_nans(1);
    run_with_threads(run, &x, out, 1);
    const wide want = mean_square(&x);
    assert_near("loss", 0, out[0], want, 64 * EPSILON * (double)want);
    test_free_all();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(loss_and_gradient_are_right),
                                       cmocka_unit_test(losses_of_many_tokens_are_summed)};
    return RUN_KERNEL_TESTS(tests);
}
