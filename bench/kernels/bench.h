// bench: what the measurements of hk_bench share. Figures are per run of all threads; the fastest
// of many runs counts, because whatever else the machine does only ever slows a run down.
#ifndef HECATE_BENCH_KERNELS_BENCH_H
#define HECATE_BENCH_KERNELS_BENCH_H

#include <stdint.h>

// Seconds of the fastest run of `run(context)`, out of about a third of a second of runs.
double bench_seconds(void (*run)(void *context), void *context);

// `count` floats in [-1, 1), aligned to 64 bytes; the bench never frees them one by one.
float *bench_floats(int64_t count);
void bench_free_all(void);

// Multiply-adds of all threads together, in GF/s (a multiply-add is two), on vectors as wide as
// the kernels use.
double bench_peak(void);

// Prints one row: `flops` in `seconds` as GF/s and as share of the peak; `bytes` as GB/s when no
// flops are given.
void bench_print(const char *op, const char *shape, const char *who, double flops, double bytes,
                 double seconds);

void bench_products(void);
void bench_grouped(void);
void bench_attention(void);
void bench_passes(void);

// Rivals, where the build found them; each prints nothing otherwise. Row major, C = A B.
struct bench_product {
    int64_t m, n, k;
    const float *a, *b;
    float *c;
};
// `count` independent products, C = A B each; one for a plain product.
void bench_rivals(const char *op, const char *shape, const struct bench_product *products,
                  int count);

#endif
