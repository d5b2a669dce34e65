// Streams over Philox: the seed is the key, (index, name) the counter.
#include "runtime/base/random.h"

#include <math.h>

#include "kernels/noise/philox.h"

static const double pi = 3.14159265358979323846;

static uint64_t fnv1a(uint64_t hash, const char *text) {
    for (; *text; text++) hash = (hash ^ (unsigned char)*text) * 0x100000001B3;
    return (hash ^ 0xFF) * 0x100000001B3; // Ends the text: ("ab", "c") differs from ("a", "bc").
}

struct hrt_stream hrt_stream_make(uint64_t seed, const char *purpose, const char *object) {
    return (struct hrt_stream){seed, fnv1a(fnv1a(0xCBF29CE484222325, purpose), object)};
}

static struct hk_philox words(struct hrt_stream stream, uint64_t index) {
    const struct hk_philox counter = {{(uint32_t)index, (uint32_t)(index >> 32),
                                       (uint32_t)stream.name, (uint32_t)(stream.name >> 32)}};
    return hk_philox4x32(counter, (uint32_t)stream.seed, (uint32_t)(stream.seed >> 32));
}

uint64_t hrt_draw_bits(struct hrt_stream stream, uint64_t index) {
    const struct hk_philox drawn = words(stream, index);
    return (uint64_t)drawn.word[1] << 32 | drawn.word[0];
}

uint64_t hrt_draw_below(struct hrt_stream stream, uint64_t index, uint64_t count) {
    return (uint64_t)(((unsigned __int128)hrt_draw_bits(stream, index) * count) >> 64);
}

double hrt_draw_uniform(struct hrt_stream stream, uint64_t index) {
    return (double)(hrt_draw_bits(stream, index) >> 11) * 0x1p-53;
}

void hrt_draw_normals(struct hrt_stream stream, uint64_t block, double normal[4]) {
    const struct hk_philox drawn = words(stream, block);
    for (int pair = 0; pair < 2; pair++) {
        const double radius = sqrt(-2 * log(((double)drawn.word[2 * pair] + 1) * 0x1p-32));
        const double angle = 2 * pi * (double)drawn.word[2 * pair + 1] * 0x1p-32;
        normal[2 * pair] = radius * cos(angle);
        normal[2 * pair + 1] = radius * sin(angle);
    }
}
