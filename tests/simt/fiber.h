// fiber: the threads of a block as fibers of one thread of the host. Wherever a GPU is free to choose an order,
// a seeded generator chooses: which fiber goes on, which block is next, when an asynchronous copy arrives.
// A report of the emulator ends the process with status 70, a race with 71.
#ifndef HECATE_TESTS_SIMT_FIBER_H
#define HECATE_TESTS_SIMT_FIBER_H

#include <stddef.h>
#include <stdint.h>

#include <cuda_runtime.h>

// For functions that the race detector does not see.
#define SIMT_UNSEEN __attribute__((no_sanitize("thread")))
#define SIMT_QUIET __attribute__((noinline, no_sanitize("thread")))
// A last parameter: the caller's place in the source, for reports.
#define SIMT_SITE simt::site_t site = {__builtin_FILE(), __builtin_LINE()}

namespace simt {

enum { LANES = 32, WARPS_MAX = 32, THREADS_MAX = 1024, SHARED_MAX = 227 << 10 };
enum { STATUS_REPORT = 70, STATUS_RACE = 71 };

struct site_t {
    const char *file;
    int line;
};

// Lanes of a warp that have come to a collective function, with their arguments.
struct meeting_t {
    const char *what;
    unsigned mask, here;
    site_t site;
    void *argument[LANES];
};

struct warp_t {
    unsigned live, ready; // Lanes that have not exited; those of them that may run.
    uint32_t epoch;       // Counts barriers of the warp and of the block, for the race detector.
    meeting_t meeting[LANES]; // By the lowest lane of the mask.
};

// A cp.async under way.
struct copy_t {
    void *to;
    const void *from;
    int bytes, size, group;
};

struct fiber_t {
    void *stack_pointer;
    char *stack; // The lowest byte.
    size_t stack_bytes;
    void *fake_stack; // AddressSanitizer's.
    uint3 thread;
    int linear, lane;
    warp_t *warp;
    const char *waits_in;
    site_t site;
    copy_t *copies;
    int copy_count, copy_room, groups; // groups: of copies, ended so far.
    uint8_t fences, fences_known; // async_fence(): so far; when the block came to its last barrier.
};

extern fiber_t *current; // The host's own outside of kernels.
extern fiber_t host, *fibers;
extern warp_t warps[WARPS_MAX];
extern int warp_count, alive;
extern uint3 block_index;
extern dim3 block_size, grid_size;

// The same for the kernels, whose hooks do not see them. A thread's own never change.
uint3 own_thread() __attribute__((const));
uint3 own_block() __attribute__((const));
uint3 own_block_size() __attribute__((const));
uint3 own_grid_size() __attribute__((const));
int own_lane() __attribute__((const));

extern const char *kernel_name;
extern uint32_t block_serial, block_epoch, first_block; // first_block: of this launch.

[[noreturn]] void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
static inline bool in_kernel() {
    return current != &host;
}

// --- schedule.cpp: who goes on.

uint32_t chance(uint32_t n); // Uniform in [0, n); always 0 in the fixed order, which has no seed.
bool is_seeded();
void yield();
void sync_block(site_t site);
void leave();       // The current fiber exits.
void begin_block(); // All fibers of the block run until they have exited.

// The meeting for the last lane of `mask` that comes, NULL for the others, when the last one has released them.
meeting_t *arrive(const char *what, unsigned mask, void *argument, site_t site);
void release(meeting_t *meeting);

// --- switch.cpp: stacks.

void switch_to(fiber_t *to, bool for_ever);
void make_stack(fiber_t *fiber);
void run_fiber(); // The body of a fiber: the kernel for its thread.

// --- grid.cpp: launches and shared memory.

typedef void call_t(const void *arguments);
enum { ARGUMENTS_MAX = 4096 };
extern unsigned char launched_arguments[ARGUMENTS_MAX];
void run_grid(const char *name, dim3 grid, dim3 block, size_t shared_bytes, call_t *call,
              const void *arguments);

// --- launch.cpp

// Reports a launch that a device would refuse, or for which the kernel was not compiled.
void check_launch(const char *name, const void *kernel, dim3 grid, dim3 block, size_t shared_bytes);

// --- device.cpp

// Facts of the emulated device: the most shared memory of a block; which of `architectures`, such as "sm_80 sm_90a
// compute_80", a driver takes for it, and whether it takes one.
size_t shared_limit();
bool runs(const char *one, const char *architectures);
int code_of(void (*kernel)(), const char *architectures);

struct range_t {
    unsigned char *begin, *end;
};
range_t shared_memory();
unsigned char *dynamic_shared();
uint32_t shared_offset(const void *p);
unsigned char *shared_pointer(uint32_t offset, int align, const char *what);

// --- copy.cpp

void copy_async(uint32_t to, const void *from, int bytes, int size);
void copy_commit();
void copy_wait(int left);

// --- race.cpp

enum access_t { READ, WRITE, ATOMIC };
void touch(const void *at, size_t bytes,
           access_t how); // For accesses that hooks do not see, such as asynchronous copies.
// Checks a read by the asynchronous path: reports bytes of shared memory whose writer has not called async_fence()
// between writing them and the last barrier.
void check_fenced(const void *at, size_t bytes);

// --- memory.cpp: the memory that the device can reach.

void check_aligned(const void *at,
                   size_t multiple);               // Reports an access that a device would refuse.
bool device_reaches(const void *at, size_t bytes); // All within one live allocation.
range_t reachable_memory();                        // Where all allocations lie.

// Appends a launch to a stream.
cudaError_t submit(cudaStream_t stream, const char *name, dim3 grid, dim3 block,
                   size_t shared_bytes, call_t *call, const void *arguments);

} // namespace simt

// The schedule from here on: 0 for the fixed order, in which everything asynchronous is as late as possible; else
// random and repeatable. Before any call it is the environment's SIMT_SEED, or 0.
extern "C" void simt_seed(uint64_t seed);

// From here on a launch runs only so many blocks of its grid, at its beginning and at its end in each direction; 0 and
// 0: all. For tests of sizes that fill a device.
extern "C" void simt_sample(unsigned first, unsigned last);

#endif
