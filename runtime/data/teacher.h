// A file of teacher entries of the tokens of one file of tokens: for each of them the tokens that it finds likeliest to
// come next, and their log-probabilities. Little-endian: a header of 64 bytes
//
//   0   "hecteach"
//   8   uint32  version: 1
//   12  uint32  K: entries of a token
//   16  uint64  tokens, as many as the file of tokens has
//   24  uint32  vocabulary: ids are below it
//   28  uint32  CRC-32 (zlib's) of the tokens, as they lie in their file behind its header
//   32  uint32  bytes of an id: 2 or 4
//   36  uint32  bytes of a log-probability: 2 (IEEE half) or 4
//   40  zeros
//
// and for each token K ids, then K log-probabilities: natural logarithms, up to a number added to all K. -infinity is
// no entry; a token without entries teaches nothing. The entries of token t say which token t + 1 is.
//
// Files are not trusted: one that does not fit is refused with a sentence that names it. They are read, not
// mapped, so that one which becomes shorter is an error and no signal.
#ifndef HECATE_RUNTIME_DATA_TEACHER_H
#define HECATE_RUNTIME_DATA_TEACHER_H

#include <stddef.h>

#include "runtime/data/file.h"

enum { HRT_TEACHER_HEADER = 64, HRT_TEACHER_ENTRIES = 4096 }; // The most that a token has.

struct hrt_teacher_file {
    char *path; // Owned.
    int fd;
    int64_t entries; // K
    int64_t tokens, vocabulary;
    uint32_t checksum; // Checksum of the tokens.
    int id_bytes, log_bytes;
};

// Opens `path`, for a model of `vocabulary` tokens. False: `error` names the fault; nothing stays open.
bool hrt_data_teacher_file_open(struct hrt_teacher_file *file, const char *path, int64_t vocabulary,
                                struct hrt_error *error);

// Reads the entries of tokens first .. first + count - 1 into ids and log_probs [count, entries]. Fails where an id is
// outside of the vocabulary, or a log-probability is neither finite nor -infinity.
bool hrt_data_teacher_file_read(const struct hrt_teacher_file *file, int64_t first, int64_t count,
                                int32_t *ids, float *log_probs, struct hrt_error *error);

void hrt_data_teacher_file_close(struct hrt_teacher_file *file);

// Fills in the header of a file with these facts.
void hrt_data_teacher_header(const struct hrt_teacher_file *file,
                             unsigned char header[HRT_TEACHER_HEADER]);

// ---- the files of a run

struct hrt_teachers {
    struct hrt_teacher_file *file;
    int files;
    int *of;         // [files of tokens] the number of the file that speaks of it.
    int64_t entries; // In all of them; 0: there are none.
};

// Opens the files at these paths and patterns, and finds for each of `tokens` the one that speaks of it, by number of
// tokens and checksum. Reads all tokens once. False: `error` names the file; nothing stays open.
bool hrt_data_teachers_open(struct hrt_teachers *teachers, const char *const *pattern, int patterns,
                            const struct hrt_data_file *tokens, int files, int64_t vocabulary,
                            struct hrt_error *error);

void hrt_data_teachers_close(struct hrt_teachers *teachers);

#endif
