// Source: Megatron-LM, megatron/core/datasets/indexed_dataset.py: "MMIDIDX\0\0", version 1 (u64), type of tokens (u8),
// sequences S (u64), documents + 1 (u64), lengths i32 [S], byte positions i64 [S], first sequences of documents i64.
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/prepare/prepare.h"

enum { HEADER_BYTES = 34, TYPES = 9 };

static const int bytes_of_type[TYPES] = {0, 1, 1, 2, 4, 8, 0, 0, 2};

struct megatron {
    char *path, *bin_path;
    char *index; // The whole file.
    int bin, type;
    int64_t sequences, documents, bin_bytes;
    const char *lengths, *positions, *firsts; // In `index`; not aligned.
};

static int64_t number(const char *at, int64_t index) {
    int64_t value;
    memcpy(&value, at + index * (int64_t)sizeof value, sizeof value);
    return value;
}

static int64_t length_of(const struct megatron *m, int64_t sequence) {
    int32_t length;
    memcpy(&length, m->lengths + sequence * (int64_t)sizeof length, sizeof length);
    return length;
}

static bool read_all(int fd, char *out, int64_t bytes, int64_t offset) {
    while (bytes > 0) {
        const ssize_t got = pread(fd, out, (size_t)bytes, offset);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        out += got;
        offset += got;
        bytes -= got;
    }
    return true;
}

// Checks the index's header against its size.
static bool read_header(struct megatron *m, int64_t bytes, struct hrt_error *error) {
    if (bytes < HEADER_BYTES || memcmp(m->index, "MMIDIDX\0", 9) != 0)
        return hrt_fail(error, "'%s' is no index of Megatron: it does not begin with MMIDIDX",
                        m->path);
    if (number(m->index + 9, 0) != 1)
        return hrt_fail(error, "'%s' has version %" PRId64 "; only version 1 is known", m->path,
                        number(m->index + 9, 0));
    m->type = (unsigned char)m->index[17];
    if (m->type >= TYPES || bytes_of_type[m->type] == 0)
        return hrt_fail(error, "'%s': tokens of type %d are not known", m->path, m->type);
    m->sequences = number(m->index + 18, 0);
    const int64_t firsts = number(m->index + 26, 0); // One more than documents.
    const int64_t most = bytes / 4;
    if (m->sequences < 0 || m->sequences > most || firsts < 1 || firsts > most ||
        bytes != HEADER_BYTES + m->sequences * 12 + firsts * 8)
        return hrt_fail(error,
                        "'%s' is damaged: %" PRId64 " bytes do not hold %" PRId64
                        " sequences and the begins of %" PRId64 " documents",
                        m->path, bytes, m->sequences, firsts);
    m->documents = firsts - 1;
    m->lengths = m->index + HEADER_BYTES;
    m->positions = m->lengths + m->sequences * 4;
    m->firsts = m->positions + m->sequences * 8;
    return true;
}

static bool check_places(const struct megatron *m, struct hrt_error *error) {
    for (int64_t s = 0; s < m->sequences; s++) {
        const int64_t at = number(m->positions, s), length = length_of(m, s);
        if (at < 0 || length < 0 || at > m->bin_bytes ||
            length > (m->bin_bytes - at) / bytes_of_type[m->type])
            return hrt_fail(error, "'%s': sequence %" PRId64 " lies outside of '%s'", m->path, s,
                            m->bin_path);
    }
    for (int64_t d = 0; d <= m->documents; d++) {
        const int64_t first = number(m->firsts, d);
        if (first < (d ? number(m->firsts, d - 1) : 0) || first > m->sequences)
            return hrt_fail(error,
                            "'%s': document %" PRId64 " begins at sequence %" PRId64
                            ", which is out of order",
                            m->path, d, first);
    }
    return true;
}

static bool open_index(struct megatron *m, struct hrt_error *error) {
    struct stat status;
    const char *why = NULL;
    const int fd = hf_open_input(m->path, false, &why);
    if (fd < 0) return hrt_fail(error, "cannot open '%s': %s", m->path, why);
    bool sound = fstat(fd, &status) == 0;
    m->index = sound ? malloc((size_t)status.st_size + 1) : NULL;
    sound = m->index && read_all(fd, m->index, status.st_size, 0);
    close(fd);
    if (!sound) return hrt_fail(error, "cannot read '%s'", m->path);
    if (!read_header(m, status.st_size, error)) return false;
    m->bin = hf_open_input(m->bin_path, false, &why);
    if (m->bin < 0) return hrt_fail(error, "cannot open '%s': %s", m->bin_path, why);
    if (fstat(m->bin, &status) != 0) return hrt_fail(error, "cannot read '%s'", m->bin_path);
    m->bin_bytes = status.st_size;
    return check_places(m, error);
}

struct megatron *megatron_open(const char *index, const char *bin, struct hrt_error *error) {
    struct megatron *m = calloc(1, sizeof *m);
    if (m) {
        m->bin = -1;
        m->path = strdup(index);
        m->bin_path = strdup(bin);
    }
    if (!m || !m->path || !m->bin_path)
        hrt_fail(error, "out of memory");
    else if (open_index(m, error))
        return m;
    megatron_close(m);
    return NULL;
}

void megatron_close(struct megatron *m) {
    if (!m) return;
    if (m->bin >= 0) close(m->bin);
    free(m->path);
    free(m->bin_path);
    free(m->index);
    free(m);
}

int64_t megatron_documents(const struct megatron *m) {
    return m->documents;
}

static int64_t token(const struct megatron *m, const char *at) {
    int64_t value = 0;
    memcpy(&value, at, (size_t)bytes_of_type[m->type]);
    switch (m->type) {
    case 2:
        return (int8_t)value;
    case 3:
        return (int16_t)value;
    case 4:
        return (int32_t)value;
    default:
        return value;
    }
}

// Appends the tokens of one sequence.
static bool read_sequence(const struct megatron *m, int64_t sequence, struct hrt_ids *ids,
                          struct hrt_error *error) {
    const int64_t count = length_of(m, sequence), width = bytes_of_type[m->type];
    char *raw = malloc((size_t)(count * width) + 1);
    if (ids->room < ids->count + (size_t)count) {
        int32_t *grown = realloc(ids->at, (ids->count + (size_t)count) * sizeof *grown);
        if (grown) {
            ids->at = grown;
            ids->room = ids->count + (size_t)count;
        }
    }
    bool sound = raw && ids->room >= ids->count + (size_t)count;
    if (!sound) hrt_fail(error, "out of memory");
    if (sound && !read_all(m->bin, raw, count * width, number(m->positions, sequence)))
        sound = hrt_fail(error, "cannot read '%s'", m->bin_path);
    for (int64_t i = 0; sound && i < count; i++) {
        const int64_t id = token(m, raw + i * width);
        if (id < 0 || id > INT32_MAX)
            sound = hrt_fail(error, "'%s': sequence %" PRId64 " has token %" PRId64, m->bin_path,
                             sequence, id);
        ids->at[ids->count++] = (int32_t)id;
    }
    free(raw);
    return sound;
}

bool megatron_read(const struct megatron *m, int64_t document, struct hrt_ids *ids,
                   struct hrt_error *error) {
    ids->count = 0;
    for (int64_t s = number(m->firsts, document); s < number(m->firsts, document + 1); s++) {
        if (!read_sequence(m, s, ids, error)) return false;
    }
    return true;
}
