// The file of --record-ids and --route=ids:FILE: the experts of every token of a run.
//
//   "HROUTE1\n"
//   u32 sequences    0 until the run that writes it has ended
//   u32 positions    tokens of a sequence
//   u32 layers       routers of the model: set by set, in the order of its tables
//   u32 experts, u32 topk    of each layer
//   u16 ids [sequence][layer][position][pick]
//
// All little-endian. Sequences have their global number of training, so that any number of ranks
// and any microbatch writes the same file and can read it.
#ifndef HECATE_RUNTIME_ROUTE_IDS_FILE_H
#define HECATE_RUNTIME_ROUTE_IDS_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/error.h"

struct hrt_ids_layer {
    int64_t experts, topk;
};

struct hrt_ids_file {
    const char *path; // Borrowed.
    int fd;           // -1: not open.
    bool created;     // By this process: which writes the head.
    int64_t sequences, positions;
    int layers;
    const struct hrt_ids_layer *layer; // [layers], borrowed.
    uint16_t *record;                  // One sequence.
    size_t record_bytes, head_bytes;
};

// Sets the shape, from which all else follows, and takes memory. False: out of memory.
bool hrt_route_ids_file_shape(struct hrt_ids_file *file, const char *path, int64_t positions,
                              int layers, const struct hrt_ids_layer *layer,
                              struct hrt_error *error);

// Opens a file that exists for reading. It must have the shape that was set.
bool hrt_route_ids_file_open(struct hrt_ids_file *file, struct hrt_error *error);

// Opens the file for writing; `create` empties it and writes its head.
bool hrt_route_ids_file_create(struct hrt_ids_file *file, bool create, struct hrt_error *error);

// Reads a sequence into ids[layer], [positions][topk] each. Every id is an expert of its layer and
// those of a token are different, or `error` says where they are not, and `ids` stay as they were.
bool hrt_route_ids_file_read(struct hrt_ids_file *file, int64_t sequence, int32_t *const *ids,
                             struct hrt_error *error);

// Opens a file that another run has written, of the same shape, to continue after its first `sequences`; later ones are
// cut off, and it is unfinished again.
bool hrt_route_ids_file_go_on(struct hrt_ids_file *file, int64_t sequences,
                              struct hrt_error *error);

bool hrt_route_ids_file_write(struct hrt_ids_file *file, int64_t sequence,
                              const int32_t *const *ids, struct hrt_error *error);

// Writes into the head that `sequences` are there. Call it in the process that created the file.
bool hrt_route_ids_file_finish(struct hrt_ids_file *file, int64_t sequences,
                               struct hrt_error *error);

// Closes the file and frees. May be called on a zeroed struct; false: the system refused.
bool hrt_route_ids_file_close(struct hrt_ids_file *file, struct hrt_error *error);

#endif
