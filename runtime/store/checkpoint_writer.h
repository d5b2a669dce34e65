// One rank's part of a checkpoint, written by a thread of its own, while the run goes on and changes the values.
#ifndef HECATE_RUNTIME_STORE_CHECKPOINT_WRITER_H
#define HECATE_RUNTIME_STORE_CHECKPOINT_WRITER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "runtime/base/error.h"
#include "runtime/params/listing.h"
#include "runtime/params/snapshot.h"
#include "runtime/store/checkpoint_part.h"
#include "runtime/store/checkpoint_values.h"

struct hrt_writer;

// One of its files, with a thread of its own: so the disk has work while another file's values are read and summed up,
// and the files grow together, in the order in which the optimizer changes values.
struct hrt_written {
    struct hrt_listing listing;  // The caller sets this,
    struct hrt_whole_file whole; // or all of the file, or nothing: then there is none;
    struct hrt_part part;        // and its name. Size and checksum are set when it has ended.
    size_t first, slices;        // And the numbers of its slices in the snapshot.
    struct hrt_writer *writer;
    bool threaded, written;
    pthread_t thread;
    struct hrt_error error;
};

struct hrt_writer {
    char folder[PATH_MAX]; // The caller sets these,
    const struct hrt_program *program;
    struct hrt_snapshot *snapshot; // of the listings' tensors.
    struct hrt_written file[HRT_RANK_FILES];
    atomic_int ended; // Files.
};

// Begins. Brings as many slices of a device as the copies have room for; the others come before
// values change, and in hrt_store_writer_finish.
void hrt_store_writer_start(struct hrt_writer *writer);

// Returns when the files are written and synced, or cannot be; false: the error says why.
bool hrt_store_writer_finish(struct hrt_writer *writer, struct hrt_error *error);

// Whether nothing more is to be waited for. Any thread may call it.
bool hrt_store_writer_has_ended(const struct hrt_writer *writer);

// Soon ends it; the files are then of no use.
void hrt_store_writer_stop(struct hrt_writer *writer);

#endif
