// Unit test of runtime/train/muon: a step against its definition in double precision, with plain loops.
#include "runtime/train/muon.h"

#include <math.h>

#include "kernels/types.h"
#include "runtime/device/device.h"
#include "runtime/params/tensor.h"
#include "tests/runtime/support/case.h"

// Built once more for a GPU: the emulator of its runtime and kernels.
#ifdef TEST_CUDA
#define MUON_ON hrt_device_cuda
#else
#define MUON_ON hrt_device_host
#endif

enum { LONG = 70, SHORT = 6, MOST = LONG * LONG, STORED = 128 * LONG };

static const struct hk_muon_rule rule = {
    .lr = 0.01, .momentum = 0.9, .norm_eps = 1e-7, .decay = 0.3, .grad_scale = 0.5};

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

// Five steps as they are published, X of the shorter side first, divided by its norm + 1e-7: A = X X',
// X = a X + (b A + c A A) X.
static void orthogonalize(double *x, int m, int n) {
    static double turned[MOST], gram[MOST], square[MOST], y[MOST];
    const bool wide = m <= n;
    const int side = wide ? m : n, other = wide ? n : m;
    double norm = 0;
    for (int i = 0; i < m * n; i++) norm += x[i] * x[i];
    for (int i = 0; i < side; i++) {
        for (int j = 0; j < other; j++)
            turned[i * other + j] =
                (wide ? x[i * n + j] : x[j * n + i]) / (sqrt(norm) + rule.norm_eps);
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

// By how much a step in single precision may be off, over lr times 0.2 sqrt(longer side). First-order bounds in Frobenius norms: sums of k
// terms are off by k roundings of the product of their operands' norms; the quintic's largest slope up to its largest value, 1.2025,
// is below 4, which is what an iteration makes of the errors before it.
static double bound_of(int m, int n) {
    const int side = m < n ? m : n, other = m < n ? n : m;
    const double u = 0x1p-24, top = 1.2025, b = 4.7750, c = 2.0315;
    double norm = 1, error = 64 * u; // The momentum's and its norm's.
    for (int step = 0; step < 5; step++) {
        const double gram = other * u * norm * norm, square = side * u * norm * norm;
        const double ends = 8 * u * norm * (3.4445 + b * top * top + c * pow(top, 4));
        error = 4 * error + (b + 2 * c * top * top) * top * gram + c * pow(top, 3) * square +
                square * (b * top + c * pow(top, 3)) + ends;
        norm = fmin(3.4445 * norm, top * sqrt(side));
    }
    return error;
}

static struct hrt_device *device(const struct hrt_program *program) {
    static struct hrt_device device;
    struct hrt_error error = {0};
    if (!device.backend) assert_true(hrt_device_open(&device, program, 0, &error));
    return &device;
}

// An array of the program's precision in the device's memory, from doubles.
static void *put(const struct hrt_program *program, const double *from, int64_t count) {
    struct hrt_device *at = device(program);
    const size_t bytes = (size_t)(count * hrt_params_element_bytes(program->precision));
    void *to = at->backend->take(at, HRT_OF_DEVICE, bytes, false), *elements = malloc(bytes);
    assert_non_null(to);
    assert_non_null(elements);
    for (int64_t i = 0; i < count; i++)
        hrt_params_element_set(elements, program->precision, i, from[i]);
    hrt_device_write(at, to, elements, bytes);
    free(elements);
    return to;
}

// The same back; the array is given back.
static void get(const struct hrt_program *program, void *from, double *to, int64_t count) {
    struct hrt_device *at = device(program);
    const size_t bytes = (size_t)(count * hrt_params_element_bytes(program->precision));
    void *elements = malloc(bytes);
    assert_non_null(elements);
    hrt_device_read(at, elements, from, bytes, HRT_WHY_VALUES);
    for (int64_t i = 0; i < count; i++) to[i] = hrt_params_element(elements, program->precision, i);
    free(elements);
    at->backend->give(at, HRT_OF_DEVICE, from, bytes);
}

// One step of stored values, gradients and momenta.
static void step(const struct hrt_muon *muon, const struct hrt_program *program, double *value,
                 double *gradient, double *momentum) {
    const int64_t count = program->param->elements;
    void *all[] = {put(program, value, count), put(program, gradient, count),
                   put(program, momentum, count)};
    hrt_train_muon_look_ahead(muon, program->precision, all[1], all[2], count, &rule);
    const int64_t half = count / 2; // As two ranks do.
    const int64_t element = hrt_params_element_bytes(program->precision);
    const struct hrt_muon_matrix first = {all[0], all[1]};
    const struct hrt_muon_matrix second = {(char *)all[0] + half * element, all[1]};
    hrt_train_muon_move(muon, program->param, program->precision, &first, 1, 0, half, &rule);
    hrt_train_muon_move(muon, program->param, program->precision, &second, 1, half, count - half,
                        &rule);
    get(program, all[0], value, count);
    get(program, all[1], gradient, count);
    get(program, all[2], momentum, count);
}

static struct hrt_param matrix_of(int m, int n, enum hrt_layout layout) {
    return (struct hrt_param){.rank = 2,
                              .shape = {m, n},
                              .trainable = true,
                              .muon = true,
                              .layout = layout,
                              .rows = m,
                              .columns = n,
                              .elements = layout == HRT_PANELS ? hk_panels_size(m, n) : m * n,
                              .set = -1};
}

static void to_rows(double *rows, const double *stored, const struct hrt_param *param) {
    for (int64_t i = 0; i < param->rows * param->columns; i++)
        rows[i] = stored[hrt_params_stored_index(param, i)];
}

static void expect_steps(enum hrt_precision precision, int m, int n, enum hrt_layout layout) {
    static double value[STORED], gradient[STORED], momentum[STORED], rows[MOST], x[MOST];
    static double plain[MOST], mean[MOST];
    const struct hrt_param param = matrix_of(m, n, layout);
    const struct hrt_program program = {
        .precision = precision, .params = 1, .param = &param, .device = &MUON_ON};
    const double size = 0.2 * sqrt(m > n ? m : n);
    const double off = precision == HRT_FP64 ? 1e-12 : 1.01 * rule.lr * size * bound_of(m, n);
    struct hrt_error error = {0};
    struct hrt_muon muon;
    assert_true(hrt_train_muon_create(&muon, &program, device(&program), &error));
    memset(value, 0, sizeof value);
    memset(momentum, 0, sizeof momentum);
    memset(plain, 0, sizeof plain);
    memset(mean, 0, sizeof mean);
    for (int k = 1; k <= 3; k++) {
        memset(gradient, 0, sizeof gradient);
        for (int i = 0; i < m * n; i++) {
            const double drawn_one = (float)drawn(i + 1000 * k);
            gradient[hrt_params_stored_index(&param, i)] = drawn_one;
            mean[i] = rule.momentum * mean[i] + rule.grad_scale * drawn_one;
            x[i] = rule.grad_scale * drawn_one + rule.momentum * mean[i];
        }
        orthogonalize(x, m, n);
        for (int i = 0; i < m * n; i++) plain[i] -= rule.lr * (size * x[i] + rule.decay * plain[i]);
        step(&muon, &program, value, gradient, momentum);
        to_rows(rows, value, &param);
        for (int i = 0; i < m * n; i++) assert_true(fabs(rows[i] - plain[i]) <= k * off);
    }
    double sum = 0, padded = 0; // Padding stays zero.
    for (int i = 0; i < m * n; i++) sum += rows[i] * rows[i];
    for (int64_t i = 0; i < param.elements; i++) padded += value[i] * value[i];
    assert_true(fabs(sum - padded) <= 1e-12 * sum);
    hrt_train_muon_destroy(&muon);
}

static void a_step_is_its_definition(void **state) {
    (void)state;
    for (int precision = HRT_FP32; precision <= HRT_FP64; precision++) {
        if (precision == HRT_FP64 && MUON_ON.apart) break;
        expect_steps(precision, 3, 8, HRT_ROWS); // Where bounds are narrow.
        expect_steps(precision, 8, 3, HRT_ROWS);
        expect_steps(precision, SHORT, LONG, HRT_ROWS);
        expect_steps(precision, LONG, SHORT, HRT_ROWS);
        if (MUON_ON.apart) continue;
        expect_steps(precision, SHORT, LONG, HRT_PANELS);
        expect_steps(precision, LONG, SHORT, HRT_PANELS);
        expect_steps(precision, LONG, LONG, HRT_PANELS);
    }
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

static void a_matrix_without_gradient_only_decays(void **state) {
    (void)state;
    const struct hrt_param param = matrix_of(4, 4, HRT_ROWS);
    const struct hrt_program program = {
        .precision = HRT_FP32, .params = 1, .param = &param, .device = &MUON_ON};
    struct hrt_error error = {0};
    struct hrt_muon muon;
    double value[16], gradient[16] = {0}, momentum[16] = {0};
    assert_true(hrt_train_muon_create(&muon, &program, device(&program), &error));
    for (int i = 0; i < 16; i++) value[i] = i;
    step(&muon, &program, value, gradient, momentum);
    for (int i = 0; i < 16; i++) assert_true(fabs(value[i] - i * (1 - 0.003)) <= 1e-6 * i);
    hrt_train_muon_destroy(&muon);
}

// The rounding error of a zero gradient is far below the term added to the norm: five steps make it larger by 3.4445 to
// the fifth at most, and no update of full length.
static void noise_moves_nothing(void **state) {
    (void)state;
    const struct hrt_param param = matrix_of(16, 4, HRT_ROWS);
    const struct hrt_program program = {
        .precision = HRT_FP32, .params = 1, .param = &param, .device = &MUON_ON};
    const double noise[] = {1e-12, 1e-17, 1e-30};
    struct hrt_error error = {0};
    struct hrt_muon muon;
    assert_true(hrt_train_muon_create(&muon, &program, device(&program), &error));
    for (size_t k = 0; k < sizeof noise / sizeof *noise; k++) {
        double value[64] = {0}, gradient[64], momentum[64] = {0};
        double most = 0;
        for (int i = 0; i < 64; i++) gradient[i] = noise[k] * drawn(i);
        step(&muon, &program, value, gradient, momentum);
        for (int i = 0; i < 64; i++) most = fmax(most, fabs(value[i]));
        const double share = (1 + rule.momentum) * rule.grad_scale * noise[k] / rule.norm_eps;
        assert_true(most <= 1.01 * pow(3.4445, 5) * share * rule.lr * 0.2 * sqrt(16));
    }
    hrt_train_muon_destroy(&muon);
}

// Matrices that move together move as each does alone, to the bit.
static void expect_alike(int m, int n) {
    enum { MATRICES = 5 };
    const struct hrt_param param[] = {matrix_of(LONG, LONG, HRT_ROWS), matrix_of(m, n, HRT_ROWS)};
    const struct hrt_program program = {
        .precision = HRT_FP32, .params = 2, .param = param, .device = &MUON_ON};
    struct hrt_error error = {0};
    struct hrt_muon muon;
    struct hrt_muon_matrix all[MATRICES], alone[MATRICES];
    double value[MOST], ahead[MOST], together[MOST];
    const int64_t count = param[1].elements;
    assert_true(hrt_train_muon_create(&muon, &program, device(&program), &error));
    for (int a = 0; a < MATRICES; a++) {
        for (int i = 0; i < count; i++) value[i] = drawn(i + 7 * a), ahead[i] = drawn(i + 900 * a);
        all[a] = (struct hrt_muon_matrix){put(&program, value, count), put(&program, ahead, count)};
        alone[a] = (struct hrt_muon_matrix){put(&program, value, count), all[a].ahead};
    }
    if (muon.most >= MATRICES)
        hrt_train_muon_move(&muon, &param[1], HRT_FP32, all, MATRICES, 0, count, &rule);
    assert_true(muon.most >= MATRICES || !MUON_ON.apart);
    for (int a = 0; a < MATRICES; a++) {
        if (muon.most < MATRICES)
            hrt_train_muon_move(&muon, &param[1], HRT_FP32, &all[a], 1, 0, count, &rule);
        hrt_train_muon_move(&muon, &param[1], HRT_FP32, &alone[a], 1, 0, count, &rule);
        get(&program, all[a].values, together, count);
        get(&program, alone[a].values, value, count);
        assert_memory_equal(together, value, (size_t)count * sizeof *value);
        get(&program, (void *)all[a].ahead, ahead, count);
    }
    hrt_train_muon_destroy(&muon);
}

static void matrices_move_together_as_alone(void **state) {
    (void)state;
    expect_alike(SHORT, LONG);
    expect_alike(LONG, SHORT);
    expect_alike(5, 7); // No multiple of 16 bytes.
}

// The room is that of the largest matrix that is Muon's, twice, and of the longest of the shorter sides, squared, twice.
static void the_room_is_known_before(void **state) {
    (void)state;
    struct hrt_param param[] = {matrix_of(64, 16, HRT_ROWS), matrix_of(24, 32, HRT_ROWS),
                                matrix_of(99, 99, HRT_ROWS)};
    const struct hrt_program program = {.precision = HRT_FP32, .params = 3, .param = param};
    param[2].muon = false;
    assert_int_equal(hrt_train_muon_bytes(&program), 4 * (2 * 64 * 16 + 2 * 24 * 24) + 256);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_is_its_definition),
        cmocka_unit_test(matrices_move_together_as_alone),
        cmocka_unit_test(updates_have_one_size),
        cmocka_unit_test(a_matrix_without_gradient_only_decays),
        cmocka_unit_test(noise_moves_nothing),
        cmocka_unit_test(the_room_is_known_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
