// Weights of tokens: how much each of a file of tokens counts in the loss, as a target, from 0 (not) to 1. They lie
// beside it, in FILE.weights:
//
//     "hcweight"            8 bytes: one bit for each token; or "hcwhalfs": an IEEE half for each
//     number of tokens      8 bytes, little-endian
//     bits                  bit i % 8 of byte i / 8: 1, token i counts. Bits behind the last token are 0
//     or halves             2 bytes each, little-endian: 0 to 1
//
// A file without one beside it has tokens that all count.
#ifndef HECATE_RUNTIME_DATA_WEIGHTS_H
#define HECATE_RUNTIME_DATA_WEIGHTS_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/error.h"

#define HRT_DATA_WEIGHTS_MAGIC "hcweight"
#define HRT_DATA_WEIGHTS_HALVES "hcwhalfs"
enum { HRT_DATA_WEIGHTS_HEADER = 16 };
enum {
    HRT_DATA_WEIGHT_ONE = 0x3c00
}; // 1 as a half. No weight is more: its bits are a larger number.

struct hrt_data_weights {
    int fd; // -1: all tokens count.
    bool halves;
};

// Opens the weights of the file of tokens at `path`, if it has some. False: they are damaged or of other tokens.
bool hrt_data_weights_open(struct hrt_data_weights *weights, const char *path, int64_t tokens,
                           struct hrt_error *error);

// The weights of tokens first .. first + count - 1, as halves, into `out` [count]. False: they cannot be read, or one
// is no number from 0 to 1, which is named.
bool hrt_data_weights_read(const struct hrt_data_weights *weights, const char *path, int64_t first,
                           int64_t count, uint16_t *out, struct hrt_error *error);

void hrt_data_weights_close(struct hrt_data_weights *weights);

// The value of a half; and the half next to a weight from 0 to 1, of two the even one.
float hrt_data_half_value(uint16_t half);
uint16_t hrt_data_half_of(double weight);

#endif
