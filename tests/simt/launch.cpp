// Limits of a launch: those of a device, and of its kernel's code.
#include "fiber.h"

#include <map>

namespace simt {

static constexpr size_t FREE_SHARED = 48 << 10; // Every kernel may have so much without asking.
// Registers of a multiprocessor, by the most that a thread may get: so many threads fit with any compiler.
static constexpr size_t ALWAYS_FIT = (64 << 10) / 256;

static std::map<const void *, size_t> allowed; // Shared memory, by kernel.

// simt.h has __launch_bounds__ written as instructions that do nothing, one for each warp, at the kernel's beginning.
static int bound_of(const void *kernel) {
    const unsigned char *at = (const unsigned char *)kernel;
    int warps = 0;
#if defined __x86_64__
    if (at[0] == 0xf3 && at[1] == 0x0f && at[2] == 0x1e && at[3] == 0xfa) at += 4; // endbr64
    while (at[warps] == 0x90) warps++;
#elif defined __aarch64__
    while (((const uint32_t *)at)[warps] == 0xd503201f) warps++;
#endif
    return warps * LANES;
}

// For words in a report: x, y and z.
static void check_size(const char *name, const char *what, dim3 size, dim3 most) {
    if (size.x <= most.x && size.y <= most.y && size.z <= most.z) return;
    fail("launching %s: a %s of (%u,%u,%u) is too large: at most (%u,%u,%u)", name, what, size.x,
         size.y, size.z, most.x, most.y, most.z);
}

void check_launch(const char *name, const void *kernel, dim3 grid, dim3 block,
                  size_t shared_bytes) {
    const size_t threads = (size_t)block.x * block.y * block.z;
    const size_t bound = (size_t)bound_of(kernel);
    check_size(name, "grid", grid, dim3(INT32_MAX, UINT16_MAX, UINT16_MAX));
    check_size(name, "block", block, dim3(THREADS_MAX, THREADS_MAX, 64));
    if (threads == 0 || threads > THREADS_MAX)
        fail("launching %s: a block of %zu threads; at most %d", name, threads, THREADS_MAX);
    if (bound && threads > bound)
        fail("launching %s: a block of %zu threads; it was compiled for %zu (__launch_bounds__)",
             name, threads, bound);
    if (!bound && threads > ALWAYS_FIT)
        fail("launching %s: a block of %zu threads; without __launch_bounds__ registers may do for "
             "%zu only",
             name, threads, ALWAYS_FIT);
    const auto found = allowed.find(kernel);
    const size_t most = found == allowed.end() ? FREE_SHARED : found->second;
    if (shared_bytes > most && shared_bytes > FREE_SHARED)
        fail("launching %s: %zu bytes of shared memory; it may have %zu "
             "(cudaFuncAttributeMaxDynamicSharedMemorySize)",
             name, shared_bytes, most);
}

} // namespace simt

extern "C" {

cudaError_t cudaFuncSetAttribute(const void *kernel, cudaFuncAttribute attribute, int value) {
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 ||
        (size_t)value > simt::shared_limit())
        return cudaErrorInvalidValue;
    simt::allowed[kernel] = (size_t)value;
    return cudaSuccess;
}
}
