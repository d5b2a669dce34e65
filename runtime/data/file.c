// Opening, proving and reading one file of tokens.
#include "runtime/data/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <libdeflate.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/files.h"
#include "runtime/data/read.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "token files are little-endian");

enum { LLMC_HEADER_BYTES = 1024 };

static const struct llmc_form {
    int32_t magic, version;
    int token_bytes;
} llmc_form[] = {{20240520, 1, 2}, {20240801, 7, 4}};

// Other files of llm.c, easily given by mistake.
static const struct llmc_relative {
    int32_t magic;
    const char *what;
} llmc_relative[] = {
    {20240522, "an llm.c evaluation file"}, {20240326, "an llm.c model"},
    {20240327, "an llm.c debug state"},     {20240527, "an llm.c training state"},
    {20240328, "an llm.c tokenizer"},
};

// Files whose bytes are nobody's text. In `begin` ? is any byte.
static const struct container {
    const char *begin;
    size_t length;
    const char *what;
} containers[] = {
    {"\x1f\x8b", 2, "compressed by gzip: gunzip it first"},
    {"\x28\xb5\x2f\xfd", 4, "compressed by zstd: unzstd it first"},
    {"\xfd"
     "7zXZ\0",
     6, "compressed by xz: unxz it first"},
    {"BZh?1AY&SY", 10, "compressed by bzip2: bunzip2 it first"},
    {"\x04\x22\x4d\x18", 4, "compressed by lz4: unlz4 it first"},
    {"PK\x03\x04", 4, "a zip archive: unzip it first"},
    {"7z\xbc\xaf\x27\x1c", 6, "a 7z archive: unpack it first"},
    {"PAR1", 4,
     "a Parquet table: python3 -c \"import pandas; "
     "pandas.read_parquet('FILE').to_json('FILE.jsonl', orient='records', lines=True)\" "
     "makes JSON lines of it"},
    {"ARROW1", 6, "an Arrow table: write its column of texts as JSON lines first"},
    {"\x89HDF\r\n\x1a\n", 8, "an HDF5 file: write its texts as JSON lines first"},
    {"\x93NUMPY", 6, "a NumPy array: write its tokens as llm.c's .bin first"},
    {"%PDF-", 5, "a PDF: write its text to a file first"},
};

static bool begins_with(const struct container *container, const unsigned char *head,
                        size_t bytes) {
    if (bytes < container->length) return false;
    for (size_t i = 0; i < container->length; i++) {
        const unsigned char wanted = (unsigned char)container->begin[i];
        if (wanted != '?' && wanted != head[i]) return false;
    }
    return true;
}

const char *hrt_data_not_text(const void *head, size_t bytes) {
    for (size_t i = 0; i < sizeof containers / sizeof *containers; i++) {
        if (begins_with(&containers[i], head, bytes)) return containers[i].what;
    }
    return NULL;
}

enum { FORMS = sizeof llmc_form / sizeof *llmc_form };
enum { RELATIVES = sizeof llmc_relative / sizeof *llmc_relative };

static bool fail_magic(const struct hrt_data_file *file, const int32_t header[5],
                       struct hrt_error *error) {
    for (int i = 0; i < RELATIVES; i++) {
        if (llmc_relative[i].magic == header[0])
            return hrt_fail(error, "'%s' is %s, not training data", file->path,
                            llmc_relative[i].what);
    }
    for (int i = 0; i < FORMS; i++) {
        if (llmc_form[i].magic == header[0])
            return hrt_fail(error,
                            "'%s' has version %" PRId32 " of llm.c's data format; "
                            "with this magic number only version %" PRId32 " is known",
                            file->path, header[1], llmc_form[i].version);
    }
    return hrt_fail(error,
                    "'%s' is not an llm.c data file: its magic number is %" PRId32
                    ", not 20240520 or 20240801 (plain text needs --format bytes)",
                    file->path, header[0]);
}

static bool check_is_text(const struct hrt_data_file *file, int64_t bytes,
                          struct hrt_error *error) {
    unsigned char head[HRT_DATA_HEAD];
    const size_t count = bytes < HRT_DATA_HEAD ? (size_t)bytes : HRT_DATA_HEAD;
    if (!hrt_data_read_at(file->fd, head, count, 0)) return hrt_data_fail_read(file->path, error);
    const char *other = hrt_data_not_text(head, count);
    return !other || hrt_fail(error, "'%s' is %s", file->path, other);
}

// Sequences of whole documents, if `packed` is not 0, and so many of them belong together; 0: each is alone.
static bool take_packed(struct hrt_data_file *file, int64_t packed, int64_t group,
                        struct hrt_error *error) {
    file->packed = packed;
    file->group = group ? group : 1;
    if (packed == 0 && group == 0) return true;
    return (packed > 0 && (group == 0 || group == 2) &&
            file->tokens % (packed * file->group) == 0) ||
           hrt_fail(error,
                    "'%s' is damaged: its header says %" PRId64 " tokens in sequences of %" PRId64
                    ", of which %" PRId64 " belong together",
                    file->path, file->tokens, packed, file->group);
}

static bool open_llmc(struct hrt_data_file *file, int64_t bytes, struct hrt_error *error) {
    int32_t header[5];
    if (bytes < LLMC_HEADER_BYTES)
        return hrt_fail(error,
                        "'%s' is too short for an llm.c data file: %" PRId64
                        " bytes, and the header alone has %d",
                        file->path, bytes, LLMC_HEADER_BYTES);
    if (!hrt_data_read_at(file->fd, header, sizeof header, 0))
        return hrt_data_fail_read(file->path, error);
    for (int i = 0; i < FORMS; i++) {
        if (llmc_form[i].magic == header[0] && llmc_form[i].version == header[1])
            file->token_bytes = llmc_form[i].token_bytes;
    }
    if (file->token_bytes == 0)
        return check_is_text(file, bytes, error) && fail_magic(file, header, error);

    file->header_bytes = LLMC_HEADER_BYTES;
    file->tokens = header[2];
    if (file->tokens < 0)
        return hrt_fail(error, "'%s' is damaged: its header says %" PRId64 " tokens", file->path,
                        file->tokens);
    const int64_t held = (bytes - LLMC_HEADER_BYTES) / file->token_bytes;
    if (held < file->tokens)
        return hrt_fail(
            error, "'%s' is truncated: its header says %" PRId64 " tokens, but it holds %" PRId64,
            file->path, file->tokens, held);
    if (bytes != LLMC_HEADER_BYTES + file->tokens * file->token_bytes)
        return hrt_fail(
            error, "'%s' is damaged: %" PRId64 " bytes follow the %" PRId64 " tokens of its header",
            file->path, bytes - LLMC_HEADER_BYTES - file->tokens * file->token_bytes, file->tokens);
    return take_packed(file, header[3], header[4], error);
}

static bool open_bytes(struct hrt_data_file *file, int64_t bytes, struct hrt_error *error) {
    int32_t magic = 0;
    if (!check_is_text(file, bytes, error)) return false;
    if (bytes >= LLMC_HEADER_BYTES && !hrt_data_read_at(file->fd, &magic, sizeof magic, 0))
        return hrt_data_fail_read(file->path, error);
    for (int i = 0; i < FORMS; i++) {
        if (llmc_form[i].magic == magic)
            return hrt_fail(error, "'%s' is an llm.c data file: use --format llmc", file->path);
    }
    file->token_bytes = 1;
    file->group = 1;
    file->tokens = bytes;
    return true;
}

// Refuses a file whose record gives a token that is too large. Without a record, or with another file's, tokens are
// looked at when they are read, which they are anyway.
static bool check_record(const struct hrt_data_file *file, int64_t vocabulary,
                         struct hrt_error *error) {
    char name[PATH_MAX];
    const char *why;
    if (snprintf(name, sizeof name, "%s.json", file->path) >= PATH_MAX) return true;
    FILE *text = hf_input(name, false, &why);
    if (!text) return true;
    json_t *record = json_loadf(text, 0, NULL);
    fclose(text);
    const json_int_t largest = json_integer_value(json_object_get(record, "largest"));
    const json_int_t tokens = json_integer_value(json_object_get(record, "tokens"));
    const bool weighted = json_object_get(record, "counted");
    json_decref(record);
    if (tokens == file->tokens && weighted && file->weights.fd < 0)
        return hrt_fail(error, "'%s' has no weights beside it, of which its record tells",
                        file->path);
    return tokens != file->tokens || largest < vocabulary ||
           hrt_fail(error,
                    "'%s' has token %" PRId64 ", as its record says, outside the model's "
                    "vocabulary of %" PRId64,
                    file->path, (int64_t)largest, vocabulary);
}

static bool open_format(struct hrt_data_file *file, enum hrt_data_format format, int64_t vocabulary,
                        struct hrt_error *error) {
    struct stat status;
    if (fstat(file->fd, &status) != 0)
        return hrt_fail(error, "cannot read '%s': %s", file->path, strerror(errno));
    if (!S_ISREG(status.st_mode)) return hrt_fail(error, "'%s' is not a regular file", file->path);
    if (status.st_size == 0) return hrt_fail(error, "'%s' is empty", file->path);
    const bool opened = format == HRT_DATA_FORMAT_llmc ? open_llmc(file, status.st_size, error)
                                                       : open_bytes(file, status.st_size, error);
    if (!opened || !hrt_data_weights_open(&file->weights, file->path, file->tokens, error))
        return false;
    if (file->packed && file->weights.fd < 0)
        return hrt_fail(error,
                        "'%s' has padding, and no weights beside it ('%s.weights'), which tell it",
                        file->path, file->path);
    return check_record(file, vocabulary, error);
}

bool hrt_data_file_open(struct hrt_data_file *file, const char *path, enum hrt_data_format format,
                        int64_t vocabulary, struct hrt_error *error) {
    *file = (struct hrt_data_file){.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK),
                                   .weights = {.fd = -1}};
    if (file->fd < 0) return hrt_fail(error, "cannot open '%s': %s", path, strerror(errno));
    file->path = strdup(path);
    if (!file->path) {
        hrt_data_file_close(file);
        return hrt_fail(error, "out of memory");
    }
    if (open_format(file, format, vocabulary, error)) return true;
    hrt_data_file_close(file);
    return false;
}

bool hrt_data_file_read(const struct hrt_data_file *file, int64_t first, int64_t count,
                        int64_t vocabulary, void *raw, int32_t *out, struct hrt_error *error) {
    const int64_t offset = file->header_bytes + first * file->token_bytes;
    if (!hrt_data_read_at(file->fd, raw, (size_t)(count * file->token_bytes), offset))
        return hrt_data_fail_read(file->path, error);
    for (int64_t i = 0; i < count; i++) {
        const uint32_t token = file->token_bytes == 1   ? ((const uint8_t *)raw)[i]
                               : file->token_bytes == 2 ? ((const uint16_t *)raw)[i]
                                                        : ((const uint32_t *)raw)[i];
        if (token >= vocabulary)
            return hrt_fail(error,
                            "'%s' has token %" PRIu32 " at position %" PRId64
                            ", outside the model's vocabulary of %" PRId64,
                            file->path, token, first + i, vocabulary);
        out[i] = (int32_t)token;
    }
    return true;
}

bool hrt_data_file_checksum(const struct hrt_data_file *file, uint32_t *checksum,
                            struct hrt_error *error) {
    enum { BLOCK = 1 << 20 };
    const int64_t bytes = file->tokens * file->token_bytes;
    char *block = malloc(BLOCK);
    bool read = block != NULL || hrt_fail(error, "out of memory");
    *checksum = 0;
    for (int64_t done = 0; read && done < bytes; done += BLOCK) {
        const size_t count = (size_t)(bytes - done < BLOCK ? bytes - done : BLOCK);
        read = hrt_data_read_at(file->fd, block, count, file->header_bytes + done) ||
               hrt_data_fail_read(file->path, error);
        if (read) *checksum = libdeflate_crc32(*checksum, block, count);
    }
    free(block);
    return read;
}

void hrt_data_file_close(struct hrt_data_file *file) {
    if (file->fd >= 0) close(file->fd);
    hrt_data_weights_close(&file->weights);
    free(file->path);
    *file = (struct hrt_data_file){.fd = -1, .weights = {.fd = -1}};
}
