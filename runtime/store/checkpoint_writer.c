// Each file by a thread, block by block.
#include "runtime/store/checkpoint_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 1 << 18, PUSH = 8 << 20 }; // Bytes.

// Puts a block. The disk begins with what is there while the next blocks are read and summed up; the sync at the end
// waits for it.
static bool put(struct hrt_sink *sink, const void *block, size_t bytes) {
    const int64_t before = sink->bytes / PUSH;
    if (!hrt_params_sink_put(sink, block, bytes)) return false;
    if (sink->bytes / PUSH > before)
        sync_file_range(fileno(sink->file), before * PUSH, PUSH, SYNC_FILE_RANGE_WRITE);
    return true;
}

static bool write_slice(struct hrt_writer *writer, struct hrt_sink *sink, size_t number,
                        void *block) {
    const int64_t element = hrt_params_element_bytes(writer->program->precision);
    int64_t first, left;
    hrt_params_snapshot_slice(writer->snapshot, number, &first, &left);
    for (int64_t count; left > 0; first += count, left -= count) {
        count = left < BLOCK / element ? left : BLOCK / element;
        if (!hrt_params_snapshot_read(writer->snapshot, number, first, count, block))
            return errno = ECANCELED, false;
        if (!put(sink, block, (size_t)(count * element))) return false;
    }
    hrt_params_snapshot_pass(writer->snapshot, number);
    return true;
}

static bool fill(struct hrt_sink *sink, void *context) {
    const struct hrt_written *file = context;
    if (file->whole.data) return hrt_params_sink_put(sink, file->whole.data, file->whole.bytes);
    void *block = malloc(BLOCK);
    bool written =
        block && hrt_params_safetensors_begin_listing(sink, file->writer->program, &file->listing);
    for (size_t i = 0; written && i < file->slices; i++)
        written = write_slice(file->writer, sink, file->first + i, block);
    const int reason = block ? errno : ENOMEM;
    free(block);
    errno = reason;
    return written;
}

static void end(struct hrt_written *file) {
    struct hrt_writer *writer = file->writer;
    for (size_t i = 0; i < file->slices; i++)
        hrt_params_snapshot_pass(writer->snapshot, file->first + i);
    atomic_fetch_add(&writer->ended, 1);
}

static void *write_file(void *context) {
    struct hrt_written *file = context;
    file->written =
        hrt_store_part_write(file->writer->folder, &file->part, fill, file, &file->error);
    end(file);
    return NULL;
}

void hrt_store_writer_start(struct hrt_writer *writer) {
    sigset_t all, before;
    sigfillset(&all); // Signals are the main thread's.
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (int i = 0; i < HRT_RANK_FILES; i++) {
        struct hrt_written *file = &writer->file[i];
        file->writer = writer;
        file->written = i == HRT_LOADS_FILE && !file->whole.data; // None.
        if (file->written) end(file);
        if (file->written) continue;
        const int failed = pthread_create(&file->thread, NULL, write_file, file);
        file->threaded = !failed;
        if (!failed) continue;
        hrt_fail(&file->error, "cannot start a thread: %s", strerror(failed));
        end(file);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    hrt_params_snapshot_bring(writer->snapshot, false);
}

bool hrt_store_writer_has_ended(const struct hrt_writer *writer) {
    return atomic_load(&writer->ended) == HRT_RANK_FILES;
}

bool hrt_store_writer_finish(struct hrt_writer *writer, struct hrt_error *error) {
    bool written = true;
    hrt_params_snapshot_bring(writer->snapshot, true);
    for (int i = 0; i < HRT_RANK_FILES; i++) {
        struct hrt_written *file = &writer->file[i];
        if (file->threaded) pthread_join(file->thread, NULL);
        file->threaded = false;
        if (written && !file->written) *error = file->error;
        written &= file->written;
    }
    return written;
}

void hrt_store_writer_stop(struct hrt_writer *writer) {
    hrt_params_snapshot_stop(writer->snapshot);
}
