// Reading the weights of a file of tokens.
#include "runtime/data/weights.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/data/read.h"

static bool check(struct hrt_data_weights *weights, const char *name, int64_t tokens,
                  struct hrt_error *error) {
    struct stat status;
    const int fd = weights->fd;
    char magic[8];
    int64_t said;
    if (fstat(fd, &status) != 0)
        return hrt_fail(error, "cannot read '%s': %s", name, strerror(errno));
    if (!S_ISREG(status.st_mode)) return hrt_fail(error, "'%s' is not a regular file", name);
    if (status.st_size < HRT_DATA_WEIGHTS_HEADER)
        return hrt_fail(error, "'%s' is truncated: it has no header of weights", name);
    if (!hrt_data_read_at(fd, magic, sizeof magic, 0) ||
        !hrt_data_read_at(fd, &said, sizeof said, sizeof magic))
        return hrt_data_fail_read(name, error);
    weights->halves = memcmp(magic, HRT_DATA_WEIGHTS_HALVES, sizeof magic) == 0;
    if (!weights->halves && memcmp(magic, HRT_DATA_WEIGHTS_MAGIC, sizeof magic) != 0)
        return hrt_fail(error,
                        "'%s' has no weights: it begins neither with " HRT_DATA_WEIGHTS_MAGIC
                        " nor with " HRT_DATA_WEIGHTS_HALVES,
                        name);
    const int64_t bytes = weights->halves ? 2 * tokens : (tokens + 7) / 8;
    if (said != tokens || status.st_size != HRT_DATA_WEIGHTS_HEADER + bytes)
        return hrt_fail(error,
                        "'%s' is of other tokens: it has %" PRId64 " in %" PRId64
                        " bytes, and the file beside it has %" PRId64,
                        name, said, (int64_t)status.st_size, tokens);
    return true;
}

bool hrt_data_weights_open(struct hrt_data_weights *weights, const char *path, int64_t tokens,
                           struct hrt_error *error) {
    char name[PATH_MAX];
    *weights = (struct hrt_data_weights){.fd = -1};
    if (snprintf(name, sizeof name, "%s.weights", path) >= (int)sizeof name) return true;
    weights->fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (weights->fd < 0)
        return errno == ENOENT || hrt_fail(error, "cannot open '%s': %s", name, strerror(errno));
    if (check(weights, name, tokens, error)) return true;
    hrt_data_weights_close(weights);
    return false;
}

static bool read_bits(int fd, const char *path, int64_t first, int64_t count, uint16_t *out,
                      struct hrt_error *error) {
    enum { BLOCK = 4096 };
    unsigned char bits[BLOCK];
    for (int64_t done = 0; done < count;) {
        const int64_t at = first + done, byte = at / 8;
        const int64_t last = (first + count - 1) / 8;
        const size_t bytes = (size_t)(last - byte + 1 < BLOCK ? last - byte + 1 : BLOCK);
        if (!hrt_data_read_at(fd, bits, bytes, HRT_DATA_WEIGHTS_HEADER + byte))
            return hrt_data_fail_read(path, error);
        for (int64_t i = at - 8 * byte; i < 8 * (int64_t)bytes && done < count; i++, done++)
            out[done] = bits[i / 8] >> i % 8 & 1 ? HRT_DATA_WEIGHT_ONE : 0;
    }
    return true;
}

static bool read_halves(int fd, const char *path, int64_t first, int64_t count, uint16_t *out,
                        struct hrt_error *error) {
    if (!hrt_data_read_at(fd, out, (size_t)count * sizeof *out,
                          HRT_DATA_WEIGHTS_HEADER + first * (int64_t)sizeof *out))
        return hrt_data_fail_read(path, error);
    for (int64_t i = 0; i < count; i++) {
        if (out[i] <= HRT_DATA_WEIGHT_ONE) continue;
        return hrt_fail(error,
                        "'%s.weights': the weight of token %" PRId64
                        " (from 0) is %g; weights are from 0 to 1",
                        path, first + i, (double)hrt_data_half_value(out[i]));
    }
    return true;
}

bool hrt_data_weights_read(const struct hrt_data_weights *weights, const char *path, int64_t first,
                           int64_t count, uint16_t *out, struct hrt_error *error) {
    for (int64_t i = 0; weights->fd < 0 && i < count; i++) out[i] = HRT_DATA_WEIGHT_ONE;
    if (weights->fd < 0) return true;
    return weights->halves ? read_halves(weights->fd, path, first, count, out, error)
                           : read_bits(weights->fd, path, first, count, out, error);
}

float hrt_data_half_value(uint16_t half) {
    const int exponent = half >> 10 & 31, fraction = half & 1023;
    const float size = exponent == 31 ? (fraction ? NAN : INFINITY)
                       : exponent     ? ldexpf((float)(1024 + fraction), exponent - 25)
                                      : ldexpf((float)fraction, -24);
    return half & 0x8000 ? -size : size;
}

uint16_t hrt_data_half_of(double weight) {
    const int exponent = weight > 0x1p-14 ? ilogb(weight) : -14;
    const int fraction = (int)nearbyint(ldexp(weight, 10 - exponent)); // 1024 more for each power.
    return (uint16_t)(fraction + (exponent + 14) * 1024);
}

void hrt_data_weights_close(struct hrt_data_weights *weights) {
    if (weights->fd >= 0) close(weights->fd);
    weights->fd = -1;
}
