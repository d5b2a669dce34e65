// Records of files.
#include "runtime/route/records.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

bool hrt_route_file_read(int fd, void *out, size_t bytes, int64_t offset) {
    char *at = out;
    while (bytes > 0) {
        const ssize_t got = pread(fd, at, bytes, offset);
        if (got < 0 && errno == EINTR) continue;
        if (got == 0) errno = 0;
        if (got <= 0) return false;
        at += got;
        bytes -= (size_t)got;
        offset += got;
    }
    return true;
}

bool hrt_route_file_write(int fd, const void *data, size_t bytes, int64_t offset) {
    const char *at = data;
    while (bytes > 0) {
        const ssize_t put = pwrite(fd, at, bytes, offset);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return false;
        at += put;
        bytes -= (size_t)put;
        offset += put;
    }
    return true;
}

bool hrt_route_file_fail(const char *path, const char *what, struct hrt_error *error) {
    return hrt_fail(error, "cannot %s '%s': %s", what, path,
                    errno ? strerror(errno) : "it ends too early");
}
