// Values with the parameters' places, which the host reads and writes slice by slice. Values of
// the host stay in place, and each tensor is one slice. Values of a device come and go through a
// staging buffer of pinned memory, whose size does not grow with the model.
//
//     struct hrt_slice slice = {.tensor = tensor};
//     while (hrt_params_slice_visit(&buffer, &slice)) ... hrt_params_slice_read(program, &slice, ...)
//     while (hrt_params_slice_fill(&buffer, &slice)) ... hrt_params_slice_write(program, &slice, ...)
//
// One thread steps; any number of threads read and write a slice. A device has matrices by rows.
#ifndef HECATE_RUNTIME_PARAMS_SLICE_H
#define HECATE_RUNTIME_PARAMS_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/device/device.h"
#include "runtime/params/part.h"
#include "runtime/params/placement.h"
#include "runtime/params/tensor.h"

// Copies between the buffer and the device are asynchronous, so memory that was taken is not taken
// again before hrt_params_staging_reset.
struct hrt_staging {
    struct hrt_device *device;
    void *base; // [bytes], HRT_OF_BOTH.
    size_t bytes, used;
};

// Bytes of the staging buffer of a program: 64 MiB, or all parameters where they are fewer.
size_t hrt_params_staging_bytes(const struct hrt_program *program);

// Values, laid out like the parameters. All pointers are borrowed. Where ranks keep parts of tensors, slices
// are of whole ones: of what is written to them the parts come to their places, and elsewhere they are read as zeros.
struct hrt_buffer {
    const struct hrt_placement *placement;
    void *values;
    void *rounded;               // Copies of parameters in bf16; NULL: there are none.
    struct hrt_staging *staging; // NULL: the host may touch the values.
    enum hrt_values kind;
};

// A part of a tensor: `runs` runs of `run` elements. The first run begins with element `first`, and
// each next one `pitch` elements later. Begin with the tensor alone: slices then follow the order of
// elements. With `columns` a slice has columns of a matrix [rows, columns]: 64, a multiple of 64, or
// a power of two below. A column has 8 MiB at most.
struct hrt_slice {
    struct hrt_tensor tensor;
    int64_t columns;
    int64_t first, run, pitch, runs;
    struct hrt_params_part here; // The elements of the tensor that this rank has.
    void *at; // NULL: not here yet. The values of the buffer, or of a staged slice its runs.
    bool staged;
};

// Steps to the next slice, which is not here yet. Returns false after the last.
bool hrt_params_slice_next(const struct hrt_buffer *buffer, struct hrt_slice *slice);

// Takes memory for a slice that is to be filled. False: the staging buffer has no room until it is reset.
bool hrt_params_slice_room(const struct hrt_buffer *buffer, struct hrt_slice *slice);

// Starts to copy a slice that was filled to its place.
void hrt_params_slice_put(const struct hrt_buffer *buffer, const struct hrt_slice *slice);

// Resets the staging buffer, copies the slice into it, and waits for the copy.
void hrt_params_slice_bring(const struct hrt_buffer *buffer, struct hrt_slice *slice);

// Waits until all slices that were put are at their places, and frees the room. Does nothing on the
// host.
void hrt_params_staging_reset(const struct hrt_buffer *buffer);

// Steps to the next slice to be filled; the caller sets all its elements. Starts to copy the slice
// before to its place: work of the device that follows sees it.
bool hrt_params_slice_fill(const struct hrt_buffer *buffer, struct hrt_slice *slice);

// Steps to the next slice to be read.
bool hrt_params_slice_visit(const struct hrt_buffer *buffer, struct hrt_slice *slice);

// Copies elements first .. first + count - 1 of the tensor to or from `elements`, which have the
// program's precision. Elements are row major over the tensor's shape. They lie in one run of the slice.
void hrt_params_slice_read(const struct hrt_program *program, const struct hrt_slice *slice,
                           int64_t first, int64_t count, void *elements);
void hrt_params_slice_write(const struct hrt_program *program, const struct hrt_slice *slice,
                            int64_t first, int64_t count, const void *elements);

// Packs a block of a tensor of the host that stays packed (hrt_params_packed_put).
void hrt_params_slice_pack(const struct hrt_slice *slice, int64_t row, int64_t column, int64_t rows,
                           int64_t columns, int64_t pitch, const float *elements, float scale);

// The part of a slice's data, as they are stored, that a rank has of a cut tensor: from which byte on, and how many.
size_t hrt_params_slice_share(const struct hrt_buffer *buffer, const struct hrt_slice *slice,
                              int rank, size_t *bytes);

// All bytes of a slice that is here, as they are stored; on the host, of the part of its tensor.
void *hrt_params_slice_bytes(const struct hrt_program *program, const struct hrt_slice *slice,
                             size_t *bytes);

#endif
