// gpu_bench [--tiny] [PART]: times the kernels of target cuda, as shares of the copy bandwidth and of the peak of GEMMs that
// were measured before. Status 77: there is no GPU.
#include "bench/gpu/gpu_bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>
#ifdef GPU_BENCH_CUBLAS
#include <cublas_v2.h>
#endif

enum { RUNS = 21, WARM = 3 };

// ---- time

static int by_size(const void *a, const void *b) {
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

// Reads until nothing that an earlier run has read or written is left in the second cache. Lines that were only read need not
// be written back, which would take bandwidth from the run that is timed.
static void cool(const struct gpu_bench *bench, struct hkc_lane *lane) {
    hkc_sum_squares_f32(lane, bench->unread_sum, bench->unread, bench->unread_count, 1);
}

double gpu_seconds(const struct gpu_bench *bench,
                   void (*launch)(struct hkc_lane *lane, const void *arguments),
                   const void *arguments) {
    struct hkc_lane lane = bench->lane;
    const int warm = bench->tiny ? 0 : WARM, runs = bench->tiny ? 1 : RUNS;
    cudaEvent_t from, to;
    float ms[RUNS];
    gpu_check(cudaEventCreateWithFlags(&from, 0), "an event");
    gpu_check(cudaEventCreateWithFlags(&to, 0), "an event");
    for (int i = 0; i < warm; i++) launch(&lane, arguments);
    for (int i = 0; i < runs; i++) {
        cool(bench, &lane);
        gpu_check(cudaEventRecord(from, lane.stream), "an event");
        launch(&lane, arguments);
        gpu_check(cudaEventRecord(to, lane.stream), "an event");
        gpu_check(cudaEventSynchronize(to), "a kernel");
        gpu_check(cudaEventElapsedTime(&ms[i], from, to), "a time");
    }
    gpu_check((cudaError_t)lane.error, lane.failed ? lane.failed : "a launch");
    gpu_check(cudaEventDestroy(from), "an event");
    gpu_check(cudaEventDestroy(to), "an event");
    qsort(ms, (size_t)runs, sizeof *ms, by_size);
    return 1e-3 * (double)ms[runs / 2];
}

int64_t gpu_size(const struct gpu_bench *bench, int64_t size, int64_t tiny) {
    return bench->tiny ? tiny : size;
}

bool gpu_wants(const struct gpu_bench *bench, const char *name) {
    return !bench->filter || strstr(name, bench->filter);
}

void gpu_time(const struct gpu_bench *bench, const struct gpu_case *of) {
    if (!gpu_wants(bench, of->name)) return;
    const double seconds = gpu_seconds(bench, of->launch, of->arguments);
    const double speed = (of->flops ? of->flops : of->bytes) / seconds;
    printf("| %-24s | %-34s | %10.1f | %8.1f %-6s | %5.1f |\n", of->name, of->sizes, 1e6 * seconds,
           of->flops ? 1e-12 * speed : 1e-9 * speed, of->flops ? "TF/s" : "GB/s",
           100 * speed / (of->flops ? bench->peak : bench->copy));
    fflush(stdout);
}

// ---- what everything is measured by

struct copy {
    char *to, *from;
    size_t bytes;
};

static void copy(struct hkc_lane *lane, const void *arguments) {
    const struct copy *x = arguments;
    gpu_check(cudaMemcpyAsync(x->to, x->from, x->bytes, cudaMemcpyDefault, lane->stream), "a copy");
}

// The yardstick of GEMMs: the best dense GEMM of bf16 that is known on this device, cuBLAS's or ours.
struct product {
    hk_bf16 *a, *b, *c;
    struct hk_matmul_dims dims;
};

static void product(struct hkc_lane *lane, const void *arguments) {
    const struct product *x = arguments;
    hkc_matmul_nn_bf16(lane, x->c, x->a, x->b, HK_ROWS, x->dims, HK_STORE, NULL);
}

#ifdef GPU_BENCH_CUBLAS
static cublasHandle_t cublas;

static void library_product(struct hkc_lane *lane, const void *arguments) {
    const struct product *x = arguments;
    const float one = 1, zero = 0;
    const int n = (int)x->dims.n, m = (int)x->dims.m, k = (int)x->dims.k;
    cublasSetStream(cublas, lane->stream);
    const cublasStatus_t status = cublasGemmEx(
        cublas, CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &one, x->b, CUDA_R_16BF, n, x->a, CUDA_R_16BF, k,
        &zero, x->c, CUDA_R_16BF, n, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
    if (status != CUBLAS_STATUS_SUCCESS) gpu_check(cudaErrorUnknown, cublasGetStatusString(status));
}

static double library_seconds(const struct gpu_bench *bench, const struct product *x) {
    if (cublasCreate(&cublas) != CUBLAS_STATUS_SUCCESS) gpu_check(cudaErrorUnknown, "cuBLAS");
    const double seconds = gpu_seconds(bench, library_product, x);
    cublasDestroy(cublas);
    return seconds;
}
#else
static double library_seconds(const struct gpu_bench *bench, const struct product *x) {
    (void)bench, (void)x;
    return INFINITY;
}
#endif

static void measure_limits(struct gpu_bench *bench) {
    const size_t bytes = (size_t)gpu_size(bench, 1 << 30, 1 << 12);
    const int64_t count = (int64_t)(bytes / sizeof(float));
    const struct copy all = {(char *)gpu_room(bytes), (char *)gpu_floats(count), bytes};
    bench->copy = 2 * (double)bytes / gpu_seconds(bench, copy, &all);
    gpu_free_all();
    const int64_t n = gpu_size(bench, 8192, 64);
    const struct product dense = {gpu_values(n * n),
                                  gpu_values(n * n),
                                  gpu_room((size_t)(n * n) * sizeof(hk_bf16)),
                                  {n, n, n, HK_UNPACKED}};
    const double flops = 2 * (double)n * (double)n * (double)n;
    const double library = flops / library_seconds(bench, &dense);
    const double own = flops / gpu_seconds(bench, product, &dense);
    bench->peak = own > library ? own : library;
    gpu_free_all();
    printf("measured: copies %.0f GB/s (read and written); the dense product of bf16 of %lld rows, "
           "ours "
           "%.1f TFLOP/s, cuBLAS's %.1f\n",
           1e-9 * bench->copy, (long long)n, 1e-12 * own, 1e-12 * library);
}

static bool open_lane(struct hkc_lane *lane) {
    int devices = 0, major = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) return false;
    gpu_check(cudaStreamCreateWithFlags(&lane->stream, cudaStreamNonBlocking), "a stream");
    gpu_check(cudaMalloc(&lane->scratch, HKC_SCRATCH), "taking memory");
    gpu_check(cudaDeviceGetAttribute(&lane->multiprocessors, cudaDevAttrMultiProcessorCount, 0),
              "the device");
    gpu_check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0), "the device");
    lane->capability = 10 * major;
    const char *compiled_for;
    gpu_check((cudaError_t)hkc_library_code(&compiled_for, &lane->warpgroups), "kernels");
    return true;
}

// cool() reads this: four times the second cache, since its lines are not replaced strictly by age.
static void open_unread(struct gpu_bench *bench) {
    int cache = 0;
    gpu_check(cudaDeviceGetAttribute(&cache, cudaDevAttrL2CacheSize, 0), "the device");
    bench->unread_count = gpu_size(bench, 4 * (int64_t)cache / (int64_t)sizeof(float), 1 << 10);
    gpu_check(cudaMalloc((void **)&bench->unread, (size_t)bench->unread_count * sizeof(float)),
              "taking memory");
    gpu_check(cudaMalloc((void **)&bench->unread_sum, sizeof(double)), "taking memory");
}

int main(int argc, char **argv) {
    struct gpu_bench bench = {0};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--tiny") == 0) {
            bench.tiny = true;
        } else {
            bench.filter = argv[i];
        }
    }
    if (!open_lane(&bench.lane)) {
        fprintf(stderr, "gpu_bench: there is no GPU\n");
        return 77;
    }
    open_unread(&bench);
    measure_limits(&bench);
    printf("| %-24s | %-34s | %10s | %15s | %5s |\n| --- | --- | ---: | ---: | ---: |\n", "kernel",
           "sizes", "us", "speed", "%");
    gpu_bench_memory(&bench);
    gpu_bench_products(&bench);
    gpu_bench_attention(&bench);
    return 0;
}
