// Kernels and programs that are wrong, one for each report of the emulator: `simt_reports NAME` runs one, which ends
// the process; reports_test.sh says with which status and words. Without a fault it would print "no report".
#include <stdio.h>
#include <stdlib.h>

#include "kernels/cuda/device.h"
#include "tests/simt/streams.h"

namespace {

hkc_lane lane;

void join() {
    cudaStreamSynchronize(lane.stream);
}

template <class... A> void run(void (*kernel)(int *, A...), dim3 grid, dim3 block, A... more) {
    void *memory;
    cudaMalloc(&memory, 4096);
    hkc_launch(&lane, kernel, grid, block, 0, (int *)memory, more...);
    join();
}

__global__ void some_miss_a_barrier(int *out) {
    if (threadIdx.x < 32) __syncwarp();
    if (threadIdx.x == 0) return;
    if (threadIdx.x < 8) {
        __syncthreads();
    } else {
        __syncthreads();
    }
    *out = 0;
}

__global__ void a_lane_is_missing(int *out) {
    if (threadIdx.x != 5) out[threadIdx.x] = __shfl_xor_sync(~0u, 1, 16);
}

__global__ void half_waits(int *out) {
    if (threadIdx.x < 16) {
        out[threadIdx.x] = __shfl_sync(~0u, 1, 0);
    } else {
        out[threadIdx.x] = __shfl_xor_sync(~0u, 1, 1);
    }
}

__global__ void reads_who_is_not_there(int *out) {
    if (threadIdx.x < 16) out[threadIdx.x] = __shfl_sync(0xffffu, 1, 20);
}

__global__ void waits_for_ever(int *out) {
    if (threadIdx.x / 32 == 0) {
        __syncthreads();
    } else if (threadIdx.x % 32 == 0) {
        __syncwarp();
    } else {
        __syncthreads();
    }
    *out = 0;
}

__global__ void copies_from_an_odd_place(int *out) {
    HKC_SHARED(shared);
    copy16(shared_address(shared), out + 1);
    copy_commit();
    copy_wait<0>();
}

__global__ void copies_and_exits(int *out) {
    HKC_SHARED(shared);
    copy16(shared_address(shared), out);
}

__global__ void copies_too_much(int *out) {
    HKC_SHARED(shared);
    copy16(shared_address(shared), out + 1024);
    copy_wait<0>();
}

__global__ void neighbours_without_barrier(int *out) {
    __shared__ int numbers[64];
    numbers[threadIdx.x] = (int)threadIdx.x;
    out[threadIdx.x] = numbers[63 - threadIdx.x];
}

// Thread 0 writes a whole number; others, in either order under some schedule, parts of it.
__global__ void parts_beside_a_whole(int *out) {
    if (threadIdx.x == 0) {
        *out = 1;
    } else {
        ((short *)out)[1] = 1;
    }
}

// Halves and bytes of one number are places of their own; behind a barrier all may be read at once.
__global__ void parts_beside_each_other(int *out) {
    char *bytes = (char *)out;
    if (threadIdx.x == 0) {
        *(short *)bytes = 1;
    } else if (threadIdx.x < 3) {
        bytes[1 + threadIdx.x] = 1;
    }
    __syncthreads();
    out[1 + threadIdx.x] = *out;
}

__global__ void blocks_share_a_place(int *out) {
    out[threadIdx.x] = (int)blockIdx.x;
}

__global__ void adds_beside_atomics(int *out) {
    if (threadIdx.x == 0) {
        out[0] += 1;
    } else {
        atomicAdd(out, 1);
    }
}

__global__ void writes_to(int *, int *host) {
    *host = 1;
}

__global__ void __launch_bounds__(64) for_two_warps(int *) {
}

__global__ void without_bounds(int *) {
}

void shared_without_asking() {
    simt::launch<int *>(lane.stream, "for_two_warps", 1, 32, 64 << 10, for_two_warps, NULL);
}

void more_shared_than_there_is() {
    hkc_launch(&lane, for_two_warps, 1, 32, 228 << 10, (int *)NULL);
    if (lane.error) simt::fail("refused: %s", lane.failed);
}

void default_stream() {
    lane.stream = NULL;
    run(blocks_share_a_place, 1, 1);
}

void host_reads_the_device() {
    void *memory;
    cudaMalloc(&memory, 64);
    printf("%d\n", *(int *)memory);
}

void frees_what_is_not_its_own() {
    cudaFree(&lane);
}

void copies_beyond_the_end() {
    void *memory;
    char bytes[128] = {0};
    cudaMalloc(&memory, 64);
    cudaMemcpyAsync(memory, bytes, sizeof bytes, cudaMemcpyHostToDevice, lane.stream);
}

// The wait is in the queue before what would record the event again.
void streams_wait_for_each_other() {
    cudaStream_t other;
    cudaEvent_t first;
    cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&first, cudaEventDisableTiming);
    simt::enqueue(other, "a message that never comes", [] { return false; });
    cudaEventRecord(first, other);
    cudaStreamWaitEvent(lane.stream, first, 0);
    join();
}

const struct {
    const char *name;
    void (*run)();
} cases[] = {
    {"some_miss_a_barrier", [] { run(some_miss_a_barrier, 1, 64); }},
    {"a_lane_is_missing", [] { run(a_lane_is_missing, 1, 32); }},
    {"half_waits", [] { run(half_waits, 1, 32); }},
    {"reads_who_is_not_there", [] { run(reads_who_is_not_there, 1, 32); }},
    {"waits_for_ever", [] { run(waits_for_ever, 1, 64); }},
    {"copies_from_an_odd_place", [] { run(copies_from_an_odd_place, 1, 1); }},
    {"copies_and_exits", [] { run(copies_and_exits, 1, 1); }},
    {"copies_too_much", [] { run(copies_too_much, 1, 1); }},
    {"neighbours_without_barrier", [] { run(neighbours_without_barrier, 1, 64); }},
    {"parts_beside_a_whole", [] { run(parts_beside_a_whole, 1, 2); }},
    {"parts_beside_each_other", [] { run(parts_beside_each_other, 1, 32); }},
    {"blocks_share_a_place", [] { run(blocks_share_a_place, 2, 32); }},
    {"adds_beside_atomics", [] { run(adds_beside_atomics, 1, 64); }},
    {"writes_to_the_host", [] { run(writes_to, 1, 1, &lane.multiprocessors); }},
    {"too_many_below", [] { run(for_two_warps, dim3(1, 65536), 32); }},
    {"too_many_behind", [] { run(for_two_warps, dim3(1, 1, 65536), 32); }},
    {"too_many_threads", [] { run(for_two_warps, 1, dim3(32, 64)); }},
    {"too_deep_a_block", [] { run(without_bounds, 1, dim3(1, 1, 65)); }},
    {"more_threads_than_bounds", [] { run(for_two_warps, 1, 96); }},
    {"as_many_as_bounds", [] { run(for_two_warps, 1, 64); }},
    {"too_many_without_bounds", [] { run(without_bounds, 1, 288); }},
    {"few_without_bounds", [] { run(without_bounds, 1, 256); }},
    {"shared_without_asking", shared_without_asking},
    {"more_shared_than_there_is", more_shared_than_there_is},
    {"default_stream", default_stream},
    {"host_reads_the_device", host_reads_the_device},
    {"frees_what_is_not_its_own", frees_what_is_not_its_own},
    {"copies_beyond_the_end", copies_beyond_the_end},
    {"streams_wait_for_each_other", streams_wait_for_each_other},
};

} // namespace

int main(int count, char **arguments) {
    cudaStreamCreateWithFlags(&lane.stream, cudaStreamNonBlocking);
    for (const auto &one : cases) {
        if (count < 2 || strcmp(arguments[1], one.name) != 0) continue;
        one.run();
        printf("no report\n");
        return 0;
    }
    fprintf(stderr, "simt_reports: which?\n");
    return 2;
}
