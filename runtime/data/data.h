// The training and validation data of a run: files, and the sequences cut from them.
//
// Training sequence number n (global: counted over steps, iterations and ranks) starts at a place that depends on
// (seed, n) alone (data/order.h). So any number of ranks sees the same stream, and a run can go on from any step.
// Validation reads fixed windows, T tokens apart, in the order of the files.
//
// The target of a token is the next one; with a mask it is the token itself, where it is hidden. The
// masks of training come from (seed, n), those of validation from the number of the window. Sequences of
// whole documents (hecate-data --pack) stay as they are cut, and their targets inside of their file. Pairs
// stay together, the chosen sequence first.
#ifndef HECATE_RUNTIME_DATA_DATA_H
#define HECATE_RUNTIME_DATA_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/error.h"
#include "runtime/data/file.h"
#include "runtime/data/mask.h"
#include "runtime/data/mixture.h"
#include "runtime/data/order.h"
#include "runtime/data/teacher.h"

struct
    hrt_data_part { // Tokens first .. first + tokens - 1 of one file, in which a sequence can start.
    int file;
    int64_t first, tokens;
    bool
        packed; // Sequences of T tokens follow each other, each of whole documents; others start at any token.
};

struct hrt_data_split {
    struct hrt_data_part *part;
    int parts;
    int64_t tokens;
    int64_t starts;  // Positions at which a sequence inside of a part may start.
    int64_t windows; // Sequences inside of parts that share no target.
};

// The files of one pattern, which may have a share. Without shares all patterns of training are one source.
struct hrt_data_source {
    const char *
        name; // Borrowed from the request, of which it is the first `name_bytes`: PATH, without =SHARE.
    int name_bytes;
    double share;                // 0: it has none.
    int file, files;             // The first file, and how many.
    int64_t window;              // The number of its first window, where it is of validation data.
    struct hrt_data_split split; // Its parts, borrowed from those of all.
};

struct hrt_data {
    struct hrt_data_source source[HRT_SOURCES_MAX];
    int sources;
    // Validation data: the held-out end of each training source, or the files of each pattern; all of it in one where
    // these are more than HRT_SOURCES_MAX. Those without a window are left out.
    struct hrt_data_source val_source[HRT_SOURCES_MAX];
    int val_sources;
    struct hrt_mixture mixture;
    struct hrt_data_file *file;
    int files;
    struct hrt_data_split train, validation; // Validation may be empty.
    double held_out;     // Share of each training file, its end, that is not trained on.
    bool validation_cut; // Validation is that.
    enum hrt_data_order order;
    int left_out; // Files that matched a pattern, but are too short for a sequence.
    int64_t positions, vocabulary;
    int64_t
        group; // Sequences that are read one behind the other, and have one loss: 2 of pairs, else 1.
    int64_t said; // As the request has it.
    struct hrt_teachers teachers;
    struct hrt_mask mask;
    int64_t targets;         // Targets of one sequence, at most: T, or the number of hidden tokens.
    bool weighted;           // Some files have weights: tokens of weight 0 are nobody's target.
    bool fractions;          // Some of them may be between 0 and 1.
    void *raw;               // Scratch of one sequence.
    int32_t *token;          // One sequence, T + 1.
    uint16_t *weight;        // Its weights, as halves.
    int32_t *input, *target; // Another one's ids and targets.
};

struct hrt_data_request {
    const char *const *train; // Paths or glob patterns; all with a share, PATH=SHARE, or none.
    int trains;
    const char *const *validation; // None: the held-out part, where that has T + 1.
    int validations;
    double
        held_out; // Share of each training file; 0: one twentieth, and none where validation data is given.
    const char *const *teacher; // For all files above, validation too; none: there is no teacher.
    int teachers;
    enum hrt_data_format format;
    enum hrt_data_order order;
    int64_t positions, vocabulary;
    bool pairs; // Files have pairs of sequences, a chosen and a rejected one; else none has.
    int64_t
        said; // Teacher entries that a target needs: 1: one of its id; more: so many first ones.
    double mask_rate; // Share of tokens that are hidden and predicted; 0: the next token is.
};

// Opens all files. A file that is named, and not only matched by a pattern, must have T + 1 tokens;
// of a pattern's files at least one must. False: `error` names the file and its fault; nothing stays open.
// Training data may be absent when there is validation data.
bool hrt_data_open(struct hrt_data *data, const struct hrt_data_request *request,
                   struct hrt_error *error);

// Sequences of an epoch, which reads each token of the training data once.
int64_t hrt_data_epoch(const struct hrt_data *data);

// Tokens that the first `sequences` training sequences read of each source; `tokens` [sources].
void hrt_data_count(const struct hrt_data *data, uint64_t seed, uint64_t sequences,
                    int64_t *tokens);

// Training sequence number `sequence`: ids and targets [T]; a target of -1 is none.
bool hrt_data_draw(const struct hrt_data *data, uint64_t seed, uint64_t sequence, int32_t *ids,
                   int32_t *targets, struct hrt_error *error);

// Validation window `window`, 0 <= window < validation.windows.
bool hrt_data_window(const struct hrt_data *data, int64_t window, int32_t *ids, int32_t *targets,
                     struct hrt_error *error);

// How many windows of each validation source an evaluation of about `sequences` reads, the first ones: as many as its
// share of the mixture or, without shares, of all windows, and at least one. 0: all windows. Returns their sum;
// `windows` [val_sources].
int64_t hrt_data_val_windows(const struct hrt_data *data, int64_t sequences, int64_t *windows);

// The sum of the weights of the targets, or the number of pairs, of the training sequences first .. first + count - 1,
// and of as many validation windows. It is exact. With weights these are read for it.
bool hrt_data_draw_targets(const struct hrt_data *data, uint64_t seed, uint64_t first,
                           int64_t count, double *targets, struct hrt_error *error);
bool hrt_data_window_targets(const struct hrt_data *data, int64_t first, int64_t count,
                             double *targets, struct hrt_error *error);

// The weights of the targets of these sequences, [T].
bool hrt_data_draw_weights(const struct hrt_data *data, uint64_t seed, uint64_t sequence,
                           float *weights, struct hrt_error *error);
bool hrt_data_window_weights(const struct hrt_data *data, int64_t window, float *weights,
                             struct hrt_error *error);

// The last T tokens of the validation data's last part.
bool hrt_data_tail(const struct hrt_data *data, int32_t *ids, struct hrt_error *error);

// The teacher's entries of the tokens of these sequences: ids and log_probs [T, teachers.entries]. There must be one.
bool hrt_data_draw_teacher(const struct hrt_data *data, uint64_t seed, uint64_t sequence,
                           int32_t *ids, float *log_probs, struct hrt_error *error);
bool hrt_data_window_teacher(const struct hrt_data *data, int64_t window, int32_t *ids,
                             float *log_probs, struct hrt_error *error);

void hrt_data_close(struct hrt_data *data);

#endif
