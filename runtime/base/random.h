// Random numbers by purpose: a stream is named by the seed and a text ("init layers.0.wq", "data"),
// a number in it by its index. Nothing else enters.
#ifndef HECATE_RUNTIME_BASE_RANDOM_H
#define HECATE_RUNTIME_BASE_RANDOM_H

#include <stdint.h>

struct hrt_stream {
    uint64_t seed, name; // `name`: 64-bit FNV-1a of purpose and object.
};

// The stream of `purpose` for `object` ("" when there is only one).
struct hrt_stream hrt_stream_make(uint64_t seed, const char *purpose, const char *object);

// Uniform over 64 bits.
uint64_t hrt_draw_bits(struct hrt_stream stream, uint64_t index);

// Uniform in [0, count), count >= 1; off from uniform by less than count / 2^64.
uint64_t hrt_draw_below(struct hrt_stream stream, uint64_t index, uint64_t count);

// Uniform in [0, 1), 53 bits.
double hrt_draw_uniform(struct hrt_stream stream, uint64_t index);

// Standard normal numbers 4 * block .. 4 * block + 3 of the stream (Box-Muller, two pairs from one
// call of the generator; at most 6.7 in magnitude).
void hrt_draw_normals(struct hrt_stream stream, uint64_t block, double normal[4]);

#endif
