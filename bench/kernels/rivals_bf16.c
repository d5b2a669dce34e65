// The same products by oneDNN with bf16 operands that are rounded already, weights in the layout it
// chooses, float results: less work than ours, which rounds on the way in.
#include "bench/kernels/bench.h"

#ifdef HK_BENCH_DNNL
#include <assert.h>
#include <omp.h>
#include <oneapi/dnnl/dnnl.h>

enum { arguments = 4, products_max = 64 };

struct rivalry {
    dnnl_primitive_t primitive;
    dnnl_stream_t stream;
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

// Each product has its own memory, scratchpad included: primitives may then be shared by threads.
// Any bits do as bf16 numbers: speed does not depend on them.
static dnnl_exec_arg_t argument(int index, dnnl_primitive_desc_t desc, dnnl_query_t what,
                                dnnl_engine_t engine) {
    const dnnl_memory_desc_t *md = dnnl_primitive_desc_query_md(desc, what, 0);
    dnnl_exec_arg_t arg = {.arg = index};
    const int64_t floats = (int64_t)(dnnl_memory_desc_get_size(md) / sizeof(float)) + 1;
    ok(dnnl_memory_create(&arg.memory, md, engine, bench_floats(floats)));
    return arg;
}

static void bench_dnnl(const char *op, const char *shape, int64_t m, int64_t n, int64_t k,
                       int count) {
    dnnl_engine_t engine;
    ok(dnnl_engine_create(&engine, dnnl_cpu, 0));
    const dnnl_memory_desc_t x = matrix(m, k, dnnl_bf16, dnnl_ab);
    const dnnl_memory_desc_t w = matrix(k, n, dnnl_bf16, dnnl_format_tag_any);
    const dnnl_memory_desc_t y = matrix(m, n, dnnl_f32, dnnl_ab);
    dnnl_matmul_desc_t matmul;
    ok(dnnl_matmul_desc_init(&matmul, &x, &w, NULL, &y));
    dnnl_primitive_attr_t attr;
    ok(dnnl_primitive_attr_create(&attr));
    ok(dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user));
    dnnl_primitive_desc_t desc;
    ok(dnnl_primitive_desc_create(&desc, &matmul, attr, engine, NULL));

    struct rivalry r = {.count = count};
    ok(dnnl_primitive_create(&r.primitive, desc));
    ok(dnnl_stream_create(&r.stream, engine, dnnl_stream_default_flags));
    for (int i = 0; i < count; i++) {
        r.args[i][0] = argument(DNNL_ARG_SRC, desc, dnnl_query_src_md, engine);
        r.args[i][1] = argument(DNNL_ARG_WEIGHTS, desc, dnnl_query_weights_md, engine);
        r.args[i][2] = argument(DNNL_ARG_DST, desc, dnnl_query_dst_md, engine);
        r.args[i][3] = argument(DNNL_ARG_SCRATCHPAD, desc, dnnl_query_scratchpad_md, engine);
    }
    const double flops = 2.0 * (double)m * (double)n * (double)k * count;
    bench_print(op, shape, "oneDNN", flops, 0, bench_seconds(run_dnnl, &r));

    for (int i = 0; i < count * arguments; i++) {
        dnnl_memory_destroy(r.args[i / arguments][i % arguments].memory);
    }
    dnnl_primitive_destroy(r.primitive);
    dnnl_primitive_desc_destroy(desc);
    dnnl_primitive_attr_destroy(attr);
    dnnl_stream_destroy(r.stream);
    dnnl_engine_destroy(engine);
}
#endif

void bench_rivals_bf16(const char *op, const char *shape, int64_t m, int64_t n, int64_t k,
                       int count) {
#ifdef HK_BENCH_DNNL
    bench_dnnl(op, shape, m, n, k, count);
#else
    (void)op, (void)shape, (void)m, (void)n, (void)k, (void)count;
#endif
}
