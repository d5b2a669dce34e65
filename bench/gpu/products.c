// Products of bf16: dense ones, and those of experts by rows an expert, forward and both gradients, of rows as they lie and
// gathered, and gated.
#include <stdio.h>

#include "bench/gpu/gpu_bench.h"

struct dense {
    hk_bf16 *a, *b, *c, *result;
    float *db;
    struct hk_matmul_dims dims;
};

static void dense_nn(struct hkc_lane *lane, const void *arguments) {
    const struct dense *x = arguments;
    hkc_matmul_nn_bf16(lane, x->result, x->a, x->b, HK_ROWS, x->dims, HK_STORE, NULL);
}

static void dense_nt(struct hkc_lane *lane, const void *arguments) {
    const struct dense *x = arguments;
    hkc_matmul_nt_bf16(lane, x->result, x->c, x->b, HK_ROWS, x->dims, HK_STORE, NULL);
}

static void dense_tn(struct hkc_lane *lane, const void *arguments) {
    const struct dense *x = arguments;
    hkc_matmul_tn_bf16(lane, x->db, x->a, x->c, HK_ROWS, x->dims, HK_ADD);
}

static void time_dense(const struct gpu_bench *bench, int64_t m, int64_t n, int64_t k) {
    const struct dense x = {.a = gpu_values(m * k),
                            .b = gpu_values(k * n),
                            .c = gpu_values(m * n),
                            .result = gpu_room((size_t)(m * (n > k ? n : k)) * 2),
                            .db = gpu_room((size_t)(k * n) * 4),
                            .dims = {m, n, k}};
    struct gpu_case of = {.arguments = &x, .flops = 2 * (double)m * (double)n * (double)k};
    snprintf(of.sizes, sizeof of.sizes, "m %lld n %lld k %lld", (long long)m, (long long)n,
             (long long)k);
    of.name = "matmul_nn_bf16", of.launch = dense_nn;
    gpu_time(bench, &of);
    of.name = "matmul_nt_bf16", of.launch = dense_nt;
    gpu_time(bench, &of);
    of.name = "matmul_tn_bf16", of.launch = dense_tn;
    gpu_time(bench, &of);
    gpu_free_all();
}

struct grouped {
    hk_bf16 *a, *c, *result, *result2, *gated;
    void *chunk, *grads;
    int32_t *first, *pair;
    float *scale;
    struct hk_grouped_dims dims;
};

enum { PICKS = 4 };

static void grouped_nn(struct hkc_lane *lane, const void *arguments) {
    const struct grouped *x = arguments;
    hkc_grouped_nn_bf16(lane, x->result, x->a, x->chunk, 0, x->first, x->dims, HK_STORE, NULL);
}

static void grouped_nt(struct hkc_lane *lane, const void *arguments) {
    const struct grouped *x = arguments;
    hkc_grouped_nt_bf16(lane, x->result, x->c, x->chunk, 0, x->first, x->dims, HK_STORE, NULL);
}

static void grouped_tn(struct hkc_lane *lane, const void *arguments) {
    const struct grouped *x = arguments;
    hkc_grouped_tn_bf16(lane, x->grads, 0, x->a, x->c, x->first, x->dims, HK_ADD);
}

static void gathered_nn(struct hkc_lane *lane, const void *arguments) {
    const struct grouped *x = arguments;
    hkc_gathered_nn_bf16(lane, x->result, x->a, x->pair, PICKS, x->chunk, 0, x->first, x->dims,
                         HK_STORE);
}

static void gathered_tn_a(struct hkc_lane *lane, const void *arguments) {
    const struct grouped *x = arguments;
    hkc_gathered_tn_a_bf16(lane, x->grads, 0, x->a, x->c, x->pair, PICKS, x->first, x->dims,
                           HK_ADD);
}

// Two matrices of an expert, one behind the other.
static void gathered_swiglu(struct hkc_lane *lane, const void *arguments) {
    const struct grouped *x = arguments;
    hkc_gathered_swiglu_bf16(lane, x->result, x->result2, x->gated, x->a, x->pair, PICKS, x->chunk,
                             0, x->chunk, x->dims.n * x->dims.k, x->first, x->scale, x->dims);
}

// Few rows wait for the weights, which are then what counts.
static void time_grouped(const struct gpu_bench *bench, int64_t experts, int64_t rows, int64_t n,
                         int64_t k) {
    const int64_t all = experts * rows;
    const size_t weights = (size_t)(k * n);
    const struct grouped x = {
        .a = gpu_values(all * k),
        .c = gpu_values(all * n),
        .result = gpu_room((size_t)(all * (n > k ? n : k)) * 2),
        .result2 = gpu_room((size_t)(all * n) * 2),
        .gated = gpu_room((size_t)(all * n) * 2),
        .chunk = gpu_pointers(gpu_values(2 * k * n * experts), weights * 4, experts),
        .grads = gpu_pointers(gpu_room(weights * 4 * (size_t)experts), weights * 4, experts),
        .first = gpu_starts(experts, rows),
        .pair = gpu_draw(all, (int32_t)all),
        .scale = gpu_floats(all),
        .dims = {experts, n, k}};
    const double flops = 2 * (double)all * (double)n * (double)k;
    struct gpu_case of = {.arguments = &x};
    if (rows > 16)
        of.flops = flops;
    else
        of.bytes = 2 * (double)weights * (double)experts;
    snprintf(of.sizes, sizeof of.sizes, "%lld x %lld rows, n %lld k %lld", (long long)experts,
             (long long)rows, (long long)n, (long long)k);
    of.name = "grouped_nn_bf16", of.launch = grouped_nn;
    gpu_time(bench, &of);
    of.name = "grouped_nt_bf16", of.launch = grouped_nt;
    gpu_time(bench, &of);
    of.name = "gathered_nn_bf16", of.launch = gathered_nn;
    gpu_time(bench, &of);
    struct gpu_case twice = of;
    twice.bytes *= 2, twice.flops *= 2;
    twice.name = "gathered_swiglu_bf16", twice.launch = gathered_swiglu;
    gpu_time(bench, &twice);
    if (of.bytes) of.bytes *= 4; // Gradients are float, read and written.
    of.name = "grouped_tn_bf16", of.launch = grouped_tn;
    gpu_time(bench, &of);
    of.name = "gathered_tn_a_bf16", of.launch = gathered_tn_a;
    gpu_time(bench, &of);
    gpu_free_all();
}

void gpu_bench_products(const struct gpu_bench *bench) {
    static const int64_t rows[] = {16, 64, 256, 1024};
    if (bench->tiny) {
        time_dense(bench, 40, 24, 32);
        time_grouped(bench, 3, 20, 24, 32);
        return;
    }
    time_dense(bench, 8192, 4096, 4096);   // Attention's projections.
    time_dense(bench, 8192, 151936, 2048); // An LM head.
    for (int i = 0; i < 4; i++) {
        time_grouped(bench, 128, rows[i], 768, 2048); // Fine-grained experts: Qwen3-30B-A3B.
        time_grouped(bench, 64, rows[i], 1024, 2048); // OLMoE.
    }
    time_grouped(bench, 8, 2048, 14336, 4096); // Mixtral 8x7B.
}
