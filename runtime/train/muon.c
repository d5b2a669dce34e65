// Muon, in both precisions.
#include "runtime/train/muon.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/matmul/matmul.h"
#include "kernels/sum_squares/sum_squares.h"
#include "runtime/params/tensor.h"

enum { STEPS = 5 };

// Of a quintic whose iterations bring singular values from 0 to 1 close to 1 (Jordan et al.).
static const double coefficient[3] = {3.4445, -4.7750, 2.0315};
static const double tiny = 1e-30; // A matrix of zeros stays one.

#define real float
#define MUON(name) name##_f32
#include "runtime/train/muon_step.h"
#undef real
#undef MUON
#define real double
#define MUON(name) name##_f64
#include "runtime/train/muon_step.h"
#undef real
#undef MUON

bool hrt_muon_takes(const struct hrt_program *program, const struct hrt_param *param) {
    if (!param->trainable || param->rows < 2 || param->columns < 2) return false;
    for (int i = 0; i < param->rank; i++) {
        if (param->shape[i] == program->vocabulary) return false;
    }
    return true;
}

static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

bool hrt_muon_create(struct hrt_muon *muon, const struct hrt_program *program,
                     struct hrt_error *error) {
    const size_t element = (size_t)hrt_element_bytes(program->precision);
    int64_t elements = 1, side = 1;
    for (int i = 0; i < program->params; i++) {
        const struct hrt_param *param = &program->param[i];
        if (!hrt_muon_takes(program, param)) continue;
        elements = larger(elements, param->elements);
        side = larger(side, param->rows < param->columns ? param->rows : param->columns);
    }
    *muon = (struct hrt_muon){
        .matrix = calloc((size_t)elements, element),
        .product = calloc((size_t)elements, element),
        .gram = calloc((size_t)(side * side), element),
        .square = calloc((size_t)(side * side), element),
    };
    if (muon->matrix && muon->product && muon->gram && muon->square) return true;
    hrt_muon_destroy(muon);
    return hrt_fail(error, "out of memory: Muon needs room for the largest matrix");
}

void hrt_muon_destroy(struct hrt_muon *muon) {
    free(muon->matrix);
    free(muon->product);
    free(muon->gram);
    free(muon->square);
    *muon = (struct hrt_muon){0};
}

void hrt_muon_step(const struct hrt_muon *muon, const struct hrt_param *param,
                   enum hrt_precision precision, void *values, void *gradients, void *momentum,
                   const struct hrt_muon_rule *rule) {
    if (precision == HRT_FP64)
        step_f64(muon, param, values, gradients, momentum, rule);
    else
        step_f32(muon, param, values, gradients, momentum, rule);
}
