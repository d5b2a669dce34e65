// Reading parts of files.
#include "runtime/data/read.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

bool hrt_data_read_at(int fd, void *out, size_t bytes, int64_t offset) {
    char *at = out;
    while (bytes > 0) {
        const ssize_t got = pread(fd, at, bytes, offset);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) {
            if (got == 0) errno = 0;
            return false;
        }
        at += got;
        bytes -= (size_t)got;
        offset += got;
    }
    return true;
}

bool hrt_data_fail_read(const char *path, struct hrt_error *error) {
    if (errno) return hrt_fail(error, "cannot read '%s': %s", path, strerror(errno));
    return hrt_fail(error, "'%s' became shorter while it was in use", path);
}
