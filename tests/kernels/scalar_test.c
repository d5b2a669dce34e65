// Every elementwise function of scalar.h over its whole range, against libm in long double; the
// bounds are those that scalar.h promises.
#include "kernels/scalar.h"

#include "tests/kernels/kernel_case.h"

// ir/ops.def names what has to be here: one that is missing is an error of this line.
typedef void anything(void);
static anything *const functions_of_operations[] = {
#define HEC_OP(id, dialect, operands, results, attributes)
#define HEC_SCALAR(id, operands, results) (anything *)HK_NAME(id),
#include "ir/ops.def"
#undef HEC_OP
};

#define SMALLEST (HK_BITS == 32 ? (double)FLT_MIN : DBL_MIN)

static wide sigmoid(wide x) {
    return 1 / (1 + expl(-x));
}

static wide softplus(wide x) {
    return log1pl(expl(-fabsl(x))) + (x < 0 ? 0 : x);
}

static wide silu(wide x) {
    return x * sigmoid(x);
}

static wide gelu(wide x) {
    return x * sigmoid(2 * sqrtl(2 / acosl(-1)) * (x + 0.044715L * x * x * x));
}

static wide gelu_erf(wide x) {
    return x * erfcl(-x / sqrtl(2)) / 2;
}

static real run_exp(real x) {
    return HK(exp, x);
}

static real run_sigmoid(real x) {
    return HK(sigmoid, x);
}

static real run_softplus(real x) {
    return HK(softplus, x);
}

static real run_silu(real x) {
    return HK(silu, x);
}

static real run_tanh(real x) {
    return HK(tanh, x);
}

static real run_gelu(real x) {
    return HK(gelu, x);
}

static real run_gelu_erf(real x) {
    return HK(gelu_erf, x);
}

// How much a relative error of x is magnified in the result's tail, |x f'(x) / f(x)|.
static double no_tail(double x) {
    (void)x;
    return 0;
}

static double gelu_tail(double x) {
    return x < 0 ? -x * (1.6 + 0.2141 * x * x) : 0;
}

static double gelu_erf_tail(double x) {
    return x < 0 ? x * x : 0;
}

// A function, its reference, and the range to test.
struct function {
    const char *name;
    real (*run)(real x);
    wide (*reference)(wide x);
    double low, high;
    double (*condition)(double x);
};

static const struct function functions[] = {
    {"exp", run_exp, expl, -87, 88, no_tail},
    {"sigmoid", run_sigmoid, sigmoid, -87, 90, no_tail},
    {"softplus", run_softplus, softplus, -87, 90, no_tail},
    {"silu", run_silu, silu, -87, 90, no_tail},
    {"tanh", run_tanh, tanhl, -20, 20, no_tail},
    {"gelu", run_gelu, gelu, -12, 12, gelu_tail},
    {"gelu_erf", run_gelu_erf, gelu_erf, -12, 12, gelu_erf_tail},
};

static void values_are_within_their_bound(void **state) {
    (void)state;
    for (int64_t f = 0; f < COUNT(functions); f++) {
        const struct function *is = &functions[f];
        const int64_t steps = 200000;
        for (int64_t i = 0; i <= 2 * steps; i++) {
            // Evenly over the range, then over the exponents: small arguments of either sign.
            const double even = is->low + (is->high - is->low) * (double)i / (double)steps;
            const double small = ldexp(i % 2 ? 1.3 : -1.7, -(int)((i - steps) % 60));
            const real x = (real)(i <= steps ? even : small);
            const wide want = is->reference(x);
            const double units = 4 + is->condition((double)x);
            const double lost = SMALLEST * (1 + fabs((double)x)); // For a factor below SMALLEST.
            const double bound = units * EPSILON * fabs((double)want) + lost;
            assert_near(is->name, i, is->run(x), want, bound);
        }
    }
}

static void ends_of_the_range(void **state) {
    (void)state;
    const real huge = HK_BITS == 32 ? (real)1e30 : (real)1e300;
    assert_true(HK(exp, -huge) == 0 && isinf(HK(exp, huge)) && HK(exp, 0) == 1);
    assert_true(HK(sigmoid, -huge) == 0 && HK(sigmoid, huge) == 1);
    assert_true(HK(softplus, -huge) == 0 && HK(softplus, huge) == huge && isnan(HK(softplus, NAN)));
    assert_true(HK(tanh, -huge) == -1 && HK(tanh, huge) == 1 && HK(tanh, 0) == 0);
    assert_true(HK(silu, huge) == huge && HK(gelu, (real)1e4) == (real)1e4);
    assert_true(HK(gelu_erf, huge) == huge && HK(relu, -1) == 0 && HK(relu, 2) == 2);
    assert_true(HK(gelu_grad, 1, huge) == 1 && HK(gelu_erf_grad, 1, huge) == 1);
    assert_true(isnan(HK(exp, NAN)) && isnan(HK(sigmoid, NAN)) && isnan(HK(tanh, NAN)));
    assert_true(isnan(HK(silu, NAN)) && isnan(HK(gelu, NAN)) && isnan(HK(gelu_erf, NAN)));
    assert_true(isnan(HK(relu, NAN)));
}

// cap tanh(x / cap) for caps as models have them, far below and far above x, and its slope.
static void softcap_is_right(void **state) {
    (void)state;
    assert_true(COUNT(functions_of_operations) >= 15);
    const wide h = 1e-6L;
    for (int c = -3; c <= 9; c++) {
        const real cap = (real)ldexp(30, c - 5);
        for (int64_t i = -4000; i <= 4000; i++) {
            const real x = (real)i * (real)i * (real)i / (real)1e9, dy = (real)0.75;
            const wide want = (wide)cap * tanhl((wide)x / (wide)cap);
            assert_near("softcap", i, HK(softcap, x, cap), want,
                        5 * EPSILON * fabs((double)want) + SMALLEST);
            assert_true(fabs((double)HK(softcap, x, cap)) <= (double)cap);
            const wide u = (wide)x / (wide)cap, slope = (tanhl(u + h) - tanhl(u - h)) / (2 * h);
            assert_near("softcap_grad", i, HK(softcap_grad, dy, x, cap), slope * (wide)dy,
                        1e-10 + 16 * EPSILON);
        }
    }
    assert_true(HK(softcap, (real)1e30, 50) == 50 && HK(softcap, (real)-1e30, 50) == -50);
    assert_true(isnan(HK(softcap, NAN, 50)) && HK(softcap_grad, 1, (real)1e30, 50) == 0);
}

// Derivatives by central differences of the long double references: h^2 is 1e-12.
static void derivatives_are_right(void **state) {
    (void)state;
    const wide h = 1e-6L;
    const double tolerance = 1e-10 + 16 * EPSILON; // Sums of terms of size at most about 2.
    for (int64_t i = -4000; i <= 4000; i++) {
        const real x = (real)i / 400;
        const real dy = (real)0.75;
#define SLOPE(f) ((f((wide)x + h) - f((wide)x - h)) / (2 * h) * (wide)dy)
        assert_near("sigmoid_grad", i, HK(sigmoid_grad, dy, x), SLOPE(sigmoid), tolerance);
        assert_near("softplus_grad", i, HK(softplus_grad, dy, x), SLOPE(softplus), tolerance);
        assert_near("silu_grad", i, HK(silu_grad, dy, x), SLOPE(silu), tolerance);
        assert_near("tanh_grad", i, HK(tanh_grad, dy, x), SLOPE(tanhl), tolerance);
        assert_near("gelu_grad", i, HK(gelu_grad, dy, x), SLOPE(gelu), tolerance);
        assert_near("gelu_erf_grad", i, HK(gelu_erf_grad, dy, x), SLOPE(gelu_erf), tolerance);
#undef SLOPE
        assert_true(HK(relu_grad, dy, x) == (x > 0 ? dy : 0));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_within_their_bound),
        cmocka_unit_test(ends_of_the_range),
        cmocka_unit_test(softcap_is_right),
        cmocka_unit_test(derivatives_are_right),
    };
    return RUN_KERNEL_TESTS(tests);
}
