// The memory of a run: parameters, gradients, the optimizer's means and variances, the arena, one
// microbatch. It is taken once and given back at the end (train/create.h).
#ifndef HECATE_RUNTIME_PARAMS_STATE_H
#define HECATE_RUNTIME_PARAMS_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/distill/distill.h"
#include "runtime/base/error.h"
#include "runtime/device/device.h"
#include "runtime/params/placement.h"
#include "runtime/params/slice.h"
#include "runtime/params/tensor.h"
#include "runtime/program.h"

// The optimizer of a run, or none.
enum hrt_training { HRT_NO_TRAINING, HRT_BY_ADAMW, HRT_BY_MUON };

// Teacher entries of sequences, [sequences, positions, entries] each; or, as log_probs, the weights of their tokens, of
// which there is one entry. NULL: there is none.
struct hrt_said {
    int32_t *ids;
    float *log_probs;
};

struct hrt_state {
    const struct hrt_program *program;
    struct hrt_placement *placement; // Borrowed; of this program.
    enum hrt_training training;      // The optimizer of the means and variances.
    struct hrt_device device;        // Has the buffers below.
    void *model;                     // The emitted struct, bound to the buffers below.
    void *values[HRT_VALUES];        // param_elements each; means and variances only in training.
    void *rounded;                   // Copies of parameters in bf16 (params/rounded.h), or NULL.
    struct hrt_staging staging;      // Only for a device with separate memory.
    void *arena;
    int32_t *ids,
        *targets; // [batch, positions], which the host fills in, too (hrt_params_state_await).
    struct hrt_said said;      // Their teacher entries, which the host fills in, too.
    struct hk_teacher teacher; // The same, as the model has it.
    bool weighted;             // They are weights.
    double
        *sums; // In memory of both: one per tensor, chunk and rank: scratch of hrt_train_grad_norm.
    struct hk_clipped
        *clipped; // On a device with separate memory, of one rank: of the last step. Else NULL.
    // For programs of several ranks, see ranks.h; else NULL.
    struct hrt_comm *comm; // Borrowed.
    struct hrt_experts *experts;
    struct hrt_fssdp *fssdp; // For programs that move experts.
    struct hrt_train_dense *dense;
    // For values that are being saved (params/snapshot.h): code that changes parameters, means or variances asks it
    // first. NULL: none.
    struct hrt_snapshot *snapshot;
};

// Takes memory for teacher entries of a batch, `entries` for each token, and tells the model. Nothing to do for a
// program without losses against one, or without entries.
bool hrt_params_state_teach(struct hrt_state *state, int64_t entries, struct hrt_error *error);

// The same for a weight of each token.
bool hrt_params_state_weigh(struct hrt_state *state, struct hrt_error *error);

// Tells the model where it finds teacher entries, or weights, of the calls that follow. Nothing to do where
// there is none.
void hrt_params_state_tell(struct hrt_state *state, struct hk_teacher teacher);

// Gives back the memory of hrt_params_state_teach.
void hrt_params_state_forget(struct hrt_state *state);

// More zeroed memory of the device, which the caller gives back to it. The error says that there is not enough for
// `what`.
bool hrt_params_state_take(struct hrt_state *state, enum hrt_memory memory, void **buffer,
                           size_t bytes, const char *what, struct hrt_error *error);

// The same; `sparse`: only part of it will ever be touched.
bool hrt_params_state_reserve(struct hrt_state *state, enum hrt_memory memory, void **buffer,
                              size_t bytes, bool sparse, const char *what, struct hrt_error *error);

// The losses of the first `batch` sequences of ids and targets (hrt_program, forward).
struct hrt_losses hrt_params_state_forward(struct hrt_state *state, int64_t batch, double scale,
                                           double auxiliary_scale);

// The program's own cross-entropy, number 0, or one of its losses by name.
struct hrt_loss hrt_params_loss_at(const struct hrt_program *program, int number);

// Where the device has the logits of `count` tokens of the last forward, from token `first` of its batch on, for loss
// `number`. They are computed now where the program never has all of them (logits_rows, at most as many), in place of
// those that were asked for before.
const void *hrt_params_state_logits(struct hrt_state *state, int number, int64_t first,
                                    int64_t count);

// Makes the copies in bf16 that GEMMs read (params/rounded.h). Nothing in programs without any.
void hrt_params_state_round(struct hrt_state *state);

// Waits until the device reads ids and targets no longer, so that they can be written.
void hrt_params_state_await(struct hrt_state *state);

// Values of all parameters, which the host reads and writes slice by slice. On a device all these
// buffers share one staging buffer: step through one tensor at a time. Valid as long as the state is.
struct hrt_buffer hrt_params_state_buffer(struct hrt_state *state, enum hrt_values values);

// Bytes of one parameter-shaped buffer.
size_t hrt_params_state_bytes(const struct hrt_program *program);

// Bytes of one microbatch's ids.
size_t hrt_params_state_ids_bytes(const struct hrt_program *program);

#endif
