// Files with checksums, and their index.
#include "runtime/store/checkpoint_part.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <libdeflate.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files/files.h"

static const char format[] = "hecate checkpoint", index_name[] = "index.json";
enum { VERSION = 1, BLOCK = 1 << 16, PARTS_MOST = 1 << 20 };

bool hrt_store_part_path(char path[PATH_MAX], const char *folder, const char *name,
                         struct hrt_error *error) {
    if (snprintf(path, PATH_MAX, "%s/%s", folder, name) < PATH_MAX) return true;
    return hrt_fail(error, "'%.200s...' is too long for a folder of checkpoints", folder);
}

// ---- files

bool hrt_store_part_write(const char *folder, struct hrt_part *part, hrt_fill_fn *fill,
                          void *context, struct hrt_error *error) {
    char path[PATH_MAX];
    const char *why;
    if (!hrt_store_part_path(path, folder, part->name, error)) return false;
    const int fd = hf_open_output(path, O_CREAT | O_TRUNC, &why);
    if (fd < 0) return hrt_fail(error, "cannot write '%s': %s", path, why);
    struct hrt_sink sink = {.file = fdopen(fd, "w")};
    if (!sink.file) {
        close(fd);
        return hrt_fail(error, "cannot write '%s': %s", path, strerror(errno));
    }
    const bool written = fill(&sink, context) && fflush(sink.file) == 0 && fsync(fd) == 0;
    const int failure = errno;
    const bool closed = fclose(sink.file) == 0;
    part->bytes = sink.bytes;
    part->crc = sink.crc;
    if (written && closed) return true;
    return hrt_fail(error, "cannot write '%s': %s", path, strerror(written ? errno : failure));
}

static bool check_open(FILE *file, const char *path, const struct hrt_part *part,
                       struct hrt_error *error) {
    unsigned char block[BLOCK];
    int64_t bytes = 0;
    uint32_t crc = 0;
    for (size_t got; (got = fread(block, 1, sizeof block, file)) > 0; bytes += (int64_t)got)
        crc = libdeflate_crc32(crc, block, got);
    if (ferror(file)) return hrt_fail(error, "cannot read '%s': %s", path, strerror(errno));
    if (bytes != part->bytes)
        return hrt_fail(error, "'%s' has %" PRId64 " bytes, and %" PRId64 " were written", path,
                        bytes, part->bytes);
    if (crc == part->crc) return true;
    return hrt_fail(error,
                    "'%s' is damaged: its checksum is %08" PRIx32 ", and %08" PRIx32 " was written",
                    path, crc, part->crc);
}

bool hrt_store_part_check(const char *folder, const struct hrt_part *part,
                          struct hrt_error *error) {
    char path[PATH_MAX];
    const char *why;
    if (!hrt_store_part_path(path, folder, part->name, error)) return false;
    FILE *file = hf_input(path, false, &why);
    if (!file) return hrt_fail(error, "cannot open '%s': %s", path, why);
    const bool sound = check_open(file, path, part, error);
    fclose(file);
    return sound;
}

// ---- the index

static json_t *text_of_crc(uint32_t crc) {
    char text[16];
    snprintf(text, sizeof text, "%08" PRIx32, crc);
    return json_string(text);
}

// The checksum of an index is that of its text without it. False: out of memory.
static bool sum_index(json_t *index, uint32_t *crc) {
    char *text = json_dumps(index, JSON_COMPACT | JSON_SORT_KEYS);
    if (text) *crc = libdeflate_crc32(0, text, strlen(text));
    free(text);
    return text;
}

static bool fill_index(struct hrt_sink *sink, void *context) {
    uint32_t crc;
    if (!sum_index(context, &crc)) return errno = ENOMEM, false;
    json_object_set_new(context, "crc32", text_of_crc(crc));
    char *text = json_dumps(context, JSON_INDENT(1));
    if (!text) return errno = ENOMEM, false;
    const bool written =
        hrt_params_sink_put(sink, text, strlen(text)) && hrt_params_sink_put(sink, "\n", 1);
    free(text);
    return written;
}

bool hrt_store_index_write(const char *folder, const struct hrt_index *index,
                           struct hrt_error *error) {
    json_t *files = json_array();
    for (int i = 0; i < index->parts; i++) {
        const struct hrt_part *part = &index->part[i];
        json_array_append_new(files,
                              json_pack("{s:s s:I s:o}", "name", part->name, "bytes",
                                        (json_int_t)part->bytes, "crc32", text_of_crc(part->crc)));
    }
    json_t *object =
        json_pack("{s:s s:i s:I s:I s:o}", "format", format, "version", VERSION, "step",
                  (json_int_t)index->step, "ranks", (json_int_t)index->ranks, "files", files);
    if (!object) return hrt_fail(error, "out of memory");
    struct hrt_part part;
    snprintf(part.name, sizeof part.name, "%s", index_name);
    const bool written = hrt_store_part_write(folder, &part, fill_index, object, error);
    json_decref(object);
    return written;
}

static bool read_crc(json_t *text, uint32_t *crc) {
    char *end;
    const char *digits = json_string_value(text);
    if (!digits || strlen(digits) != 8 || strspn(digits, "0123456789abcdef") != 8) return false;
    *crc = (uint32_t)strtoul(digits, &end, 16);
    return true;
}

// A name of a file in the folder itself.
static bool read_name(json_t *text, char name[HRT_PART_NAME]) {
    const char *from = json_string_value(text);
    if (!from || !*from || *from == '.' || strchr(from, '/') || strlen(from) >= HRT_PART_NAME)
        return false;
    memcpy(name, from, strlen(from) + 1);
    return true;
}

static bool read_parts(json_t *files, struct hrt_index *index) {
    const size_t count = json_array_size(files);
    if (count == 0 || count > PARTS_MOST) return false;
    index->part = calloc(count, sizeof *index->part);
    for (size_t i = 0; index->part && i < count; i++) {
        json_t *file = json_array_get(files, i);
        struct hrt_part *part = &index->part[index->parts++];
        part->bytes = json_integer_value(json_object_get(file, "bytes"));
        if (!read_name(json_object_get(file, "name"), part->name) || part->bytes < 0 ||
            !read_crc(json_object_get(file, "crc32"), &part->crc))
            return false;
    }
    return index->part;
}

// NULL: it is sound; else what is wrong.
static const char *read_object(json_t *object, struct hrt_index *index) {
    uint32_t crc, written;
    const char *name = json_string_value(json_object_get(object, "format"));
    if (!name || strcmp(name, format) != 0) return "it is none of a checkpoint";
    if (json_integer_value(json_object_get(object, "version")) != VERSION)
        return "it is of another version of hecatec";
    if (!read_crc(json_object_get(object, "crc32"), &written)) return "it has no checksum";
    json_object_del(object, "crc32");
    if (!sum_index(object, &crc)) return "out of memory";
    if (crc != written) return "its checksum is another one";
    index->step = json_integer_value(json_object_get(object, "step"));
    index->ranks = json_integer_value(json_object_get(object, "ranks"));
    if (index->step < 1 || index->ranks < 1) return "it has no step";
    return read_parts(json_object_get(object, "files"), index) ? NULL : "its files are malformed";
}

bool hrt_store_index_read(const char *folder, struct hrt_index *index, struct hrt_error *error) {
    char path[PATH_MAX];
    const char *why;
    json_error_t where;
    *index = (struct hrt_index){0};
    if (!hrt_store_part_path(path, folder, index_name, error)) return false;
    FILE *file = hf_input(path, false, &why);
    if (!file) return hrt_fail(error, "cannot open '%s': %s", path, why);
    json_t *object = json_loadf(file, JSON_REJECT_DUPLICATES, &where);
    fclose(file);
    why = object ? read_object(object, index) : where.text;
    json_decref(object);
    if (!why) return true;
    hrt_store_index_free(index);
    return hrt_fail(error, "'%s' is damaged: %.200s", path, why);
}

void hrt_store_index_free(struct hrt_index *index) {
    free(index->part);
    *index = (struct hrt_index){0};
}
