// bench: what the measurements of hk_bench share. Figures are per run of all threads; the fastest
// tenth of many runs counts: what else the machine does slows runs down, and clocks that lose time
// now and then make some look faster than they were.
#ifndef HECATE_BENCH_KERNELS_BENCH_H
#define HECATE_BENCH_KERNELS_BENCH_H

#include <stdint.h>

// Seconds of `run(context)`: below it stayed the fastest tenth of a third of a second of runs.
double bench_seconds(void (*run)(void *context), void *context);

// `count` floats in [-1, 1), aligned to 64 bytes; the bench never frees them one by one.
float *bench_floats(int64_t count);
void bench_free_all(void);

// Multiply-adds of all threads together, in GF/s (a multiply-add is two), on vectors as wide as
// the kernels use.
double bench_peak(void);
double bench_peak_bf16(void);

// Prints one row: `flops` in `seconds` as GF/s and as share of the peak, that of bf16 where the name
// of the operation ends so; `bytes` as GB/s when no flops are given.
void bench_print(const char *op, const char *shape, const char *who, double flops, double bytes,
                 double seconds);

void bench_table(void);
void bench_products(void);
void bench_products_bf16(void);
void bench_grouped(void);
void bench_grouped_bf16(void);
void bench_attention(void);
void bench_passes(void);

// Rivals, where the build found them; each prints nothing otherwise. All is row major.
enum bench_form { BENCH_NN, BENCH_NT, BENCH_TN }; // C = A B, A = C B^T, B = A^T C
struct bench_product {
    int64_t m, n, k;
    float *a, *b, *c;
};
// `count` independent products of one shape; one for a plain product.
void bench_rivals(const char *op, enum bench_form form, const char *shape,
                  const struct bench_product *products, int count);
void bench_rivals_bf16(const char *op, const char *shape, int64_t m, int64_t n, int64_t k,
                       int count);

#endif
