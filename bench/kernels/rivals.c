// The same GEMMs by oneDNN, and those of form nn by libxsmm, many of them shared out to the
// threads. HK_BENCH_DNNL and HK_BENCH_XSMM say what is there.
#include "bench/kernels/bench.h"

#include <stddef.h>

struct rivalry {
    enum bench_form form;
    const struct bench_product *products;
    int count;
};

#ifdef HK_BENCH_DNNL
#include <oneapi/dnnl/dnnl.h>

static void multiply_dnnl(enum bench_form form, const struct bench_product *p) {
    if (form == BENCH_NN) {
        dnnl_sgemm('N', 'N', p->m, p->n, p->k, 1.0f, p->a, p->k, p->b, p->n, 0.0f, p->c, p->n);
    } else if (form == BENCH_NT) {
        dnnl_sgemm('N', 'T', p->m, p->k, p->n, 1.0f, p->c, p->n, p->b, p->n, 0.0f, p->a, p->k);
    } else { // Added to, as ours.
        dnnl_sgemm('T', 'N', p->k, p->n, p->m, 1.0f, p->a, p->k, p->c, p->n, 1.0f, p->b, p->n);
    }
}

static void run_dnnl(void *context) {
    const struct rivalry *r = context;
    if (r->count == 1) { // Parallel inside.
        multiply_dnnl(r->form, r->products);
        return;
    }
#pragma omp parallel for schedule(static)
    for (int i = 0; i < r->count; i++) multiply_dnnl(r->form, &r->products[i]);
}
#endif

#ifdef HK_BENCH_XSMM
#include <libxsmm.h>

// libxsmm's dispatched kernels are for small GEMMs: tiles of 64 rows by 64 columns, shared out
// to the threads, each running over all of K in one call. Column major: operands are exchanged.
static void run_xsmm(void *context) {
    const struct rivalry *r = context;
    const struct bench_product *p = r->products; // All of one shape.
    const libxsmm_blasint lda = (libxsmm_blasint)p->n, ldb = (libxsmm_blasint)p->k;
    const float one = 1.0f, zero = 0.0f;
    const libxsmm_blasint tile = 64, rows = (libxsmm_blasint)(p->m < tile ? p->m : tile);
    const libxsmm_smmfunction kernel = libxsmm_smmdispatch(tile, rows, (libxsmm_blasint)p->k, &lda,
                                                           &ldb, &lda, &one, &zero, NULL, NULL);
#pragma omp parallel for schedule(static) collapse(3)
    for (int e = 0; e < r->count; e++) {
        for (int64_t j = 0; j < p->n; j += tile) {
            for (int64_t i = 0; i < p->m; i += rows) {
                const struct bench_product *q = &r->products[e];
                kernel(q->b + j, q->a + i * q->k, q->c + i * q->n + j);
            }
        }
    }
}
#endif

void bench_rivals(const char *op, enum bench_form form, const char *shape,
                  const struct bench_product *products, int count) {
    const double flops = 2.0 * (double)products->m * (double)products->n * (double)products->k;
    const struct rivalry r = {form, bench_copy(products, (size_t)count * sizeof *products), count};
    struct rivalry *kept = bench_copy(&r, sizeof r);
    (void)op, (void)shape, (void)flops, (void)kept;
#ifdef HK_BENCH_DNNL
    bench_add((struct bench_what){op, shape, "oneDNN", flops * count, 0}, run_dnnl, kept, NULL);
#endif
#ifdef HK_BENCH_XSMM
    if (form != BENCH_NN) return;
    bench_add((struct bench_what){op, shape, "libxsmm", flops * count, 0}, run_xsmm, kept, NULL);
#endif
}
