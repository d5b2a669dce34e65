// Shared by all devices: opening, and waiting, which is counted.
#include "runtime/device/device.h"

#include <math.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernels/cpu/observe.h"

enum { LOSSES_BYTES = HRT_LOSSES_MOST * sizeof(float) };

bool hrt_device_open(struct hrt_device *device, const struct hrt_program *program, int local,
                     struct hrt_error *error) {
    *device = (struct hrt_device){.backend = program->device ? program->device : &hrt_device_host,
                                  .local = local};
    if (!device->backend->open(device, error)) {
        *device = (struct hrt_device){0};
        return false;
    }
    device->loss_count = HRT_LOSSES + program->losses;
    if (!hrt_device_is_apart(device)) return true;
    device->losses = device->backend->take(device, HRT_OF_BOTH, LOSSES_BYTES, false);
    if (device->losses) return true;
    hrt_device_close(device);
    return hrt_fail(error, "out of memory that the device can read, too");
}

void hrt_device_close(struct hrt_device *device) {
    if (device->losses) device->backend->give(device, HRT_OF_BOTH, device->losses, LOSSES_BYTES);
    if (device->backend) device->backend->close(device);
    *device = (struct hrt_device){0};
}

bool hrt_device_is_apart(const struct hrt_device *device) {
    return device->backend && device->backend->apart;
}

static void count_wait(struct hrt_device *device, enum hrt_why why, int64_t from) {
    static const char *const name[HRT_WHYS] = {
        [HRT_WHY_REPORT] = "the report of the step before",
        [HRT_WHY_LOSSES] = "losses",
        [HRT_WHY_LOADS] = "loads of experts",
        [HRT_WHY_NORM] = "the norm of the gradients",
        [HRT_WHY_BATCH] = "a batch that may be overwritten",
        [HRT_WHY_ROUTES] = "routes of tokens",
        [HRT_WHY_VALUES] = "parameters and scores",
    };
    hrt_wait_count(device->wait, HRT_WHYS, name[why], hk_clock() - from);
}

void hrt_device_join(struct hrt_device *device, enum hrt_why why) {
    if (!hrt_device_is_apart(device)) return;
    const int64_t from = hk_clock();
    device->backend->join(device);
    count_wait(device, why, from);
}

void hrt_device_mark(struct hrt_device *device, int mark) {
    if (hrt_device_is_apart(device)) device->backend->mark(device, mark);
}

void hrt_device_await(struct hrt_device *device, int mark, enum hrt_why why) {
    if (!hrt_device_is_apart(device)) return;
    const int64_t from = hk_clock();
    device->backend->await(device, mark);
    count_wait(device, why, from);
}

void hrt_device_line(struct hrt_device *device, struct hrt_lines *lines, const char *line) {
    hrt_device_lines_end(lines);
    if (!device->backend->range) return;
    device->backend->range(line);
    lines->device = device;
}

void hrt_device_lines_end(struct hrt_lines *lines) {
    if (lines->device) lines->device->backend->range(NULL);
    lines->device = NULL;
}

void hrt_device_write(struct hrt_device *device, void *to, const void *from, size_t bytes) {
    if (hrt_device_is_apart(device)) {
        device->backend->write(device, to, from, bytes);
    } else {
        memcpy(to, from, bytes);
    }
}

static void fill(struct hrt_device *device, void *at, int byte, size_t bytes) {
    if (hrt_device_is_apart(device)) {
        device->backend->fill(device, at, byte, bytes);
    } else {
        memset(at, byte, bytes);
    }
}

void hrt_device_clear(struct hrt_device *device, void *at, size_t bytes) {
    fill(device, at, 0, bytes);
}

void hrt_device_spoil(struct hrt_device *device, void *at, size_t bytes) {
    fill(device, at, 0xff, bytes); // All bits set are NaN in every format.
}

void hrt_device_read(struct hrt_device *device, void *to, const void *from, size_t bytes,
                     enum hrt_why why) {
    if (hrt_device_is_apart(device)) {
        const int64_t begun = hk_clock();
        device->backend->read(device, to, from, bytes);
        count_wait(device, why, begun);
    } else {
        memcpy(to, from, bytes);
    }
}

void hrt_device_fetch(struct hrt_device *device, void *to, const void *from, size_t bytes) {
    if (hrt_device_is_apart(device)) {
        device->backend->fetch(device, to, from, bytes);
    } else {
        memcpy(to, from, bytes);
    }
}

void hrt_device_fetch_losses(struct hrt_device *device, float *to) {
    device->backend->collect(device, to, device->loss, device->loss_count);
}

struct hrt_losses hrt_device_losses(struct hrt_device *device, const float *const *loss) {
    const float *value = device->losses;
    memcpy(device->loss, loss, (size_t)device->loss_count * sizeof *loss);
    if (device->losses_later) return (struct hrt_losses){.loss = NAN};
    hrt_device_fetch_losses(device, device->losses);
    hrt_device_join(device, HRT_WHY_LOSSES);
    struct hrt_losses losses = {.loss = value[0], .cross_entropy = value[1], .auxiliary = value[2]};
    for (int i = HRT_LOSSES; i < device->loss_count; i++) losses.named[i - HRT_LOSSES] = value[i];
    return losses;
}

bool hrt_device_touch(struct hrt_device *device, void *at, size_t bytes, enum hrt_home home) {
    return !hrt_device_is_apart(device) || device->backend->touch(device, at, bytes, home);
}

// Whole pages of the host.
static void forget(void *at, size_t bytes) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t from = ((uintptr_t)at + page - 1) / page * page;
    const uintptr_t to = ((uintptr_t)at + bytes) / page * page;
    if (from < to) madvise((void *)from, to - from, MADV_DONTNEED);
}

void hrt_device_leave(struct hrt_device *device, void *at, size_t bytes) {
    if (hrt_device_is_apart(device))
        device->backend->leave(device, at, bytes);
    else
        forget(at, bytes);
}
