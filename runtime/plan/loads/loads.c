// loads.c: the loads file. "HLOADS1\n", five little-endian u32 (iterations, layers, devices,
// microbatches, experts), then u16 rows [iteration][layer][device][microbatch][expert]; usually
// compressed by zstd.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "files/files.h"
#include "runtime/plan/loads/loads.h"
#include "runtime/plan/types.h"

static const char magic[8] = {'H', 'L', 'O', 'A', 'D', 'S', '1', '\n'};
enum { HEAD_BYTES = sizeof magic + 5 * 4 };
static const uint64_t file_bytes_max = (uint64_t)1 << 32;

static bool complain(char why[LOADS_WHY], const char *path, const char *what) {
    snprintf(why, LOADS_WHY, "%s: %s", path, what);
    return false;
}

static uint32_t u32_at(const unsigned char *at) {
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

// Whether `text` begins as loads do, packed or not. A device may give other bytes for ever.
static bool may_be_loads(const unsigned char *text, size_t bytes) {
    return bytes < sizeof magic || memcmp(text, magic, sizeof magic) == 0 ||
           u32_at(text) == ZSTD_MAGICNUMBER;
}

// The whole file, or its beginning when that is not one of loads; NULL after a message. Also for pipes, which
// do not tell their size.
static unsigned char *read_file(const char *path, size_t *bytes, char why[LOADS_WHY]) {
    const char *reason;
    FILE *file = strcmp(path, "-") == 0 ? stdin : hf_input(path, true, &reason);
    if (!file) return complain(why, path, reason), NULL;
    unsigned char *text = NULL;
    size_t room = 0, used = 0, got = 0;
    do {
        if (used == room) {
            room = room ? 2 * room : 1 << 20;
            unsigned char *more = room <= file_bytes_max ? realloc(text, room) : NULL;
            if (!more) {
                complain(why, path, "too large for memory");
                goto failed;
            }
            text = more;
        }
        got = fread(text + used, 1, room - used, file);
        used += got;
    } while (got > 0 && may_be_loads(text, used));
    if (ferror(file)) {
        complain(why, path, "read error");
        goto failed;
    }
    if (file != stdin) fclose(file);
    *bytes = used;
    return text;
failed:
    if (file != stdin) fclose(file);
    free(text);
    return NULL;
}

// Replaces compressed bytes by what they hold. Frames may lack their size, so the output grows.
static unsigned char *decompress(const char *path, unsigned char *packed, size_t *bytes,
                                 char why[LOADS_WHY]) {
    ZSTD_DCtx *context = ZSTD_createDCtx();
    ZSTD_inBuffer in = {packed, *bytes, 0};
    ZSTD_outBuffer out = {NULL, 0, 0};
    const char *wrong = context ? NULL : "out of memory";
    size_t more = 1;
    while (!wrong && (in.pos < in.size || more != 0)) {
        if (out.pos == out.size) {
            const size_t room = out.size ? 2 * out.size : 1 << 20;
            void *grown = room <= file_bytes_max ? realloc(out.dst, room) : NULL;
            if (!grown) {
                wrong = "too large for memory once decompressed";
                break;
            }
            out.dst = grown;
            out.size = room;
        }
        const size_t before = out.pos, taken = in.pos;
        more = ZSTD_decompressStream(context, &out, &in);
        if (ZSTD_isError(more))
            wrong = ZSTD_getErrorName(more);
        else if (more && out.pos == before && in.pos == taken)
            wrong = "compressed data ends early";
    }
    ZSTD_freeDCtx(context);
    free(packed);
    if (wrong) {
        complain(why, path, wrong);
        free(out.dst);
        return NULL;
    }
    *bytes = out.pos;
    return out.dst;
}

// Checks the head and takes the rows over into host order.
static bool parse(struct loads *loads, const char *path, const unsigned char *text, size_t bytes,
                  char why[LOADS_WHY]) {
    if (bytes < HEAD_BYTES || memcmp(text, magic, sizeof magic) != 0) {
        return complain(why, path, "not a loads file: it does not begin with HLOADS1");
    }
    uint32_t *size[] = {&loads->iterations, &loads->layers, &loads->devices, &loads->microbatches,
                        &loads->experts};
    uint64_t count = 1;
    for (int i = 0; i < 5; i++) {
        *size[i] = u32_at(text + sizeof magic + 4 * (size_t)i);
        if (*size[i] == 0) return complain(why, path, "a size in its head is zero");
        if (count > file_bytes_max / *size[i])
            return complain(why, path, "its head claims too much");
        count *= *size[i];
    }
    if (loads->devices > HPL_DEVICES_MAX || loads->experts > HPL_EXPERTS_MAX) {
        return complain(why, path, "more devices or experts than the planner takes (4096)");
    }
    if (bytes - HEAD_BYTES != 2 * count) {
        snprintf(why, LOADS_WHY, "%s: %zu bytes of rows, its head claims %llu", path,
                 bytes - HEAD_BYTES, 2 * (unsigned long long)count);
        return false;
    }
    loads->rows = malloc(2 * count);
    if (!loads->rows) return complain(why, path, "out of memory");
    const unsigned char *at = text + HEAD_BYTES;
    for (uint64_t i = 0; i < count; i++) {
        loads->rows[i] = (uint16_t)(at[2 * i] | at[2 * i + 1] << 8);
    }
    return true;
}

bool loads_read(struct loads *loads, const char *path, char why[LOADS_WHY]) {
    *loads = (struct loads){0};
    size_t bytes = 0;
    unsigned char *text = read_file(path, &bytes, why);
    if (text && bytes >= 4 && u32_at(text) == ZSTD_MAGICNUMBER) {
        text = decompress(path, text, &bytes, why);
    }
    if (!text) return false;
    const bool sound = parse(loads, path, text, bytes, why);
    free(text);
    return sound;
}

static bool ends_in(const char *text, const char *end) {
    const size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

bool loads_write(const struct loads *loads, const char *path, char why[LOADS_WHY]) {
    const size_t count = (size_t)loads->iterations * loads->layers * loads->devices *
                         loads->microbatches * loads->experts;
    size_t bytes = HEAD_BYTES + 2 * count;
    unsigned char *text = malloc(bytes);
    if (!text) return complain(why, path, "out of memory");
    memcpy(text, magic, sizeof magic);
    const uint32_t size[] = {loads->iterations, loads->layers, loads->devices, loads->microbatches,
                             loads->experts};
    for (size_t i = 0; i < 20; i++) {
        text[sizeof magic + i] = (unsigned char)(size[i / 4] >> (8 * (i % 4)));
    }
    for (size_t i = 0; i < 2 * count; i++) {
        text[HEAD_BYTES + i] = (unsigned char)(loads->rows[i / 2] >> (8 * (i % 2)));
    }
    if (ends_in(path, ".zst")) {
        const size_t room = ZSTD_compressBound(bytes);
        unsigned char *packed = malloc(room);
        const size_t used = packed ? ZSTD_compress(packed, room, text, bytes, 9) : 0;
        free(text);
        if (!packed || ZSTD_isError(used)) {
            free(packed);
            return complain(why, path, "compression failed");
        }
        text = packed;
        bytes = used;
    }
    const char *reason = NULL;
    FILE *file = strcmp(path, "-") == 0 ? stdout : hf_output(path, &reason);
    bool written = file && fwrite(text, 1, bytes, file) == bytes;
    if (file && file != stdout)
        written = fclose(file) == 0 && written;
    else if (file)
        written = fflush(file) == 0 && written;
    free(text);
    return written || complain(why, path, reason ? reason : strerror(errno));
}

void loads_free(struct loads *loads) {
    free(loads->rows);
    *loads = (struct loads){0};
}

void loads_step(const struct loads *loads, uint32_t iteration, uint32_t layer, uint32_t microbatch,
                uint32_t *rows) {
    for (uint32_t d = 0; d < loads->devices; d++) {
        const size_t at = ((((size_t)iteration * loads->layers + layer) * loads->devices + d) *
                               loads->microbatches +
                           microbatch) *
                          loads->experts;
        for (uint32_t e = 0; e < loads->experts; e++) *rows++ = loads->rows[at + e];
    }
}
