// Target CUDA, on a device or on the emulator (tests/simt), whose schedule changes no bit.
#include "tests/kernels/target.h"

#include <stdint.h>
#include <stdlib.h>

#include <cuda_runtime_api.h>

#include "tests/kernels/kernel_case.h"

void simt_seed(uint64_t seed) __attribute__((weak)); // The emulator's.
// Where the test is linked with it, the library computes what it can.
bool hkc_library_open(struct hkc_lane *lane, const char *path, char *why, size_t why_bytes)
    __attribute__((weak));

bool target_is_here(void) {
    int count = 0;
    return cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
}

void *target_allocate(size_t bytes) {
    void *memory = NULL;
    if (cudaMallocManaged(&memory, bytes, cudaMemAttachGlobal) != cudaSuccess) abort();
    return memory;
}

void target_free(void *memory) {
    cudaFree(memory);
}

// SIMT_SEED gives the first schedule, and others with it.
void target_vary(int way) {
    const char *text = getenv("SIMT_SEED");
    const uint64_t seed = text ? strtoull(text, NULL, 0) : 0;
    if (simt_seed) simt_seed(way == 0 ? seed : 3 * seed + (uint64_t)way);
}

struct hkc_lane *test_lane(void) {
    static struct hkc_lane lane;
    if (!lane.stream) {
        const char *compiled_for;
        int multiprocessors = 0, major = 0;
        if (cudaStreamCreateWithFlags(&lane.stream, cudaStreamNonBlocking) != cudaSuccess ||
            cudaMalloc(&lane.scratch, HKC_SCRATCH) != cudaSuccess ||
            cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0) !=
                cudaSuccess ||
            cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0) != cudaSuccess ||
            hkc_library_code(&compiled_for, &lane.warpgroups) != (int)cudaSuccess) {
            fail_msg("no lane");
        }
        lane.multiprocessors = multiprocessors;
        lane.capability = 10 * major;
        const char *other = getenv("KERNEL_TEST_CAPABILITY"); // 0: only what all devices have.
        if (other && atoi(other) != 90) lane.warpgroups = false;
        char why[256];
        if (hkc_library_open && !hkc_library_open(&lane, NULL, why, sizeof why))
            fail_msg("%s", why);
    }
    return &lane;
}

void test_join(const char *kernel) {
    struct hkc_lane *lane = test_lane();
    if (!lane->error) lane->error = (int)cudaStreamSynchronize(lane->stream);
    if (lane->error) {
        fail_msg("%s: launching %s: %s", kernel, lane->failed ? lane->failed : "it",
                 cudaGetErrorName((cudaError_t)lane->error));
    }
}
