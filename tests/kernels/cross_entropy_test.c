// cross_entropy against its definition; gradient against central differences.
//
// Bound of lse: exp within 4 EPSILON, a sum of positive terms in blocks of 256, whose logarithm
// turns relative into absolute error; rounding of logit - max, at most EPSILON times their size.
#include "kernels/cross_entropy/cross_entropy.h"

#include "tests/kernels/kernel_case.h"

static const int64_t shapes[][2] = {{1, 1}, {0, 8}, {5, 64}, {7, 1000}, {33, 257}};

struct loss_case {
    int64_t tokens, vocabulary;
    const real *logits, *scale, *dloss, *lse;
    const int32_t *targets;
    const float *weights; // Or NULL.
};

static void run(const void *context, real *out) {
    const struct loss_case *x = context;
    HK(cross_entropy, out, out + 1, x->logits, x->targets, x->weights, x->scale, x->tokens,
       x->vocabulary);
}

// Weights of 0, 1, and between; of ignored tokens, too.
static const float *drawn_weights(int64_t tokens) {
    float *weights = test_array(tokens, sizeof *weights);
    for (int64_t t = 0; t < tokens; t++) weights[t] = (float)(t * 5 % 9) / 8;
    return weights;
}

static struct loss_case loss_case(int64_t tokens, int64_t vocabulary, real spread, bool weighted) {
    struct loss_case x = {.tokens = tokens, .vocabulary = vocabulary};
    real *logits = test_reals(tokens * vocabulary, 1);
    for (int64_t i = 0; i < tokens * vocabulary; i++) logits[i] = test_value(logits[i] * spread);
    int32_t *targets = test_ints(tokens, (int32_t)vocabulary, 2);
    for (int64_t t = 2; t < tokens; t += 3) targets[t] = -1;
    x.logits = logits;
    x.targets = targets;
    x.weights = weighted ? drawn_weights(tokens) : NULL;
    x.scale = test_reals(1, 3);
    x.dloss = test_reals(1, 4);
    return x;
}

static void check(int64_t tokens, int64_t vocabulary, real spread, bool weighted) {
    const struct loss_case x = loss_case(tokens, vocabulary, spread, weighted);
    real *out = test_nans(1 + tokens);
    run_with_threads(run, &x, out, 1 + tokens);
    wide sum = 0;
    const double bound = EPSILON * (4 + 2 * (double)spread + 256 + log((double)vocabulary));
    for (int64_t t = 0; t < tokens; t++) {
        const real *row = x.logits + t * vocabulary;
        wide total = 0;
        for (int64_t v = 0; v < vocabulary; v++) total += expl(row[v]);
        assert_near("lse", t, out[1 + t], logl(total), bound);
        const wide weight = weighted ? x.weights[t] : 1;
        if (x.targets[t] >= 0) sum += weight * (logl(total) - row[x.targets[t]]);
    }
    const wide want = sum * x.scale[0];
    assert_near("loss", 0, out[0], want, (double)tokens * bound + EPSILON * fabs((double)want));
    test_free_all();
}

static void forward_is_within_the_bound(void **state) {
    (void)state;
    for (int64_t s = 0; s < COUNT(shapes); s++) {
        check(shapes[s][0], shapes[s][1], 1, false);
        check(shapes[s][0], shapes[s][1], 1, true);
        check(shapes[s][0], shapes[s][1], 300,
              false); // exp of the logits themselves would overflow.
    }
}

struct loss_of_logits {
    const struct loss_case *x;
    double *logits, *lse;
};

static double loss(const void *context) {
    const struct loss_of_logits *l = context;
    const double scale = (double)l->x->scale[0];
    double out;
    hk_cross_entropy_f64(&out, l->lse, l->logits, l->x->targets, l->x->weights, &scale,
                         l->x->tokens, l->x->vocabulary);
    return out * (double)l->x->dloss[0];
}

static void run_gradient(const void *context, real *out) {
    const struct loss_case *x = context;
    HK(cross_entropy_grad, out, x->dloss, x->logits, x->lse, x->targets, x->weights, x->scale,
       x->tokens, x->vocabulary);
}

static void gradients_match_central_differences(void **state) {
    (void)state;
    for (int64_t s = 0; s < 6; s++) {
        const int64_t tokens = shapes[s / 2][0], vocabulary = shapes[s / 2][1];
        struct loss_case x = loss_case(tokens, vocabulary, 2, s % 2);
        real *forward = test_nans(1 + tokens), *grad = test_nans(tokens * vocabulary);
        run(&x, forward);
        x.lse = forward + 1;
        run_with_threads(run_gradient, &x, grad, tokens * vocabulary);
        const struct loss_of_logits l = {&x, test_widened(x.logits, tokens * vocabulary),
                                         test_doubles(tokens)};
        check_value_gradient("dlogits", grad, grad, l.logits, tokens * vocabulary, loss, &l,
                             300 * EPSILON);

        real *in_place = test_copy(x.logits, tokens * vocabulary);
        HK(cross_entropy_grad, in_place, x.dloss, in_place, x.lse, x.targets, x.weights, x.scale,
           tokens, vocabulary);
        assert_same_bits("in place", in_place, grad, tokens * vocabulary);
        test_free_all();
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_is_within_the_bound),
        cmocka_unit_test(gradients_match_central_differences),
    };
    return RUN_KERNEL_TESTS(tests);
}
