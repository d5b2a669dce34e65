// Inputs of the fuzz targets.
#define _GNU_SOURCE
#include "tests/fuzz/fuzz.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/device/device.h"

// Readers pass slices of the host's memory; a device would bring all kernels along.
void hrt_device_fetch(struct hrt_device *device, void *to, const void *from, size_t bytes) {
    (void)device, (void)to, (void)from, (void)bytes;
    abort();
}

void hrt_device_join(struct hrt_device *device, enum hrt_why why) {
    (void)device, (void)why;
    abort();
}

_Noreturn void fuzz_broken(const char *promise) {
    dprintf(2, "broken promise: %s\n", promise);
    abort();
}

static _Noreturn void fail(const char *what) {
    perror(what);
    exit(70);
}

const char *fuzz_file(int slot, const void *data, size_t size) {
    static int file[2] = {-1, -1};
    static char path[2][32];
    if (file[slot] < 0) {
        file[slot] = memfd_create("fuzz", MFD_CLOEXEC);
        if (file[slot] < 0) fail("memfd_create");
        snprintf(path[slot], sizeof path[slot], "/proc/self/fd/%d", file[slot]);
    }
    if (ftruncate(file[slot], 0) != 0 || pwrite(file[slot], data, size, 0) != (ssize_t)size) {
        fail("writing an input");
    }
    return path[slot];
}

char *fuzz_text(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1);
    if (!text) fail("malloc");
    memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

int fuzz_words(char *text, size_t size, char *word[FUZZ_WORDS_MAX]) {
    int count = 0;
    char *at = text, *end = text + size;
    while (at < end && count < FUZZ_WORDS_MAX) {
        word[count++] = at;
        while (at < end && *at && *at != '\n') at++;
        *at++ = '\0';
    }
    return count;
}

void fuzz_hush_errors(void) {
    static FILE *nowhere;
    if (nowhere) return;
    nowhere = fopen("/dev/null", "w");
    if (!nowhere) fail("/dev/null");
    stdout = stderr = nowhere;
}
