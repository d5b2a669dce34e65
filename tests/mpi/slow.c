// Preloaded: opening SLOW_OPEN for reading, and bringing what was written to the disk, take SLOW_SECONDS. So does, with
// SLOW_FLUSH, each time that a line of the log is written. With SLOW_FILE beginning to write a file takes as many
// microseconds.
#define _GNU_SOURCE // RTLD_NEXT
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void be_slow(void) {
    const char *seconds = getenv("SLOW_SECONDS");
    unsigned left = seconds ? (unsigned)atoi(seconds) : 0;
    while (left) left = sleep(left);
}

FILE *fopen(const char *path, const char *mode) {
    FILE *(*real)(const char *, const char *) =
        (FILE * (*)(const char *, const char *)) dlsym(RTLD_NEXT, "fopen");
    const char *slow = getenv("SLOW_OPEN");
    if (slow && strcmp(path, slow) == 0) be_slow();
    return real(path, mode);
}

FILE *fdopen(int fd, const char *mode) {
    FILE *(*real)(int, const char *) = (FILE * (*)(int, const char *)) dlsym(RTLD_NEXT, "fdopen");
    const char *slow = getenv("SLOW_FILE");
    if (slow) usleep((unsigned)atoi(slow));
    return real(fd, mode);
}

int fflush(FILE *file) {
    int (*real)(FILE *) = (int (*)(FILE *))dlsym(RTLD_NEXT, "fflush");
    if (file && file != stdout && file != stderr && getenv("SLOW_FLUSH")) be_slow();
    return real(file);
}

int fsync(int fd) {
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    be_slow();
    return real(fd);
}
