// One file of training tokens. Two formats:
//   bytes  any file; every byte is a token
//   llmc   llm.c's .bin: a header of 256 int32 (magic, version, number of tokens), then the tokens;
//          magic 20240520 version 1: uint16 (GPT-2), magic 20240801 version 7: uint32 (Llama 3).
//          The fourth int32, which llm.c leaves 0, is the length of the sequences of whole documents that hecate-data
//          --pack makes, and the fifth is 2 where two of them are a pair; such a file has weights (data/weights.h)
// Files are not trusted: one that does not fit is refused with a sentence that names the file.
//
// Source of llmc: karpathy/llm.c, dev/data/data_common.py and llmc/dataloader.h.
#ifndef HECATE_RUNTIME_DATA_FILE_H
#define HECATE_RUNTIME_DATA_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lang/settings.def"
#include "runtime/base/error.h"
#include "runtime/data/weights.h"

#define HRT_ENUM(word) HRT_DATA_FORMAT_##word
#define HRT_COMMA ,
enum hrt_data_format { HEC_LIST_DATA_FORMAT(HRT_ENUM, HRT_COMMA) }; // data.format
#undef HRT_ENUM
#undef HRT_COMMA

// The format that the first bytes of a file announce, where that is neither text nor tokens, and the remedy:
// "compressed by gzip: gunzip it first". NULL: nothing of the kind. HRT_DATA_HEAD bytes are enough, and there may be
// fewer.
enum { HRT_DATA_HEAD = 16 };
const char *hrt_data_not_text(const void *head, size_t bytes);

struct hrt_data_file {
    char *path; // Owned.
    int fd;
    int token_bytes;      // 1, 2 or 4.
    int64_t header_bytes; // Before the first token.
    int64_t tokens;
    int64_t packed; // Not 0: the tokens are sequences of so many, each with whole documents.
    int64_t
        group; // Sequences that belong together: 2 in a file of pairs, chosen and rejected; else 1.
    struct hrt_data_weights weights;
};

// Opens `path`. Its header is checked, and that the record beside it (FILE.json, of hecate-data) gives no token
// outside of [0, vocabulary); no token is read. Weights beside it (data/weights.h) are opened, too; those
// that the record tells of have to be there. So opening takes as long for any amount of tokens. False: `error` tells
// the reason; nothing stays open.
bool hrt_data_file_open(struct hrt_data_file *file, const char *path, enum hrt_data_format format,
                        int64_t vocabulary, struct hrt_error *error);

// Reads tokens first .. first + count - 1 into `out` [count]. `raw` is scratch of 4 * count bytes.
// Fails where a token is outside the vocabulary, or the file became shorter since it was opened.
bool hrt_data_file_read(const struct hrt_data_file *file, int64_t first, int64_t count,
                        int64_t vocabulary, void *raw, int32_t *out, struct hrt_error *error);

// CRC-32 (zlib's) of the tokens as they lie in the file, which is read whole.
bool hrt_data_file_checksum(const struct hrt_data_file *file, uint32_t *checksum,
                            struct hrt_error *error);

void hrt_data_file_close(struct hrt_data_file *file);

#endif
