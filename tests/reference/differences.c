// Against central differences of the emitted forward pass itself, in double precision.
//
// The stencil of four points is off by step^4 / 30 * f'''''. With step 1e-4 that is 1e-17, and the
// rounding of the loss divided by the step, about 1e-12, is what remains. The stored weights keep
// every choice (experts, relu, minimum) 4e-3 away from going the other way.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/reference/harness.h"

enum { ENTRIES = 5 };

static const double step = 1e-4, tolerance = 1e-6;

static double loss_at(struct harness *h, int64_t at, double value) {
    hrt_params_element_set(h->params, HRT_FP64, at, value);
    return harness_forward(h).loss;
}

static double difference(struct harness *h, int64_t at) {
    const double value = hrt_params_element(h->params, HRT_FP64, at);
    const double near = loss_at(h, at, value + step) - loss_at(h, at, value - step);
    const double far = loss_at(h, at, value + 2 * step) - loss_at(h, at, value - 2 * step);
    hrt_params_element_set(h->params, HRT_FP64, at, value);
    return (8 * near - far) / (12 * step);
}

static double root_mean_square(const struct harness *h) {
    double squares = 0;
    for (int64_t i = 0; i < h->program->param_elements; i++) {
        squares += pow(hrt_params_element(h->grads, HRT_FP64, i), 2);
    }
    return sqrt(squares / (double)h->program->param_elements);
}

void hec_test_differences(struct harness *h) {
    if (h->program->precision != HRT_FP64) {
        fprintf(stderr, "differences need a program of train.precision = fp64\n");
        exit(2);
    }
    harness_backward(h);
    const double typical = root_mean_square(h);
    struct hrt_tensor tensor = {0};
    while (hrt_params_tensor_next(h->program, &tensor)) {
        if (!tensor.param->trainable) continue;
        char path[HRT_PATH_MAX], what[HRT_PATH_MAX + 64];
        hrt_params_tensor_path(&tensor, path);
        const int64_t size = hrt_params_size(tensor.param);
        for (int64_t k = 0; k < ENTRIES && k < size; k++) {
            const int64_t i = (int64_t)((harness_hashed(path, k) + 1) / 2 * (double)size);
            const int64_t at = tensor.offset + hrt_params_stored_index(tensor.param, i);
            const double grad = hrt_params_element(h->grads, HRT_FP64, at);
            snprintf(what, sizeof what, "gradient of %s[%" PRId64 "]", path, i);
            harness_check(h, what, grad, difference(h, at),
                          tolerance * (fabs(grad) + 0.01 * typical));
        }
    }
}
