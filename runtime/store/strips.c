// Threads take strips of tensors: a strip's bytes are read at once, and become elements a tile at a time, which stays
// in the nearest cache while it is turned.
#include "runtime/store/strips.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/params/packed.h"
#include "runtime/store/mxfp4.h"

enum {
    ROWS = 64,    // Rows of the file's matrix in a turned strip: a panel of ours (kernels/types.h).
    COLUMNS = 32, // A tile's; a block of MXFP4.
    RUN = 1 << 15,   // Elements of a strip that is not turned.
    STRIPS = 16,     // Strips that a thread takes at once.
    TOGETHER = 1024, // Slices that are read at a time.
};

// A slice of a tensor that is read.
struct piece {
    const struct hrt_found *found;
    struct hrt_slice slice;
};

struct reading {
    const struct hrt_program *program;
    struct piece piece[TOGETHER];
    size_t pieces;
    size_t first[TOGETHER + 1]; // The number of each piece's first strip.
    size_t strip_bytes;         // The most that one has.
    size_t unit_bytes;          // The most elements that are packed together.
};

// A thread's buffers, and the odd value that it has found.
struct worker {
    const struct reading *reading;
    unsigned char *bytes, *exponents; // One strip's.
    double *factors;                  // One strip's, for its blocks.
    float *unit;                      // Elements that are packed together.
    double tile[ROWS * COLUMNS];      // Or elements of a smaller type.
    size_t odd;                       // The first strip with a value that is not finite,
    double value;                     // and that value.
    struct hrt_error error;
};

// ---- strips

// A tensor without gaps is one row.
static bool is_flat(const struct hrt_place *place) {
    return !place->turned && place->step == 1 && place->row_step == place->columns;
}

static int64_t row_elements(const struct hrt_place *place) {
    return is_flat(place) ? place->rows * place->columns : place->columns;
}

static int64_t runs_of_row(const struct hrt_place *place) {
    return (row_elements(place) + RUN - 1) / RUN;
}

// The number of the strip of an element, among those of a tensor that is not turned.
static int64_t strip_of(const struct hrt_place *place, int64_t element) {
    const int64_t row = row_elements(place);
    return element / row * runs_of_row(place) + element % row / RUN;
}

static size_t strips_of(const struct piece *piece) {
    const struct hrt_place *place = &piece->found->place;
    const struct hrt_slice *slice = &piece->slice;
    const int64_t unit = hrt_params_unit(slice->tensor.param);
    if (place->turned) return (size_t)((slice->run + ROWS - 1) / ROWS);
    if (unit > 1) return (size_t)((slice->run + unit - 1) / unit);
    return (size_t)(strip_of(place, slice->first + slice->run - 1) - strip_of(place, slice->first) +
                    1);
}

// Bytes of `elements` side by side, the first of which begins a block.
static int64_t bytes_of(const struct hrt_found *found, int64_t elements) {
    if (found->mxfp4) return (elements + HRT_MXFP4_BLOCK - 1) / HRT_MXFP4_BLOCK * HRT_MXFP4_BYTES;
    return elements * found->entry->dtype->bits / 8;
}

static size_t strip_bytes(const struct hrt_found *found) {
    const struct hrt_place *place = &found->place;
    if (place->turned) // The last row has gaps while it is read.
        return (size_t)(ROWS * bytes_of(found, place->columns) +
                        bytes_of(found, place->columns * (place->step - 1)));
    const int64_t row = row_elements(place), run = row < RUN ? row : RUN;
    return (size_t)bytes_of(found, run * place->step);
}

// Closes the gaps between the elements of a row.
static void close_up(unsigned char *row, const struct hrt_place *place, int64_t size) {
    for (int64_t i = 1; place->step > 1 && i < place->columns; i++)
        memmove(row + i * size, row + i * place->step * size, (size_t)size);
}

// Reads `rows` rows of the file's matrix from row `row` on, one behind the other, and with MXFP4 their exponents.
static bool read_rows(struct worker *worker, const struct hrt_found *found, int64_t row,
                      int64_t rows) {
    const struct hrt_place *place = &found->place;
    struct hrt_safetensors file = *found->file, scales = {0};
    const int64_t bytes = bytes_of(found, place->columns), blocks = bytes / HRT_MXFP4_BYTES;
    const bool together = bytes_of(found, place->row_step) == bytes;
    const int64_t wide = bytes_of(found, (place->columns - 1) * place->step + 1);
    file.error = &worker->error;
    if (found->mxfp4) scales = *found->scale_file;
    scales.error = &worker->error;
    for (int64_t i = 0; i < rows; i += together ? rows : 1) {
        const int64_t at = place->first + (row + i) * place->row_step, run = together ? rows : 1;
        if (!hrt_params_safetensors_bytes(&file, found->entry, bytes_of(found, at),
                                          (size_t)(place->step > 1 ? wide : run * bytes),
                                          worker->bytes + i * bytes))
            return false;
        close_up(worker->bytes + i * bytes, place, found->entry->dtype->bits / 8);
        if (found->mxfp4 &&
            !hrt_params_safetensors_bytes(&scales, found->scale, at / HRT_MXFP4_BLOCK,
                                          (size_t)(run * blocks), worker->exponents + i * blocks))
            return false;
    }
    return true;
}

// Reads the factors of 8 bits of a row of blocks.
static bool read_factors(struct worker *worker, const struct hrt_found *found, int64_t row) {
    const int64_t blocks = (found->place.columns + HRT_SCALED - 1) / HRT_SCALED;
    const struct hrt_dtype *dtype = found->scale->dtype;
    struct hrt_safetensors file = *found->scale_file;
    file.error = &worker->error;
    if (!hrt_params_safetensors_bytes(&file, found->scale,
                                      row / HRT_SCALED * blocks * dtype->bits / 8,
                                      (size_t)(blocks * dtype->bits / 8), worker->factors))
        return false;
    // From behind, as numbers are no smaller than what they are made of.
    for (int64_t i = blocks - 1; i >= 0; i--) worker->factors[i] = dtype->value(worker->factors, i);
    return true;
}

// ---- elements

static void set_all(enum hrt_precision precision, const double *values, int64_t count, void *to) {
    for (int64_t i = 0; i < count; i++) hrt_params_element_set(to, precision, i, values[i]);
}

// Elements from number `first` of row `row` of the strip on, at most COLUMNS of them when there are factors.
static void decode(const struct worker *worker, const struct hrt_found *found, int64_t row,
                   int64_t first, int64_t count, void *elements) {
    const enum hrt_precision precision = worker->reading->program->precision;
    const struct hrt_dtype *dtype = found->entry->dtype;
    const int64_t pitch = bytes_of(found, found->place.columns);
    const unsigned char *bytes = worker->bytes + row * pitch + bytes_of(found, first);
    double values[COLUMNS];
    assert(!found->scale || count <= COLUMNS);
    if (found->mxfp4) {
        const int64_t block = row * (pitch / HRT_MXFP4_BYTES) + first / HRT_MXFP4_BLOCK;
        hrt_store_mxfp4_decode(bytes, worker->exponents + block, 1, values);
        set_all(precision, values, count, elements);
    } else if (found->scale) {
        for (int64_t i = 0; i < count; i++)
            values[i] = dtype->value(bytes, i) * worker->factors[(first + i) / HRT_SCALED];
        set_all(precision, values, count, elements);
    } else if (precision != HRT_FP64 && dtype->floats) {
        dtype->floats(bytes, count, elements);
    } else {
        for (int64_t i = 0; i < count; i++)
            hrt_params_element_set(elements, precision, i, dtype->value(bytes, i));
    }
}

// Whether one of the elements is not finite: adding 1 to an exponent of ones only carries into the sign's bit.
static bool any_odd(enum hrt_precision precision, const void *elements, int64_t count) {
    uint64_t odd = 0;
    if (precision == HRT_FP64) {
        const uint64_t exponent = (uint64_t)0x7ff << 52, *bits = elements;
#pragma omp simd reduction(| : odd)
        for (int64_t i = 0; i < count; i++) odd |= (bits[i] & exponent) + ((uint64_t)1 << 52);
        return odd >> 63;
    }
    const uint32_t exponent = 0xffu << 23, *bits = elements;
    uint32_t narrow = 0;
#pragma omp simd reduction(| : narrow)
    for (int64_t i = 0; i < count; i++) narrow |= (bits[i] & exponent) + (1u << 23);
    return narrow >> 31;
}

// Notes the first value that is not finite, as it is here.
static void look_at(struct worker *worker, const struct hrt_found *found, size_t strip,
                    const void *elements, int64_t count) {
    const enum hrt_precision precision = worker->reading->program->precision;
    if (worker->odd < SIZE_MAX || !found->watched || !any_odd(precision, elements, count)) return;
    for (int64_t i = 0; worker->odd == SIZE_MAX; i++) {
        worker->value = hrt_params_element(elements, precision, i);
        if (!isfinite(worker->value)) worker->odd = strip;
    }
}

// Four rows of four elements at a time, which registers turn; gcc and clang have these vectors on every processor.
#define TURN(type)                                                                                 \
    typedef type four_##type __attribute__((vector_size(4 * sizeof(type))));                       \
    static void turn_##type(const type *from, type *to) {                                          \
        for (int64_t r = 0; r < ROWS; r += 4) {                                                    \
            for (int64_t c = 0; c < COLUMNS; c += 4) {                                             \
                four_##type row[4], half[4], turned[4];                                            \
                for (int i = 0; i < 4; i++)                                                        \
                    memcpy(&row[i], from + (r + i) * COLUMNS + c, sizeof row[i]);                  \
                for (int i = 0; i < 2; i++) {                                                      \
                    half[i] = __builtin_shufflevector(row[i], row[i + 2], 0, 4, 1, 5);             \
                    half[i + 2] = __builtin_shufflevector(row[i], row[i + 2], 2, 6, 3, 7);         \
                }                                                                                  \
                for (int i = 0; i < 4; i += 2) {                                                   \
                    turned[i] = __builtin_shufflevector(half[i], half[i + 1], 0, 4, 1, 5);         \
                    turned[i + 1] = __builtin_shufflevector(half[i], half[i + 1], 2, 6, 3, 7);     \
                }                                                                                  \
                for (int i = 0; i < 4; i++)                                                        \
                    memcpy(to + (c + i) * ROWS + r, &turned[i], sizeof turned[i]);                 \
            }                                                                                      \
        }                                                                                          \
    }
TURN(float)
TURN(double)

static int64_t sooner(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int64_t later(int64_t a, int64_t b) {
    return a > b ? a : b;
}

// That of elements of 8 bits which stay so, from number `first` of a row on; 0: there is none.
static float factor_of(const struct worker *worker, const struct hrt_found *found, int64_t first) {
    const bool kept = found->scale && !found->mxfp4 && found->tensor.param->packing == HRT_FP8;
    return kept ? (float)worker->factors[first / HRT_SCALED] : 0;
}

// Rows of the file's matrix are columns of ours. A tile is a block of packed elements.
static bool read_turned(struct worker *worker, const struct piece *piece, size_t strip,
                        int64_t row) {
    const struct hrt_program *program = worker->reading->program;
    const struct hrt_found *found = piece->found;
    const struct hrt_place *place = &found->place;
    const int64_t left = piece->slice.first + piece->slice.run - row;
    const int64_t rows = left < ROWS ? left : ROWS;
    const int64_t size = hrt_params_element_bytes(program->precision);
    double turned[ROWS * COLUMNS]; // Or elements of a smaller type.
    if (!read_rows(worker, found, row, rows)) return false;
    if (found->scale && !found->mxfp4 && !read_factors(worker, found, row)) return false;
    for (int64_t first = 0; first < place->columns; first += COLUMNS) {
        const int64_t more = place->columns - first, columns = more < COLUMNS ? more : COLUMNS;
        char *tile = (char *)worker->tile;
        for (int64_t r = 0; r < rows; r++) {
            decode(worker, found, r, first, columns, tile + r * COLUMNS * size);
            if (columns < COLUMNS)
                look_at(worker, found, strip, tile + r * COLUMNS * size, columns);
        }
        if (columns == COLUMNS) look_at(worker, found, strip, tile, rows * COLUMNS);
        if (program->precision == HRT_FP64)
            turn_double(worker->tile, turned);
        else
            turn_float((const float *)worker->tile, (float *)turned);
        if (piece->slice.tensor.param->packing) {
            hrt_params_slice_pack(&piece->slice, first, row, columns, rows, ROWS,
                                  (const float *)turned, factor_of(worker, found, first));
            continue;
        }
        for (int64_t c = 0; c < columns; c++)
            hrt_params_slice_write(program, &piece->slice, (first + c) * place->rows + row, rows,
                                   (const char *)turned + c * ROWS * size);
    }
    return true;
}

// Reads `count` elements of one row of the file, from element `element` of the tensor on.
static bool read_run(struct worker *worker, const struct hrt_found *found, int64_t element,
                     int64_t count) {
    const struct hrt_place *place = &found->place;
    const int64_t bytes = found->entry->dtype->bits / 8, row = element / row_elements(place);
    const int64_t at =
        place->first + row * place->row_step + element % row_elements(place) * place->step;
    struct hrt_safetensors file = *found->file;
    file.error = &worker->error;
    if (!hrt_params_safetensors_bytes(&file, found->entry, at * bytes,
                                      (size_t)(((count - 1) * place->step + 1) * bytes),
                                      worker->bytes))
        return false;
    for (int64_t i = 0; place->step > 1 && i < count; i++)
        memmove(worker->bytes + i * bytes, worker->bytes + i * place->step * bytes, (size_t)bytes);
    return true;
}

// Rows are rows of ours, whose elements may lie apart. A strip is the part of the tensor's that is in the slice.
static bool read_straight(struct worker *worker, const struct piece *piece, size_t strip,
                          int64_t own) {
    const struct hrt_program *program = worker->reading->program;
    const struct hrt_found *found = piece->found;
    const struct hrt_place *place = &found->place;
    const struct hrt_slice *slice = &piece->slice;
    const int64_t row = own / runs_of_row(place), begin = row * row_elements(place);
    const int64_t from = later(begin + own % runs_of_row(place) * RUN, slice->first);
    const int64_t to =
        sooner(sooner(begin + (own % runs_of_row(place) + 1) * RUN, begin + row_elements(place)),
               slice->first + slice->run);
    const int64_t tile = ROWS * COLUMNS, count = to - from;
    if (!read_run(worker, found, from, count)) return false;
    for (int64_t i = 0; i < count; i += tile) {
        const int64_t some = sooner(count - i, tile);
        decode(worker, found, 0, i, some, worker->tile);
        look_at(worker, found, strip, worker->tile, some);
        hrt_params_slice_write(program, slice, from + i, some, worker->tile);
    }
    return true;
}

// The same of elements that stay packed. A strip is those that are packed together.
static bool read_unit(struct worker *worker, const struct piece *piece, size_t strip, int64_t own) {
    const struct hrt_slice *slice = &piece->slice;
    const int64_t row = row_elements(&piece->found->place);
    const int64_t unit = hrt_params_unit(slice->tensor.param), from = slice->first + own * unit;
    const int64_t to = sooner(from + unit, slice->first + slice->run);
    for (int64_t at = from, some; at < to; at += some) {
        some = sooner(sooner(to - at, row - at % row), RUN);
        if (!read_run(worker, piece->found, at, some)) return false;
        decode(worker, piece->found, 0, 0, some, worker->unit + (at - from));
    }
    look_at(worker, piece->found, strip, worker->unit, to - from);
    hrt_params_slice_write(worker->reading->program, slice, from, to - from, worker->unit);
    return true;
}

// ---- threads

static bool read_strip(struct worker *worker, size_t strip) {
    const struct reading *reading = worker->reading;
    size_t low = 0, high = reading->pieces; // The piece whose strip it is.
    while (high - low > 1) {
        const size_t middle = (low + high) / 2;
        if (reading->first[middle] <= strip)
            low = middle;
        else
            high = middle;
    }
    const struct piece *piece = &reading->piece[low];
    const struct hrt_place *place = &piece->found->place;
    const int64_t own = (int64_t)(strip - reading->first[low]), first = piece->slice.first;
    if (place->turned) return read_turned(worker, piece, strip, first + own * ROWS);
    if (piece->slice.tensor.param->packing) return read_unit(worker, piece, strip, own);
    return read_straight(worker, piece, strip, strip_of(place, first) + own);
}

static void *make(size_t bytes) {
    return malloc(bytes + 1);
}

static bool open_worker(struct worker *worker, const struct reading *reading) {
    *worker = (struct worker){.reading = reading, .odd = SIZE_MAX};
    worker->bytes = make(reading->strip_bytes);
    worker->exponents = make(reading->strip_bytes / HRT_MXFP4_BYTES);
    worker->factors = make(reading->strip_bytes / ROWS / HRT_SCALED * 8 + 8);
    worker->unit = make(reading->unit_bytes);
    return (worker->bytes && worker->exponents && worker->factors && worker->unit) ||
           hrt_fail(&worker->error, "out of memory");
}

static void close_worker(struct worker *worker) {
    free(worker->bytes);
    free(worker->exponents);
    free(worker->factors);
    free(worker->unit);
    free(worker);
}

// The earliest value of all threads that is not finite, and one error.
static void gather(const struct worker *worker, bool sound, size_t *odd, double *value,
                   struct hrt_error *error, bool *failed) {
    if (worker->odd < *odd) {
        *odd = worker->odd;
        *value = worker->value;
    }
    if (!sound && !*failed) hrt_fail(error, "%s", worker->error.text);
    *failed = *failed || !sound;
}

static void doubt(const struct reading *reading, size_t strip, double value,
                  struct hrt_store_doubts *doubts) {
    size_t i = 0;
    while (reading->first[i + 1] <= strip) i++;
    const struct hrt_found *found = reading->piece[i].found;
    snprintf(doubts->values, sizeof doubts->values,
             "'%.150s': tensor '%.200s' has values that are not finite (%g)", found->file->path,
             found->entry->name, value);
}

static bool read_all(const struct reading *reading, struct hrt_store_doubts *doubts,
                     struct hrt_error *error) {
    const size_t strips = reading->first[reading->pieces];
    size_t odd = SIZE_MAX;
    double value = 0;
    bool failed = false;
#pragma omp parallel
    {
        struct worker *worker = malloc(sizeof *worker), none = {.odd = SIZE_MAX};
        bool sound = worker ? open_worker(worker, reading) : hrt_fail(&none.error, "out of memory");
#pragma omp for schedule(dynamic, STRIPS) nowait
        for (size_t strip = 0; strip < strips; strip++) sound = sound && read_strip(worker, strip);
#pragma omp critical
        gather(worker ? worker : &none, sound, &odd, &value, error, &failed);
        if (worker) close_worker(worker);
    }
    if (odd < SIZE_MAX && doubts && !*doubts->values) doubt(reading, odd, value, doubts);
    return !failed;
}

// ---- tensors

// The tensors of a file, slice by slice.
struct walk {
    const struct hrt_buffer *buffer;
    const struct hrt_found *found;
    size_t count, at;
    struct hrt_slice slice;
};

static void begin_tensor(struct walk *walk) {
    const struct hrt_place *place = &walk->found[walk->at].place;
    walk->slice = (struct hrt_slice){.tensor = walk->found[walk->at].tensor,
                                     .columns = place->turned ? place->rows : 0};
}

static bool step(struct walk *walk) {
    while (walk->at < walk->count) {
        if (hrt_params_slice_next(walk->buffer, &walk->slice)) return true;
        if (++walk->at < walk->count) begin_tensor(walk);
    }
    return false;
}

// Takes as many slices as there is room for. Returns whether there are more.
static bool fill_reading(struct reading *reading, struct walk *walk) {
    bool more = true;
    reading->pieces = reading->strip_bytes = reading->unit_bytes = 0;
    while (more && reading->pieces < TOGETHER &&
           hrt_params_slice_room(walk->buffer, &walk->slice)) {
        const size_t number = reading->pieces++;
        const size_t bytes = strip_bytes(&walk->found[walk->at]);
        reading->piece[number] = (struct piece){&walk->found[walk->at], walk->slice};
        reading->first[number + 1] = reading->first[number] + strips_of(&reading->piece[number]);
        const size_t unit = (size_t)hrt_params_unit(walk->slice.tensor.param) * sizeof(float);
        if (bytes > reading->strip_bytes) reading->strip_bytes = bytes;
        if (unit > reading->unit_bytes) reading->unit_bytes = unit;
        more = step(walk);
    }
    return more;
}

bool hrt_store_read_found(const struct hrt_buffer *buffer, const struct hrt_found *found,
                          size_t count, struct hrt_store_doubts *doubts, struct hrt_error *error) {
    struct walk walk = {.buffer = buffer, .found = found, .count = count};
    struct reading *reading = calloc(1, sizeof *reading);
    bool read = reading || hrt_fail(error, "out of memory");
    if (count > 0) begin_tensor(&walk);
    for (bool more = read && step(&walk); more && read;) {
        reading->program = buffer->placement->program;
        hrt_params_staging_reset(buffer);
        more = fill_reading(reading, &walk);
        read = read_all(reading, doubts, error);
        for (size_t i = 0; read && i < reading->pieces; i++)
            hrt_params_slice_put(buffer, &reading->piece[i].slice);
    }
    free(reading);
    return read;
}
