// Learning rate over the steps of a run: a list of pieces. A schedule of one form stands for such a list.
#ifndef HECATE_RUNTIME_TRAIN_LEARNING_RATE_H
#define HECATE_RUNTIME_TRAIN_LEARNING_RATE_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/config/config.h"

enum { HRT_RATE_PIECES_MOST = 64 };

#define HRT_COMMA ,
#define HRT_ENUM(word) HRT_RATE_##word
#include "lang/settings.def"
enum hrt_rate_form { HEC_LIST_RATE_PIECE(HRT_ENUM, HRT_COMMA) };
#undef HRT_ENUM
#undef HRT_COMMA

// The rate of step j of n, both from 1, is its form at t = j / n. One that jumps has `from` in its first step: there t
// is (j - 1) / (n - 1). In the last step it is `to`.
struct hrt_rate_piece {
    enum hrt_rate_form form;
    int64_t begin, steps; // Its first step, from 0, and how many it has.
    double from, to;      // Shares of lr.
    bool jumps;
    int64_t falls; // So often, in equal parts, it goes from `from` to `to`.
};

struct hrt_rates {
    double lr;
    int count;
    struct hrt_rate_piece piece[HRT_RATE_PIECES_MOST];
};

// The pieces of train.schedule, over train.steps steps. A usage error names the piece that is wrong, or says that all
// do not fit the run. Only a warmup of a schedule of one form may be longer than it.
bool hrt_train_rates(struct hrt_rates *rates, const struct hrt_config *config,
                     struct hrt_error *error);

// The learning rate of step `step`, counted from 0. Behind the last piece it stays.
double hrt_train_learning_rate(const struct hrt_rates *rates, int64_t step);

// Reads train.schedule.pieces; used by hrt_train_rates.
bool hrt_train_rate_pieces(struct hrt_rates *rates, const char *text, int64_t steps,
                           struct hrt_error *error);

// The word of a form: "cosine".
const char *hrt_train_rate_word(enum hrt_rate_form form);

#endif
