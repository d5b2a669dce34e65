// Memory that the device reaches: its own, and pinned and managed memory, which the host reaches, too. Allocations lie
// in two ranges with gaps between them, which AddressSanitizer guards, and are full of ones (NaN) when handed out; those that
// are too large for that are zeros, and take memory of the host only where they are touched.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "sanitizer.h"
#include "streams.h"

namespace simt {

enum : size_t {
    RANGE = 1ull << 31,
    VIRTUAL = 1ull << 34,
    GAP = 256,
    PAGE = 4096,
    SPARSE = 1ull << 28
};
enum : size_t { VIRTUAL_PAGE = 2 << 20 };
enum { TRAP = 0x100 }; // The processor's flag that stops it after one instruction.

// One of the two ranges.
struct pool_t {
    char *begin;
    size_t used;
    std::map<const char *, size_t> live;
};
static pool_t device, pinned;
static pool_t imported,
    registered;             // Other processes' devices'; the host's own. Anywhere.
static bool protect, watch; // Device memory from the host; the host at pinned memory.
static size_t device_bytes; // In all.
static size_t device_range; // Their place: RANGE, or more with SIMT_MEMORY.

// The pages that the host may touch only while it is watched.
static void protect_used(const pool_t &pool, bool open) {
    if (pool.used == 0) return;
    mprotect(pool.begin, (pool.used + PAGE - 1) / PAGE * PAGE,
             open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

// One instruction of the host touches pinned memory: it is run alone, and the next one is watched again.
static void note_fault(const void *at, ucontext_t *context) {
    const bool writes = context->uc_mcontext.gregs[REG_ERR] & 2;
    note_host_access(at, writes ? WRITE : READ);
    protect_used(pinned, true);
    context->uc_mcontext.gregs[REG_EFL] |= TRAP;
}

static void end_instruction(int, siginfo_t *, void *context) {
    protect_used(pinned, false);
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~TRAP;
}

static struct sigaction before; // The program's own.

static void tell_fault(int, siginfo_t *info, void *context) {
    const char *at = (const char *)info->si_addr;
    if (watch && pinned.begin && at >= pinned.begin && at < pinned.begin + pinned.used)
        return note_fault(at, (ucontext_t *)context);
    const std::string reserved = device.begin ? virtual_name(at) : "";
    if (!reserved.empty()) {
        fail("%s device memory %p: %s", in_kernel() ? "a fault at" : "the host touches",
             (const void *)at, reserved.c_str());
    }
    if (device.begin && at >= device.begin && at < device.begin + device_range) {
        fail("%s device memory %p (+%#zx)", in_kernel() ? "a fault at" : "the host touches",
             (const void *)at, (size_t)(at - device.begin));
    }
    sigaction(SIGSEGV, &before,
              NULL); // It comes again, to whoever looks after the program's own faults.
}

static void open_ranges() {
    if (device.begin) return;
    const char *kib = getenv("SIMT_MEMORY");
    device_bytes = kib ? (size_t)strtoull(kib, NULL, 10) << 10 : (size_t)RANGE;
    device_range = std::max(device_bytes, (size_t)RANGE);
    const size_t all = device_range + RANGE + VIRTUAL + VIRTUAL_PAGE;
    void *memory = mmap(NULL, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory, device_range + RANGE, PROT_READ | PROT_WRITE) != 0)
        fail("no memory for the device");
    device.begin = (char *)memory;
    pinned.begin = device.begin + device_range;
    protect = getenv("SIMT_PROTECT") != NULL;
    struct sigaction action = {};
    action.sa_sigaction = tell_fault;
    action.sa_flags = SA_SIGINFO;
    watch = keeps_order();
    sigaction(SIGSEGV, &action, &before);
    action.sa_sigaction = end_instruction;
    if (watch) sigaction(SIGTRAP, &action, NULL);
}

range_t reachable_memory() {
    unsigned char *begin = (unsigned char *)device.begin;
    return {begin, begin ? begin + device_range + RANGE + VIRTUAL + VIRTUAL_PAGE : NULL};
}

range_t virtual_range() {
    open_ranges();
    const uintptr_t end = (uintptr_t)(pinned.begin + RANGE);
    unsigned char *begin =
        (unsigned char *)((end + VIRTUAL_PAGE - 1) / VIRTUAL_PAGE * VIRTUAL_PAGE);
    return {begin, begin + VIRTUAL};
}

static size_t most;

void count_memory() {
    size_t taken = virtual_bytes();
    for (const auto &held : device.live) taken += held.second;
    most = std::max(most, taken);
}

size_t most_memory() {
    return most;
}

size_t memory_left() {
    open_ranges();
    const size_t taken = device.used + virtual_bytes();
    return taken < device_bytes ? device_bytes - taken : 0;
}

// Opening is counted, and closed as often; in between others may do so, too.
static int openings;

void protect_memory() {
    const bool open = openings > 0;
    if (protect) protect_used(device, open);
    if (protect) open_virtual_to_host(open);
    for (const auto &held : imported.live) {
        if (protect)
            mprotect((void *)held.first, held.second, open ? PROT_READ | PROT_WRITE : PROT_NONE);
    }
    if (watch) protect_used(pinned, open);
}

void open_to_host(bool open) {
    openings += open ? 1 : -1;
    if (openings == (open ? 1 : 0)) protect_memory();
}

// 1: within one allocation, 0: outside of all, -1: it crosses the end of one.
static int held_by(const pool_t &pool, const void *at, size_t bytes) {
    const char *begin = (const char *)at;
    auto next = pool.live.upper_bound(begin);
    if (next == pool.live.begin()) return 0;
    const auto &held = *std::prev(next);
    if (begin >= held.first + held.second) return 0;
    return begin + bytes <= held.first + held.second ? 1 : -1;
}

place_t place_of(const void *at, size_t bytes) {
    const int on_device = held_by(device, at, bytes), on_host = held_by(pinned, at, bytes);
    const int elsewhere = held_by(imported, at, bytes), own = held_by(registered, at, bytes);
    const int reserved = device.begin ? virtual_holds(at, bytes) : 0;
    if (on_device < 0 || on_host < 0 || elsewhere < 0 || own < 0 || reserved < 0) return BROKEN;
    return on_device || elsewhere || reserved ? ON_DEVICE : on_host || own ? PINNED : PAGEABLE;
}

// ---- between processes

// Pages of the device that have become a file of this process, which other ones can map.
int share_pages(const void *at, size_t *bytes) {
    const auto held = device.live.find((const char *)at);
    if (held == device.live.end() || (uintptr_t)at % GAP != 0) return -1;
    char *first = (char *)((uintptr_t)at / PAGE * PAGE);
    *bytes = held->second;
    const size_t length = ((size_t)((const char *)at - first) + *bytes + PAGE - 1) / PAGE * PAGE;
    const int file = memfd_create("simt", MFD_CLOEXEC);
    open_to_host(true);
    // By the system itself, since gaps between allocations are guarded.
    const bool written = file >= 0 && syscall(SYS_write, file, first, length) == (long)length;
    const bool mapped = written && mmap(first, length, PROT_READ | PROT_WRITE,
                                        MAP_SHARED | MAP_FIXED, file, 0) == first;
    open_to_host(false);
    if (!mapped) fail("no memory for other processes: %s", strerror(errno));
    return file;
}

void *map_pages(const char *path, size_t offset, size_t bytes) {
    const int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) return NULL;
    const size_t length = (offset + bytes + PAGE - 1) / PAGE * PAGE;
    char *mapped = (char *)mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (mapped == MAP_FAILED) return NULL;
    imported.live[mapped + offset] = bytes;
    protect_memory();
    return mapped + offset;
}

bool unmap_pages(void *at) {
    const auto held = imported.live.find((const char *)at);
    if (held == imported.live.end()) return false;
    cudaDeviceSynchronize();
    char *first = (char *)((uintptr_t)at / PAGE * PAGE);
    munmap(first, (size_t)((char *)at - first) + held->second);
    imported.live.erase(held);
    return true;
}

void register_host(const void *at, size_t bytes) {
    registered.live[(const char *)at] = bytes;
}

long registered_word(const void *at) {
    const auto next = registered.live.upper_bound((const char *)at);
    if (held_by(registered, at, sizeof(uint32_t)) != 1) return -1;
    return ((const char *)at - std::prev(next)->first) / (long)sizeof(uint32_t);
}

bool unregister_host(const void *at) {
    cudaDeviceSynchronize();
    return registered.live.erase((const char *)at) == 1;
}

void check_aligned(const void *at, size_t multiple) {
    if ((uintptr_t)at % multiple) fail("address %p is not a multiple of %zu", at, multiple);
}

bool device_reaches(const void *at, size_t bytes) {
    const place_t place = place_of(at, bytes);
    return place == ON_DEVICE || place == PINNED;
}

// In the first hole that is large enough.
static cudaError_t allocate(pool_t &pool, void **to, size_t bytes) {
    refuse_capture("taking memory");
    open_ranges();
    char *at = pool.begin + GAP;
    for (const auto &held : pool.live) {
        if (held.first - at >= (ptrdiff_t)(bytes + GAP)) break;
        const size_t end = (size_t)(held.first - pool.begin) + held.second;
        at = pool.begin + (end + GAP + GAP - 1) / GAP * GAP;
    }
    const size_t end = (size_t)(at - pool.begin) + bytes + GAP;
    if (end > (&pool == &device ? device_bytes - virtual_bytes() : (size_t)RANGE))
        return cudaErrorMemoryAllocation;
    if (end > pool.used) {
        simt_poison(pool.begin + pool.used, end + PAGE - pool.used);
        pool.used = end;
    }
    open_to_host(true);
    pool.live[at] = bytes;
    simt_unpoison(at, bytes);
    if (bytes < SPARSE) memset(at, 0xff, bytes);
    open_to_host(false);
    forget_accesses(at, bytes);
    count_memory();
    *to = at;
    return cudaSuccess;
}

// Gives whole pages back, which are zeros then.
static void clear(void *at, size_t bytes) {
    char *const from = (char *)(((uintptr_t)at + PAGE - 1) / PAGE * PAGE);
    char *const to = (char *)(((uintptr_t)at + bytes) / PAGE * PAGE);
    memset(at, 0, (size_t)(from - (char *)at));
    memset(to, 0, (size_t)((char *)at + bytes - to));
    madvise(from, (size_t)(to - from), MADV_DONTNEED);
}

static bool release(pool_t &pool, void *at) {
    const auto held = pool.live.find((char *)at);
    if (held == pool.live.end()) return false;
    cudaDeviceSynchronize();
    simt_poison(at, held->second);
    if (held->second >= SPARSE) clear(at, held->second);
    pool.live.erase(held);
    return true;
}

} // namespace simt

extern "C" {

cudaError_t cudaMalloc(void **to, size_t bytes) {
    return simt::allocate(simt::device, to, bytes);
}

cudaError_t cudaMallocHost(void **to, size_t bytes) {
    return simt::allocate(simt::pinned, to, bytes);
}

cudaError_t cudaMallocManaged(void **to, size_t bytes, unsigned) {
    return simt::allocate(simt::pinned, to, bytes);
}

cudaError_t cudaMemGetInfo(size_t *left, size_t *all) {
    simt::open_ranges();
    *all = simt::device_bytes;
    *left = simt::memory_left();
    return cudaSuccess;
}

cudaError_t cudaFree(void *at) {
    if (at && !simt::release(simt::device, at) && !simt::release(simt::pinned, at)) {
        simt::fail("cudaFree of %p, which was not allocated", at);
    }
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void *at) {
    if (at && !simt::release(simt::pinned, at)) {
        simt::fail("cudaFreeHost of %p, which was not allocated", at);
    }
    return cudaSuccess;
}
}
