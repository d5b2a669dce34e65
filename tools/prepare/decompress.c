// Compressed inputs as streams of their plain bytes. The codec is known by the first bytes, not by the name. Several
// streams behind each other in one file are one, as of gzip and its like.
#define _GNU_SOURCE // fopencookie
#include "tools/prepare/decompress.h"

#include <bzlib.h>
#include <errno.h>
#include <lzma.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

enum { CHUNK = 1 << 16, MEMORY_MOST = 1 << 30 };

enum step { STEP_MORE, STEP_END, STEP_BAD }; // STEP_END: of one stream; another may follow.

struct codec;

struct stream {
    const struct codec *codec;
    FILE *file;
    const char *path;
    struct hrt_error *fault;
    unsigned char in[CHUNK], *next;
    size_t left;
    bool inside; // Inside of a stream: the file may not end here.
    z_stream gzip;
    lzma_stream xz;
    bz_stream bzip2;
    ZSTD_DStream *zstd;
};

// `begin` is called before each stream, `end` once, `step` takes input from `next` and fills `out`.
struct codec {
    const char *name, *magic;
    size_t length;
    bool (*begin)(struct stream *stream);
    enum step (*step)(struct stream *stream, char *out, size_t room, size_t *made);
    void (*end)(struct stream *stream);
};

static bool gzip_begin(struct stream *s) {
    inflateEnd(&s->gzip);
    s->gzip = (z_stream){0};
    return inflateInit2(&s->gzip, 15 + 16) == Z_OK; // A window of 32 KiB, with gzip's head.
}

static enum step gzip_step(struct stream *s, char *out, size_t room, size_t *made) {
    s->gzip.next_in = s->next;
    s->gzip.avail_in = (uInt)s->left;
    s->gzip.next_out = (unsigned char *)out;
    s->gzip.avail_out = (uInt)room;
    const int got = inflate(&s->gzip, Z_NO_FLUSH);
    s->next = s->gzip.next_in;
    s->left = s->gzip.avail_in;
    *made = room - s->gzip.avail_out;
    return got == Z_STREAM_END                 ? STEP_END
           : got == Z_OK || got == Z_BUF_ERROR ? STEP_MORE
                                               : STEP_BAD;
}

static void gzip_end(struct stream *s) {
    inflateEnd(&s->gzip);
}

static bool zstd_begin(struct stream *s) {
    if (!s->zstd) s->zstd = ZSTD_createDStream();
    return s->zstd && !ZSTD_isError(ZSTD_initDStream(s->zstd));
}

static enum step zstd_step(struct stream *s, char *out, size_t room, size_t *made) {
    ZSTD_inBuffer in = {s->next, s->left, 0};
    ZSTD_outBuffer to = {out, room, 0};
    const size_t got = ZSTD_decompressStream(s->zstd, &to, &in);
    s->next += in.pos;
    s->left -= in.pos;
    *made = to.pos;
    return ZSTD_isError(got) ? STEP_BAD : got == 0 ? STEP_END : STEP_MORE;
}

static void zstd_end(struct stream *s) {
    ZSTD_freeDStream(s->zstd);
}

static bool xz_begin(struct stream *s) {
    return lzma_stream_decoder(&s->xz, MEMORY_MOST, 0) == LZMA_OK;
}

static enum step xz_step(struct stream *s, char *out, size_t room, size_t *made) {
    s->xz.next_in = s->next;
    s->xz.avail_in = s->left;
    s->xz.next_out = (uint8_t *)out;
    s->xz.avail_out = room;
    const lzma_ret got = lzma_code(&s->xz, LZMA_RUN);
    s->next += s->left - s->xz.avail_in;
    s->left = s->xz.avail_in;
    *made = room - s->xz.avail_out;
    return got == LZMA_STREAM_END                    ? STEP_END
           : got == LZMA_OK || got == LZMA_BUF_ERROR ? STEP_MORE
                                                     : STEP_BAD;
}

static void xz_end(struct stream *s) {
    lzma_end(&s->xz);
}

static bool bzip2_begin(struct stream *s) {
    BZ2_bzDecompressEnd(&s->bzip2);
    s->bzip2 = (bz_stream){0};
    return BZ2_bzDecompressInit(&s->bzip2, 0, 0) == BZ_OK;
}

static enum step bzip2_step(struct stream *s, char *out, size_t room, size_t *made) {
    s->bzip2.next_in = (char *)s->next;
    s->bzip2.avail_in = (unsigned)s->left;
    s->bzip2.next_out = out;
    s->bzip2.avail_out = (unsigned)room;
    const int got = BZ2_bzDecompress(&s->bzip2);
    s->next += s->left - s->bzip2.avail_in;
    s->left = s->bzip2.avail_in;
    *made = room - s->bzip2.avail_out;
    return got == BZ_STREAM_END ? STEP_END : got == BZ_OK ? STEP_MORE : STEP_BAD;
}

static void bzip2_end(struct stream *s) {
    BZ2_bzDecompressEnd(&s->bzip2);
}

static const struct codec codecs[] = {
    {"gzip", "\x1f\x8b", 2, gzip_begin, gzip_step, gzip_end},
    {"zstd", "\x28\xb5\x2f\xfd", 4, zstd_begin, zstd_step, zstd_end},
    {"xz", "\xfd\x37zXZ\0", 6, xz_begin, xz_step, xz_end},
    {"bzip2", "BZh", 3, bzip2_begin, bzip2_step, bzip2_end},
};

static const struct codec *codec_of(const unsigned char *head, size_t bytes) {
    for (size_t i = 0; i < sizeof codecs / sizeof *codecs; i++) {
        const struct codec *codec = &codecs[i];
        if (bytes < codec->length || memcmp(head, codec->magic, codec->length) != 0) continue;
        const bool is_text =
            codec->step == bzip2_step && (bytes < 10 || memcmp(head + 4, "1AY&SY", 6) != 0);
        if (!is_text) return codec;
    }
    return NULL;
}

static bool refill(struct stream *s) {
    if (s->left > 0) return true;
    s->next = s->in;
    s->left = fread(s->in, 1, sizeof s->in, s->file);
    return s->left > 0;
}

static ssize_t fail(const struct stream *s, const char *what) {
    errno = EIO;
    hrt_fail(s->fault, "'%s' %s (%s)", s->path, what, s->codec->name);
    return -1;
}

static ssize_t read_stream(void *cookie, char *out, size_t room) {
    struct stream *s = cookie;
    if (room > CHUNK) room = CHUNK;
    for (;;) {
        size_t made = 0;
        const bool more = refill(s); // Without, the codec may still have bytes to give.
        if (!more && ferror(s->file)) return fail(s, "cannot be read");
        if (!more && !s->inside) return 0;
        if (!s->inside && !s->codec->begin(s)) return fail(s, "needs more memory than there is");
        const enum step step = s->codec->step(s, out, room, &made);
        if (step == STEP_BAD) return fail(s, "is damaged: it cannot be decompressed");
        s->inside = step == STEP_MORE;
        if (made > 0) return (ssize_t)made;
        if (!more && s->inside) return fail(s, "is truncated: its compressed data has no end");
    }
}

// Back to the beginning, and nowhere else.
static int seek_stream(void *cookie, off64_t *offset, int whence) {
    struct stream *s = cookie;
    if (whence != SEEK_SET || *offset != 0 || fseeko(s->file, 0, SEEK_SET) != 0) return -1;
    s->left = 0;
    s->inside = false;
    return 0;
}

static int close_stream(void *cookie) {
    struct stream *s = cookie;
    s->codec->end(s);
    fclose(s->file);
    free(s);
    return 0;
}

bool decompress(FILE **file, const char *path, struct hrt_error *fault) {
    unsigned char head[16];
    const struct codec *codec = codec_of(head, fread(head, 1, sizeof head, *file));
    rewind(*file);
    if (!codec) return true;
    struct stream *s = calloc(1, sizeof *s);
    if (!s) return hrt_fail(fault, "out of memory");
    s->codec = codec;
    s->file = *file;
    s->path = path;
    s->fault = fault;
    const cookie_io_functions_t functions = {
        .read = read_stream, .seek = seek_stream, .close = close_stream};
    FILE *plain = fopencookie(s, "r", functions);
    if (!plain) {
        free(s);
        return hrt_fail(fault, "out of memory");
    }
    *file = plain;
    return true;
}
