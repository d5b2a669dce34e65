// Linked with an emitted program by --wrap. At its end the program prints "host: N bytes at most":
// the memory of the host that it had at a time, in blocks of at least 64 KiB, with pinned memory
// and the emulator's stacks of threads.
#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { LEAST = 1 << 16, PINNED = 256 };

static atomic_size_t held, most;
static atomic_bool reports;
static struct {
    void *at;
    size_t bytes;
} pinned[PINNED];

static void report(void) {
    fprintf(stderr, "host: %zu bytes at most\n", atomic_load(&most));
}

static void add(size_t bytes) {
    if (bytes < LEAST) return;
    if (!atomic_exchange(&reports, true)) atexit(report);
    const size_t now = atomic_fetch_add(&held, bytes) + bytes;
    size_t before = atomic_load(&most);
    while (now > before && !atomic_compare_exchange_weak(&most, &before, now)) continue;
}

static void drop(size_t bytes) {
    if (bytes >= LEAST) atomic_fetch_sub(&held, bytes);
}

static void *added(void *memory) {
    if (memory) add(malloc_usable_size(memory));
    return memory;
}

typeof(malloc) __real_malloc, __wrap_malloc;
typeof(calloc) __real_calloc, __wrap_calloc;
typeof(realloc) __real_realloc, __wrap_realloc;
typeof(free) __real_free, __wrap_free;
typeof(aligned_alloc) __real_aligned_alloc, __wrap_aligned_alloc;
typeof(mmap) __real_mmap, __wrap_mmap;
typeof(munmap) __real_munmap, __wrap_munmap;
int __real_cudaMallocHost(void **to, size_t bytes), __wrap_cudaMallocHost(void **to, size_t bytes);
int __real_cudaFreeHost(void *at), __wrap_cudaFreeHost(void *at);

void *__wrap_malloc(size_t bytes) {
    return added(__real_malloc(bytes));
}

void *__wrap_calloc(size_t count, size_t bytes) {
    return added(__real_calloc(count, bytes));
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes) {
    return added(__real_aligned_alloc(alignment, bytes));
}

void *__wrap_realloc(void *memory, size_t bytes) {
    if (memory) drop(malloc_usable_size(memory));
    return added(__real_realloc(memory, bytes));
}

void __wrap_free(void *memory) {
    if (memory) drop(malloc_usable_size(memory));
    __real_free(memory);
}

// Files are not counted, and neither are addresses without memory.
static bool counts(int protection, int flags) {
    return flags & MAP_ANONYMOUS && protection & PROT_WRITE;
}

void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset) {
    void *memory = __real_mmap(at, bytes, protection, flags, file, offset);
    if (memory != MAP_FAILED && counts(protection, flags)) add(bytes);
    return memory;
}

int __wrap_munmap(void *at, size_t bytes) {
    drop(bytes);
    return __real_munmap(at, bytes);
}

int __wrap_cudaMallocHost(void **to, size_t bytes) {
    const int failed = __real_cudaMallocHost(to, bytes);
    for (int i = 0; !failed && i < PINNED; i++) {
        if (pinned[i].at) continue;
        pinned[i].at = *to;
        pinned[i].bytes = bytes;
        add(bytes);
        break;
    }
    return failed;
}

int __wrap_cudaFreeHost(void *at) {
    for (int i = 0; at && i < PINNED; i++) {
        if (pinned[i].at != at) continue;
        pinned[i].at = NULL;
        drop(pinned[i].bytes);
    }
    return __real_cudaFreeHost(at);
}
