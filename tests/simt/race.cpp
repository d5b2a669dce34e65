// Races of kernels. They are compiled with -fsanitize=thread; the hooks that puts before every access are these, and
// not those of the thread sanitizer. Two accesses to a byte are ordered when one thread made both, when a barrier of
// the block or of the warp lies between them, or when they belong to different launches. For every byte one writer
// and one reader, or one class of readers, are remembered. Memory that no device could reach is found, too.
#include "order.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

extern "C" char __executable_start;

namespace simt {

struct stamp_t {
    uint32_t block; // Serial number; 0 for none.
    uint16_t who;   // A thread, READERS_OF_WARP + a warp, or READERS_OF_BLOCK.
    uint16_t epoch, warp_epoch;
    uint8_t how, fences; // fences: fiber_t's
    uint32_t place;      // In the program.
};
struct cell_t {
    stamp_t written, read;
};
enum {
    WORD = 4,
    SPLIT = ATOMIC + 1
}; // SPLIT: how a word is written whose bytes have cells of their own.
struct cells_t {
    cell_t *words, *bytes;
};
enum { READERS_OF_WARP = THREADS_MAX, READERS_OF_BLOCK = READERS_OF_WARP + WARPS_MAX };

static cells_t shared_cells, device_cells;
static bool watching; // Some kernel has hooks.

static int warp_of(const stamp_t &s) {
    return s.who < READERS_OF_WARP ? s.who / LANES : s.who - READERS_OF_WARP;
}

static bool ordered(const stamp_t &before, const stamp_t &now, bool shared) {
    if (before.block == 0) return true;
    if (before.block != now.block) return shared || before.block < first_block;
    if (before.epoch != now.epoch || before.who == now.who) return true;
    return before.who < READERS_OF_BLOCK && warp_of(before) == warp_of(now) &&
           before.warp_epoch != now.warp_epoch;
}

static void print_source(uint32_t place) {
    char command[256];
    snprintf(
        command, sizeof command,
        "addr2line -e /proc/%d/exe -f -i -p -C %#x 2>/dev/null | head -3 | sed 's/^/    /' >&2",
        (int)getpid(), place - 1);
    if (system(command) != 0) fprintf(stderr, "    %#x\n", place);
}

[[noreturn]] static void report(const stamp_t &before, const stamp_t &now, const void *at,
                                bool shared) {
    static const char *const names[] = {"read", "write", "atomic"};
    char who[64];
    if (before.who < READERS_OF_WARP) {
        snprintf(who, sizeof who, "%s by thread %d", names[before.how], before.who);
    } else {
        snprintf(who, sizeof who, "reads by several threads");
    }
    fprintf(stderr,
            "simt: %s: race on %s memory %p: %s of block #%u, then %s by thread %d of block #%u\n",
            kernel_name, shared ? "shared" : "device", at, who, before.block - first_block,
            names[now.how], now.who, now.block - first_block);
    print_source(before.place);
    print_source(now.place);
    _Exit(STATUS_RACE);
}

static cell_t *cells_for(size_t count) {
    void *memory = mmap(NULL, count * sizeof(cell_t), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) fail("no memory for the race detector");
    return (cell_t *)memory;
}

static cells_t *make_cells(cells_t *cells, range_t range) {
    const size_t bytes = (size_t)(range.end - range.begin);
    if (!cells->words) *cells = {cells_for(bytes / WORD + 1), cells_for(bytes + WORD)};
    return cells;
}

// A second reader makes readers of one warp, or of the block, a class.
static uint16_t join_readers(const stamp_t &before, const stamp_t &now, bool shared) {
    if (before.block != now.block || ordered(before, now, shared)) return now.who;
    const bool same_warp = before.who < READERS_OF_BLOCK && warp_of(before) == now.who / LANES;
    return (uint16_t)(same_warp ? READERS_OF_WARP + now.who / LANES : (int)READERS_OF_BLOCK);
}

static void note_cell(cell_t *cell, const stamp_t &now, const void *at, bool shared) {
    const bool both_atomic = now.how == ATOMIC && cell->written.how == ATOMIC;
    if (!both_atomic && !ordered(cell->written, now, shared))
        report(cell->written, now, at, shared);
    if (now.how == READ) {
        const uint16_t who = join_readers(cell->read, now, shared);
        cell->read = now;
        cell->read.who = who;
        return;
    }
    if (!ordered(cell->read, now, shared)) report(cell->read, now, at, shared);
    cell->written = now;
}

// The bytes' cells, with the state of the word's, of which a mark stays. Another block's shared memory does not count.
static cell_t *split(cell_t *word, cell_t *bytes, const stamp_t &now, bool shared) {
    if (word->written.how == SPLIT && (!shared || word->written.block == now.block)) return bytes;
    for (size_t i = 0; i < WORD; i++) bytes[i] = *word;
    word->written.how = SPLIT;
    word->written.block = now.block;
    return bytes;
}

static void note_range(cells_t *cells, size_t at, size_t bytes, const stamp_t &now,
                       const unsigned char *p, bool shared) {
    for (const size_t end = at + bytes; at < end;) {
        cell_t *word = cells->words + at / WORD;
        if (word->written.how == SPLIT && shared && word->written.block != now.block) *word = {};
        const size_t count = std::min(end, at / WORD * WORD + WORD) - at;
        const bool whole = count == WORD;
        if (whole && word->written.how != SPLIT) {
            note_cell(word, now, p, shared);
        } else {
            cell_t *byte = split(word, cells->bytes + at / WORD * WORD, now, shared) + at % WORD;
            for (size_t i = 0; i < count; i++) note_cell(byte + i, now, p + i, shared);
        }
        at += count;
        p += count;
    }
}

static bool within(const void *p, const void *begin, const void *end) {
    return (const char *)p >= (const char *)begin && (const char *)p < (const char *)end;
}

// The kernel's own: its stack, its arguments.
static bool is_private(const void *at) {
    return within(at, current->stack, current->stack + current->stack_bytes) ||
           within(at, launched_arguments, launched_arguments + ARGUMENTS_MAX);
}

static void note(const void *at, size_t bytes, access_t how, void *caller) {
    const unsigned char *p = (const unsigned char *)at;
    const range_t shared_range = shared_memory(), device = reachable_memory();
    const bool shared = within(p, shared_range.begin, shared_range.end);
    if (!shared && !within(p, device.begin, device.end)) {
        if (is_private(at)) return;
        fail("touches %p, which is the host's", at);
    }
    if (!shared && keeps_order()) return note_access(at, bytes, how);
    stamp_t now = {};
    now.block = block_serial;
    now.who = (uint16_t)current->linear;
    now.epoch = (uint16_t)block_epoch;
    now.warp_epoch = (uint16_t)current->warp->epoch;
    now.how = (uint8_t)how;
    now.fences = current->fences;
    now.place = (uint32_t)((char *)caller - &__executable_start);
    const range_t range = shared ? shared_range : device;
    cells_t *cells = make_cells(shared ? &shared_cells : &device_cells, range);
    note_range(cells, (size_t)(p - range.begin), bytes, now, p, shared);
}

void touch(const void *at, size_t bytes, access_t how) {
    if (watching && in_kernel()) note(at, bytes, how, __builtin_return_address(0));
}

void check_fenced(const void *at, size_t bytes) {
    if (!watching || !shared_cells.words) return;
    const size_t from = (size_t)((const unsigned char *)at - shared_memory().begin);
    for (size_t i = from; i < from + bytes; i++) {
        const cell_t *word = shared_cells.words + i / WORD;
        const stamp_t &by = (word->written.how == SPLIT ? shared_cells.bytes + i : word)->written;
        if (by.block != block_serial || by.who >= READERS_OF_WARP) continue;
        if (fibers[by.who].fences_known != by.fences) continue;
        fprintf(stderr,
                "simt: %s: wgmma reads shared memory %p, which thread %d has written without "
                "fence.proxy.async before the barrier\n",
                kernel_name, at, by.who);
        print_source(by.place);
        _Exit(STATUS_RACE);
    }
}

static void hook(const void *at, size_t bytes, access_t how, void *caller) {
    if (!in_kernel()) return;
    watching = true;
    note(at, bytes, how, caller);
    if (chance(64) == 1) yield(); // Any access may be where another thread goes first.
}

} // namespace simt

#define HOOK(name, size, how)                                                                      \
    extern "C" void name(void *p) {                                                                \
        simt::hook(p, size, simt::how, __builtin_return_address(0));                               \
    }
#define HOOKS(size)                                                                                \
    HOOK(__tsan_read##size, size, READ)                                                            \
    HOOK(__tsan_write##size, size, WRITE)                                                          \
    HOOK(__tsan_unaligned_read##size, size, READ)                                                  \
    HOOK(__tsan_unaligned_write##size, size, WRITE)
HOOKS(1)
HOOKS(2)
HOOKS(4)
HOOKS(8)
HOOKS(16)

extern "C" void __tsan_read_range(void *p, long bytes) {
    simt::hook(p, (size_t)bytes, simt::READ, __builtin_return_address(0));
}
extern "C" void __tsan_write_range(void *p, long bytes) {
    simt::hook(p, (size_t)bytes, simt::WRITE, __builtin_return_address(0));
}
extern "C" void __tsan_init() {
}
extern "C" void __tsan_func_entry(void *) {
}
extern "C" void __tsan_func_exit(void *) {
}
extern "C" void __tsan_vptr_update(void *, void *) {
}
