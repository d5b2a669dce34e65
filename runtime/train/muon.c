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

// Coefficients of a quintic whose iterations bring singular values from 0 to 1 close to 1 (Jordan et al.).
static const double coefficient[3] = {3.4445, -4.7750, 2.0315};

#define real float
#define MUON(name) name##_f32
#define CALL(kernel, ...) hk_##kernel##_f32(__VA_ARGS__)
#define SQUARES(x, count) (*muon->squares = hk_sum_squares_f32(x, count))
#define COPY memcpy
#define PACK hk_panels_pack_f32
#define UNPACK hk_panels_unpack_f32
#include "runtime/train/muon_step.h"
#undef real
#undef MUON
#undef CALL
#undef SQUARES
#undef COPY
#undef PACK
#undef UNPACK
#define real double
#define MUON(name) name##_f64
#define CALL(kernel, ...) hk_##kernel##_f64(__VA_ARGS__)
#define SQUARES(x, count) (*muon->squares = hk_sum_squares_f64(x, count))
#define COPY memcpy
#define PACK hk_panels_pack_f64
#define UNPACK hk_panels_unpack_f64
#include "runtime/train/muon_step.h"
#undef real
#undef MUON
#undef CALL
#undef SQUARES
#undef COPY
#undef PACK
#undef UNPACK
#define real float
#define MUON(name) name##_apart
#define CALL(kernel, ...) muon->device->backend->kernel(muon->device, __VA_ARGS__)
#define SQUARES(x, count) CALL(sum_squares, muon->squares, x, count, 1)
#define COPY(...) CALL(fetch, __VA_ARGS__)
#define PACK(...) assert(!"a device has no panels")
#define UNPACK PACK
#include "runtime/train/muon_step.h"

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

size_t hrt_train_muon_bytes(const struct hrt_program *program) {
    const struct sizes sizes = sizes_of(program);
    return 2 * sizes.matrix + 2 * sizes.gram + sizes.squares + sizes.shared;
}

bool hrt_train_muon_create(struct hrt_muon *muon, const struct hrt_program *program,
                           struct hrt_device *device, struct hrt_error *error) {
    const struct sizes sizes = sizes_of(program);
    const size_t bytes = hrt_train_muon_bytes(program);
    char *room = device->backend->take(device, HRT_OF_DEVICE, bytes, false);
    *muon = (struct hrt_muon){.device = device, .room = room, .bytes = bytes};
    if (!room) return hrt_fail(error, "out of memory: Muon needs room for the largest matrix");
    muon->matrix = room;
    muon->product = room + sizes.matrix;
    muon->gram = room + 2 * sizes.matrix;
    muon->square = room + 2 * sizes.matrix + sizes.gram;
    muon->squares = (double *)(room + 2 * sizes.matrix + 2 * sizes.gram);
    muon->shared = (char *)muon->squares + sizes.squares;
    return true;
}

void hrt_train_muon_destroy(struct hrt_muon *muon) {
    if (muon->room)
        muon->device->backend->give(muon->device, HRT_OF_DEVICE, muon->room, muon->bytes);
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
                         enum hrt_precision precision, void *values, const void *ahead,
                         int64_t first, int64_t count, const struct hk_muon_rule *rule) {
    if (hrt_device_is_apart(muon->device))
        move_apart(muon, param, values, ahead, first, count, rule);
    else if (precision == HRT_FP64)
        move_f64(muon, param, values, ahead, first, count, rule);
    else
        move_f32(muon, param, values, ahead, first, count, rule);
}
