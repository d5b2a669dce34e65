// Weights of tokens: which of a file of tokens count in the loss. They lie beside it, in FILE.weights:
//
//     "hcweight"            8 bytes
//     number of tokens      8 bytes, little-endian
//     one bit for each      bit i % 8 of byte i / 8: 1, the token counts as a target
//
// Bits behind the last token are 0. A file without one beside it has tokens that all count.
#ifndef HECATE_RUNTIME_DATA_WEIGHTS_H
#define HECATE_RUNTIME_DATA_WEIGHTS_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/error.h"

#define HRT_DATA_WEIGHTS_MAGIC "hcweight"
enum { HRT_DATA_WEIGHTS_HEADER = 16 };

struct hrt_data_weights {
    int fd; // -1: all tokens count.
};

// Opens the weights of the file of tokens at `path`, if it has some. False: they are damaged or of other tokens.
bool hrt_data_weights_open(struct hrt_data_weights *weights, const char *path, int64_t tokens,
                           struct hrt_error *error);

// Whether tokens first .. first + count - 1 count, into `out` [count], 1 or 0.
bool hrt_data_weights_read(const struct hrt_data_weights *weights, const char *path, int64_t first,
                           int64_t count, unsigned char *out, struct hrt_error *error);

void hrt_data_weights_close(struct hrt_data_weights *weights);

#endif
