// aux_loss against its definition; gradient against central differences.
#include "kernels/aux_loss/aux_loss.h"

#include "tests/kernels/kernel_case.h"

static const int64_t shapes[][2] = {
    {1, 1}, {0, 4}, {5, 8}, {3, 20}, {3, 300}}; // sequences, experts
static const double coef = 0.02;

struct aux_case {
    int64_t sequences, experts;
    const real *means, *fractions, *dloss;
};

static void run(const void *context, real *out) {
    const struct aux_case *x = context;
    HK(aux_loss, out, x->means, x->fractions, x->sequences, x->experts, coef);
}

static void run_gradient(const void *context, real *out) {
    const struct aux_case *x = context;
    HK(aux_loss_grad, out, x->dloss, x->fractions, x->sequences, x->experts, coef);
}

static double loss(const void *context) {
    const struct aux_case *x = context;
    wide sum = 0;
    for (int64_t i = 0; i < x->sequences * x->experts; i++)
        sum += (wide)x->means[i] * x->fractions[i];
    return x->sequences > 0 ? (double)(coef * x->experts * sum / x->sequences) : 0;
}

static void loss_and_gradient_are_right(void **state) {
    (void)state;
    for (int64_t s = 0; s < COUNT(shapes); s++) {
        const int64_t count = shapes[s][0] * shapes[s][1];
        const struct aux_case x = {.sequences = shapes[s][0],
                                   .experts = shapes[s][1],
                                   .means = test_reals(count, 1),
                                   .fractions = test_reals(count, 2),
                                   .dloss = test_reals(1, 3)};
        real *out = test_nans(1), *grad = test_nans(count);
        run_with_threads(run, &x, out, 1);
        assert_near("loss", 0, out[0], loss(&x), EPSILON * (1 + fabs(loss(&x))));
        run_with_threads(run_gradient, &x, grad, count);
        for (int64_t i = 0; i < count; i++) {
            const wide want = coef * x.experts * x.dloss[0] * x.fractions[i] / x.sequences;
            assert_near("dmeans", i, grad[i], want, 4 * EPSILON * fabs((double)want));
        }
        test_free_all();
    }
}

static void a_balanced_router_costs_coef(void **state) {
    (void)state;
    enum { sequences = 3, experts = 8 };
    real *even = test_nans(sequences * experts), *out = test_nans(1);
    for (int i = 0; i < sequences * experts; i++) even[i] = (real)1 / experts;
    HK(aux_loss, out, even, even, sequences, experts, coef);
    assert_near("loss", 0, *out, coef, 4 * EPSILON * coef);
    test_free_all();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(loss_and_gradient_are_right),
                                       cmocka_unit_test(a_balanced_router_costs_coef)};
    return RUN_KERNEL_TESTS(tests);
}
