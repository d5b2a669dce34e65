// The measurements, in turn, and the memory they work on.
#include "bench/kernels/bench.h"

#include <omp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "kernels/cpu/peak.h"

enum { entries_max = 256, samples_max = 2048, arrays_max = 4096 };
enum { large = 1 << 18 }; // Floats of an array that fills huge pages: half of one at least.

static const double turn_s = 0.01; // A measurement's in each round: at least a run.
static const double sample_s =
    0.0005; // A sample is as many runs as take so long: clocks are coarse.

struct sample {
    double seconds;  // One run's.
    double dispatch; // The slower one of before and behind it.
};

struct entry {
    struct bench_what what;
    char shape[48];
    void (*run)(void *context);
    void (*release)(void *context);
    void *context;
    int runs; // In a sample.
    int count;
    struct sample samples[samples_max];
    int alone;
    // Times of runs, ascending: all runs, and those on cores of their own.
    double seconds[2][samples_max];
};

static struct entry *entries[entries_max];
static int entry_count;
static void *arrays[arrays_max];
static int array_count;
static double peak_f32, peak_bf16;
static double best_dispatch;
static const double as_good = 1.15; // Up to so many times the best: a core of its own.

static void *keep(void *memory, size_t bytes) {
    if (!memory || array_count == arrays_max) {
        fprintf(stderr, "hk_bench: no memory for %zu bytes\n", bytes);
        exit(1);
    }
    return arrays[array_count++] = memory;
}

// In huge pages, as programs have their arrays.
float *bench_floats(int64_t count) {
    const size_t align = count < large ? 64 : (size_t)2 << 20;
    const size_t bytes = ((size_t)count * sizeof(float) + align) / align * align;
    float *array = keep(aligned_alloc(align, bytes), bytes);
    if (count >= large) madvise(array, bytes, MADV_HUGEPAGE);
    uint32_t state = 1;
    for (int64_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        array[i] = (float)(int32_t)state * 0x1p-31f;
    }
    return array;
}

void *bench_copy(const void *from, size_t size) {
    return memcpy(keep(malloc(size), size), from, size);
}

int bench_add(struct bench_what what, void (*run)(void *context), void *context,
              void (*release)(void *context)) {
    struct entry *e = keep(calloc(1, sizeof *e), sizeof *e);
    if (entry_count == entries_max) {
        fprintf(stderr, "hk_bench: more than %d measurements\n", entries_max);
        exit(1);
    }
    *e = (struct entry){.what = what, .run = run, .release = release, .context = context};
    snprintf(e->shape, sizeof e->shape, "%s", what.shape);
    entries[entry_count] = e;
    return entry_count++;
}

void bench_clear(void) {
    for (int i = 0; i < entry_count; i++) {
        if (entries[i]->release) entries[i]->release(entries[i]->context);
    }
    while (array_count > 0) free(arrays[--array_count]);
    entry_count = 0;
}

// With one thread its own processor time, which a busy machine does not add to.
static double now(void) {
    struct timespec t;
    clock_gettime(omp_get_max_threads() == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double sample(const struct entry *e) {
    const double start = now();
    for (int i = 0; i < e->runs; i++) e->run(e->context);
    return (now() - start) / e->runs;
}

// How many runs are a sample. The first takes page faults and choices.
static void prepare(struct entry *e) {
    e->runs = 1;
    e->run(e->context);
    for (double once = sample(e); e->runs < 1024 && once * e->runs < sample_s;) {
        e->runs *= 2;
        once = sample(e);
    }
}

static double larger(double a, double b) {
    return a > b ? a : b;
}

static void take_turn(struct entry *e) {
    const double end = now() + turn_s;
    double before = bench_dispatch();
    do {
        const double seconds = sample(e), behind = bench_dispatch();
        if (e->count < samples_max) {
            e->samples[e->count++] = (struct sample){seconds, larger(before, behind)};
        }
        before = behind;
        if (behind < best_dispatch) best_dispatch = behind;
    } while (now() < end);
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void sort_samples(struct entry *e) {
    e->alone = 0;
    for (int i = 0; i < e->count; i++) {
        e->seconds[0][i] = e->samples[i].seconds;
        if (e->samples[i].dispatch < as_good * best_dispatch) {
            e->seconds[1][e->alone++] = e->samples[i].seconds;
        }
    }
    qsort(e->seconds[0], (size_t)e->count, sizeof *e->seconds[0], ascending);
    qsort(e->seconds[1], (size_t)e->alone, sizeof *e->seconds[1], ascending);
}

void bench_measure(int rounds) {
    best_dispatch = bench_dispatch();
    for (int i = 0; i < entry_count; i++) prepare(entries[i]);
    for (int round = 0; round < rounds; round++) {
        peak_f32 = larger(peak_f32, hk_peak_f32());
        peak_bf16 = larger(peak_bf16, hk_peak_bf16());
        for (int i = 0; i < entry_count; i++) take_turn(entries[i]);
    }
    for (int i = 0; i < entry_count; i++) sort_samples(entries[i]);
}

int bench_alone(int number) {
    return entries[number]->alone;
}

static double seconds_of(const struct entry *e, enum bench_runs runs) {
    const bool alone = runs == BENCH_FASTEST && e->alone >= bench_alone_min;
    return e->seconds[alone][(alone ? e->alone : e->count) * (int)runs / 100];
}

static bool is_bf16(const char *op) {
    const size_t length = strlen(op);
    return length > 5 && strcmp(op + length - 5, "_bf16") == 0;
}

static double share_of(const struct entry *e, double seconds) {
    const double peak = is_bf16(e->what.op) ? peak_bf16 : peak_f32;
    return 1e-9 * e->what.flops / seconds / peak;
}

double bench_share(int number, enum bench_runs runs) {
    return share_of(entries[number], seconds_of(entries[number], runs));
}

void bench_print_peaks(void) {
    printf("peak %.1f GF/s, bf16 %.1f GF/s\n", peak_f32, peak_bf16);
}

static void print_rate(const struct entry *e, double seconds) {
    if (e->what.flops > 0) {
        printf("%8.1f GF/s %5.1f %%", 1e-9 * e->what.flops / seconds, 100 * share_of(e, seconds));
    } else {
        printf("%8.1f GB/s", 1e-9 * e->what.bytes / seconds);
    }
}

void bench_print(void) {
    for (int i = 0; i < entry_count; i++) {
        const struct entry *e = entries[i];
        const double seconds = seconds_of(e, BENCH_FASTEST);
        printf("%-18s %-26s %-9s %10.1f us ", e->what.op, e->shape, e->what.who, seconds * 1e6);
        print_rate(e, seconds);
        printf("  median ");
        print_rate(e, seconds_of(e, BENCH_MEDIAN));
        printf("  alone %d of %d\n", e->alone, e->count);
    }
}
