// bench: shared by the measurements of hk_bench.
//
// Measurements are taken in turn, a few milliseconds each, round after round: other work of the machine
// comes in spells, and so no measurement lies wholly within one. Figures are per run of all threads. The
// fastest tenth is one of the runs on cores of their own, before and behind which instructions began as fast as ever
// in this measurement (of all runs, where these are fewer than bench_alone_min); clocks that lose time now and
// then make some look faster than they were. The median is that of all runs, as on a shared machine.
// The peak is measured in each round, too.
#ifndef HECATE_BENCH_KERNELS_BENCH_H
#define HECATE_BENCH_KERNELS_BENCH_H

#include <stddef.h>
#include <stdint.h>

// A measurement: counts `flops` or, when they are 0, `bytes` of a run.
struct bench_what {
    const char *op;    // A name that ends in "_bf16" is held against that peak.
    const char *shape; // Copied.
    const char *who;
    double flops, bytes;
};

// Adds `run(context)` to the measurements; its number, from 0 on. `release`, if any, is called with the
// context when it is no longer needed.
int bench_add(struct bench_what what, void (*run)(void *context), void *context,
              void (*release)(void *context));

// Measures all that was added, `rounds` times in turn.
void bench_measure(int rounds);

// The result of bench_measure: share of the highest peak of the rounds, for a processor's clock changes.
enum bench_runs { BENCH_FASTEST = 10, BENCH_MEDIAN = 50 }; // Percent of the runs are as fast.
double bench_share(int number, enum bench_runs runs);

// How many of its runs were on cores of their own.
enum { bench_alone_min = 10 };
int bench_alone(int number);

// Seconds that a fixed number of instructions takes on the slowest of the team's cores: twice as many where other
// programs use their other halves.
double bench_dispatch(void);

// Prints the peaks; each measurement as GF/s and share of the peak, or as GB/s, fastest and median.
void bench_print_peaks(void);
void bench_print(void);

// Forgets all measurements and frees their memory.
void bench_clear(void);

// `count` floats in [-1, 1), aligned to 64 bytes, and a copy of `size` bytes; bench_clear frees them.
float *bench_floats(int64_t count);
void *bench_copy(const void *from, size_t size);

// Parts: each adds its measurements. That of the table prints them its own way.
void bench_add_table(void);
void bench_print_table(void);
void bench_add_products(void);
void bench_add_products_bf16(void);
void bench_add_grouped(void);
void bench_add_grouped_bf16(void);
void bench_add_attention(void);
void bench_add_passes(void);

// Rivals, where the build found them; each adds nothing otherwise. All is row major.
enum bench_form { BENCH_NN, BENCH_NT, BENCH_TN }; // C = A B, A = C B^T, B = A^T C
struct bench_product {
    int64_t m, n, k;
    float *a, *b, *c;
};
// `count` independent GEMMs of one shape; one for a plain GEMM.
void bench_rivals(const char *op, enum bench_form form, const char *shape,
                  const struct bench_product *products, int count);
void bench_rivals_bf16(const char *op, const char *shape, int64_t m, int64_t n, int64_t k,
                       int count);

#endif
