// Opening and reading one file of teacher entries.
#include "runtime/data/teacher.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/data/read.h"
#include "runtime/data/weights.h"

static const char magic[8] = "hecteach"; // Without its end.

enum { VERSION = 1, ROW_BYTES = 1 << 16 };
enum { AT_VERSION = 8, AT_ENTRIES = 12, AT_TOKENS = 16, AT_VOCABULARY = 24 };
enum { AT_CHECKSUM = 28, AT_ID_BYTES = 32, AT_LOG_BYTES = 36 };

static uint32_t word_at(const unsigned char *header, int at) {
    uint32_t word;
    memcpy(&word, header + at, sizeof word);
    return word;
}

static void put_word(unsigned char *header, int at, int64_t value) {
    const uint32_t word = (uint32_t)value;
    memcpy(header + at, &word, sizeof word);
}

void hrt_data_teacher_header(const struct hrt_teacher_file *file,
                             unsigned char header[HRT_TEACHER_HEADER]) {
    memset(header, 0, HRT_TEACHER_HEADER);
    memcpy(header, magic, sizeof magic);
    put_word(header, AT_VERSION, VERSION);
    put_word(header, AT_ENTRIES, file->entries);
    memcpy(header + AT_TOKENS, &file->tokens, sizeof file->tokens);
    put_word(header, AT_VOCABULARY, file->vocabulary);
    put_word(header, AT_CHECKSUM, file->checksum);
    put_word(header, AT_ID_BYTES, file->id_bytes);
    put_word(header, AT_LOG_BYTES, file->log_bytes);
}

static int64_t row_bytes(const struct hrt_teacher_file *file) {
    return file->entries * (file->id_bytes + file->log_bytes);
}

// ---- opening

static bool is_width(int bytes) {
    return bytes == 2 || bytes == 4;
}

static bool check_header(const struct hrt_teacher_file *file, const unsigned char *header,
                         int64_t vocabulary, struct hrt_error *error) {
    const char *path = file->path;
    if (memcmp(header, magic, sizeof magic) != 0)
        return hrt_fail(error,
                        "'%s' is no teacher file: it does not begin with "
                        "\"hecteach\" (eval --write-teacher makes one)",
                        path);
    if (word_at(header, AT_VERSION) != VERSION)
        return hrt_fail(error, "'%s' has version %" PRIu32 " of its format; known is version %d",
                        path, word_at(header, AT_VERSION), VERSION);
    if (file->entries < 1 || file->entries > HRT_TEACHER_ENTRIES)
        return hrt_fail(error, "'%s' has %" PRId64 " entries for a token, not 1 to %d", path,
                        file->entries, HRT_TEACHER_ENTRIES);
    if (!is_width(file->id_bytes) || !is_width(file->log_bytes))
        return hrt_fail(error, "'%s' has ids of %d and log-probabilities of %d bytes, not 2 or 4",
                        path, file->id_bytes, file->log_bytes);
    if (file->vocabulary > vocabulary)
        return hrt_fail(error, "'%s' is of a vocabulary of %" PRId64 ", the model's has %" PRId64,
                        path, file->vocabulary, vocabulary);
    return true;
}

static bool check_size(const struct hrt_teacher_file *file, int64_t bytes,
                       struct hrt_error *error) {
    const int64_t row = row_bytes(file), room = bytes - HRT_TEACHER_HEADER;
    if (file->tokens >= 0 && file->tokens <= room / row && file->tokens * row == room) return true;
    return hrt_fail(error,
                    "'%s' is damaged: its header says %" PRId64 " tokens of %" PRId64
                    " bytes, and %" PRId64 " bytes follow",
                    file->path, file->tokens, row, room);
}

static bool read_header(struct hrt_teacher_file *file, int64_t vocabulary,
                        struct hrt_error *error) {
    unsigned char header[HRT_TEACHER_HEADER];
    struct stat status;
    if (fstat(file->fd, &status) != 0)
        return hrt_fail(error, "cannot read '%s': %s", file->path, strerror(errno));
    if (!S_ISREG(status.st_mode)) return hrt_fail(error, "'%s' is not a regular file", file->path);
    if (status.st_size < HRT_TEACHER_HEADER)
        return hrt_fail(error, "'%s' is too short: %" PRId64 " bytes, and the header alone has %d",
                        file->path, (int64_t)status.st_size, HRT_TEACHER_HEADER);
    if (!hrt_data_read_at(file->fd, header, sizeof header, 0))
        return hrt_data_fail_read(file->path, error);
    file->entries = word_at(header, AT_ENTRIES);
    memcpy(&file->tokens, header + AT_TOKENS, sizeof file->tokens);
    file->vocabulary = word_at(header, AT_VOCABULARY);
    file->checksum = word_at(header, AT_CHECKSUM);
    file->id_bytes = (int)word_at(header, AT_ID_BYTES);
    file->log_bytes = (int)word_at(header, AT_LOG_BYTES);
    return check_header(file, header, vocabulary, error) && check_size(file, status.st_size, error);
}

bool hrt_data_teacher_file_open(struct hrt_teacher_file *file, const char *path, int64_t vocabulary,
                                struct hrt_error *error) {
    *file = (struct hrt_teacher_file){.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
    if (file->fd < 0) return hrt_fail(error, "cannot open '%s': %s", path, strerror(errno));
    file->path = strdup(path);
    if (!file->path) hrt_fail(error, "out of memory");
    if (file->path && read_header(file, vocabulary, error)) return true;
    hrt_data_teacher_file_close(file);
    return false;
}

void hrt_data_teacher_file_close(struct hrt_teacher_file *file) {
    if (file->fd >= 0) close(file->fd);
    free(file->path);
    *file = (struct hrt_teacher_file){.fd = -1};
}

// ---- reading

static uint32_t id_at(const void *ids, int bytes, int64_t i) {
    uint16_t narrow;
    uint32_t wide;
    if (bytes == 2) {
        memcpy(&narrow, (const char *)ids + 2 * i, sizeof narrow);
        return narrow;
    }
    memcpy(&wide, (const char *)ids + 4 * i, sizeof wide);
    return wide;
}

static float log_at(const void *logs, int bytes, int64_t i) {
    float value;
    if (bytes == 2) return hrt_data_half_value((uint16_t)id_at(logs, 2, i));
    memcpy(&value, (const char *)logs + 4 * i, sizeof value);
    return value;
}

static bool read_row(const struct hrt_teacher_file *file, int64_t token, const void *row,
                     int32_t *ids, float *log_probs, struct hrt_error *error) {
    const void *logs = (const char *)row + file->entries * file->id_bytes;
    for (int64_t k = 0; k < file->entries; k++) {
        const uint32_t id = id_at(row, file->id_bytes, k);
        const float value = log_at(logs, file->log_bytes, k);
        if (id >= file->vocabulary)
            return hrt_fail(error,
                            "'%s' has the id %" PRIu32 " at token %" PRId64
                            ", outside of its vocabulary of %" PRId64,
                            file->path, id, token, file->vocabulary);
        if (isnan(value) || value == INFINITY)
            return hrt_fail(error, "'%s' has the log-probability %g at token %" PRId64, file->path,
                            (double)value, token);
        ids[k] = (int32_t)id;
        log_probs[k] = value;
    }
    return true;
}

bool hrt_data_teacher_file_read(const struct hrt_teacher_file *file, int64_t first, int64_t count,
                                int32_t *ids, float *log_probs, struct hrt_error *error) {
    char block[ROW_BYTES];
    const int64_t row = row_bytes(file), most = ROW_BYTES / row;
    _Static_assert(HRT_TEACHER_ENTRIES * 8 <= ROW_BYTES, "a row fits");
    for (int64_t done = 0; done < count;) {
        const int64_t rows = count - done < most ? count - done : most;
        if (!hrt_data_read_at(file->fd, block, (size_t)(rows * row),
                              HRT_TEACHER_HEADER + (first + done) * row))
            return hrt_data_fail_read(file->path, error);
        for (int64_t i = 0; i < rows; i++, done++) {
            const int64_t at = done * file->entries;
            if (!read_row(file, first + done, block + i * row, ids + at, log_probs + at, error))
                return false;
        }
    }
    return true;
}
