// causal_conv and its gradients against their definitions.
//
// Bound: a sum of n terms, in any order, is off by n + 1 roundings of each: of y and dx, n is the taps;
// of dw, all tokens.
#include "kernels/causal_conv/causal_conv.h"

#include <stdlib.h>

#include "tests/kernels/kernel_case.h"

static const struct hk_conv_dims shapes[] = {
    {.batch = 1, .positions = 1, .channels = 1, .taps = 1},
    {.batch = 2, .positions = 9, .channels = 5, .taps = 4},
    {.batch = 1, .positions = 4, .channels = 64, .taps = 4},
    {.batch = 3, .positions = 33, .channels = 97, .taps = 3},
    {.batch = 2, .positions = 40, .channels = 6, .taps = 17},
    {.batch = 1, .positions = 270, .channels = 70, .taps = 2},
    {.batch = 0, .positions = 5, .channels = 3, .taps = 2},
};

struct conv_case {
    struct hk_conv_dims dims;
    const real *x, *w, *dy;
    enum hk_write write_x, write_w;
};

static int64_t x_size(const struct hk_conv_dims *d) {
    return d->batch * d->positions * d->channels;
}

static int64_t w_size(const struct hk_conv_dims *d) {
    return d->channels * d->taps;
}

// Documents of one position and of several.
static const int32_t *begins_of(const struct hk_conv_dims *d) {
    static const int32_t at[] = {2, 3, 5, 8, 31};
    int32_t *begins = test_ints(d->batch * d->positions, 1, 6);
    for (int64_t i = 0; i < d->batch * d->positions; i++) {
        begins[i] = 0;
        for (int k = 0; k < COUNT(at); k++) {
            const int32_t begin = at[k] + (int32_t)(i / d->positions % 2);
            if (begin <= i % d->positions) begins[i] = begin;
        }
    }
    return begins;
}

static struct conv_case conv_case(int64_t shape, bool documents) {
    struct conv_case x = {.dims = shapes[shape]};
    x.x = test_reals(x_size(&x.dims), 1);
    x.w = test_reals(w_size(&x.dims), 2);
    x.dy = test_reals(x_size(&x.dims), 3);
    if (documents) x.dims.begins = begins_of(&x.dims);
    return x;
}

static void run(const void *context, real *out) {
    const struct conv_case *x = context;
    HK(causal_conv, out, x->x, x->w, x->dims);
}

static void run_gradient(const void *context, real *out) {
    const struct conv_case *x = context;
    HK(causal_conv_grad, out, out + x_size(&x->dims), x->dy, x->x, x->w, x->dims, x->write_x,
       x->write_w);
}

// Calls `each` for all that y is the sum of: tap j of `to` reads `from`.
struct sums {
    const struct conv_case *of;
    wide *value, *size;
};
typedef void each_term(struct sums *s, int64_t to, int64_t from, int64_t weight);

static void for_terms(struct sums *s, each_term *each) {
    const struct hk_conv_dims *d = &s->of->dims;
    for (int64_t i = 0; i < x_size(d); i++) {
        const int64_t c = i % d->channels, token = i / d->channels, t = token % d->positions;
        const int64_t begin = d->begins ? d->begins[token] : 0;
        for (int64_t j = 0; j < d->taps; j++) {
            const int64_t back = d->taps - 1 - j;
            if (t - back >= begin) each(s, i, i - back * d->channels, c * d->taps + j);
        }
    }
}

static void add(struct sums *s, int64_t at, wide term) {
    s->value[at] += term;
    s->size[at] += fabsl(term);
}

static void add_forward(struct sums *s, int64_t to, int64_t from, int64_t weight) {
    add(s, to, (wide)s->of->w[weight] * s->of->x[from]);
}

static void add_backward(struct sums *s, int64_t to, int64_t from, int64_t weight) {
    add(s, from, (wide)s->of->w[weight] * s->of->dy[to]);
    add(s, x_size(&s->of->dims) + weight, (wide)s->of->x[from] * s->of->dy[to]);
}

static void check(const struct conv_case *x, const real *got, const real *old, bool gradient) {
    const int64_t count = x_size(&x->dims) + (gradient ? w_size(&x->dims) : 0);
    struct sums s = {x, calloc((size_t)count + 1, sizeof(wide)),
                     calloc((size_t)count + 1, sizeof(wide))};
    for_terms(&s, gradient ? add_backward : add_forward);
    for (int64_t i = 0; i < count; i++) {
        const bool weight = i >= x_size(&x->dims);
        const wide before = old ? old[i] : 0;
        const double terms =
            (double)(weight ? x->dims.batch * x->dims.positions : x->dims.taps) + 2;
        const double bound = terms * EPSILON * (double)(s.size[i] + fabsl(before));
        if (weight) assert_near("dw", i, got[i], before + s.value[i], bound);
        if (!weight)
            assert_value_near(gradient ? "dx" : "y", i, got[i], before + s.value[i], bound);
    }
    free(s.value);
    free(s.size);
}

static void forward_is_within_the_bound(void **state) {
    (void)state;
    for (int64_t s = 0; s < 2 * COUNT(shapes); s++) {
        const struct conv_case x = conv_case(s / 2, s % 2);
        real *y = test_nans(x_size(&x.dims));
        run_with_threads(run, &x, y, x_size(&x.dims));
        check(&x, y, NULL, false);
        test_free_all();
    }
}

static void gradients_are_within_the_bound(void **state) {
    (void)state;
    for (int64_t s = 0; s < 2 * COUNT(shapes); s++) {
        struct conv_case x = conv_case(s / 2, s % 2);
        const int64_t count = x_size(&x.dims) + w_size(&x.dims);
        real *grad = test_nans(count);
        run_with_threads(run_gradient, &x, grad, count);
        check(&x, grad, NULL, true);
        x.write_x = x.write_w = HK_ADD;
        real *sum = test_reals(count, 4);
        const real *old = test_copy(sum, count);
        run_gradient(&x, sum);
        check(&x, sum, old, true);
        test_free_all();
    }
}

// A document in the middle of a sequence has the bits that it has by itself.
static void documents_are_computed_as_if_alone(void **state) {
    (void)state;
    struct conv_case x = conv_case(3, true), alone = x;
    real *y = test_nans(x_size(&x.dims)), *own = test_nans(x_size(&x.dims));
    run(&x, y);
    const int64_t begin = 8, end = 31, skipped = begin * x.dims.channels;
    alone.dims.batch = 1, alone.dims.positions = end - begin, alone.dims.begins = NULL;
    alone.x = test_copy(x.x + skipped, x_size(&alone.dims));
    run(&alone, own);
    assert_same_bits("document", y + skipped, own, x_size(&alone.dims));
    test_free_all();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_is_within_the_bound),
        cmocka_unit_test(gradients_are_within_the_bound),
        cmocka_unit_test(documents_are_computed_as_if_alone),
    };
    return RUN_KERNEL_TESTS(tests);
}
