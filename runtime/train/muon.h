// Muon: a matrix moves by its momentum, made orthogonal.
//
// Source: Jordan et al. 2024, "Muon: an optimizer for hidden layers in neural networks" (momentum as Nesterov's, five steps
// of Newton and Schulz); Liu et al. 2025, arXiv:2502.16982, section 2.2 (an update's root mean square is AdamW's, so that
// learning rates and decays are; weight decay).
#ifndef HECATE_RUNTIME_TRAIN_MUON_H
#define HECATE_RUNTIME_TRAIN_MUON_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/error.h"
#include "runtime/program.h"

struct hrt_muon {
    void *matrix, *product; // Of the largest matrix: elements as stored.
    void *gram, *square;    // Of the longest of the shorter sides, squared.
};

// What a step does, besides the matrix's own numbers.
struct hrt_muon_rule {
    double lr, momentum, decay;
    double grad_scale;
};

// Whether a parameter is a matrix that Muon takes: each is the right operand of products, on both sides longer than one, and
// none of its dims has the size of the vocabulary (embeddings and heads).
bool hrt_muon_takes(const struct hrt_program *program, const struct hrt_param *param);

// Memory for the program's largest matrix.
bool hrt_muon_create(struct hrt_muon *muon, const struct hrt_program *program,
                     struct hrt_error *error);
void hrt_muon_destroy(struct hrt_muon *muon);

// One tensor of `param`: its values, gradients and momentum, as they are stored. The gradients are zero afterwards. Products
// are the kernels': the same bits by any number of threads, so on every rank.
void hrt_muon_step(const struct hrt_muon *muon, const struct hrt_param *param,
                   enum hrt_precision precision, void *values, void *gradients, void *momentum,
                   const struct hrt_muon_rule *rule);

#endif
