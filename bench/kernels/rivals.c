// The same product by oneDNN and by libxsmm. HK_BENCH_DNNL and HK_BENCH_XSMM say what is there.
#include "bench/kernels/bench.h"

#include <stddef.h>

#ifdef HK_BENCH_DNNL
#include <oneapi/dnnl/dnnl.h>

static void run_dnnl(void *context) {
    const struct bench_product *p = context;
    dnnl_sgemm('N', 'N', p->m, p->n, p->k, 1.0f, p->a, p->k, p->b, p->n, 0.0f, p->c, p->n);
}
#endif

#ifdef HK_BENCH_XSMM
#include <libxsmm.h>
#include <omp.h>

// libxsmm's dispatched kernels are for small products: tiles of 64 rows by 64 columns, shared out
// to the threads, each running over all of K in one call. Column major: operands are exchanged.
static void run_xsmm(void *context) {
    const struct bench_product *p = context;
    const libxsmm_blasint lda = (libxsmm_blasint)p->n, ldb = (libxsmm_blasint)p->k;
    const float one = 1.0f, zero = 0.0f;
    const libxsmm_blasint tile = 64, rows = (libxsmm_blasint)(p->m < tile ? p->m : tile);
    const libxsmm_smmfunction kernel = libxsmm_smmdispatch(tile, rows, (libxsmm_blasint)p->k, &lda,
                                                           &ldb, &lda, &one, &zero, NULL, NULL);
#pragma omp parallel for schedule(static) collapse(2)
    for (int64_t j = 0; j < p->n; j += tile) {
        for (int64_t i = 0; i < p->m; i += rows) {
            kernel(p->b + j, p->a + i * p->k, p->c + i * p->n + j);
        }
    }
}
#endif

void bench_rivals(const char *shape, const struct bench_product *product) {
    const double flops = 2.0 * (double)product->m * (double)product->n * (double)product->k;
    struct bench_product copy = *product;
    (void)shape;
    (void)flops;
    (void)copy;
#ifdef HK_BENCH_DNNL
    bench_print("matmul_nn", shape, "oneDNN", flops, 0, bench_seconds(run_dnnl, &copy));
#endif
#ifdef HK_BENCH_XSMM
    bench_print("matmul_nn", shape, "libxsmm", flops, 0, bench_seconds(run_xsmm, &copy));
#endif
}
