// Launches: blocks one after the other, each with its fibers; shared memory.
#include "fiber.h"

#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "sanitizer.h"

// Everything __shared__ lies in one section, whose ends the linker names.
extern "C" unsigned char __start_simt_shared[], __stop_simt_shared[];

namespace simt {

unsigned char launched_arguments[ARGUMENTS_MAX] __attribute__((aligned(16)));
static call_t *launched;
static unsigned sampled_first, sampled_last; // Blocks in each direction that are run; both 0: all.
static unsigned char dynamic_memory[SHARED_MAX]
    __attribute__((section("simt_shared"), aligned(1024)));

uint3 own_thread() {
    return current->thread;
}
uint3 own_block() {
    return block_index;
}
uint3 own_block_size() {
    return block_size;
}
uint3 own_grid_size() {
    return grid_size;
}
int own_lane() {
    return current->lane;
}

// Addresses in shared memory are offsets from the dynamic part, moved so that 0 is none.
enum { OFFSET = 1 << 20 };

range_t shared_memory() {
    return {__start_simt_shared, __stop_simt_shared};
}

unsigned char *dynamic_shared() {
    return dynamic_memory;
}

uint32_t shared_offset(const void *p) {
    const unsigned char *at = (const unsigned char *)p;
    if (at < __start_simt_shared || at >= __stop_simt_shared) fail("%p is not in shared memory", p);
    return (uint32_t)(at - dynamic_memory + OFFSET);
}

unsigned char *shared_pointer(uint32_t offset, int align, const char *what) {
    unsigned char *p = dynamic_memory + ((int32_t)offset - OFFSET);
    if (p < __start_simt_shared || p >= __stop_simt_shared) {
        fail("%s: shared address %#x is outside of shared memory", what, offset);
    }
    if ((uintptr_t)p % (unsigned)align) {
        fail("%s: shared address %#x is not a multiple of %d", what, offset, align);
    }
    return p;
}

// Neither the sanitizers' checks nor their memset: between the variables lies memory that they guard.
static void fill(unsigned char *from, const unsigned char *end) {
    size_t size = (size_t)(end - from);
    asm volatile("rep stosb" : "+D"(from), "+c"(size) : "a"(0xff) : "memory");
}

// Ones in all of it (NaN, -1): a block that reads before it writes shows. Beyond the launch's own bytes nothing
// may be touched.
static void fill_shared(size_t used) {
    simt_unpoison(dynamic_memory, sizeof dynamic_memory);
    fill(__start_simt_shared, dynamic_memory + used);
    fill(dynamic_memory + sizeof dynamic_memory, __stop_simt_shared);
    simt_poison(dynamic_memory + used, sizeof dynamic_memory - used);
}

static void make_fiber(int i) {
    fiber_t &f = fibers[i];
    make_stack(&f);
    const unsigned linear = (unsigned)i;
    f.thread.x = linear % block_size.x;
    f.thread.y = linear / block_size.x % block_size.y;
    f.thread.z = linear / block_size.x / block_size.y;
    f.linear = i;
    f.lane = i % LANES;
    f.warp = &warps[i / LANES];
    f.warp->live |= 1u << f.lane;
    f.warp->ready |= 1u << f.lane;
    f.copy_count = 0;
    f.groups = 0;
    f.fences = f.fences_known = 0;
    f.waits_in = "the start";
    f.site = {"", 0};
}

void run_fiber() {
    launched(launched_arguments);
    leave();
}

static void run_block(uint64_t index) {
    block_index.x = (unsigned)(index % grid_size.x);
    block_index.y = (unsigned)(index / grid_size.x % grid_size.y);
    block_index.z = (unsigned)(index / grid_size.x / grid_size.y);
    alive = (int)(block_size.x * block_size.y * block_size.z);
    warp_count = (alive + LANES - 1) / LANES;
    memset(warps, 0, sizeof warps);
    for (int i = 0; i < alive; i++) make_fiber(i);
    block_serial++;
    block_epoch = 0;
    begin_block();
}

// Whether block `i` of `all` in one direction is run.
static bool runs(unsigned i, unsigned all) {
    if (sampled_first + sampled_last == 0) return true;
    return i < sampled_first || i >= all - std::min(all, sampled_last);
}

// Blocks by their numbers, x first.
static std::vector<uint64_t> blocks_to_run(dim3 grid) {
    std::vector<uint64_t> blocks;
    for (unsigned z = 0; z < grid.z; z++) {
        for (unsigned y = 0; y < grid.y; y++) {
            if (!runs(y, grid.y) || !runs(z, grid.z)) continue;
            for (unsigned x = 0; x < grid.x; x++) {
                if (runs(x, grid.x)) blocks.push_back(((uint64_t)z * grid.y + y) * grid.x + x);
            }
        }
    }
    return blocks;
}

void run_grid(const char *name, dim3 grid, dim3 block, size_t shared_bytes, call_t *call,
              const void *arguments) {
    if (!fibers) fibers = (fiber_t *)calloc(THREADS_MAX, sizeof *fibers);
    if (!fibers) fail("no memory for fibers");
    kernel_name = name;
    launched = call;
    memcpy(launched_arguments, arguments, sizeof launched_arguments);
    grid_size = grid;
    block_size = block;
    first_block = block_serial + 1;
    std::vector<uint64_t> order = blocks_to_run(grid);
    for (uint32_t i = 1; i < order.size() && is_seeded(); i++) {
        std::swap(order[i], order[chance(i + 1)]);
    }
    for (const uint64_t index : order) {
        fill_shared(shared_bytes);
        run_block(index);
    }
    kernel_name = "host";
}

} // namespace simt

void simt_sample(unsigned first, unsigned last) {
    simt::sampled_first = first;
    simt::sampled_last = last;
}
