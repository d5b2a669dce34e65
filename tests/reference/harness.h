// Runs one emitted program on the weights and tokens of a stored result. An emitted file is linked
// with this harness in place of the runtime's hrt_cli_main, so its tables and functions are tested as
// they are.
#ifndef HECATE_TESTS_REFERENCE_HARNESS_H
#define HECATE_TESTS_REFERENCE_HARNESS_H

#include <jansson.h>

#include "runtime/params/tensor.h"
#include "runtime/program.h"

struct harness {
    const struct hrt_program *program;
    const json_t *stored; // As generate.py describes it.
    bool in_bf16;         // Weights are numbers that bf16 holds.
    void *model, *params, *grads, *arena;
    void *rounded; // NULL where products read no copies.
    int64_t batch;
    double scale, auxiliary_scale;
    int32_t *ids, *targets; // [batch, positions]
    int32_t *
        teacher_ids; // [batch, positions, entries], and their log-probabilities; NULL: there is no teacher.
    float *teacher_log_probs;
    int checks, failures;
    double worst; // Largest error as a share of its bound.
};

// Compares with every number that is stored: losses, loads, logits, gradients.
void hec_test_stored(struct harness *h);

// Compares gradients with central differences, in double precision.
void hec_test_differences(struct harness *h);

// Writes what a program of fp64 computes to the file, or compares what one of bf16 computes with it.
void hec_test_bf16(struct harness *h, const char *path, bool write);

// Forward on the stored tokens.
struct hrt_losses harness_forward(struct harness *h);

// The model's own logits of all tokens of the first `batch` sequences, after a forward. To free.
double *harness_logits(const struct harness *h, int64_t batch);

// Clears the gradients, then forward and backward.
void harness_backward(struct harness *h);

// Counts a check; |got - want| must be at most `bound`, or the failure is printed.
void harness_check(struct harness *h, const char *what, double got, double want, double bound);

// Number `index` of generate.py's hashed(text): in [-1, 1).
double harness_hashed(const char *text, int64_t index);

// Path of the MoE layer `layer` of a set, "layers.3.sparse": the part that its experts' parameters
// have in common.
void harness_layer_path(const struct hrt_program *program, int set, int64_t layer,
                        char path[HRT_PATH_MAX]);

#endif
