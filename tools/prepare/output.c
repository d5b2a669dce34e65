// Writing llm.c's .bin: a header of 256 int32, the third of which is the number of tokens; then the tokens. The
// fourth, which llm.c leaves 0, is the length of the sequences of a packed file, and the fifth is 2 where they are
// pairs. And the weights of tokens, where some do not count.
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/data/weights.h"
#include "tools/prepare/prepare.h"

enum { HEADER_WORDS = 256, AT_ONCE = 4096 };

static bool fail_write(const struct output *output, struct hrt_error *error) {
    return hrt_fail(error, "cannot write '%s': %s", output->path, strerror(errno));
}

static bool write_header(struct output *output) {
    int32_t header[HEADER_WORDS] = {20240520, 1, (int32_t)output->tokens, output->packed,
                                    output->group};
    if (output->token_bytes == 4) header[0] = 20240801, header[1] = 7;
    return fwrite(header, sizeof header, 1, output->replacement.file) == 1;
}

static bool write_weights_header(struct output *output) {
    FILE *file = output->weights.file;
    const char *magic = output->halves ? HRT_DATA_WEIGHTS_HALVES : HRT_DATA_WEIGHTS_MAGIC;
    return fwrite(magic, 8, 1, file) == 1 &&
           fwrite(&output->tokens, sizeof output->tokens, 1, file) == 1;
}

// The file of weights. An older one goes: it would be taken for that of these tokens.
static bool begin_weights(struct output *output, struct hrt_error *error) {
    char path[PATH_MAX];
    const char *why;
    if (snprintf(path, sizeof path, "%s.weights", output->path) >= (int)sizeof path)
        return hrt_fail(error, "'%s' is too long a name", output->path);
    if (!output->weighted)
        return unlink(path) == 0 || errno == ENOENT ||
               hrt_fail(error, "cannot remove '%s': %s", path, strerror(errno));
    if (!hf_replace_begin(&output->weights, path, &why)) {
        output->weighted = false;
        return hrt_fail(error, "cannot write '%s': %s", path, why);
    }
    return write_weights_header(output) || fail_write(output, error);
}

bool output_begin(struct output *output, const char *path, int64_t vocabulary, bool weighted,
                  int64_t packed, int group, struct hrt_error *error) {
    const char *why;
    *output = (struct output){.vocabulary = vocabulary,
                              .token_bytes = vocabulary <= 65536 ? 2 : 4,
                              .path = strdup(path),
                              .packed = (int32_t)packed,
                              .group = group,
                              .weighted = weighted};
    if (!output->path) return hrt_fail(error, "out of memory");
    if (!hf_replace_begin(&output->replacement, path, &why)) {
        hrt_fail(error, "cannot write '%s': %s", path, why);
        free(output->path);
        return false;
    }
    if (!write_header(output))
        fail_write(output, error);
    else if (begin_weights(output, error))
        return true;
    output_end(output, false, NULL, error);
    return false;
}

// Writes all weights so far, `count` bits, anew as halves: from the last on, as these take more room.
static bool begin_halves(struct output *output, int64_t count, struct hrt_error *error) {
    enum { BLOCK = 1 << 15 };
    static const uint16_t weight_of[] = {0, HRT_DATA_WEIGHT_ONE};
    unsigned char bits[BLOCK / 8];
    uint16_t halves[BLOCK];
    FILE *file = output->weights.file;
    const int fd = fileno(file);
    bool done = fputc(output->bits, file) != EOF && fflush(file) == 0;
    for (int64_t begin = count / BLOCK * BLOCK; done && begin >= 0; begin -= BLOCK) {
        const int64_t own = count - begin < BLOCK ? count - begin : BLOCK;
        const size_t read = (size_t)(own + 7) / 8, written = (size_t)own * sizeof *halves;
        done = pread(fd, bits, read, HRT_DATA_WEIGHTS_HEADER + begin / 8) == (ssize_t)read;
        for (int64_t i = 0; done && i < own; i++) halves[i] = weight_of[bits[i / 8] >> i % 8 & 1];
        done = done &&
               pwrite(fd, halves, written, HRT_DATA_WEIGHTS_HEADER + 2 * begin) == (ssize_t)written;
    }
    output->halves = true;
    return (done && fseeko(file, HRT_DATA_WEIGHTS_HEADER + 2 * count, SEEK_SET) == 0) ||
           fail_write(output, error);
}

static bool add_bit(struct output *output, int64_t at, bool one) {
    output->bits |= (unsigned char)(one << at % 8);
    if (at % 8 != 7) return true;
    const bool done = fputc(output->bits, output->weights.file) != EOF;
    output->bits = 0;
    return done;
}

static bool add_weights(struct output *output, const uint16_t *weights, size_t count,
                        struct hrt_error *error) {
    for (size_t i = 0; i < count; i++) {
        const int64_t at = output->tokens + (int64_t)i;
        const uint16_t weight = weights ? weights[i] : 0;
        output->counted += weight > 0;
        output->weight += (double)hrt_data_half_value(weight);
        if (!output->halves && weight % HRT_DATA_WEIGHT_ONE != 0 &&
            !begin_halves(output, at, error))
            return false;
        if (!(output->halves ? fwrite(&weight, sizeof weight, 1, output->weights.file) == 1
                             : add_bit(output, at, weight > 0)))
            return fail_write(output, error);
    }
    return true;
}

bool output_add(struct output *output, const int32_t *id, const uint16_t *weights, size_t count,
                struct hrt_error *error) {
    char raw[AT_ONCE * 4];
    if ((int64_t)count > INT32_MAX - output->tokens)
        return hrt_fail(error, "'%s' would have more than %d tokens; give smaller inputs",
                        output->path, INT32_MAX);
    if (output->weighted && !add_weights(output, weights, count, error)) return false;
    for (size_t i = 0; i < count;) {
        size_t filled = 0;
        for (; filled < AT_ONCE && i < count; filled++, i++) {
            const uint16_t narrow = (uint16_t)id[i];
            if (id[i] < 0 || id[i] >= output->vocabulary)
                return hrt_fail(error, "'%s': token %d is no id of a vocabulary of %" PRId64,
                                output->path, id[i], output->vocabulary);
            if (id[i] > output->largest) output->largest = id[i];
            if (output->token_bytes == 2)
                memcpy(raw + 2 * filled, &narrow, 2);
            else
                memcpy(raw + 4 * filled, &id[i], 4);
        }
        const size_t bytes = filled * (size_t)output->token_bytes;
        output->crc = record_crc(output->crc, raw, bytes);
        if (fwrite(raw, 1, bytes, output->replacement.file) != bytes)
            return fail_write(output, error);
    }
    output->tokens += (int64_t)count;
    return true;
}

static bool write_record(const struct output *output, json_t *made, struct hrt_error *error) {
    char path[PATH_MAX];
    const char *why;
    struct hf_replacement replacement;
    if (snprintf(path, sizeof path, "%s.json", output->path) >= (int)sizeof path)
        return hrt_fail(error, "'%s' is too long a name", output->path);
    json_t *record = json_pack(
        "{s:s, s:i, s:I, s:I, s:i, s:I, s:o*, s:o*, s:O}", "format", "llm.c", "token_bytes",
        output->token_bytes, "tokens", (json_int_t)output->tokens, "documents",
        (json_int_t)output->documents, "largest", (int)output->largest, "crc32",
        (json_int_t)output->crc, "counted", output->weighted ? json_integer(output->counted) : NULL,
        "packed", output->packed ? json_integer(output->packed) : NULL, "made", made);
    if (!record) return hrt_fail(error, "out of memory");
    bool done = hf_replace_begin(&replacement, path, &why);
    if (done) {
        const bool dumped = json_dumpf(record, replacement.file, JSON_INDENT(2)) == 0 &&
                            fputc('\n', replacement.file) != EOF;
        done = hf_replace_end(&replacement, dumped, &why);
    }
    json_decref(record);
    return done || hrt_fail(error, "cannot write '%s': %s", path, why);
}

// The weights first: tokens that are there have theirs.
static bool end_weights(struct output *output, bool sound, struct hrt_error *error) {
    const char *why;
    FILE *file = output->weights.file;
    if (!output->weighted) return true;
    const bool last = output->halves || output->tokens % 8 == 0 || fputc(output->bits, file) != EOF;
    const bool written =
        sound && last && fseeko(file, 0, SEEK_SET) == 0 && write_weights_header(output);
    return hf_replace_end(&output->weights, written, &why) || !sound ||
           hrt_fail(error, "cannot write the weights of '%s': %s", output->path, why);
}

bool output_end(struct output *output, bool sound, json_t *made, struct hrt_error *error) {
    const char *why;
    FILE *file = output->replacement.file;
    const bool weighed = end_weights(output, sound, error);
    const bool written = sound && weighed && fseeko(file, 0, SEEK_SET) == 0 && write_header(output);
    bool done = hf_replace_end(&output->replacement, written, &why);
    if (sound && weighed && !done) hrt_fail(error, "cannot write '%s': %s", output->path, why);
    done = sound && weighed && done && write_record(output, made, error);
    free(output->path);
    return done;
}
