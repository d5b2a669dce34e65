// The host as a device: anonymous mappings, zeroed, aligned to pages, committed on first touch.
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/device/device.h"

static bool open_host(struct hrt_device *device, struct hrt_error *error) {
    (void)error;
    snprintf(device->name, sizeof device->name, "host");
    return true;
}

static void close_host(struct hrt_device *device) {
    (void)device;
}

static size_t mapped_bytes(size_t bytes) {
    return bytes ? bytes : 1;
}

static void *take(struct hrt_device *device, enum hrt_memory memory, size_t bytes, bool sparse) {
    (void)device, (void)memory;
    void *mapped = mmap(NULL, mapped_bytes(bytes), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | (sparse ? MAP_NORESERVE : 0), -1, 0);
    if (mapped == MAP_FAILED) return NULL;
    // Only speed; may be refused. A huge page would take neighbours that are never touched with it.
    if (!sparse) madvise(mapped, mapped_bytes(bytes), MADV_HUGEPAGE);
    return mapped;
}

static void give(struct hrt_device *device, enum hrt_memory memory, void *taken, size_t bytes) {
    (void)device, (void)memory;
    if (taken) munmap(taken, mapped_bytes(bytes));
}

static void room(struct hrt_device *device, size_t *left, size_t *all) {
    (void)device;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    *left = (size_t)sysconf(_SC_AVPHYS_PAGES) * page;
    *all = (size_t)sysconf(_SC_PHYS_PAGES) * page;
}

const struct hrt_device_backend hrt_device_host = {
    .name = "host",
    .open = open_host,
    .close = close_host,
    .take = take,
    .give = give,
    .room = room,
};
