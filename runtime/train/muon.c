// Muon, in both precisions of the host, and on devices.
#include "runtime/train/muon.h"

#include <assert.h>
#include <string.h>

#include "kernels/matmul/matmul.h"
#include "kernels/sum_squares/sum_squares.h"
#include "runtime/device/device.h"
#include "runtime/params/tensor.h"
#include "runtime/train/dense.h"

enum { STEPS = 5, ALIGNED = 256 };
_Static_assert(ALIGNED >= HRT_MUON_MOST * sizeof(double), "room for the sums of squares");

// Coefficients of a quintic whose iterations bring singular values from 0 to 1 close to 1 (Jordan et al.).
static const double coefficient[3] = {3.4445, -4.7750, 2.0315};

// Singular values near 1: the root mean square is 1 / sqrt(longer side).
static double size_of(const struct hrt_param *param) {
    return 0.2 * sqrt((double)(param->rows > param->columns ? param->rows : param->columns));
}

#define real float
#define MUON(name) name##_f32
#define CALL(kernel, ...) hk_##kernel##_f32(__VA_ARGS__)
#include "runtime/train/muon_step.h"
#undef real
#undef MUON
#undef CALL
#define real double
#define MUON(name) name##_f64
#define CALL(kernel, ...) hk_##kernel##_f64(__VA_ARGS__)
#include "runtime/train/muon_step.h"
#undef real
#undef MUON
#undef CALL

// ---- on a device with separate memory: several matrices of one shape at a time

// Pointers at the matrices of a group, and where the rows of each begin, in memory of both.
struct hrt_muon_table {
    float *x[HRT_MUON_MOST], *gram[HRT_MUON_MOST], *square[HRT_MUON_MOST];
    int32_t row[HRT_MUON_MOST + 1], side_row[HRT_MUON_MOST + 1];
};

static void fill_table(const struct hrt_muon *muon, const struct hrt_param *param,
                       struct hrt_muon_table *table) {
    const int64_t m = param->rows, n = param->columns, side = m < n ? m : n;
    for (int64_t i = 0; i < muon->most; i++) {
        table->x[i] = (float *)muon->matrix + i * m * n;
        table->gram[i] = (float *)muon->gram + i * side * side;
        table->square[i] = (float *)muon->square + i * side * side;
    }
    for (int64_t i = 0; i <= muon->most; i++) {
        table->row[i] = (int32_t)(i * m);
        table->side_row[i] = (int32_t)(i * side);
    }
}

static const float *const *pointers(float *const *at) {
    return (const float *const *)at;
}

// As orthogonalize of muon_step.h, of muon->matrix [matrices][m, n]; the same bits.
static void orthogonalize_apart(const struct hrt_muon *muon, const struct hrt_param *param,
                                const struct hrt_muon_table *table, int64_t matrices, double eps) {
    struct hrt_device *device = muon->device;
    const struct hrt_device_backend *does = device->backend;
    const int64_t m = param->rows, n = param->columns, side = m < n ? m : n;
    const struct hk_grouped_dims all = {.experts = matrices, .n = n, .k = m <= n ? m : n},
                                 squared = {.experts = matrices, .n = side, .k = side};
    float *x = muon->matrix, *y = muon->product, *gram = muon->gram, *square = muon->square;
    does->sum_squares(device, muon->squares, x, m * n, matrices);
    does->muon_normalize(device, x, muon->squares, eps, m * n, matrices);
    for (int step = 0; step < STEPS; step++) {
        if (m <= n)
            does->grouped_nt(device, gram, x, pointers(table->x), table->row, all);
        else
            does->grouped_tn(device, (float *const *)table->gram, x, x, table->row, all);
        does->grouped_nn(device, square, gram, pointers(table->gram), table->side_row, squared);
        does->muon_blend(device, square, coefficient[2], gram, coefficient[1],
                         matrices * side * side);
        if (m <= n)
            does->grouped_nn(device, y, square, pointers(table->x), table->row, all);
        else
            does->grouped_nn(device, y, x, pointers(table->square), table->row, all);
        does->muon_blend(device, x, coefficient[0], y, 1, matrices * m * n);
    }
}

static void move_apart(const struct hrt_muon *muon, const struct hrt_param *param,
                       const struct hrt_muon_matrix *matrix, int64_t matrices, int64_t first,
                       int64_t count, const struct hk_muon_rule *rule) {
    struct hrt_device *device = muon->device;
    const int64_t size = param->rows * param->columns;
    struct hkc_piece piece[HRT_MUON_MOST];
    float *value[HRT_MUON_MOST];
    if (first + count > size) count = size - first; // Behind them is what aligns tensors.
    for (int64_t i = 0; i < matrices; i++) {
        piece[i] = (struct hkc_piece){(float *)muon->matrix + i * size, matrix[i].ahead, 2 * size};
        value[i] = matrix[i].values;
    }
    device->backend->pieces(device, HKC_PIECES_COPY, piece, (int)matrices);
    orthogonalize_apart(muon, param, &muon->table[param - muon->param], matrices, rule->norm_eps);
    if (count > 0)
        device->backend->muon_move(device, value, (float *)muon->matrix + first, size_of(param),
                                   count, size, matrices, rule);
}

// ---- room

static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

// Bytes of a part of the room.
struct sizes {
    size_t matrix, gram, squares, shared;
};

static size_t aligned(int64_t elements, size_t element) {
    return ((size_t)elements * element + ALIGNED - 1) / ALIGNED * ALIGNED;
}

static struct sizes sizes_of(const struct hrt_program *program) {
    const size_t element = (size_t)hrt_params_element_bytes(program->precision);
    int64_t elements = 1, side = 1;
    for (int i = 0; i < program->params; i++) {
        const struct hrt_param *param = &program->param[i];
        if (!param->muon) continue;
        elements = larger(elements, param->elements);
        side = larger(side, param->rows < param->columns ? param->rows : param->columns);
    }
    return (struct sizes){aligned(elements, element), aligned(side * side, element), ALIGNED,
                          aligned(hrt_train_dense_widest(program), element)};
}

// As many as have room.
static int64_t most_of(const struct hrt_program *program, const struct sizes *sizes) {
    const bool apart = program->device && program->device->apart;
    const int64_t most = (int64_t)(HRT_MUON_ROOM / (2 * (sizes->matrix + sizes->gram)));
    return !apart || most < 1 ? 1 : most > HRT_MUON_MOST ? HRT_MUON_MOST : most;
}

size_t hrt_train_muon_bytes(const struct hrt_program *program) {
    const struct sizes sizes = sizes_of(program);
    const size_t most = (size_t)most_of(program, &sizes);
    return most * 2 * (sizes.matrix + sizes.gram) + sizes.squares + sizes.shared;
}

static size_t table_bytes(const struct hrt_program *program) {
    return (size_t)program->params * sizeof(struct hrt_muon_table);
}

static bool take_tables(struct hrt_muon *muon, const struct hrt_program *program) {
    struct hrt_device *device = muon->device;
    if (!hrt_device_is_apart(device)) return true;
    muon->table_bytes = table_bytes(program);
    muon->table = device->backend->take(device, HRT_OF_BOTH, muon->table_bytes, false);
    if (!muon->table) return false;
    for (int i = 0; i < program->params; i++) {
        if (program->param[i].muon) fill_table(muon, &program->param[i], &muon->table[i]);
    }
    return true;
}

bool hrt_train_muon_create(struct hrt_muon *muon, const struct hrt_program *program,
                           struct hrt_device *device, struct hrt_error *error) {
    const struct sizes sizes = sizes_of(program);
    const size_t bytes = hrt_train_muon_bytes(program);
    const int64_t most = most_of(program, &sizes);
    char *room = device->backend->take(device, HRT_OF_DEVICE, bytes, false);
    *muon = (struct hrt_muon){
        .device = device, .param = program->param, .room = room, .bytes = bytes, .most = most};
    if (!room) return hrt_fail(error, "out of memory: Muon needs room for the largest matrix");
    muon->matrix = room;
    muon->product = room += (size_t)most * sizes.matrix;
    muon->gram = room += (size_t)most * sizes.matrix;
    muon->square = room += (size_t)most * sizes.gram;
    muon->squares = (double *)(room += (size_t)most * sizes.gram);
    muon->shared = room + sizes.squares;
    if (take_tables(muon, program)) return true;
    hrt_train_muon_destroy(muon);
    return hrt_fail(error, "out of memory: Muon needs room for tables of matrices");
}

void hrt_train_muon_destroy(struct hrt_muon *muon) {
    struct hrt_device *device = muon->device;
    if (muon->table) device->backend->give(device, HRT_OF_BOTH, muon->table, muon->table_bytes);
    if (muon->room) device->backend->give(device, HRT_OF_DEVICE, muon->room, muon->bytes);
    *muon = (struct hrt_muon){0};
}

void hrt_train_muon_look_ahead(const struct hrt_muon *muon, enum hrt_precision precision,
                               void *gradients, void *momentum, int64_t count,
                               const struct hk_muon_rule *rule) {
    if (hrt_device_is_apart(muon->device))
        muon->device->backend->muon_look_ahead(muon->device, gradients, momentum, count, rule);
    else if (precision == HRT_FP64)
        hk_muon_look_ahead_f64(gradients, momentum, count, rule);
    else
        hk_muon_look_ahead_f32(gradients, momentum, count, rule);
}

void hrt_train_muon_move(const struct hrt_muon *muon, const struct hrt_param *param,
                         enum hrt_precision precision, const struct hrt_muon_matrix *matrix,
                         int64_t matrices, int64_t first, int64_t count,
                         const struct hk_muon_rule *rule) {
    assert(matrices <= muon->most);
    if (hrt_device_is_apart(muon->device)) {
        move_apart(muon, param, matrix, matrices, first, count, rule);
        return;
    }
    for (int64_t i = 0; i < matrices; i++) {
        if (precision == HRT_FP64)
            move_f64(muon, param, matrix[i].values, matrix[i].ahead, first, count, rule);
        else
            move_f32(muon, param, matrix[i].values, matrix[i].ahead, first, count, rule);
    }
}
