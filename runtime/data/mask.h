// The masked-language objective: some tokens of a sequence are hidden, and those are predicted.
//
// Source: Devlin et al. 2018, "BERT: Pre-training of Deep Bidirectional Transformers", section 3.1:
// of the chosen tokens 80 % are replaced by the mask token, 10 % by a random one, 10 % stay. As in
// their create_pretraining_data.py every sequence has equally many targets.
#ifndef HECATE_RUNTIME_DATA_MASK_H
#define HECATE_RUNTIME_DATA_MASK_H

#include <stdint.h>

#include "runtime/base/random.h"

struct hrt_mask {
    double rate; // Share of the tokens that are targets; 0: none, the objective is another.
    int64_t positions, vocabulary; // The mask token is the last entry of the vocabulary.
};

// Targets of one sequence: rate x positions, rounded, at least 1.
int64_t hrt_data_mask_targets(const struct hrt_mask *mask);

// Chooses the targets of `ids` [positions], stores them in `targets` [positions] with -1 between
// them, and hides them in `ids`. Depends on (stream, sequence, position) and the ids alone. The
// vocabulary has at least 2 entries; random replacements are never the mask token.
void hrt_data_mask_sequence(const struct hrt_mask *mask, struct hrt_stream stream,
                            uint64_t sequence, int32_t *ids, int32_t *targets);

#endif
