// What one rank writes of a checkpoint, by a thread of its own, while the run goes on and changes the values.
#ifndef HECATE_RUNTIME_CHECKPOINT_WRITER_H
#define HECATE_RUNTIME_CHECKPOINT_WRITER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "runtime/base/error.h"
#include "runtime/checkpoint/part.h"
#include "runtime/checkpoint/values.h"
#include "runtime/params/listing.h"
#include "runtime/params/snapshot.h"

struct hrt_writer {
    char folder[PATH_MAX]; // What the caller sets: these,
    const struct hrt_program *program;
    struct hrt_listing listing[HRT_VALUE_FILES];
    struct hrt_snapshot *snapshot; // of the listings' tensors, one listing behind the other,
    struct hrt_part
        part[HRT_VALUE_FILES]; // and their names. Size and checksum are set when it has ended.
    bool threaded;
    pthread_t thread;
    atomic_bool stop, ended;
    bool written;
    struct hrt_error error;
};

// Begins. Where there can be no thread it returns when all is written.
void hrt_writer_start(struct hrt_writer *writer);

// Returns when the files are written and synced, or cannot be; false: the error says why.
bool hrt_writer_finish(struct hrt_writer *writer, struct hrt_error *error);

// Soon ends it; the files are then of no use.
void hrt_writer_stop(struct hrt_writer *writer);

#endif
