// Reading the weights of a file of tokens.
#include "runtime/data/weights.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/data/read.h"

static bool check(int fd, const char *name, int64_t tokens, struct hrt_error *error) {
    struct stat status;
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
    if (memcmp(magic, HRT_DATA_WEIGHTS_MAGIC, sizeof magic) != 0)
        return hrt_fail(
            error, "'%s' has no weights: it does not begin with " HRT_DATA_WEIGHTS_MAGIC, name);
    if (said != tokens || status.st_size != HRT_DATA_WEIGHTS_HEADER + (tokens + 7) / 8)
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
    if (check(weights->fd, name, tokens, error)) return true;
    hrt_data_weights_close(weights);
    return false;
}

bool hrt_data_weights_read(const struct hrt_data_weights *weights, const char *path, int64_t first,
                           int64_t count, unsigned char *out, struct hrt_error *error) {
    enum { BLOCK = 4096 };
    unsigned char bits[BLOCK];
    if (weights->fd < 0) memset(out, 1, (size_t)count);
    for (int64_t done = 0; weights->fd >= 0 && done < count;) {
        const int64_t at = first + done, byte = at / 8;
        const int64_t last = (first + count - 1) / 8;
        const size_t bytes = (size_t)(last - byte + 1 < BLOCK ? last - byte + 1 : BLOCK);
        if (!hrt_data_read_at(weights->fd, bits, bytes, HRT_DATA_WEIGHTS_HEADER + byte))
            return hrt_data_fail_read(path, error);
        for (int64_t i = at - 8 * byte; i < 8 * (int64_t)bytes && done < count; i++, done++)
            out[done] = bits[i / 8] >> i % 8 & 1;
    }
    return true;
}

void hrt_data_weights_close(struct hrt_data_weights *weights) {
    if (weights->fd >= 0) close(weights->fd);
    weights->fd = -1;
}
