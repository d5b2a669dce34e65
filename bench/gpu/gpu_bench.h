// gpu_bench: times the CUDA kernels one by one, each run with a cold second cache. Cases come from one file for each
// kind of kernel.
#ifndef HECATE_BENCH_GPU_GPU_BENCH_H
#define HECATE_BENCH_GPU_GPU_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda_runtime_api.h>

#include "hecate/kernels/launchers.h"

struct gpu_bench {
    struct hkc_lane lane;
    bool tiny;          // The least sizes, for the emulator.
    double copy, peak;  // Measured: bytes and operations a second.
    const char *filter; // Only cases whose name has this; NULL: all.
    // Memory that no case reads: reading it leaves nothing of theirs in the second cache.
    float *unread;
    double *unread_sum;
    int64_t unread_count;
};

// A size as it is on a device, and as it is where `tiny`.
int64_t gpu_size(const struct gpu_bench *bench, int64_t size, int64_t tiny);

// Ends the program with the name of an error.
void gpu_check(cudaError_t error, const char *what);

// Device memory that lasts until gpu_free_all: random numbers, nearly normal, of mean 0 and variance 1, other ones in
// every array and the same in every run; or zeros, for results.
hk_bf16 *gpu_values(int64_t count);
float *gpu_floats(int64_t count);
void *gpu_room(size_t bytes);
// Copies of numbers of the host.
int32_t *gpu_ints(const int32_t *values, int64_t count);
void *gpu_pointers(void *base, size_t stride, int64_t count);
// `count` numbers below `below`, as evenly as random ones are.
int32_t *gpu_draw(int64_t count, int32_t below);
// first[i] = i * each, i <= count.
int32_t *gpu_starts(int64_t count, int64_t each);
void gpu_free_all(void);

// A case: `launch` asks for the kernel once. One of `bytes` and `flops` is its measure: the copy bandwidth
// or the peak of GEMMs. The other is 0.
struct gpu_case {
    const char *name;
    char sizes[64];
    void (*launch)(struct hkc_lane *lane, const void *arguments);
    const void *arguments;
    double bytes, flops;
};
// Prints a line: the median of the runs, and its share of the measured peak.
void gpu_time(const struct gpu_bench *bench, const struct gpu_case *of);
bool gpu_wants(const struct gpu_bench *bench, const char *name);

// Seconds that a launch takes, the median of many: each begins with a cold second cache.
double gpu_seconds(const struct gpu_bench *bench,
                   void (*launch)(struct hkc_lane *lane, const void *arguments),
                   const void *arguments);

void gpu_bench_memory(
    const struct gpu_bench *bench); // memory.c: norms, rows, sums, AdamW, cross-entropy
void gpu_bench_products(const struct gpu_bench *bench);  // products.c: dense and grouped
void gpu_bench_attention(const struct gpu_bench *bench); // attention.c: attention, routers

#endif
