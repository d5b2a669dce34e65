// The file of --record-loads and --route=trace:FILE, which hecate-replay reads, too: how many
// tokens each expert got.
//
//   "HLOADS1\n"
//   u32 iterations, layers, devices, microbatches, experts
//   u16 rows [iteration][layer][device][microbatch][expert]
//
// All little-endian. A training program writes one iteration per step, its ranks as devices. The
// number of iterations is 0 until the run has ended.
#ifndef HECATE_RUNTIME_ROUTE_LOADS_FILE_H
#define HECATE_RUNTIME_ROUTE_LOADS_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/error.h"

struct hrt_loads_shape {
    uint32_t iterations, layers, devices, microbatches, experts;
};

struct hrt_loads_file {
    const char *path; // Borrowed.
    int fd;
    struct hrt_loads_shape shape;
    uint16_t *row; // [layers][devices][microbatches][experts]: one iteration.
    size_t row_bytes;
};

// Opens a file that exists. Its sizes must agree with each other and its experts with `experts`.
bool hrt_route_loads_file_open(struct hrt_loads_file *file, const char *path, int64_t experts,
                               struct hrt_error *error);

// Reads an iteration (modulo those of the file) into `row`.
bool hrt_route_loads_file_read(struct hrt_loads_file *file, int64_t iteration,
                               struct hrt_error *error);

// Writes the head of a new file of no iterations; `shape.iterations` is ignored.
bool hrt_route_loads_file_create(struct hrt_loads_file *file, const char *path,
                                 struct hrt_loads_shape shape, struct hrt_error *error);

// Opens a file that another run has written, of the same shape, to continue after its first `shape.iterations`; all
// after them is cut off, and it is unfinished again.
bool hrt_route_loads_file_go_on(struct hrt_loads_file *file, const char *path,
                                struct hrt_loads_shape shape, struct hrt_error *error);

// Writes `row` as the iteration after the last one written.
bool hrt_route_loads_file_append(struct hrt_loads_file *file, struct hrt_error *error);

// Writes into the head how many iterations there are.
bool hrt_route_loads_file_finish(struct hrt_loads_file *file, struct hrt_error *error);

// Closes the file and frees. May be called on a zeroed struct; false: the system refused.
bool hrt_route_loads_file_close(struct hrt_loads_file *file, struct hrt_error *error);

#endif
