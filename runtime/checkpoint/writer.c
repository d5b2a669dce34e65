// One file after the other, block by block.
#include "runtime/checkpoint/writer.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

enum { BLOCK = 1 << 18 }; // Bytes.

struct filling {
    struct hrt_writer *writer;
    const struct hrt_listing *listing;
    size_t first; // The number of the listing's first tensor.
};

static bool write_tensor(const struct filling *filling, struct hrt_sink *sink, size_t at,
                         void *block) {
    struct hrt_writer *writer = filling->writer;
    const int64_t element = hrt_element_bytes(writer->program->precision);
    const int64_t size = hrt_param_size(filling->listing->entry[at].tensor.param);
    for (int64_t first = 0; first < size; first += BLOCK / element) {
        const int64_t left = size - first;
        const int64_t count = left < BLOCK / element ? left : BLOCK / element;
        if (atomic_load(&writer->stop)) return errno = ECANCELED, false;
        hrt_snapshot_read(writer->snapshot, filling->first + at, first, count, block);
        if (!hrt_sink_put(sink, block, (size_t)(count * element))) return false;
    }
    hrt_snapshot_pass(writer->snapshot, filling->first + at);
    return true;
}

static bool fill(struct hrt_sink *sink, void *context) {
    const struct filling *filling = context;
    void *block = malloc(BLOCK);
    bool written =
        block && hrt_safetensors_begin_listing(sink, filling->writer->program, filling->listing);
    for (size_t i = 0; written && i < filling->listing->entries; i++)
        written = write_tensor(filling, sink, i, block);
    const int reason = block ? errno : ENOMEM;
    free(block);
    errno = reason;
    return written;
}

static void *write_all(void *context) {
    struct hrt_writer *writer = context;
    struct filling filling = {.writer = writer};
    bool written = true;
    for (int i = 0; written && i < HRT_VALUE_FILES; i++) {
        filling.listing = &writer->listing[i];
        written = hrt_part_write(writer->folder, &writer->part[i], fill, &filling, &writer->error);
        filling.first += filling.listing->entries;
    }
    hrt_snapshot_pass_all(writer->snapshot);
    writer->written = written;
    atomic_store(&writer->ended, true);
    return NULL;
}

void hrt_writer_start(struct hrt_writer *writer) {
    sigset_t all, before;
    sigfillset(&all); // Signals are the main thread's.
    pthread_sigmask(SIG_SETMASK, &all, &before);
    writer->threaded = pthread_create(&writer->thread, NULL, write_all, writer) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!writer->threaded) write_all(writer);
}

bool hrt_writer_finish(struct hrt_writer *writer, struct hrt_error *error) {
    if (writer->threaded) pthread_join(writer->thread, NULL);
    writer->threaded = false;
    if (!writer->written) *error = writer->error;
    return writer->written;
}

void hrt_writer_stop(struct hrt_writer *writer) {
    atomic_store(&writer->stop, true);
}
