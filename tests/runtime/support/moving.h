// A program of several ranks whose experts move, without a model: its parameters are chunks of one set.
#ifndef HECATE_TESTS_RUNTIME_SUPPORT_MOVING_H
#define HECATE_TESTS_RUNTIME_SUPPORT_MOVING_H

#include "runtime/experts/fssdp.h"
#include "runtime/net/comm.h"
#include "runtime/params/state.h"
#include "runtime/program.h"

struct moving {
    struct hrt_comm *comm;
    struct hpl_movement movement;
    struct hrt_set set;
    struct hrt_param param[2]; // All but the last PLAIN elements of a chunk, and those.
    struct hrt_program program;
    struct hrt_placement placement;
    struct hrt_state state;
};

enum { MOVING_PLAIN = 16 };

struct moving_sizes {
    int64_t experts, topk, layers, chunk, width, tokens;
    bool rounded; // GEMMs read bf16 copies of all but the first MOVING_PLAIN elements.
};

// Opens it: `movement` is copied; chunks have `chunk` floats. Ends the job when that fails.
void moving_open(struct moving *moving, struct hrt_comm *comm, const struct hpl_movement *movement,
                 struct moving_sizes sizes);
void moving_close(struct moving *moving);

// The model's tables: the n-th expert that this rank holds of a layer, and its gradient.
float *moving_chunk(const struct moving *moving, int64_t layer, int64_t n);
float *moving_grad(const struct moving *moving, int64_t layer, int64_t n);

// The copy in bf16 of the n-th expert, where there are some.
uint16_t *moving_rounded(const struct moving *moving, int64_t layer, int64_t n);

// The place of a chunk and its gradient in the state's buffers, which the owner uses.
float *moving_own_chunk(const struct moving *moving, int64_t layer, int64_t expert);
float *moving_own_grad(const struct moving *moving, int64_t layer, int64_t expert);

// A number below `limit`, the next of a sequence that every rank draws alike.
uint32_t moving_draw(uint64_t *sequence, uint32_t limit);

#endif
