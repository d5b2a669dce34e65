// Unit test of runtime/train/muon: a step against its definition in double precision, with plain loops.
#include "runtime/train/muon.h"

#include <math.h>

#include "kernels/matmul/matmul.h"
#include "kernels/types.h"
#include "tests/runtime/support/case.h"

enum { LONG = 70, SHORT = 6, MOST = LONG * LONG, STORED = 128 * LONG };

static const struct hrt_muon_rule rule = {
    .lr = 0.01, .momentum = 0.9, .decay = 0.3, .grad_scale = 0.5};

static double drawn(int i) {
    const uint64_t mixed = ((uint64_t)i + 1) * 0x9E3779B97F4A7C15u;
    return (double)((mixed ^ mixed >> 29) * 0xBF58476D1CE4E5B9u >> 11) * 0x1p-52 - 1;
}

// c [m, n] = a [m, k] b [k, n], of transposes where they are marked.
static void multiply(double *c, const double *a, bool a_turned, const double *b, bool b_turned,
                     int m, int n, int k) {
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < n; j++) {
            double sum = 0;
            for (int l = 0; l < k; l++)
                sum += (a_turned ? a[l * m + i] : a[i * k + l]) *
                       (b_turned ? b[j * k + l] : b[l * n + j]);
            c[i * n + j] = sum;
        }
    }
}

// Five steps as they are published, X of the shorter side first: A = X X', X = a X + (b A + c A A) X.
static void orthogonalize(double *x, int m, int n) {
    static double turned[MOST], gram[MOST], square[MOST], y[MOST];
    const bool wide = m <= n;
    const int side = wide ? m : n, other = wide ? n : m;
    double norm = 0;
    for (int i = 0; i < m * n; i++) norm += x[i] * x[i];
    for (int i = 0; i < side; i++) {
        for (int j = 0; j < other; j++)
            turned[i * other + j] = (wide ? x[i * n + j] : x[j * n + i]) / sqrt(norm);
    }
    for (int step = 0; step < 5; step++) {
        multiply(gram, turned, false, turned, true, side, side, other);
        multiply(square, gram, false, gram, false, side, side, side);
        for (int i = 0; i < side * side; i++) square[i] = -4.7750 * gram[i] + 2.0315 * square[i];
        multiply(y, square, false, turned, false, side, other, side);
        for (int i = 0; i < side * other; i++) turned[i] = 3.4445 * turned[i] + y[i];
    }
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < n; j++)
            x[i * n + j] = wide ? turned[i * other + j] : turned[j * other + i];
    }
}

static void expect_step(int m, int n, enum hrt_layout layout) {
    static double value[STORED], gradient[STORED], momentum[STORED], rows[MOST], x[MOST];
    static double plain[MOST], mean[MOST];
    const int64_t stored = layout == HRT_PANELS ? hk_panels_size(m, n) : m * n;
    const struct hrt_param param = {.rank = 2,
                                    .shape = {m, n},
                                    .trainable = true,
                                    .layout = layout,
                                    .rows = m,
                                    .columns = n,
                                    .elements = stored,
                                    .set = -1};
    const struct hrt_program program = {
        .precision = HRT_FP64, .vocabulary = 3, .params = 1, .param = &param};
    struct hrt_error error = {0};
    struct hrt_muon muon;
    assert_true(hrt_muon_takes(&program, &param));
    assert_true(hrt_muon_create(&muon, &program, &error));
    memset(value, 0, sizeof value);
    memset(momentum, 0, sizeof momentum);
    memset(plain, 0, sizeof plain);
    memset(mean, 0, sizeof mean);
    for (int step = 0; step < 3; step++) {
        memset(gradient, 0, sizeof gradient);
        for (int i = 0; i < m * n; i++) rows[i] = drawn(i + 1000 * step);
        if (layout == HRT_PANELS)
            hk_panels_pack_f64(gradient, rows, m, n);
        else
            memcpy(gradient, rows, sizeof *rows * (size_t)(m * n));
        for (int i = 0; i < m * n; i++) {
            mean[i] = rule.momentum * mean[i] + rule.grad_scale * rows[i];
            x[i] = rule.grad_scale * rows[i] + rule.momentum * mean[i];
        }
        orthogonalize(x, m, n);
        const double size = 0.2 * sqrt(m > n ? m : n);
        for (int i = 0; i < m * n; i++) plain[i] -= rule.lr * (size * x[i] + rule.decay * plain[i]);
        hrt_muon_step(&muon, &param, HRT_FP64, value, gradient, momentum, &rule);
        if (layout == HRT_PANELS)
            hk_panels_unpack_f64(rows, value, m, n);
        else
            memcpy(rows, value, sizeof *rows * (size_t)(m * n));
        for (int i = 0; i < m * n; i++) assert_true(fabs(rows[i] - plain[i]) < 1e-12);
        for (int64_t i = 0; i < stored; i++) assert_true(gradient[i] == 0);
    }
    if (layout == HRT_PANELS) { // Padding stays zero.
        hk_panels_pack_f64(gradient, rows, m, n);
        assert_memory_equal(gradient, value, (size_t)stored * sizeof *value);
    }
    hrt_muon_destroy(&muon);
}

static void a_step_is_its_definition(void **state) {
    (void)state;
    expect_step(SHORT, LONG, HRT_ROWS);
    expect_step(LONG, SHORT, HRT_ROWS);
    expect_step(SHORT, LONG, HRT_PANELS);
    expect_step(LONG, SHORT, HRT_PANELS);
    expect_step(LONG, LONG, HRT_PANELS);
}

// The singular values of an orthogonalized matrix are near 1, so the squares of its elements add up to about the shorter side.
static void updates_have_one_size(void **state) {
    (void)state;
    static double x[MOST];
    for (int i = 0; i < SHORT * LONG; i++) x[i] = drawn(i) * 1e-5;
    orthogonalize(x, SHORT, LONG);
    double sum = 0;
    for (int i = 0; i < SHORT * LONG; i++) sum += x[i] * x[i];
    assert_true(sum > 0.5 * SHORT && sum < 1.5 * SHORT);
}

static void vectors_and_embeddings_are_adamws(void **state) {
    (void)state;
    const struct hrt_program program = {.vocabulary = 256};
    struct hrt_param param = {
        .rank = 2, .shape = {256, 8}, .trainable = true, .rows = 256, .columns = 8};
    assert_false(hrt_muon_takes(&program, &param));
    param.shape[0] = param.rows = 16;
    assert_true(hrt_muon_takes(&program, &param));
    param.trainable = false;
    assert_false(hrt_muon_takes(&program, &param));
    param.trainable = true;
    param.rows = 1;
    assert_false(hrt_muon_takes(&program, &param));
}

static void a_matrix_without_gradient_only_decays(void **state) {
    (void)state;
    const struct hrt_param param = {.rank = 2,
                                    .shape = {4, 4},
                                    .trainable = true,
                                    .layout = HRT_ROWS,
                                    .rows = 4,
                                    .columns = 4,
                                    .elements = 16,
                                    .set = -1};
    const struct hrt_program program = {
        .precision = HRT_FP32, .vocabulary = 3, .params = 1, .param = &param};
    struct hrt_error error = {0};
    struct hrt_muon muon;
    float value[16], gradient[16] = {0}, momentum[16] = {0};
    assert_true(hrt_muon_create(&muon, &program, &error));
    for (int i = 0; i < 16; i++) value[i] = (float)i;
    hrt_muon_step(&muon, &param, HRT_FP32, value, gradient, momentum, &rule);
    for (int i = 0; i < 16; i++)
        assert_true(fabsf(value[i] - (float)i * (1 - 0.003f)) <= 1e-6f * (float)i);
    hrt_muon_destroy(&muon);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_is_its_definition),
        cmocka_unit_test(updates_have_one_size),
        cmocka_unit_test(vectors_and_embeddings_are_adamws),
        cmocka_unit_test(a_matrix_without_gradient_only_decays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
