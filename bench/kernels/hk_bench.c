// hk_bench [--threads=N] [table|products|products_bf16|grouped|grouped_bf16|attention|passes ...]: how
// fast the kernels are on this machine, as GF/s and as share of the measured multiply-add peak, next
// to oneDNN and libxsmm where the build found them. `table` is the products in short, without rivals.
// Without parts, everything. OMP_NUM_THREADS and HECATE_ISA apply.
#include "bench/kernels/bench.h"

#include <omp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/cpu/isa.h"

// With one thread its own processor time, which a busy machine does not add to.
static double now(void) {
    struct timespec t;
    clock_gettime(omp_get_max_threads() == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// A sample is as many runs as take half a millisecond: the clock of processor time is coarse.
static double sample(void (*run)(void *context), void *context, int runs) {
    const double start = now();
    for (int i = 0; i < runs; i++) run(context);
    return (now() - start) / runs;
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

enum { samples_max = 1024 };

double bench_seconds(void (*run)(void *context), void *context) {
    run(context); // Page faults, the thread team, the choice of instruction set.
    const double once = sample(run, context, 3);
    const int runs = once > 5e-4 ? 1 : once < 5e-7 ? 1000 : (int)(5e-4 / once) + 1;
    static double seconds[samples_max];
    const double end = now() + 0.3;
    int count = 0;
    while (count < 3 || (count < samples_max && now() < end)) {
        seconds[count++] = sample(run, context, runs);
    }
    qsort(seconds, (size_t)count, sizeof *seconds, ascending);
    return seconds[count / 10];
}

enum { arrays_max = 512 };
static float *arrays[arrays_max];
static int array_count;

float *bench_floats(int64_t count) {
    const size_t bytes = ((size_t)count * sizeof(float) + 63) / 64 * 64;
    float *array = aligned_alloc(64, bytes > 0 ? bytes : 64);
    if (!array || array_count == arrays_max) {
        fprintf(stderr, "hk_bench: no memory for %zu bytes\n", bytes);
        exit(1);
    }
    arrays[array_count++] = array;
    uint32_t state = 1;
    for (int64_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        array[i] = (float)(int32_t)state * 0x1p-31f;
    }
    return array;
}

void bench_free_all(void) {
    while (array_count > 0) free(arrays[--array_count]);
}

void bench_print(const char *op, const char *shape, const char *who, double flops, double bytes,
                 double seconds) {
    printf("%-16s %-26s %-9s %10.1f us ", op, shape, who, seconds * 1e6);
    if (flops > 0) {
        const double rate = flops / seconds / 1e9;
        const size_t length = strlen(op);
        const bool bf16 = length > 5 && strcmp(op + length - 5, "_bf16") == 0;
        const double peak = bf16 ? bench_peak_bf16() : bench_peak();
        printf("%8.1f GF/s %5.1f %%", rate, 100 * rate / peak);
    } else {
        printf("%8.1f GB/s", bytes / seconds / 1e9);
    }
    printf("\n");
    fflush(stdout);
}

static const struct {
    const char *name;
    void (*run)(void);
} parts[] = {
    {"table", bench_table},
    {"products", bench_products},
    {"products_bf16", bench_products_bf16},
    {"grouped", bench_grouped},
    {"grouped_bf16", bench_grouped_bf16},
    {"attention", bench_attention},
    {"passes", bench_passes},
};
enum { part_count = sizeof parts / sizeof *parts, threads_max = 1024 };

// Obeys an argument; false when it is wrong.
static bool take(const char *argument, bool wanted[part_count]) {
    int threads, end = 0;
    if (sscanf(argument, "--threads=%d%n", &threads, &end) == 1 && argument[end] == '\0' &&
        threads >= 1 && threads <= threads_max) {
        omp_set_num_threads(threads);
        return true;
    }
    for (int i = 0; i < part_count; i++) {
        if (strcmp(argument, parts[i].name) != 0) continue;
        wanted[i] = true;
        return true;
    }
    return false;
}

int main(int argc, char **argv) {
    bool wanted[part_count] = {false}, any = false;
    for (int a = 1; a < argc; a++) {
        if (take(argv[a], wanted)) continue;
        fprintf(stderr, "hk_bench: %s is neither --threads=1..%d nor one of", argv[a], threads_max);
        for (int i = 0; i < part_count; i++) fprintf(stderr, " %s", parts[i].name);
        fprintf(stderr, "\n");
        return 2;
    }
    for (int i = 0; i < part_count; i++) any = any || wanted[i];
    printf("%s, %d threads, peak %.1f GF/s, bf16 %.1f GF/s\n", hk_isa_name(hk_isa()),
           omp_get_max_threads(), bench_peak(), bench_peak_bf16());
    for (int i = 0; i < part_count; i++) {
        if (wanted[i] || !any) parts[i].run();
    }
    return 0;
}
