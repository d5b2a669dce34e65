// Losses of validation data, of each of its sources and of all together.
#ifndef HECATE_RUNTIME_TRAIN_EVALUATE_H
#define HECATE_RUNTIME_TRAIN_EVALUATE_H

#include "runtime/data/data.h"
#include "runtime/params/state.h"

struct hrt_outputs; // train/outputs.h

struct hrt_validation {
    double loss;                    // Cross-entropy of the model's logits, nats a target.
    double named[HRT_NAMED_LOSSES]; // The same of the losses that the program has besides.
    double targets;                 // Targets of `loss`: the sum of their weights.
    double source_loss
        [HRT_SOURCES_MAX]; // `loss` of each source of the data; NaN: none of its tokens counts.
    double source_targets[HRT_SOURCES_MAX];
};

// Mean token loss over `sequences` sequences (0: all) of the validation data, which its sources share
// (hrt_data_val_windows), in microbatches, the means of the named losses, and how many targets that were. Neither loads
// nor anything else of the training state is touched. `outputs` gets all sequences, in order; NULL: none are written.
// Collective. Sums over ranks are in a fixed order.
bool hrt_train_evaluate(struct hrt_state *state, const struct hrt_data *data, int64_t sequences,
                        struct hrt_outputs *outputs, struct hrt_validation *validation,
                        struct hrt_error *error);

#endif
