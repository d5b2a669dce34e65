// The same GEMMs by oneDNN with bf16 operands that are rounded already, weights in the layout it
// chooses, float results: less work than ours, which rounds on the way in.
#include "bench/kernels/bench.h"

#ifdef HK_BENCH_DNNL
#include <assert.h>
#include <omp.h>
#include <oneapi/dnnl/dnnl.h>

enum { arguments = 4, products_max = 64 };

struct rivalry {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_desc_t desc;
    dnnl_primitive_t primitive;
    int count;
    dnnl_exec_arg_t args[products_max][arguments];
};

static void ok(dnnl_status_t status) {
    assert(status == dnnl_success);
    (void)status;
}

static void run_dnnl(void *context) {
    const struct rivalry *r = context;
    if (r->count == 1) { // Parallel inside.
        ok(dnnl_primitive_execute(r->primitive, r->stream, arguments, r->args[0]));
        return;
    }
#pragma omp parallel for schedule(static)
    for (int i = 0; i < r->count; i++) {
        ok(dnnl_primitive_execute(r->primitive, r->stream, arguments, r->args[i]));
    }
}

static dnnl_memory_desc_t matrix(int64_t rows, int64_t columns, dnnl_data_type_t type,
                                 dnnl_format_tag_t format) {
    dnnl_memory_desc_t desc;
    const dnnl_dims_t dims = {rows, columns};
    ok(dnnl_memory_desc_init_by_tag(&desc, 2, dims, type, format));
    return desc;
}

// Each GEMM has its own memory, scratchpad included: primitives may then be shared by threads.
// Any bits do as bf16 numbers: speed does not depend on them.
static dnnl_exec_arg_t argument(int index, dnnl_primitive_desc_t desc, dnnl_query_t what,
                                dnnl_engine_t engine) {
    const dnnl_memory_desc_t *md = dnnl_primitive_desc_query_md(desc, what, 0);
    dnnl_exec_arg_t arg = {.arg = index};
    const int64_t floats = (int64_t)(dnnl_memory_desc_get_size(md) / sizeof(float)) + 1;
    ok(dnnl_memory_create(&arg.memory, md, engine, bench_floats(floats)));
    return arg;
}

static void release(void *context) {
    const struct rivalry *r = context;
    for (int i = 0; i < r->count * arguments; i++) {
        dnnl_memory_destroy(r->args[i / arguments][i % arguments].memory);
    }
    dnnl_primitive_destroy(r->primitive);
    dnnl_primitive_desc_destroy(r->desc);
    dnnl_stream_destroy(r->stream);
    dnnl_engine_destroy(r->engine);
}

static void add_dnnl(const char *op, const char *shape, int64_t m, int64_t n, int64_t k,
                     int count) {
    struct rivalry r = {.count = count};
    ok(dnnl_engine_create(&r.engine, dnnl_cpu, 0));
    ok(dnnl_stream_create(&r.stream, r.engine, dnnl_stream_default_flags));
    const dnnl_memory_desc_t x = matrix(m, k, dnnl_bf16, dnnl_ab);
    const dnnl_memory_desc_t w = matrix(k, n, dnnl_bf16, dnnl_format_tag_any);
    const dnnl_memory_desc_t y = matrix(m, n, dnnl_f32, dnnl_ab);
    dnnl_matmul_desc_t matmul;
    ok(dnnl_matmul_desc_init(&matmul, &x, &w, NULL, &y));
    dnnl_primitive_attr_t attr;
    ok(dnnl_primitive_attr_create(&attr));
    ok(dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user));
    const dnnl_status_t known = dnnl_primitive_desc_create(&r.desc, &matmul, attr, r.engine, NULL);
    dnnl_primitive_attr_destroy(attr);
    if (known == dnnl_unimplemented) { // Without AVX-512.
        dnnl_stream_destroy(r.stream);
        dnnl_engine_destroy(r.engine);
        return;
    }
    ok(known);
    ok(dnnl_primitive_create(&r.primitive, r.desc));
    for (int i = 0; i < count; i++) {
        r.args[i][0] = argument(DNNL_ARG_SRC, r.desc, dnnl_query_src_md, r.engine);
        r.args[i][1] = argument(DNNL_ARG_WEIGHTS, r.desc, dnnl_query_weights_md, r.engine);
        r.args[i][2] = argument(DNNL_ARG_DST, r.desc, dnnl_query_dst_md, r.engine);
        r.args[i][3] = argument(DNNL_ARG_SCRATCHPAD, r.desc, dnnl_query_scratchpad_md, r.engine);
    }
    const double flops = 2.0 * (double)m * (double)n * (double)k * count;
    bench_add((struct bench_what){op, shape, "oneDNN", flops, 0}, run_dnnl,
              bench_copy(&r, sizeof r), release);
}
#endif

void bench_rivals_bf16(const char *op, const char *shape, int64_t m, int64_t n, int64_t k,
                       int count) {
#ifdef HK_BENCH_DNNL
    add_dnnl(op, shape, m, n, k, count);
#else
    (void)op, (void)shape, (void)m, (void)n, (void)k, (void)count;
#endif
}
