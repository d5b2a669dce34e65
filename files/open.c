// Opening: never for longer than a moment.
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "files/files.h"

enum { PATIENCE_MS = 5000 };
static const char not_regular[] = "it is not a regular file";

void hf_hold_standard(void) {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
        // The lowest number that is free is this one.
        if (open("/dev/null", fd == STDIN_FILENO ? O_RDONLY : O_WRONLY) != fd) _exit(1);
    }
}

// Closes `fd` and says why. Returns -1.
static int refuse(int fd, const char *reason, const char **why) {
    *why = reason;
    if (fd >= 0) close(fd);
    return -1;
}

// A pipe without a name comes from the parent of the process, which writes it.
static bool is_given_pipe(int fd, const struct stat *status) {
    struct statfs system;
    return S_ISFIFO(status->st_mode) && fstatfs(fd, &system) == 0 && system.f_type == PIPEFS_MAGIC;
}

int hf_open_input(const char *path, bool pipes, const char **why) {
    struct stat status;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &status) != 0) return refuse(fd, strerror(errno), why);
    if (S_ISREG(status.st_mode)) return fd;
    if (S_ISDIR(status.st_mode)) return refuse(fd, "it is a directory", why);
    if (!pipes || (!S_ISCHR(status.st_mode) && !is_given_pipe(fd, &status)))
        return refuse(fd, not_regular, why);
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    return fd;
}

FILE *hf_input(const char *path, bool pipes, const char **why) {
    const int fd = hf_open_input(path, pipes, why);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
    if (fd >= 0 && !file) refuse(fd, strerror(errno), why);
    return file;
}

int hf_open_output(const char *path, int flags, const char **why) {
    struct stat status;
    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode))
        return refuse(-1, not_regular, why);
    const int fd = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | flags, 0666);
    if (fd < 0 || fstat(fd, &status) != 0) return refuse(fd, strerror(errno), why);
    return S_ISREG(status.st_mode) ? fd : refuse(fd, not_regular, why);
}

// ---- streams that may not be files

// The number of a descriptor of this process that `path` names, or -1.
static int own_descriptor(const char *path) {
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    if (strcmp(path, "/dev/stdout") == 0) return STDOUT_FILENO;
    if (strcmp(path, "/dev/stderr") == 0) return STDERR_FILENO;
    for (int i = 0; i < 2; i++) {
        const size_t length = strlen(folders[i]);
        char *end;
        if (strncmp(path, folders[i], length) != 0) continue;
        const long number = strtol(path + length, &end, 10);
        if (end != path + length && !*end && number >= 0 && number < INT_MAX) return (int)number;
    }
    return -1;
}

bool hf_is_own(const char *path) {
    return own_descriptor(path) >= 0;
}

// The same open file, with its position.
static int duplicate(int own) {
    const int flags = fcntl(own, F_GETFL);
    if (flags < 0) return -1;
    if ((flags & O_ACCMODE) == O_RDONLY) return errno = EBADF, -1;
    return fcntl(own, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
}

static int open_stream(const char *path, const char **why) {
    struct stat status;
    const int own = own_descriptor(path);
    const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    const int fd = own < 0 ? open(path, flags, 0666) : duplicate(own);
    if (fd >= 0) return fd;
    const int failure = errno;
    if (failure == ENXIO && stat(path, &status) == 0 && S_ISFIFO(status.st_mode))
        return refuse(-1, "nobody reads this pipe", why);
    return refuse(-1, strerror(failure), why);
}

// A pipe with room takes PIPE_BUF bytes at once.
static ssize_t write_stream(void *cookie, const char *data, size_t bytes) {
    const int fd = (int)(intptr_t)cookie;
    size_t done = 0;
    while (done < bytes) {
        struct pollfd room = {.fd = fd, .events = POLLOUT};
        const int ready = poll(&room, 1, PATIENCE_MS);
        if (ready == 0) return errno = ETIMEDOUT, 0;
        if (ready < 0 && errno != EINTR) return 0;
        if (ready < 0) continue;
        const size_t left = bytes - done;
        const ssize_t put = write(fd, data + done, left < PIPE_BUF ? left : PIPE_BUF);
        if (put < 0 && errno != EINTR && errno != EAGAIN) return 0;
        if (put > 0) done += (size_t)put;
    }
    return (ssize_t)done;
}

static int close_stream(void *cookie) {
    return close((int)(intptr_t)cookie);
}

// Cuts a file that was opened by its name; the position of one that the process has is its owner's.
static bool cut(int fd, int64_t bytes, int64_t kept) {
    const int64_t left = bytes < kept ? bytes : kept;
    return ftruncate(fd, left) == 0 && lseek(fd, left, SEEK_SET) == left;
}

FILE *hf_output(const char *path, const char **why) {
    return hf_output_behind(path, 0, why);
}

FILE *hf_output_behind(const char *path, int64_t kept, const char **why) {
    struct stat status;
    const int fd = open_stream(path, why);
    if (fd < 0) return NULL;
    const bool regular = fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
    if (regular && !hf_is_own(path) && !cut(fd, status.st_size, kept)) {
        refuse(fd, strerror(errno), why);
        return NULL;
    }
    const cookie_io_functions_t functions = {.write = write_stream, .close = close_stream};
    FILE *file = regular ? fdopen(fd, "w") : fopencookie((void *)(intptr_t)fd, "w", functions);
    if (!file) refuse(fd, strerror(errno), why);
    return file;
}
