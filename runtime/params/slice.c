// Cuts tensors, and copies their slices from and to a device.
#include "runtime/params/slice.h"

#include <assert.h>
#include <string.h>

#include "kernels/bf16.h"
#include "runtime/params/packed.h"

enum {
    STAGING = 64 << 20,
    SLICE = 8 << 20, // Bytes at most: several are under way at a time.
    ALIGNMENT = 64,
    COLUMNS = 64,
};

static size_t aligned(size_t bytes) {
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

size_t hrt_params_staging_bytes(const struct hrt_program *program) {
    const int64_t all = hrt_params_all(program) * hrt_params_element_bytes(program->precision);
    return all < STAGING ? aligned((size_t)all) : STAGING;
}

// Bytes of an element of the buffer, as it is stored.
static int64_t element_of(const struct hrt_buffer *buffer, const struct hrt_param *param) {
    return hrt_params_stored_bytes(buffer->placement->program, param);
}

// The values that have a parameter's places, or its copy where there is nothing else.
static char *stored(const struct hrt_buffer *buffer, const struct hrt_param *param) {
    return param->rounded_only ? buffer->rounded : buffer->values;
}

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

// ---- cutting

// Elements of a slice at most.
static int64_t most_of(const struct hrt_buffer *buffer, const struct hrt_param *param) {
    const int64_t size = hrt_params_size(param);
    if (!buffer->staging) return size;
    return least(size, least(SLICE, (int64_t)buffer->staging->bytes) / element_of(buffer, param));
}

// Columns of a slice of a matrix with so many rows and columns.
static int64_t columns_of(int64_t most, int64_t rows, int64_t columns) {
    int64_t some = COLUMNS;
    if (rows * columns <= most) return columns;
    while (some > 1 && some * rows > most) some /= 2;
    return some == COLUMNS ? most / rows / COLUMNS * COLUMNS : some;
}

// Elements of a slice in order: whole rows, and a multiple of four, where they fit.
static int64_t elements_of(int64_t most, const struct hrt_param *param) {
    const int64_t unit = 4 * param->columns <= most ? 4 * param->columns : 4;
    if (hrt_params_size(param) <= most) return most;
    return most / unit * unit;
}

bool hrt_params_slice_next(const struct hrt_buffer *buffer, struct hrt_slice *slice) {
    const struct hrt_param *param = slice->tensor.param;
    const int64_t size = hrt_params_size(param), most = most_of(buffer, param);
    const int64_t end = slice->columns ? slice->columns : size;
    slice->at = NULL;
    slice->staged = buffer->staging;
    slice->first += slice->run;
    slice->run = 0;
    if (slice->first >= end) return false;
    slice->here = hrt_params_part(buffer->placement->program, &slice->tensor, buffer->kind,
                                  buffer->placement->rank);
    assert(!buffer->staging || param->layout == HRT_ROWS);
    slice->runs = slice->columns ? size / slice->columns : 1;
    const int64_t run =
        slice->columns ? columns_of(most, slice->runs, slice->columns) : elements_of(most, param);
    slice->run = least(run, end - slice->first);
    slice->pitch = slice->columns ? slice->columns : slice->run;
    return true;
}

// ---- here and there

static size_t staged_bytes(const struct hrt_buffer *buffer, const struct hrt_slice *slice) {
    return (size_t)(slice->runs * slice->run * element_of(buffer, slice->tensor.param));
}

bool hrt_params_slice_room(const struct hrt_buffer *buffer, struct hrt_slice *slice) {
    struct hrt_staging *staging = buffer->staging;
    if (!staging) return (slice->at = stored(buffer, slice->tensor.param));
    const size_t bytes = aligned(staged_bytes(buffer, slice));
    if (bytes > staging->bytes - staging->used) return false;
    slice->at = (char *)staging->base + staging->used;
    staging->used += bytes;
    return true;
}

// Copies the elements that are here. Runs that follow each other are one copy.
static void copy(const struct hrt_buffer *buffer, const struct hrt_slice *slice, bool put) {
    const int64_t element = element_of(buffer, slice->tensor.param);
    const int64_t end = slice->here.first + slice->here.count;
    const bool together = slice->run == slice->pitch;
    const int64_t run = together ? slice->run * slice->runs : slice->run;
    for (int64_t i = 0; i < (together ? 1 : slice->runs); i++) {
        const int64_t at = slice->first + i * slice->pitch;
        const int64_t low = at > slice->here.first ? at : slice->here.first;
        const int64_t high = least(at + run, end);
        char *here = (char *)slice->at + (i * run + low - at) * element;
        char *there = stored(buffer, slice->tensor.param) +
                      (slice->here.offset + low - slice->here.first) * element;
        if (low < high)
            hrt_device_fetch(buffer->staging->device, put ? there : here, put ? here : there,
                             (size_t)((high - low) * element));
    }
}

void hrt_params_slice_put(const struct hrt_buffer *buffer, const struct hrt_slice *slice) {
    if (buffer->staging) copy(buffer, slice, true);
}

void hrt_params_staging_reset(const struct hrt_buffer *buffer) {
    if (!buffer->staging) return;
    hrt_device_join(buffer->staging->device, HRT_WHY_VALUES);
    buffer->staging->used = 0;
}

static void take_room(const struct hrt_buffer *buffer, struct hrt_slice *slice) {
    if (hrt_params_slice_room(buffer, slice)) return;
    hrt_params_staging_reset(buffer);
    const bool fits = hrt_params_slice_room(buffer, slice);
    assert(fits), (void)fits;
}

void hrt_params_slice_bring(const struct hrt_buffer *buffer, struct hrt_slice *slice) {
    hrt_params_staging_reset(buffer);
    take_room(buffer, slice);
    if (!buffer->staging) return;
    copy(buffer, slice, false);
    hrt_device_join(buffer->staging->device, HRT_WHY_VALUES);
}

bool hrt_params_slice_fill(const struct hrt_buffer *buffer, struct hrt_slice *slice) {
    if (slice->at) hrt_params_slice_put(buffer, slice);
    if (!hrt_params_slice_next(buffer, slice)) return false;
    take_room(buffer, slice);
    return true;
}

bool hrt_params_slice_visit(const struct hrt_buffer *buffer, struct hrt_slice *slice) {
    if (!hrt_params_slice_next(buffer, slice)) return false;
    hrt_params_slice_bring(buffer, slice);
    return true;
}

// ---- elements

static char *staged_at(const struct hrt_slice *slice, int64_t first, int64_t count,
                       int64_t element) {
    const int64_t run = (first - slice->first) / slice->pitch;
    const int64_t behind = (first - slice->first) % slice->pitch;
    assert(first >= slice->first && run < slice->runs &&
           (behind + count <= slice->run || slice->run == slice->pitch));
    (void)count;
    return (char *)slice->at + (run * slice->run + behind) * element;
}

void hrt_params_slice_read(const struct hrt_program *program, const struct hrt_slice *slice,
                           int64_t first, int64_t count, void *elements) {
    const int64_t element = hrt_params_stored_bytes(program, slice->tensor.param);
    if (slice->staged)
        hrt_params_stored_read(program, slice->tensor.param,
                               staged_at(slice, first, count, element), 1, count, elements);
    else
        hrt_params_tensor_read(program, slice->at, slice->tensor.param, &slice->here, first, count,
                               elements);
}

void hrt_params_slice_write(const struct hrt_program *program, const struct hrt_slice *slice,
                            int64_t first, int64_t count, const void *elements) {
    const int64_t element = hrt_params_stored_bytes(program, slice->tensor.param);
    if (slice->staged)
        hrt_params_stored_write(program, slice->tensor.param,
                                staged_at(slice, first, count, element), 1, count, elements);
    else
        hrt_params_tensor_write(program, slice->at, slice->tensor.param, &slice->here, first, count,
                                elements);
}

void hrt_params_slice_pack(const struct hrt_slice *slice, int64_t row, int64_t column, int64_t rows,
                           int64_t columns, int64_t pitch, const float *elements, float scale) {
    assert(!slice->staged);
    hrt_params_packed_put(slice->tensor.param, (hk_bf16 *)slice->at + slice->here.offset, row,
                          column, rows, columns, pitch, elements, scale);
}

void *hrt_params_slice_bytes(const struct hrt_program *program, const struct hrt_slice *slice,
                             size_t *bytes) {
    const int64_t element = hrt_params_stored_bytes(program, slice->tensor.param);
    const int64_t count = slice->staged ? slice->runs * slice->run : slice->here.count;
    *bytes = (size_t)(count * element);
    return (char *)slice->at + (slice->staged ? 0 : slice->here.offset * element);
}

// Elements of a staged slice that lie before element `index` of the tensor.
static int64_t staged_before(const struct hrt_slice *slice, int64_t index) {
    if (index <= slice->first) return 0;
    const int64_t run = (index - slice->first) / slice->pitch;
    const int64_t before =
        run * slice->run + least((index - slice->first) % slice->pitch, slice->run);
    return least(before, slice->runs * slice->run);
}

size_t hrt_params_slice_share(const struct hrt_buffer *buffer, const struct hrt_slice *slice,
                              int rank, size_t *bytes) {
    const struct hrt_params_part part =
        hrt_params_part(buffer->placement->program, &slice->tensor, buffer->kind, rank);
    int64_t begin = part.first, end = part.first + part.count;
    if (slice->staged) begin = staged_before(slice, begin), end = staged_before(slice, end);
    const int64_t element = element_of(buffer, slice->tensor.param);
    *bytes = (size_t)((end - begin) * element);
    return (size_t)(begin * element);
}
