// Records of files: their content, and their sources.
#include <errno.h>
#include <libdeflate.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "tools/prepare/prepare.h"

enum { BLOCK = 1 << 20 };

uint32_t record_crc(uint32_t crc, const void *at, size_t bytes) {
    return libdeflate_crc32(crc, at, bytes);
}

json_t *record_of(const char *path, struct hrt_error *error) {
    const char *why;
    FILE *file = hf_input(path, false, &why);
    char *block = malloc(BLOCK);
    uint32_t crc = 0;
    json_int_t bytes = 0;
    bool sound = file && block;
    if (!file)
        hrt_fail(error, "cannot open '%s': %s", path, why);
    else if (!block)
        hrt_fail(error, "out of memory");
    while (sound) {
        const size_t got = fread(block, 1, BLOCK, file);
        crc = record_crc(crc, block, got);
        bytes += (json_int_t)got;
        if (ferror(file)) sound = hrt_fail(error, "cannot read '%s': %s", path, strerror(errno));
        if (got < BLOCK) break;
    }
    if (file) fclose(file);
    free(block);
    if (!sound) return NULL;
    json_t *name = json_string(path); // Names need not be UTF-8.
    return json_pack("{s:o, s:I, s:I}", "path", name ? name : json_null(), "bytes", bytes, "crc32",
                     (json_int_t)crc);
}

json_t *record_read(const char *path, struct hrt_error *error) {
    char name[PATH_MAX];
    const char *why;
    json_error_t wrong;
    snprintf(name, sizeof name, "%s.json", path);
    FILE *file = hf_input(name, false, &why);
    if (!file) {
        hrt_fail(error, "cannot open '%s', the record of '%s': %s", name, path, why);
        return NULL;
    }
    json_t *record = json_loadf(file, 0, &wrong);
    fclose(file);
    if (!record) hrt_fail(error, "'%s', line %d: %s", name, wrong.line, wrong.text);
    return record;
}
