// A rank may keep a part alone of a tensor that all ranks read (enum hrt_dense).
//
// Rank r has elements [r p, (r + 1) p) of a tensor, as it is stored; p is the same for all ranks (hpl_part). Where
// every rank has all experts, a chunk is cut as one.
// With HRT_DENSE_STATES a rank's part of the states lies where the whole tensor has its place.
// With HRT_DENSE_SHARD buffers have places for parts alone, the same on all ranks.
#ifndef HECATE_RUNTIME_PARAMS_PART_H
#define HECATE_RUNTIME_PARAMS_PART_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/params/tensor.h"
#include "runtime/program.h"

// The stored elements of a tensor that a rank has: [first, first + count), from `offset` on in the buffer.
struct hrt_params_part {
    int64_t offset, first, count;
};

// Whether ranks keep parts of a parameter's tensors in this buffer (enum hrt_dense).
bool hrt_params_is_cut(const struct hrt_program *program, const struct hrt_param *param,
                       enum hrt_values values);

// The elements of a tensor that a rank has, which holds it.
struct hrt_params_part hrt_params_part(const struct hrt_program *program,
                                       const struct hrt_tensor *tensor, enum hrt_values values,
                                       int rank);

// Rank r's part of `elements`, which ranks share: where it begins, and how many there are.
int64_t hrt_params_cut(int64_t elements, int64_t ranks, int rank, int64_t *count);

// Elements of one layer of a parameter outside of sets, or of a chunk, in buffers of parameters.
int64_t hrt_params_kept(const struct hrt_program *program, const struct hrt_param *param);
int64_t hrt_params_kept_chunk(const struct hrt_program *program, const struct hrt_set *set);

#endif
