// Where the tensors of a program lie and where work on them runs: the host itself, or a device with memory of its own.
//
// Work on a device is asked for, and done later, in the order in which it was asked for. The host waits for it
// in hrt_device_join, hrt_device_read and hrt_device_await alone; how often, and why, is counted.
#ifndef HECATE_RUNTIME_DEVICE_DEVICE_H
#define HECATE_RUNTIME_DEVICE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/adamw/adamw.h"
#include "kernels/bf16.h"
#include "kernels/clip/clip.h"
#include "kernels/copy_rows/copy_rows.h"
#include "kernels/cuda/pieces.h"
#include "kernels/grouped/grouped.h"
#include "kernels/limit/limit.h"
#include "kernels/muon/muon.h"
#include "kernels/runs/runs.h"
#include "kernels/select_bias/select_bias.h"
#include "runtime/base/error.h"
#include "runtime/base/wait.h"
#include "runtime/program.h"

// HRT_OF_DEVICE: only the device may touch it. HRT_OF_BOTH: the host's, and the device reads and writes it, too;
// slower for the device, for data that is small or read once. HRT_IN_PARTS: only the device may touch it, and only
// parts that hrt_device_touch has made ready.
enum hrt_memory { HRT_OF_DEVICE, HRT_OF_BOTH, HRT_IN_PARTS };

// Memory that stands behind parts: the device's own, or the host's, which the device reads and writes over the bus.
enum hrt_home { HRT_AT_DEVICE, HRT_AT_HOST };

// Why the host waits for the device. The profile lists them.
enum hrt_why {
    HRT_WHY_REPORT, // The report of the step before the last one that was issued.
    HRT_WHY_LOSSES, // Losses of a forward; on several ranks of a step, with the loads of experts.
    HRT_WHY_LOADS,  // Loads of the experts, for a record.
    HRT_WHY_NORM,   // The norm of the gradients, on several ranks.
    HRT_WHY_BATCH,  // Before ids are overwritten that the device may still read.
    HRT_WHY_ROUTES, // The experts of tokens, and their weights.
    HRT_WHY_VALUES, // Parameters and scores that the host reads or changes.
    HRT_WHYS
};

enum { HRT_DEVICE_ADDRESS = 16 };

// Places among the work that the host can wait for (hrt_device_mark): the ends of the two steps that were asked for
// last, and of a count of rows.
enum { HRT_MARK_STEPS = 2, HRT_MARK_COUNTS = HRT_MARK_STEPS, HRT_MARKS };

enum {
    HRT_LOSSES = 3,
    HRT_LOSSES_MOST = HRT_LOSSES + HRT_NAMED_LOSSES
}; // The functions of a forward, without and with named losses.

struct hrt_device {
    const struct hrt_device_backend *backend;
    char name[128]; // "host", "GPU 0 (sm_90)".
    char address
        [HRT_DEVICE_ADDRESS]; // Tells it from the other devices of its machine: "0000:3b:00.0". Empty: nobody asks.
    struct hkc_lane *lane; // All work is asked for here. NULL on the host.
    void *own;             // The back end's.
    int local;             // This rank's number on its machine, as `open` finds it.
    // NULL, or called now and then while the host waits, for `seconds` so far: whether other ranks are well.
    void (*look)(void *context, double seconds);
    void *look_context;
    // NULL, or called when the device has failed, once that has been said: ends all ranks, and does not return.
    void (*end)(void *context, int exit_code);
    void *end_context;
    int loss_count; // Losses of a forward, as struct hrt_losses has them: HRT_LOSSES and the named ones.
    float *losses; // [loss_count] HRT_OF_BOTH: where hrt_device_losses leaves those of a forward.
    bool losses_later; // Forwards are not waited for: hrt_device_fetch_losses follows.
    const float *loss[HRT_LOSSES_MOST]; // Where the last forward has left them, on the device.
    bool records;                       // Whether parts of a step may be recorded (graph.h).
    struct hrt_wait wait[HRT_WHYS];     // So far.
};

// The functions of a back end. None but `open` and `take` can fail: when the device has failed, the process ends
// with a message and HRT_EXIT_FAILED.
struct hrt_device_backend {
    const char *name;  // "cuda"
    bool apart;        // The host may not touch memory of the device.
    size_t lane_bytes; // Device memory that `open` takes.
    bool (*open)(struct hrt_device *device, struct hrt_error *error);
    // Names the device, in a few words, also where nothing can be opened. NULL: no name.
    void (*describe)(char *text, size_t bytes);
    void (*close)(struct hrt_device *device);
    // Zeroed memory, aligned to 256 bytes at least. `sparse`: only part of it will ever be used. NULL: there is not
    // enough. give: also NULL.
    void *(*take)(struct hrt_device *device, enum hrt_memory memory, size_t bytes, bool sparse);
    void (*give)(struct hrt_device *device, enum hrt_memory memory, void *taken, size_t bytes);
    // NULL on the host. They implement hrt_device_touch and hrt_device_leave for memory that was taken
    // HRT_IN_PARTS. Its pages have `page_bytes`.
    size_t page_bytes;
    bool (*touch)(struct hrt_device *device, void *at, size_t bytes, enum hrt_home home);
    void (*leave)(struct hrt_device *device, void *at, size_t bytes);
    // Bytes that are free, and all.
    void (*room)(struct hrt_device *device, size_t *left, size_t *all);
    // The fields below are for devices with separate memory (hrt_device_is_apart); NULL: the host's own way.
    //
    // Copies between host and device, behind the work that was asked for before. `from` may be changed when `write`
    // returns; `read` waits.
    void (*write)(struct hrt_device *device, void *to, const void *from, size_t bytes);
    void (*read)(struct hrt_device *device, void *to, const void *from, size_t bytes);
    // Copies behind the work that was asked for before, without a wait: no end is the host's own.
    void (*fetch)(struct hrt_device *device, void *to, const void *from, size_t bytes);
    void (*join)(struct hrt_device *device);
    void (*mark)(struct hrt_device *device, int mark);
    void (*await)(struct hrt_device *device, int mark);
    // Begins a range of queued work, which profilers of the device show by its name; NULL: ends the last
    // one.
    void (*range)(const char *name);
    // Work issued from `record` to `recorded` is not run, but kept, so that `replay` can issue it at once; the
    // host must not wait in between. For devices with `records`.
    void (*record)(struct hrt_device *device);
    void *(*recorded)(struct hrt_device *device);
    void (*replay)(struct hrt_device *device, void *recorded);
    void (*forget)(struct hrt_device *device, void *recorded);
    // Sets `bytes` to `byte`.
    void (*fill)(struct hrt_device *device, void *at, int byte, size_t bytes);
    // Kernels of the device.
#define HRT_KERNEL(name, launcher, parameters, arguments)                                          \
    void (*name)(struct hrt_device * device, HRT_LISTED parameters);
#define HRT_LISTED(...) __VA_ARGS__
#include "runtime/device/kernels.def"
#undef HRT_KERNEL
};

// The host, and GPUs of the library hecate_device_cuda.
extern const struct hrt_device_backend hrt_device_host, hrt_device_cuda;

// Opens the device that the program was compiled for; where its machine has several, the one for number `local` of the
// ranks there, unless the launcher has numbered them. The caller closes it.
bool hrt_device_open(struct hrt_device *device, const struct hrt_program *program, int local,
                     struct hrt_error *error);
// Gives back its lane, after all memory that was taken. Also for a zeroed one.
void hrt_device_close(struct hrt_device *device);

// Whether tensors lie where the host may not touch them.
bool hrt_device_is_apart(const struct hrt_device *device);

// Marks the work queued so far with a number below HRT_MARKS; hrt_device_await waits until all of that is done,
// not for work queued since.
void hrt_device_mark(struct hrt_device *device, int mark);
void hrt_device_await(struct hrt_device *device, int mark, enum hrt_why why);

// Waits until everything is done that was asked for.
void hrt_device_join(struct hrt_device *device, enum hrt_why why);

// The line of its source that the program is at, for profilers of the device; they see a range for each. In a function
// of an emitted program, whose variable it is: `struct hrt_lines lines HRT_LINES_END = {0};`.
struct hrt_lines {
    struct hrt_device *device; // NULL: no range is begun.
};
void hrt_device_line(struct hrt_device *device, struct hrt_lines *lines, const char *line);
void hrt_device_lines_end(struct hrt_lines *lines);
#define HRT_LINES_END __attribute__((cleanup(hrt_device_lines_end)))

// Copies `bytes` to the device, behind the work queued before. `from` may be changed afterwards.
void hrt_device_write(struct hrt_device *device, void *to, const void *from, size_t bytes);

// Makes `bytes` of memory that was taken HRT_IN_PARTS ready for use, zeroed behind the work that was asked for before.
// Their pages are at `home`, but for those that another touch has made.
// On the host nothing is to be done: pages come as they are touched, and whole pages that were left are zero.
// False: there is not enough memory, and nothing has changed.
bool hrt_device_touch(struct hrt_device *device, void *at, size_t bytes, enum hrt_home home);

// Gives the pages of `bytes` back, whose values are not needed any more. The bytes are those of one touch before.
// On a device with separate memory it waits for the work that was asked for, where a page goes.
// A page that another touch shares stays.
void hrt_device_leave(struct hrt_device *device, void *at, size_t bytes);

// Zeroes `bytes` of the device, behind the work queued before.
void hrt_device_clear(struct hrt_device *device, void *at, size_t bytes);

// Makes NaN of all numbers of `bytes` likewise, so that a read of them shows.
void hrt_device_spoil(struct hrt_device *device, void *at, size_t bytes);

// Copies `bytes` to the host, once the work queued before is done.
void hrt_device_read(struct hrt_device *device, void *to, const void *from, size_t bytes,
                     enum hrt_why why);

// Copies `bytes` behind the work queued before; they are there when that is done. Both ends are HRT_OF_BOTH or of
// the device.
void hrt_device_fetch(struct hrt_device *device, void *to, const void *from, size_t bytes);

// The losses of a forward, in the order of struct hrt_losses, from where they lie on the device: `loss` [loss_count].
// Emitted programs call it. Waits once. Where losses_later is set, it waits for nothing and returns NaN, and the losses
// of this forward, or of one that was recorded then, are brought by hrt_device_fetch_losses, to `to` [loss_count],
// HRT_OF_BOTH, in this order.
struct hrt_losses hrt_device_losses(struct hrt_device *device, const float *const *loss);
void hrt_device_fetch_losses(struct hrt_device *device, float *to);

#endif
