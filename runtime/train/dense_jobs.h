// The jobs that sum dense gradients: for dense.c and dense_sum.c. Nobody else includes this.
#ifndef HECATE_RUNTIME_TRAIN_DENSE_JOBS_H
#define HECATE_RUNTIME_TRAIN_DENSE_JOBS_H

#include "runtime/net/transport.h"
#include "runtime/train/dense.h"

enum { HRT_DENSE_PIECES = 64 };

enum hrt_train_dense_slot {
    HRT_DENSE_PARAMETERS,
    HRT_DENSE_GRADIENTS,
    HRT_DENSE_COPIES, // In bf16.
    HRT_DENSE_SLOTS
};

// `count` elements of the buffers, from `offset` on. With dense = shard this rank's part lies there, and the whole
// tensor comes to its slots.
struct hrt_train_dense_tensor {
    int64_t offset, count;
    char *slot[HRT_DENSE_SLOTS];
    bool panels;           // Its copy in bf16 has pairs of rows (kernels/types.h).
    bool expected, queued; // Some bucket has it; its sum has started.
};

// Elements [low, high) of every rank's part of a tensor.
struct hrt_train_dense_piece {
    const struct hrt_train_dense_tensor *tensor;
    int64_t low, high;
    size_t element; // Bytes, in a message.
};

// The sum of some tensors, or the way of their parts to everybody. One after the other, as the lane takes them.
struct hrt_train_dense_job {
    struct hrt_steps steps; // The first member.
    struct hrt_train_dense *dense;
    const int64_t *queue; // [end] tensors.
    int64_t end;
    void *buffer;
    void *room; // Where one whole tensor comes; NULL: to its slot, or to its place.
    bool reduce, gather;
    bool narrow; // Gradients travel in bf16 (dense.h).
    // While it runs.
    int64_t at, low; // The next piece: tensor of the queue, and where in the parts.
};

struct hrt_train_dense {
    struct hrt_comm *comm;
    struct hrt_device *device;
    const struct hrt_program *program;
    void *grads, *params;
    size_t element;
    enum hrt_dense kind;
    bool last;
    int64_t tensors;
    struct hrt_train_dense_tensor *tensor;
    int64_t *param_tensor, *set_tensor; // The first tensor of each parameter and set; -1: none.
    int64_t *queue; // [tensors] Of this step, in the order in which they were complete.
    int64_t queued, started;
    struct hrt_train_dense_job *job; // [tensors]
    int64_t jobs;                    // Jobs of this step.
    struct hrt_mark last_sum;
    struct hrt_train_dense_units *units; // With dense = shard.
    // The round in flight.
    int pieces;
    struct hrt_train_dense_piece piece[HRT_DENSE_PIECES];
    int width;      // Ranks of a row (dense_sum.c): of each node, or all.
    size_t stride;  // Bytes of a part, at most.
    char *sent;     // [ranks][stride]
    char *received; // [hrt_train_dense_received][stride]
    // Steps, -1: none. [ranks] by column: behind which its message may be read or written over; by row: that brings
    // its sums; by rank: that brings its part.
    int32_t *read, *brought, *arrived;
    struct hrt_step *step; // [hrt_train_dense_room] Of the job that runs.
};

// Places for received parts: one of each rank, and those of one rank of each node.
static inline size_t hrt_train_dense_received(int64_t ranks) {
    return (size_t)(ranks + ranks / 2 + 1);
}

// Steps of a round, at most.
int64_t hrt_train_dense_room(int64_t ranks);

// Sums or gathers the tensors [first, end) of the queue in the background.
void hrt_train_dense_start(struct hrt_train_dense *dense, int64_t first, int64_t end, void *buffer,
                           bool reduce, bool gather);

// The same of `tensors` of a queue of the caller's, who keeps `job` and `queue` until the mark is joined.
struct hrt_mark hrt_train_dense_submit(struct hrt_train_dense *dense,
                                       struct hrt_train_dense_job *job, const int64_t *queue,
                                       int64_t tensors, void *buffer, void *room, bool reduce,
                                       bool gather);

// Slots, and jobs of units and buckets, which dense = shard has (dense_units.c). False: out of memory, or the
// environment asks for something else than it can.
bool hrt_train_dense_units_create(struct hrt_train_dense *dense, struct hrt_state *state,
                                  struct hrt_error *error);
void hrt_train_dense_units_destroy(struct hrt_train_dense *dense);

// Waits for the sum that is under way, and clears its slots.
void hrt_train_dense_complete(struct hrt_train_dense *dense);

// Starts the sum of a bucket's gradients, once the one before is complete.
void hrt_train_dense_reduce(struct hrt_train_dense *dense, int bucket, int64_t layer);

// Returns when all jobs have finished.
void hrt_train_dense_wait(struct hrt_train_dense *dense, const char *what);

#endif
