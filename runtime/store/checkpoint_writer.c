// Each file by a thread, block by block.
#include "runtime/store/checkpoint_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>

enum { BLOCK = 1 << 18, PUSH = 8 << 20 }; // Bytes.

// Puts a block. The disk begins with what is there while the next blocks are read and summed up; the sync at the end
// waits for it.
static bool put(struct hrt_sink *sink, const void *block, size_t bytes) {
    const int64_t before = sink->bytes / PUSH;
    if (!hrt_sink_put(sink, block, bytes)) return false;
    if (sink->bytes / PUSH > before)
        sync_file_range(fileno(sink->file), before * PUSH, PUSH, SYNC_FILE_RANGE_WRITE);
    return true;
}

static bool write_tensor(const struct hrt_written *file, struct hrt_sink *sink, size_t at,
                         void *block) {
    struct hrt_writer *writer = file->writer;
    const int64_t element = hrt_element_bytes(writer->program->precision);
    const int64_t size = hrt_param_size(file->listing.entry[at].tensor.param);
    for (int64_t first = 0; first < size; first += BLOCK / element) {
        const int64_t left = size - first;
        const int64_t count = left < BLOCK / element ? left : BLOCK / element;
        if (atomic_load(&writer->stop)) return errno = ECANCELED, false;
        hrt_snapshot_read(writer->snapshot, file->first + at, first, count, block);
        if (!put(sink, block, (size_t)(count * element))) return false;
    }
    hrt_snapshot_pass(writer->snapshot, file->first + at);
    return true;
}

static bool fill(struct hrt_sink *sink, void *context) {
    const struct hrt_written *file = context;
    void *block = malloc(BLOCK);
    bool written =
        block && hrt_safetensors_begin_listing(sink, file->writer->program, &file->listing);
    for (size_t i = 0; written && i < file->listing.entries; i++)
        written = write_tensor(file, sink, i, block);
    const int reason = block ? errno : ENOMEM;
    free(block);
    errno = reason;
    return written;
}

static void *write_file(void *context) {
    struct hrt_written *file = context;
    struct hrt_writer *writer = file->writer;
    file->written = hrt_part_write(writer->folder, &file->part, fill, file, &file->error);
    for (size_t i = 0; i < file->listing.entries; i++)
        hrt_snapshot_pass(writer->snapshot, file->first + i);
    atomic_fetch_add(&writer->ended, 1);
    return NULL;
}

void hrt_writer_start(struct hrt_writer *writer) {
    sigset_t all, before;
    size_t first = 0;
    sigfillset(&all); // Signals are the main thread's.
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (int i = 0; i < HRT_VALUE_FILES; i++) {
        struct hrt_written *file = &writer->file[i];
        file->writer = writer;
        file->first = first;
        first += file->listing.entries;
        file->threaded = pthread_create(&file->thread, NULL, write_file, file) == 0;
        if (!file->threaded) write_file(file);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

bool hrt_writer_has_ended(const struct hrt_writer *writer) {
    return atomic_load(&writer->ended) == HRT_VALUE_FILES;
}

bool hrt_writer_finish(struct hrt_writer *writer, struct hrt_error *error) {
    bool written = true;
    for (int i = 0; i < HRT_VALUE_FILES; i++) {
        struct hrt_written *file = &writer->file[i];
        if (file->threaded) pthread_join(file->thread, NULL);
        file->threaded = false;
        if (written && !file->written) *error = file->error;
        written &= file->written;
    }
    return written;
}

void hrt_writer_stop(struct hrt_writer *writer) {
    atomic_store(&writer->stop, true);
}
