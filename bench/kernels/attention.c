// Attention forward and backward, float and bf16; flops count the two GEMMs forward and five
// backward, halved when causal.
#include "bench/kernels/bench.h"

#include <stdio.h>

#include "kernels/sdpa/sdpa.h"

struct attention {
    struct hk_sdpa_dims dims;
    float *q, *k, *v, *out, *lse, *dq, *dk, *dv, *dout;
};

static void run_forward(void *context) {
    const struct attention *x = context;
    hk_sdpa_f32(x->out, x->lse, x->q, x->k, x->v, NULL, x->dims);
}

static void run_backward(void *context) {
    const struct attention *x = context;
    hk_sdpa_grad_f32(x->dq, x->dk, x->dv, x->dout, x->q, x->k, x->v, x->out, x->lse, x->dims);
}

static void run_forward_bf16(void *context) {
    const struct attention *x = context;
    hk_sdpa_bf16(x->out, x->lse, x->q, x->k, x->v, NULL, x->dims);
}

static void run_backward_bf16(void *context) {
    const struct attention *x = context;
    hk_sdpa_grad_bf16(x->dq, x->dk, x->dv, x->dout, x->q, x->k, x->v, x->out, x->lse, x->dims);
}

static void add(struct hk_sdpa_dims d) {
    const int64_t q = d.batch * d.positions * d.heads * d.width;
    const int64_t k = d.batch * d.positions * d.groups * d.width;
    const struct attention x = {
        .dims = d,
        .q = bench_floats(q),
        .k = bench_floats(k),
        .v = bench_floats(k),
        .out = bench_floats(q),
        .lse = bench_floats(d.batch * d.heads * d.positions),
        .dq = bench_floats(q),
        .dk = bench_floats(k),
        .dv = bench_floats(k),
        .dout = bench_floats(q),
    };
    const double product = 2.0 * (double)q * (double)d.positions * (d.causal ? 0.5 : 1.0);
    char shape[64];
    snprintf(shape, sizeof shape, "%dx%d %d/%d x %d%s", (int)d.batch, (int)d.positions,
             (int)d.heads, (int)d.groups, (int)d.width, d.causal ? " causal" : "");
    struct attention *context = bench_copy(&x, sizeof x);
    static const struct {
        const char *name;
        void (*run)(void *context);
        int products;
    } kernels[] = {
        {"sdpa", run_forward, 2},
        {"sdpa_grad", run_backward, 5},
        {"sdpa_bf16", run_forward_bf16, 2},
        {"sdpa_grad_bf16", run_backward_bf16, 5},
    };
    for (int i = 0; i < 4; i++) {
        const struct bench_what what = {kernels[i].name, shape, "hecate",
                                        kernels[i].products * product, 0};
        bench_add(what, kernels[i].run, context, NULL);
    }
}

void bench_add_attention(void) {
    struct hk_sdpa_dims d = {
        .batch = 8,
        .positions = 256,
        .heads = 8,
        .groups = 8,
        .width = 64,
        .vwidth = 64,
        .causal = true,
        .scale = 0.125,
    };
    add(d);
    d.batch = 2;
    d.positions = 1024;
    add(d);
    d.groups = 2;
    add(d);
    d.causal = false;
    add(d);
}
