// The tensors of a program: every parameter, of every layer and, in a set, of every expert. This is
// the granularity of names in files, of initialization and of random streams.
#ifndef HECATE_RUNTIME_PARAMS_TENSOR_H
#define HECATE_RUNTIME_PARAMS_TENSOR_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/program.h"

struct hrt_placement;   // params/placement.h
struct hrt_params_part; // params/part.h

enum { HRT_PATH_MAX = 256 }; // Bytes of a tensor's path, with its end.

struct hrt_tensor {
    const struct hrt_param *param; // NULL: before the first.
    int64_t layer, expert;         // Expert is 0 outside a set.
    int64_t
        offset; // Elements into the parameter buffer: of it, of its place for a part, or of its chunk's.
};

// The values that belong to every parameter, in buffers with the parameters' places (struct hrt_state, values).
enum hrt_values { HRT_PARAMETERS, HRT_GRADIENTS, HRT_MEANS, HRT_VARIANCES, HRT_VALUES };

// Elements of all tensors, as one rank alone would store them.
int64_t hrt_params_all(const struct hrt_program *program);

// Steps to the next tensor: parameters in the order of the table, then layers, then experts. Start
// with a zeroed tensor. Returns false after the last.
bool hrt_params_tensor_next(const struct hrt_program *program, struct hrt_tensor *tensor);

// The same of the tensors that this rank holds: those of no expert, and of chunks that it owns.
bool hrt_params_tensor_next_here(const struct hrt_placement *placement, struct hrt_tensor *tensor);

// One of them by name; `expert` is 0 outside a set.
struct hrt_tensor hrt_params_tensor_at(const struct hrt_program *program,
                                       const struct hrt_param *param, int64_t layer,
                                       int64_t expert);

// Elements of a set's chunk that have gradients, from element `first` of it on: those of trained parameters, or the
// whole chunk where all of them are.
int64_t hrt_params_trained(const struct hrt_program *program, int set, int64_t *first);

// Where the chunk of an expert begins: elements into a buffer.
int64_t hrt_params_chunk_offset(const struct hrt_set *set, int64_t layer, int64_t expert);

// Whether this rank holds the tensor.
bool hrt_params_tensor_is_here(const struct hrt_placement *placement,
                               const struct hrt_tensor *tensor);

// The rank that holds the tensor, the lowest where several do.
int hrt_params_tensor_rank(const struct hrt_placement *placement, const struct hrt_tensor *tensor);

// Elements without padding.
int64_t hrt_params_size(const struct hrt_param *param);

// Tensors of one parameter: layers, times experts in a set.
int64_t hrt_params_tensors(const struct hrt_program *program, const struct hrt_param *param);

// Writes the tensor's path, "layers.3.sparse.experts.7.w1", cut at HRT_PATH_MAX bytes.
void hrt_params_tensor_path(const struct hrt_tensor *tensor, char path[HRT_PATH_MAX]);

// The same of another pattern than the parameter's path: {} and {e} in it become the tensor's layer and expert.
void hrt_params_tensor_name(const struct hrt_tensor *tensor, const char *pattern,
                            char path[HRT_PATH_MAX]);

// Copies elements first .. first + count - 1, row major over the shape, of a tensor of which `values` has `here`, to or
// from `elements`, of the program's precision. Padding is never touched. Those that are not here are read as
// zeros, and not written. Packed elements are written together (params/packed.h).
void hrt_params_tensor_read(const struct hrt_program *program, const void *values,
                            const struct hrt_param *param, const struct hrt_params_part *here,
                            int64_t first, int64_t count, void *elements);
void hrt_params_tensor_write(const struct hrt_program *program, void *values,
                             const struct hrt_param *param, const struct hrt_params_part *here,
                             int64_t first, int64_t count, const void *elements);

// Where element `logical` (row major over the shape) is stored, relative to the tensor's offset.
int64_t hrt_params_stored_index(const struct hrt_param *param, int64_t logical);

// Bytes of an element of a parameter as it is stored: of the program's precision, or of bf16 where the copy is alone.
int64_t hrt_params_stored_bytes(const struct hrt_program *program, const struct hrt_param *param);

// Copies `count` stored elements, `step` from one to the next, to or from `elements`, which lie side by side and have
// the program's precision. Elements in bf16 are rounded to the nearest even; they alone may have a `step` above 1.
void hrt_params_stored_read(const struct hrt_program *program, const struct hrt_param *param,
                            const void *stored, int64_t step, int64_t count, void *elements);
void hrt_params_stored_write(const struct hrt_program *program, const struct hrt_param *param,
                             void *stored, int64_t step, int64_t count, const void *elements);

// Element `index` of a buffer of the program's precision, as double, and back (rounded once).
double hrt_params_element(const void *buffer, enum hrt_precision precision, int64_t index);
void hrt_params_element_set(void *buffer, enum hrt_precision precision, int64_t index,
                            double value);

// Bytes of one element.
int64_t hrt_params_element_bytes(enum hrt_precision precision);

#endif
