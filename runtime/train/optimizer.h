// AdamW, or Muon and AdamW, over the parameters of a program, and the norm of their gradients.
#ifndef HECATE_RUNTIME_TRAIN_OPTIMIZER_H
#define HECATE_RUNTIME_TRAIN_OPTIMIZER_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/error.h"
#include "runtime/config/config.h"
#include "runtime/device/graph.h"
#include "runtime/params/state.h"
#include "runtime/program.h"
#include "runtime/train/muon.h"

// The copy in bf16 of a span.
enum hrt_copy {
    HRT_COPY_NONE,  // It has none, or parts of it are updated elsewhere.
    HRT_COPY_ROWS,  // Written along with the span, element by element,
    HRT_COPY_PAIRS, // or in pairs of rows: panels with an even number of them.
    HRT_COPY_APART, // Made when the span, which is one parameter, has been updated.
};

struct hrt_span { // Trainable elements that lie next to each other and are treated alike.
    int64_t offset, count;
    struct hrt_param_rates rates;
    bool matrix; // One tensor, of Muon,
    bool shared; // or this rank's part of it.
    bool waits;  // A matrix that is to be moved in this step.
    enum hrt_copy copy;
    const struct hrt_param *param; // For HRT_COPY_APART and for a matrix.
};

struct hrt_optimizer {
    struct hrt_span *span; // [spans] That this rank updates.
    int64_t spans;
    struct hrt_muon muon; // Where `matrices`: of those Muon, of the rest AdamW.
    bool matrices;
};

// Collects the spans of trainable parameters, and of this rank's part where ranks share their states (enum hrt_dense);
// constants (rope tables, selection biases) are in none. False: out of memory. Not collective.
bool hrt_train_optimizer_create(struct hrt_optimizer *optimizer,
                                const struct hrt_placement *placement, struct hrt_error *error);

// Collects them again, after experts have changed their owners.
void hrt_train_optimizer_collect(struct hrt_optimizer *optimizer,
                                 const struct hrt_placement *placement);

// From now on matrices are updated by Muon. The state is the one of all that follows, and is destroyed behind the
// optimizer.
bool hrt_train_optimizer_use_muon(struct hrt_optimizer *optimizer, struct hrt_state *state,
                                  struct hrt_error *error);

void hrt_train_optimizer_destroy(struct hrt_optimizer *optimizer);

// Step number `step`, from 0: scales the gradients by `grad_scale`, updates parameters and states,
// makes the parameters' copies in bf16, and leaves the gradients zero. Where state->clipped is there it scales, too, or
// stops all of that.
void hrt_train_optimizer_step(const struct hrt_optimizer *optimizer, struct hrt_state *state,
                              const struct hrt_config *config, int64_t step, double lr,
                              double grad_scale);

// Euclidean norm of all gradients: one double per tensor outside sets, in the order of the table
// and of layers, then one per chunk in the order of sets, layers and experts, added in that order. On
// several ranks, one per rank for its part of dense gradients (dense.h), in the order of ranks, then one
// per chunk that is owned. Collective there.
// Where tensors are the host's.
double hrt_train_grad_norm(struct hrt_state *state);

// Queues on the device, where state->clipped is there, the computation of the norm of all gradients, and the factor
// that brings them to at most `clip` (0: any norm). Where the norm, or one of the `count` losses, is not finite, the
// step is skipped, and behind `skips` of them in a row all further updates are stopped (hk_clip). `squares`: of the
// sums of squares.
void hrt_train_grad_clip(struct hrt_state *state, struct hrt_graph *squares, const float *losses,
                         int64_t count, double clip, int64_t skips);

#endif
