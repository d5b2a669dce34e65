// A file of records, each a message of protocol buffers: Event { wall_time = 1, step = 2, file_version = 3, summary = 5
// }, Summary { value = 1 }, Value { tag = 1, simple_value = 2 }. A record is its length, 8 bytes, its checksum, the
// data, its checksum; all little endian.
#include "runtime/log/tensorboard.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio_ext.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "files/files.h"
#include "runtime/base/crc32c.h"
#include "runtime/log/numbers.h"
#include "runtime/train/routers.h"

enum { MESSAGE = 4096, LENGTH_DELIMITED = 2, VARINT = 0, FIXED64 = 1, FIXED32 = 5 };

struct message {
    unsigned char data[MESSAGE];
    size_t bytes;
};

static void add_bytes(struct message *m, const void *data, size_t bytes) {
    if (m->bytes + bytes > MESSAGE) return; // An event is written before that.
    memcpy(m->data + m->bytes, data, bytes);
    m->bytes += bytes;
}

static void add_varint(struct message *m, uint64_t number) {
    do {
        const unsigned char byte = (unsigned char)((number & 127) | (number > 127 ? 128 : 0));
        add_bytes(m, &byte, 1);
        number >>= 7;
    } while (number > 0);
}

static void add_key(struct message *m, unsigned field, unsigned wire) {
    add_varint(m, field << 3 | wire);
}

static void add_field(struct message *m, unsigned field, const void *data, size_t bytes) {
    add_key(m, field, LENGTH_DELIMITED);
    add_varint(m, bytes);
    add_bytes(m, data, bytes);
}

// Rotated and shifted, as the format asks.
static uint32_t masked_checksum(const void *data, size_t bytes) {
    const uint32_t sum = hrt_base_crc32c(0, data, bytes);
    return (sum >> 15 | sum << 17) + UINT32_C(0xa282ead8);
}

static bool write_record(struct hrt_tensorboard *board, const struct message *m,
                         struct hrt_error *error) {
    const uint64_t length = m->bytes;
    const uint32_t of_length = masked_checksum(&length, sizeof length),
                   of_data = masked_checksum(m->data, m->bytes);
    fwrite(&length, sizeof length, 1, board->file);
    fwrite(&of_length, sizeof of_length, 1, board->file);
    fwrite(m->data, 1, m->bytes, board->file);
    fwrite(&of_data, sizeof of_data, 1, board->file);
    if (fflush(board->file) == 0 && !ferror(board->file)) return true;
    hrt_fail(error, "cannot write '%s': %s", board->path, strerror(errno));
    __fpurge(board->file);
    fclose(board->file);
    board->file = NULL;
    return false;
}

static void begin_event(struct message *m) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const double seconds = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
    m->bytes = 0;
    add_key(m, 1, FIXED64);
    add_bytes(m, &seconds, sizeof seconds);
}

bool hrt_log_tensorboard_open(struct hrt_tensorboard *board, const char *folder,
                              struct hrt_error *error) {
    static const char version[] = "brain.Event:2";
    char host[64] = "";
    const char *why;
    struct message m;
    *board = (struct hrt_tensorboard){0};
    if (!folder) return true;
    if (!hf_make_folder(folder))
        return hrt_fail(error, "cannot make the folder '%s': %s", folder, strerror(errno));
    gethostname(host, sizeof host - 1);
    snprintf(board->path, sizeof board->path, "%s/events.out.tfevents.%" PRId64 ".%s.%d", folder,
             (int64_t)time(NULL), host, (int)getpid());
    board->file = hf_output(board->path, &why);
    if (!board->file) return hrt_fail(error, "cannot write '%s': %s", board->path, why);
    begin_event(&m);
    add_field(&m, 3, version, sizeof version - 1);
    return write_record(board, &m, error);
}

// An event is a message of so many bytes at most; a step may be several.
static bool write_event(struct hrt_tensorboard *board, int64_t step, struct message *summary,
                        struct hrt_error *error) {
    struct message event;
    begin_event(&event);
    add_key(&event, 2, VARINT);
    add_varint(&event, (uint64_t)step);
    add_field(&event, 5, summary->data, summary->bytes);
    summary->bytes = 0;
    return write_record(board, &event, error);
}

static bool add_number(struct hrt_tensorboard *board, int64_t step, struct message *summary,
                       const char *tag, double number, struct hrt_error *error) {
    struct message value = {.bytes = 0};
    const float simple = (float)number;
    add_field(&value, 1, tag, strlen(tag));
    add_key(&value, 2, FIXED32);
    add_bytes(&value, &simple, sizeof simple);
    add_field(summary, 1, value.data, value.bytes);
    return summary->bytes < MESSAGE / 2 || write_event(board, step, summary, error);
}

static bool add_routers(struct hrt_tensorboard *board, int64_t step, struct message *summary,
                        const struct hrt_load_counts *loads, struct hrt_error *error) {
    const struct hrt_program *program = loads->program;
    char tag[256];
    for (int i = 0; i < program->loads; i++) {
        const struct hrt_set *set = &program->set[program->load[i].set];
        const int64_t *count = hrt_train_load_counts_of(loads, i);
        for (int64_t layer = 0; layer < set->layers; layer++, count += set->experts) {
            const struct hrt_router router = hrt_train_router_of(count, set->experts);
            const char *const name[] = {"load", "entropy", "dead"};
            const double number[] = {router.load, router.entropy, (double)router.dead};
            for (int n = 0; n < 3; n++) {
                snprintf(tag, sizeof tag, "router_%s/%s.%" PRId64, name[n], set->name, layer);
                if (!add_number(board, step, summary, tag, number[n], error)) return false;
            }
        }
    }
    return true;
}

bool hrt_log_tensorboard_step(struct hrt_tensorboard *board, const struct hrt_step_report *step,
                              const struct hrt_load_counts *routers, double peak,
                              struct hrt_error *error) {
    struct hrt_number_of number[HRT_NUMBERS_OF];
    struct message summary = {.bytes = 0};
    if (!board->file) return true;
    const int count = hrt_log_numbers_of(step, peak, number);
    for (int i = 0; i < count; i++) {
        if (!add_number(board, step->step, &summary, number[i].tag, number[i].value, error))
            return false;
    }
    if (routers && !add_routers(board, step->step, &summary, routers, error)) return false;
    return summary.bytes == 0 || write_event(board, step->step, &summary, error);
}

bool hrt_log_tensorboard_close(struct hrt_tensorboard *board, struct hrt_error *error) {
    FILE *file = board->file;
    board->file = NULL;
    return !file || fclose(file) == 0 ||
           hrt_fail(error, "cannot write '%s': %s", board->path, strerror(errno));
}
