// Muon: a matrix moves by its momentum, made orthogonal.
//
// Source: Jordan et al. 2024, "Muon: an optimizer for hidden layers in neural networks" (momentum as Nesterov's, five
// steps of Newton and Schulz); Liu et al. 2025, arXiv:2502.16982, section 2.2 (an update's root mean square is AdamW's,
// so that learning rates and decays are; weight decay).
#ifndef HECATE_RUNTIME_TRAIN_MUON_H
#define HECATE_RUNTIME_TRAIN_MUON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/muon/muon.h"
#include "runtime/base/error.h"
#include "runtime/program.h"

struct hrt_device;

// Matrices at a time: on a device with separate memory, as many as so many bytes are room for.
enum { HRT_MUON_MOST = 32, HRT_MUON_ROOM = 512 << 20 };

struct hrt_muon_table;

struct hrt_muon {
    struct hrt_device *device; // Borrowed: the room is of its memory.
    const struct hrt_param *param;
    void *room;
    size_t bytes;
    int64_t most;                 // Matrices at a time.
    void *matrix, *product;       // For `most` of the largest matrix: elements as stored.
    void *gram, *square;          // For as many of the longest of the shorter sides, squared.
    double *squares;              // [most] The sums of the matrices' squared elements.
    void *shared;                 // Where a matrix, or chunk, that ranks share comes.
    struct hrt_muon_table *table; // [params] For a device with separate memory.
    size_t table_bytes;
};

// Bytes of the room for the program's largest matrix, or for several of them.
size_t hrt_train_muon_bytes(const struct hrt_program *program);

// Takes that room. False: out of memory.
bool hrt_train_muon_create(struct hrt_muon *muon, const struct hrt_program *program,
                           struct hrt_device *device, struct hrt_error *error);
// Gives it back; a zeroed one has none.
void hrt_train_muon_destroy(struct hrt_muon *muon);

// A step has two parts; a device with separate memory runs them later, in queued work. GEMMs are the kernels': the
// same bits by any number of threads, so on every rank.
//
// For `count` elements: the gradients move the momentum, and the matrix to make orthogonal takes their place.
void hrt_train_muon_look_ahead(const struct hrt_muon *muon, enum hrt_precision precision,
                               void *gradients, void *momentum, int64_t count,
                               const struct hk_muon_rule *rule);

struct hrt_muon_matrix {
    void *values;
    const void *ahead;
};

// Moves elements first .. first + count - 1 of each of `matrices` <= muon->most tensors of `param`. They lie at
// `values` and move by the matrix that hrt_train_muon_look_ahead left in place of all gradients, `ahead`; both as they
// are stored. Each moves as it would alone, to the bit.
void hrt_train_muon_move(const struct hrt_muon *muon, const struct hrt_param *param,
                         enum hrt_precision precision, const struct hrt_muon_matrix *matrix,
                         int64_t matrices, int64_t first, int64_t count,
                         const struct hk_muon_rule *rule);

#endif
