// Dense parameters, which every rank has: their gradients are summed over the ranks during backward, in the background;
// with dense = states each rank updates a part of it, and the parts go to everybody.
//
// A tensor is one layer of a parameter outside of sets, or where every rank has all experts, a chunk.
// Ranks have parts of equal size (hpl_part): the ranks' shares of one are added up in
// the order of ranks, and the sum goes to all (replicate) or stays (states). Where several nodes have equally many
// ranks, each node's shares are added up first, by its rank at r's place, and only these sums cross the network; then
// they are added up in the order of nodes, and the way back is the same. So bits depend on which ranks share a node,
// but neither on the order of messages nor on that of tensors.
//
// Gradients may travel in bf16 (parallel.gradients). A rank rounds each of its shares once, and a node's sum once more
// before it crosses the network. A share that stays on its rank is not rounded, and all are added as floats. Sums that
// go to all (replicate) are rounded a last time, by the rank that has them, which then has the rounded ones, too: all
// ranks have the same. Parameters are never rounded here.
//
// During the backward of a step's last iteration emitted code says which gradients are complete. As soon
// as these are parallel.bucket bytes their sum starts, in rounds of HRT_DENSE_ROUND bytes, so
// that the memory is bounded; on a device with separate memory of 16 times as many, since each round has two groups of
// messages, and a group costs as much as a MiB. The order of buckets is that of the program, on every rank the same.
#ifndef HECATE_RUNTIME_TRAIN_DENSE_H
#define HECATE_RUNTIME_TRAIN_DENSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hrt_train_dense;
struct hrt_error;
struct hrt_program;
struct hrt_state;
struct hrt_tensor;

enum { HRT_DENSE_ROUND = 4 << 20, HRT_DENSE_ROUND_APART = 64 << 20 };

// For a program of several ranks, whose state has joined them. The state is borrowed; the caller destroys `*dense`.
// False: out of memory. Not collective.
bool hrt_train_dense_create(struct hrt_train_dense **dense, struct hrt_state *state,
                            struct hrt_error *error);

// Waits for the sums under way, and frees all. Collective.
void hrt_train_dense_destroy(struct hrt_train_dense *dense);

// Bytes of messages under way that hrt_train_dense_create takes.
size_t hrt_train_dense_bytes(const struct hrt_program *program);

// Whether the backward that follows is the last one before the gradients are read: then the gradients that it
// completes are summed at once.
void hrt_train_dense_last(struct hrt_train_dense *dense, bool last);

// Emitted code of dense = shard: brings the parameters of the program's unit number `unit`, in the background; waits
// for them; gives back the parts of the others. `layer` where its parameters have layers; nothing where there is no
// such layer. In the same order on every rank.
void hrt_train_dense_bring(struct hrt_train_dense *dense, int unit, int64_t layer);
void hrt_train_dense_await(struct hrt_train_dense *dense, int unit, int64_t layer);
void hrt_train_dense_release(struct hrt_train_dense *dense, int unit, int64_t layer);

// Emitted code: the gradients of the program's bucket number `bucket` are complete on this rank, those
// of `layer` where its parameters have layers. Every rank calls it in the same order.
void hrt_train_dense_ready(struct hrt_train_dense *dense, int bucket, int64_t layer);

// Returns when all gradients are summed, those whose sum has not started included. Collective.
void hrt_train_dense_finish(struct hrt_train_dense *dense);

// The sum of squares of this rank's part of the gradients, tensor by tensor; after hrt_train_dense_finish. A device
// with separate memory stores those of each tensor at `sum`, in its memory, in queued work; returns how many.
int64_t hrt_train_dense_ask_squares(const struct hrt_train_dense *dense, double *sum);
double hrt_train_dense_own_squares(const struct hrt_train_dense *dense);

// After the optimizer: with dense = states sends the ranks' parts of the parameters to everybody, and
// sets the rest of the gradients to zero. Collective.
void hrt_train_dense_publish(struct hrt_train_dense *dense);

// Brings the gradient of one tensor, which ranks have parts of, to `room`, in the device's memory, which holds
// hrt_train_dense_widest elements. Returns where in the room it lies, as it is stored. Collective.
void *hrt_train_dense_bring_gradient(struct hrt_train_dense *dense, const struct hrt_tensor *tensor,
                                     void *room);
int64_t hrt_train_dense_widest(const struct hrt_program *program);

#endif
