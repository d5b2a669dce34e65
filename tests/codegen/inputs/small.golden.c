// Written by hecatec VERSION from small.moe.
// Do not edit: change the model and compile again.
//
//   target   cpu, fp32
//   memory   0.3 MiB of parameters, as much for gradients, 0.2 MiB for everything else
//   passes   check-shapes group-experts inline simplify use-bf16 differentiate simplify
//            recompute fuse-elementwise fuse-epilogue select-kernels place-buffers
#include "hecate/kernels/kernels.h"
#include "hecate/runtime/program.h"

enum { layers = 2, V = 256, D = 32, H = 2, A = 16, G = 1, T = 16, E = 4, F = 48, F_24 = 24,
       picks = 2 };
// Where an expert's parameters lie in its chunk, in elements.
enum { sparse_experts_w1 = 0, sparse_experts_b1 = 2048, sparse_experts_w2 = 2096 };

struct small {
    int64_t batch;          // Sequences of the current call.
    const int32_t *ids;     // [batch, T]
    const int32_t *targets; // [batch, T]; negative: ignored.
    float scale;            // Factor of the token losses.
    float auxiliary_scale;  // Factor of the auxiliary losses.

    // Parameters, as the runtime stores them.
    struct {
        const float *embed;                    // [V, D]
        const float *scale;                    // [D]
        const float *attention_norm[layers];   // [D]
        const float *attention_wq[layers];     // [D, H, A] in panels
        const float *attention_wk[layers];     // [D, G, A] in panels
        const float *attention_wv[layers];     // [D, G, A] in panels
        const float *attention_wo[layers];     // [H, A, D] in panels
        const float *rope_table;               // [T, A]
        const float *sparse_norm_gain[layers]; // [D]
        const float *sparse_norm_bias[layers]; // [D]
        const float *sparse_router[layers];    // [D, E] in panels
        const float *sparse_shared_w1[layers]; // [D, F_24] in panels
        const float *sparse_shared_b1[layers]; // [F_24]
        const float *sparse_shared_w2[layers]; // [F_24, D] in panels
        const float *norm;                     // [D]
        const float *sparse[layers][E];        // Chunks of experts.
    } param;
    // Their gradients.
    struct {
        float *embed;
        float *scale;
        float *attention_norm[layers];
        float *attention_wq[layers];
        float *attention_wk[layers];
        float *attention_wv[layers];
        float *attention_wo[layers];
        float *sparse_norm_gain[layers];
        float *sparse_norm_bias[layers];
        float *sparse_router[layers];
        float *sparse_shared_w1[layers];
        float *sparse_shared_b1[layers];
        float *sparse_shared_w2[layers];
        float *norm;
        float *sparse[layers][E];
    } grad;
    // Values of forward that backward or the runtime reads.
    struct {
        int32_t *sparse_loads[layers];              // [E]
        float *logits;                              // [batch, T, V]
        float *cross_entropy_lse;                   // [batch, T]
        float *normed;                              // [batch, T, D]
        float *normed_rstd;                         // [batch, T]
        float *sparse_shared_add[layers];           // [batch, T, F_24]
        float *normed_1[layers];                    // [batch, T, D]
        int32_t *sparse_layer_route_pair[layers];   // [rows]
        int32_t *sparse_layer_route_slot[layers];   // [batch, T, picks]
        int32_t *sparse_layer_route_first[layers];  // [first]
        float *sparse_layer_gate[layers];           // [rows]
        float *sparse_experts_add[layers];          // [rows, F]
        float *sparse_layer_rows[layers];           // [rows, D]
        float *sparse_layer_logits[layers];         // [batch, T, E]
        float *sparse_layer_fractions[layers];      // [batch, E]
        float *sparse_layer_router_scores[layers];  // [batch, T, E]
        float *sparse_layer_router_weights[layers]; // [batch, T, picks]
        int32_t *sparse_layer_router_ids[layers];   // [batch, T, picks]
        float *x[layers];                           // [batch, T, D]
        float *normed_mean[layers];                 // [batch, T]
        float *normed_rstd_1[layers];               // [batch, T]
        float *attention_sdpa_out[layers];          // [batch, T, H, A]
        float *attention_q[layers];                 // [batch, T, H, A]
        float *attention_k[layers];                 // [batch, T, G, A]
        float *attention_x_wv[layers];              // [batch, T, G, A]
        float *attention_sdpa_lse[layers];          // [batch, H, T]
        float *attention_in[layers];                // [batch, T, D]
        float *x_1[layers + 1];                     // [batch, T, D]
        float *attention_in_rstd[layers];           // [batch, T]
        float *gather;                              // [batch, T, D]
    } saved;
    // The runtime may force the experts of tokens, and record the chosen.
    struct {
        struct hrt_routing sparse[layers];
    } routing;
    const float *token_weights; // In losses; NULL: 1. The runtime's.

    // Temporaries of each function; many share memory.
    struct {
        float *auxiliary, *cross_entropy, *mul, *loss;
    } forward;
    struct {
        float *x_wq, *x_wk;
    } attention;
    struct {
        float *mean_scores, *aux, *z, *auxiliary, *routed;
    } sparse;
    struct {
        float *b1_rows, *gated, *grouped_contract;
    } sparse_experts;
    struct {
        float *fused;
    } sparse_shared;
    struct {
        float *dloss, *dnormed, *dx, *dnormed_2, *dattention_in, *fused;
    } backward;
    struct {
        float *permute, *gate_rows_grad, *dnormed, *dlogits, *dmean_scores, *mean_scores_grad,
            *dlogits_2;
    } sparse_backward;
    struct {
        float *contract, *fused, *dx_w1, *dnormed;
    } sparse_shared_backward;
    struct {
        float *dgated, *gated, *fused, *dx_w1, *dgate, *drows;
    } sparse_experts_backward;
    struct {
        float *dx, *contract, *dq, *dk, *dv, *dattention_in, *dx_wk, *dx_wq;
    } attention_backward;
};

static void bind(void *model, void *params, void *grads, void *arena) {
    struct small *m = model;
    const float *p = params;
    float *g = grads;
    char *a = arena;

    m->param.embed = p;
    m->grad.embed = g;
    m->param.scale = p + 8192;
    m->grad.scale = g + 8192;
    for (int64_t i = 0; i < layers; i++) {
        m->param.attention_norm[i] = p + 8224 + i * 32;
        m->grad.attention_norm[i] = g + 8224 + i * 32;
        m->param.attention_wq[i] = p + 8288 + i * 2048;
        m->grad.attention_wq[i] = g + 8288 + i * 2048;
        m->param.attention_wk[i] = p + 12384 + i * 2048;
        m->grad.attention_wk[i] = g + 12384 + i * 2048;
        m->param.attention_wv[i] = p + 16480 + i * 2048;
        m->grad.attention_wv[i] = g + 16480 + i * 2048;
        m->param.attention_wo[i] = p + 20576 + i * 2048;
        m->grad.attention_wo[i] = g + 20576 + i * 2048;
    }
    m->param.rope_table = p + 24672;
    for (int64_t i = 0; i < layers; i++) {
        m->param.sparse_norm_gain[i] = p + 24928 + i * 32;
        m->grad.sparse_norm_gain[i] = g + 24928 + i * 32;
        m->param.sparse_norm_bias[i] = p + 24992 + i * 32;
        m->grad.sparse_norm_bias[i] = g + 24992 + i * 32;
        m->param.sparse_router[i] = p + 25056 + i * 2048;
        m->grad.sparse_router[i] = g + 25056 + i * 2048;
        m->param.sparse_shared_w1[i] = p + 29152 + i * 2048;
        m->grad.sparse_shared_w1[i] = g + 29152 + i * 2048;
        m->param.sparse_shared_b1[i] = p + 33248 + i * 32;
        m->grad.sparse_shared_b1[i] = g + 33248 + i * 32;
        m->param.sparse_shared_w2[i] = p + 33312 + i * 1536;
        m->grad.sparse_shared_w2[i] = g + 33312 + i * 1536;
    }
    m->param.norm = p + 36384;
    m->grad.norm = g + 36384;
    for (int64_t i = 0; i < layers; i++) {
        for (int64_t n = 0; n < E; n++) {
            m->param.sparse[i][n] = p + 36416 + (i * E + n) * 5168;
            m->grad.sparse[i][n] = g + 36416 + (i * E + n) * 5168;
        }
    }

    for (int64_t i = 0; i < layers; i++) {
        m->saved.sparse_loads[i] = (void *)(a + 90112 + i * 64);
    }
    m->saved.logits = (void *)(a);
    m->saved.cross_entropy_lse = (void *)(a + 90240);
    m->saved.normed = (void *)(a + 86016);
    m->saved.normed_rstd = (void *)(a + 94208);
    for (int64_t i = 0; i < layers; i++) {
        m->saved.sparse_shared_add[i] = (void *)(a + 139264 + i * 3072);
        m->saved.normed_1[i] = (void *)(a + 98304 + i * 4096);
        m->saved.sparse_layer_route_pair[i] = (void *)(a + 167936 + i * 256);
        m->saved.sparse_layer_route_slot[i] = (void *)(a + 168448 + i * 256);
        m->saved.sparse_layer_route_first[i] = (void *)(a + 171776 + i * 64);
        m->saved.sparse_layer_gate[i] = (void *)(a + 168960 + i * 256);
        m->saved.sparse_experts_add[i] = (void *)(a + 32768 + i * 12288);
        m->saved.sparse_layer_rows[i] = (void *)(a + 57344 + i * 8192);
        m->saved.sparse_layer_logits[i] = (void *)(a + 165888 + i * 512);
        m->saved.sparse_layer_fractions[i] = (void *)(a + 171904 + i * 64);
        m->saved.sparse_layer_router_scores[i] = (void *)(a + 166912 + i * 512);
        m->saved.sparse_layer_router_weights[i] = (void *)(a + 169472 + i * 256);
        m->saved.sparse_layer_router_ids[i] = (void *)(a + 169984 + i * 256);
        m->saved.x[i] = (void *)(a + 106496 + i * 4096);
        m->saved.normed_mean[i] = (void *)(a + 171008 + i * 128);
        m->saved.normed_rstd_1[i] = (void *)(a + 171264 + i * 128);
        m->saved.attention_sdpa_out[i] = (void *)(a + 114688 + i * 4096);
        m->saved.attention_q[i] = (void *)(a + 122880 + i * 4096);
        m->saved.attention_k[i] = (void *)(a + 149504 + i * 2048);
        m->saved.attention_x_wv[i] = (void *)(a + 153600 + i * 2048);
        m->saved.attention_sdpa_lse[i] = (void *)(a + 170496 + i * 256);
        m->saved.attention_in[i] = (void *)(a + 131072 + i * 4096);
    }
    for (int64_t i = 0; i < layers + 1; i++) {
        m->saved.x_1[i] = (void *)(a + 73728 + i * 4096);
    }
    for (int64_t i = 0; i < layers; i++) {
        m->saved.attention_in_rstd[i] = (void *)(a + 171520 + i * 128);
    }
    m->saved.gather = (void *)(a + 145408);

    m->forward.auxiliary = (void *)(a + 90368);
    m->forward.cross_entropy = (void *)(a + 90432);
    m->forward.mul = (void *)(a + 90496);
    m->forward.loss = (void *)(a + 90496);
    m->attention.x_wq = (void *)(a);
    m->attention.x_wk = (void *)(a);
    m->sparse.mean_scores = (void *)(a);
    m->sparse.aux = (void *)(a + 20480);
    m->sparse.z = (void *)(a);
    m->sparse.auxiliary = (void *)(a + 20480);
    m->sparse.routed = (void *)(a);
    m->sparse_experts.b1_rows = (void *)(a);
    m->sparse_experts.gated = (void *)(a);
    m->sparse_experts.grouped_contract = (void *)(a + 12288);
    m->sparse_shared.fused = (void *)(a + 4096);
    m->backward.dloss = (void *)(a + 90368);
    m->backward.dnormed = (void *)(a + 90112);
    m->backward.dx = (void *)(a + 157696);
    m->backward.dnormed_2 = (void *)(a + 161792);
    m->backward.dattention_in = (void *)(a);
    m->backward.fused = (void *)(a + 157696);
    m->sparse_backward.permute = (void *)(a + 24576);
    m->sparse_backward.gate_rows_grad = (void *)(a + 8448);
    m->sparse_backward.dnormed = (void *)(a + 161792);
    m->sparse_backward.dlogits = (void *)(a);
    m->sparse_backward.dmean_scores = (void *)(a + 1024);
    m->sparse_backward.mean_scores_grad = (void *)(a + 512);
    m->sparse_backward.dlogits_2 = (void *)(a + 1024);
    m->sparse_shared_backward.contract = (void *)(a);
    m->sparse_shared_backward.fused = (void *)(a);
    m->sparse_shared_backward.dx_w1 = (void *)(a + 3072);
    m->sparse_shared_backward.dnormed = (void *)(a + 161792);
    m->sparse_experts_backward.dgated = (void *)(a);
    m->sparse_experts_backward.gated = (void *)(a);
    m->sparse_experts_backward.fused = (void *)(a + 12288);
    m->sparse_experts_backward.dx_w1 = (void *)(a + 86016);
    m->sparse_experts_backward.dgate = (void *)(a + 8192);
    m->sparse_experts_backward.drows = (void *)(a);
    m->attention_backward.dx = (void *)(a + 157696);
    m->attention_backward.contract = (void *)(a);
    m->attention_backward.dq = (void *)(a + 4096);
    m->attention_backward.dk = (void *)(a + 8192);
    m->attention_backward.dv = (void *)(a + 10240);
    m->attention_backward.dattention_in = (void *)(a);
    m->attention_backward.dx_wk = (void *)(a + 10240);
    m->attention_backward.dx_wq = (void *)(a + 8192);
}

// Keeps the arguments of a call for the functions of the layers.
static void begin(struct small *m, int64_t batch, const int32_t *ids, const int32_t *targets,
                  double scale, double auxiliary_scale) {
    m->batch = batch;
    m->ids = ids;
    m->targets = targets;
    m->scale = (float)scale;
    m->auxiliary_scale = (float)auxiliary_scale;
}

static void attention_x_block(void *model, int64_t i, struct hk_block block) {
    struct small *m = model;
    for (int64_t r = block.row; r < block.row_end; r++) {
#pragma omp simd
        for (int64_t j = block.column; j < block.column_end; j++) {
            m->saved.x[i][r * D + j] = m->saved.x_1[i][r * D + j] + m->saved.x[i][r * D + j];
        }
    }
}

static void attention_forward(struct small *m, int64_t i) {
    const int64_t batch = m->batch;
    struct hk_lines lines HK_LINES_END = {0};

    // small.moe:6   q = rope(x @ wq)
    hk_line(&lines, "small.moe:6");
    float *x_wq = m->attention.x_wq; // [batch, T, H, A]
    hk_matmul_nn_f32(x_wq, m->saved.attention_in[i], m->param.attention_wq[i], HK_PANELS,
                     (struct hk_matmul_dims){.m = batch * T, .n = H * A, .k = D}, HK_STORE, NULL);
    hk_rope_f32(m->saved.attention_q[i], x_wq, m->param.rope_table,
                (struct hk_rope_dims){.batch = batch, .positions = T, .heads = H, .width = A});

    // small.moe:7   k = rope(x @ wk)
    hk_line(&lines, "small.moe:7");
    float *x_wk = m->attention.x_wk; // [batch, T, G, A]
    hk_matmul_nn_f32(x_wk, m->saved.attention_in[i], m->param.attention_wk[i], HK_PANELS,
                     (struct hk_matmul_dims){.m = batch * T, .n = G * A, .k = D}, HK_STORE, NULL);
    hk_rope_f32(m->saved.attention_k[i], x_wk, m->param.rope_table,
                (struct hk_rope_dims){.batch = batch, .positions = T, .heads = G, .width = A});

    // small.moe:8   return sdpa(q, k, x @ wv, causal = true) @ wo
    hk_line(&lines, "small.moe:8");
    hk_matmul_nn_f32(m->saved.attention_x_wv[i], m->saved.attention_in[i], m->param.attention_wv[i],
                     HK_PANELS, (struct hk_matmul_dims){.m = batch * T, .n = G * A, .k = D},
                     HK_STORE, NULL);
    hk_sdpa_f32(m->saved.attention_sdpa_out[i], m->saved.attention_sdpa_lse[i],
                m->saved.attention_q[i], m->saved.attention_k[i], m->saved.attention_x_wv[i], NULL,
                (struct hk_sdpa_dims){.batch = batch, .positions = T, .heads = H, .groups = G,
                                      .width = A, .vwidth = A, .causal = true, .scale = 0.25});
    hk_matmul_nn_f32(m->saved.x[i], m->saved.attention_sdpa_out[i], m->param.attention_wo[i],
                     HK_PANELS, (struct hk_matmul_dims){.m = batch * T, .n = D, .k = H * A},
                     HK_STORE, &(struct hk_epilogue){attention_x_block, m, i});
}

static void sparse_experts_block(void *model, int64_t i, struct hk_block block) {
    struct small *m = model;
    float *b1_rows = m->sparse_experts.b1_rows; // [rows, F]
    float *gated = m->sparse_experts.gated;     // [rows, F]
    for (int64_t r = block.row; r < block.row_end; r++) {
#pragma omp simd
        for (int64_t j = block.column; j < block.column_end; j++) {
            const float t = m->saved.sparse_experts_add[i][r * F + j] + b1_rows[r * F + j];
            const float gated_2 = hk_gelu_f32(t) * m->saved.sparse_layer_gate[i][r];
            m->saved.sparse_experts_add[i][r * F + j] = t;
            gated[r * F + j] = gated_2;
        }
    }
}

static void sparse_experts_forward(struct small *m, int64_t i) {
    struct hk_lines lines HK_LINES_END = {0};

    // small.moe:13   return gelu(x @ w1 + b1) @ w2
    hk_line(&lines, "small.moe:13");
    float *b1_rows = m->sparse_experts.b1_rows; // [rows, F]
    hk_spread_f32(b1_rows, m->param.sparse[i], sparse_experts_b1,
                  m->saved.sparse_layer_route_first[i], E, F, HK_STORE);
    hk_grouped_nn_f32(m->saved.sparse_experts_add[i], m->saved.sparse_layer_rows[i],
                      m->param.sparse[i], sparse_experts_w1, m->saved.sparse_layer_route_first[i],
                      (struct hk_grouped_dims){.experts = E, .n = F, .k = D}, HK_STORE,
                      &(struct hk_epilogue){sparse_experts_block, m, i});
    float *gated = m->sparse_experts.gated;                       // [rows, F]
    float *grouped_contract = m->sparse_experts.grouped_contract; // [rows, D]
    hk_grouped_nn_f32(grouped_contract, gated, m->param.sparse[i], sparse_experts_w2,
                      m->saved.sparse_layer_route_first[i],
                      (struct hk_grouped_dims){.experts = E, .n = D, .k = F}, HK_STORE, NULL);
}

static void sparse_shared_block(void *model, int64_t i, struct hk_block block) {
    struct small *m = model;
    float *fused = m->sparse_shared.fused; // [batch, T, F_24]
    for (int64_t r = block.row; r < block.row_end; r++) {
#pragma omp simd
        for (int64_t j = block.column; j < block.column_end; j++) {
            const float t = m->saved.sparse_shared_add[i][r * F_24 + j] +
                            m->param.sparse_shared_b1[i][j];
            m->saved.sparse_shared_add[i][r * F_24 + j] = t;
            fused[r * F_24 + j] = hk_gelu_f32(t);
        }
    }
}

static void sparse_shared_x_block(void *model, int64_t i, struct hk_block block) {
    struct small *m = model;
    const float *routed = m->sparse.routed; // [batch, T, D]
    for (int64_t r = block.row; r < block.row_end; r++) {
#pragma omp simd
        for (int64_t j = block.column; j < block.column_end; j++) {
            const float x = m->saved.x[i][r * D + j] +
                            (routed[r * D + j] + m->saved.x_1[i + 1][r * D + j]);
            m->saved.x_1[i + 1][r * D + j] = x;
        }
    }
}

static void sparse_shared_forward(struct small *m, int64_t i) {
    const int64_t batch = m->batch;
    struct hk_lines lines HK_LINES_END = {0};

    // small.moe:13   return gelu(x @ w1 + b1) @ w2
    hk_line(&lines, "small.moe:13");
    hk_matmul_nn_f32(m->saved.sparse_shared_add[i], m->saved.normed_1[i],
                     m->param.sparse_shared_w1[i], HK_PANELS,
                     (struct hk_matmul_dims){.m = batch * T, .n = F_24, .k = D}, HK_STORE,
                     &(struct hk_epilogue){sparse_shared_block, m, i});
    float *fused = m->sparse_shared.fused; // [batch, T, F_24]
    hk_matmul_nn_f32(m->saved.x_1[i + 1], fused, m->param.sparse_shared_w2[i], HK_PANELS,
                     (struct hk_matmul_dims){.m = batch * T, .n = D, .k = F_24}, HK_STORE,
                     &(struct hk_epilogue){sparse_shared_x_block, m, i});
}

static void sparse_forward(struct small *m, int64_t i) {
    const int64_t batch = m->batch;
    const int64_t rows = batch * T * picks;
    struct hk_lines lines HK_LINES_END = {0};

    // small.moe:16   moe sparse(x[T, D]) -> [T, D] {
    hk_line(&lines, "small.moe:16");
    hk_matmul_nn_f32(m->saved.sparse_layer_logits[i], m->saved.normed_1[i],
                     m->param.sparse_router[i], HK_PANELS,
                     (struct hk_matmul_dims){.m = batch * T, .n = E, .k = D}, HK_STORE, NULL);
    hk_router_f32(m->saved.sparse_layer_router_scores[i], m->saved.sparse_layer_router_weights[i],
                  m->saved.sparse_layer_router_ids[i], m->saved.sparse_loads[i],
                  m->saved.sparse_layer_logits[i], NULL, m->routing.sparse[i].forced,
                  m->routing.sparse[i].record, batch * T,
                  (struct hk_router_rule){.experts = E, .topk = picks, .score = HK_SOFTMAX,
                                          .weight = HK_RENORMALIZED, .scale = 1});
    float *mean_scores = m->sparse.mean_scores; // [batch, E]
    hk_mean_scores_f32(mean_scores, m->saved.sparse_layer_router_scores[i], batch, T, E,
                       HK_SOFTMAX);
    hk_fractions_f32(m->saved.sparse_layer_fractions[i], NULL, m->saved.sparse_layer_router_ids[i],
                     batch, T, picks, E, 1, 0);
    float *aux = m->sparse.aux; // [1]
    hk_aux_loss_f32(aux, mean_scores, m->saved.sparse_layer_fractions[i], batch, E, 0.01);
    float *z = m->sparse.z; // [1]
    hk_z_loss_f32(z, m->saved.sparse_layer_logits[i], batch * T, E, 0.001);
    float *auxiliary = m->sparse.auxiliary; // [1]
    auxiliary[0] = aux[0] + z[0];
    hk_route(m->saved.sparse_layer_route_first[i], m->saved.sparse_layer_route_pair[i],
             m->saved.sparse_layer_route_slot[i], m->saved.sparse_layer_router_ids[i], batch * T,
             picks, E);
    hk_permute_f32(m->saved.sparse_layer_rows[i], m->saved.normed_1[i],
                   m->saved.sparse_layer_route_pair[i], batch * T, picks, D);
    hk_gate_rows_f32(m->saved.sparse_layer_gate[i], m->saved.sparse_layer_router_weights[i],
                     m->saved.sparse_layer_route_pair[i], rows);
    sparse_experts_forward(m, i);
    const float *grouped_contract = m->sparse_experts.grouped_contract; // [rows, D]
    float *routed = m->sparse.routed;                                   // [batch, T, D]
    hk_combine_f32(routed, grouped_contract, m->saved.sparse_layer_route_slot[i], batch * T, picks,
                   D, HK_STORE);
    sparse_shared_forward(m, i);
}

static struct hrt_losses forward(void *model, int64_t batch, const int32_t *ids,
                                 const int32_t *targets, double scale, double auxiliary_scale) {
    struct hk_lines lines HK_LINES_END = {0};

    struct small *m = model;
    begin(m, batch, ids, targets, scale, auxiliary_scale);

    // small.moe:25   x = embed[ids] * scale
    hk_line(&lines, "small.moe:25");
    hk_gather_f32(m->saved.gather, m->param.embed, m->ids, batch * T, D);
    for (int64_t r = 0; r < batch * T; r++) {
#pragma omp simd
        for (int64_t j = 0; j < D; j++) {
            m->saved.x_1[0][r * D + j] = m->saved.gather[r * D + j] * m->param.scale[j];
        }
    }

    // small.moe:26   repeat i < L {
    hk_line(&lines, "small.moe:26");
    float *auxiliary = m->forward.auxiliary; // [1]
    auxiliary[0] = 0.0f;

    for (int64_t i = 0; i < layers; i++) {
        // small.moe:27   x = x + attention(rmsnorm(x))
        hk_line(&lines, "small.moe:27");
        hk_rmsnorm_f32(m->saved.attention_in[i], m->saved.attention_in_rstd[i], m->saved.x_1[i],
                       m->param.attention_norm[i], batch * T, D, 1e-05);
        attention_forward(m, i);

        // small.moe:28   x = x + sparse(layernorm(x))
        hk_line(&lines, "small.moe:28");
        hk_layernorm_f32(m->saved.normed_1[i], m->saved.normed_mean[i], m->saved.normed_rstd_1[i],
                         m->saved.x[i], m->param.sparse_norm_gain[i], m->param.sparse_norm_bias[i],
                         batch * T, D, 1e-05);
        sparse_forward(m, i);
        const float *auxiliary_2 = m->sparse.auxiliary; // [1]
        auxiliary[0] += auxiliary_2[0];
    }

    // small.moe:30   return rmsnorm(x) @ embed
    hk_line(&lines, "small.moe:30");
    hk_rmsnorm_f32(m->saved.normed, m->saved.normed_rstd, m->saved.x_1[layers], m->param.norm,
                   batch * T, D, 1e-05);
    hk_matmul_nt_f32(m->saved.logits, m->saved.normed, m->param.embed, HK_ROWS,
                     (struct hk_matmul_dims){.m = batch * T, .n = D, .k = V}, HK_STORE, NULL);
    float *cross_entropy = m->forward.cross_entropy; // [1]
    hk_cross_entropy_f32(cross_entropy, m->saved.cross_entropy_lse, m->saved.logits, m->targets,
                         m->token_weights, &m->scale, batch * T, V);
    float *mul = m->forward.mul; // [1]
    mul[0] = m->auxiliary_scale * auxiliary[0];
    float *loss = m->forward.loss; // [1]
    loss[0] = cross_entropy[0] + mul[0];

    return (struct hrt_losses){.loss = loss[0], .cross_entropy = cross_entropy[0],
                               .auxiliary = auxiliary[0]};
}

static void sparse_shared_backward_block(void *model, int64_t i, struct hk_block block) {
    struct small *m = model;
    float *contract = m->sparse_shared_backward.contract; // [batch, T, F_24]
    float *fused = m->sparse_shared_backward.fused;       // [batch, T, F_24]
    float *dx_w1 = m->sparse_shared_backward.dx_w1;       // [batch, T, F_24]
    for (int64_t r = block.row; r < block.row_end; r++) {
#pragma omp simd
        for (int64_t j = block.column; j < block.column_end; j++) {
            const float dx_w1_2 = hk_gelu_grad_f32(contract[r * F_24 + j],
                                                   m->saved.sparse_shared_add[i][r * F_24 + j]);
            fused[r * F_24 + j] = hk_gelu_f32(m->saved.sparse_shared_add[i][r * F_24 + j]);
            dx_w1[r * F_24 + j] = dx_w1_2;
        }
    }
}

static void sparse_shared_backward(struct small *m, int64_t i) {
    const int64_t batch = m->batch;
    struct hk_lines lines HK_LINES_END = {0};

    // small.moe:13   return gelu(x @ w1 + b1) @ w2
    hk_line(&lines, "small.moe:13");
    const float *dx = m->backward.dx;                     // [batch, T, D]
    float *contract = m->sparse_shared_backward.contract; // [batch, T, F_24]
    hk_matmul_nt_f32(contract, dx, m->param.sparse_shared_w2[i], HK_PANELS,
                     (struct hk_matmul_dims){.m = batch * T, .n = D, .k = F_24}, HK_STORE,
                     &(struct hk_epilogue){sparse_shared_backward_block, m, i});
    float *fused = m->sparse_shared_backward.fused; // [batch, T, F_24]
    hk_matmul_tn_f32(m->grad.sparse_shared_w2[i], fused, dx, HK_PANELS,
                     (struct hk_matmul_dims){.m = batch * T, .n = D, .k = F_24}, HK_ADD);
    float *dx_w1 = m->sparse_shared_backward.dx_w1; // [batch, T, F_24]
    hk_sum_rows_f32(m->grad.sparse_shared_b1[i], dx_w1, batch * T, F_24, HK_ADD);
    float *dnormed = m->sparse_shared_backward.dnormed; // [batch, T, D]
    hk_matmul_nt_f32(dnormed, dx_w1, m->param.sparse_shared_w1[i], HK_PANELS,
                     (struct hk_matmul_dims){.m = batch * T, .n = F_24, .k = D}, HK_STORE, NULL);
    hk_matmul_tn_f32(m->grad.sparse_shared_w1[i], m->saved.normed_1[i], dx_w1, HK_PANELS,
                     (struct hk_matmul_dims){.m = batch * T, .n = F_24, .k = D}, HK_ADD);
}

static void sparse_experts_backward_gated_block(void *model, int64_t i, struct hk_block block) {
    struct small *m = model;
    float *dgated = m->sparse_experts_backward.dgated; // [rows, F]
    float *gated = m->sparse_experts_backward.gated;   // [rows, F]
    float *fused = m->sparse_experts_backward.fused;   // [rows, F]
    float *dx_w1 = m->sparse_experts_backward.dx_w1;   // [rows, F]
    for (int64_t r = block.row; r < block.row_end; r++) {
#pragma omp simd
        for (int64_t j = block.column; j < block.column_end; j++) {
            const float t = hk_gelu_f32(m->saved.sparse_experts_add[i][r * F + j]);
            const float dx_w1_2 = hk_gelu_grad_f32(dgated[r * F + j] *
                                                   m->saved.sparse_layer_gate[i][r],
                                                   m->saved.sparse_experts_add[i][r * F + j]);
            const float t_2 = dgated[r * F + j] * t;
            gated[r * F + j] = t * m->saved.sparse_layer_gate[i][r];
            fused[r * F + j] = t_2;
            dx_w1[r * F + j] = dx_w1_2;
        }
    }
}

static void sparse_experts_backward(struct small *m, int64_t i) {
    const int64_t batch = m->batch;
    const int64_t rows = batch * T * picks;
    struct hk_lines lines HK_LINES_END = {0};

    // small.moe:13   return gelu(x @ w1 + b1) @ w2
    hk_line(&lines, "small.moe:13");
    const float *permute = m->sparse_backward.permute; // [rows, D]
    float *dgated = m->sparse_experts_backward.dgated; // [rows, F]
    hk_grouped_nt_f32(dgated, permute, m->param.sparse[i], sparse_experts_w2,
                      m->saved.sparse_layer_route_first[i],
                      (struct hk_grouped_dims){.experts = E, .n = D, .k = F}, HK_STORE,
                      &(struct hk_epilogue){sparse_experts_backward_gated_block, m, i});
    float *gated = m->sparse_experts_backward.gated; // [rows, F]
    hk_grouped_tn_f32(m->grad.sparse[i], sparse_experts_w2, gated, permute,
                      m->saved.sparse_layer_route_first[i],
                      (struct hk_grouped_dims){.experts = E, .n = D, .k = F}, HK_ADD);
    float *fused = m->sparse_experts_backward.fused; // [rows, F]
    float *dgate = m->sparse_experts_backward.dgate; // [rows]
    hk_sum_columns_f32(dgate, fused, rows, F, HK_STORE);
    float *dx_w1 = m->sparse_experts_backward.dx_w1; // [rows, F]
    hk_spread_grad_f32(m->grad.sparse[i], sparse_experts_b1, dx_w1,
                       m->saved.sparse_layer_route_first[i], E, F, HK_ADD);
    float *drows = m->sparse_experts_backward.drows; // [rows, D]
    hk_grouped_nt_f32(drows, dx_w1, m->param.sparse[i], sparse_experts_w1,
                      m->saved.sparse_layer_route_first[i],
                      (struct hk_grouped_dims){.experts = E, .n = F, .k = D}, HK_STORE, NULL);
    hk_grouped_tn_f32(m->grad.sparse[i], sparse_experts_w1, m->saved.sparse_layer_rows[i], dx_w1,
                      m->saved.sparse_layer_route_first[i],
                      (struct hk_grouped_dims){.experts = E, .n = F, .k = D}, HK_ADD);
}

static void sparse_backward(struct small *m, int64_t i) {
    const int64_t batch = m->batch;
    const int64_t rows = batch * T * picks;
    struct hk_lines lines HK_LINES_END = {0};

    sparse_shared_backward(m, i);

    // small.moe:16   moe sparse(x[T, D]) -> [T, D] {
    hk_line(&lines, "small.moe:16");
    const float *dx = m->backward.dx;            // [batch, T, D]
    float *permute = m->sparse_backward.permute; // [rows, D]
    hk_permute_f32(permute, dx, m->saved.sparse_layer_route_pair[i], batch * T, picks, D);
    sparse_experts_backward(m, i);
    const float *dgate = m->sparse_experts_backward.dgate;     // [rows]
    float *gate_rows_grad = m->sparse_backward.gate_rows_grad; // [batch, T, picks]
    hk_gate_rows_grad_f32(gate_rows_grad, dgate, m->saved.sparse_layer_route_slot[i], rows);
    const float *drows = m->sparse_experts_backward.drows; // [rows, D]
    float *dnormed = m->sparse_backward.dnormed;           // [batch, T, D]
    hk_combine_f32(dnormed, drows, m->saved.sparse_layer_route_slot[i], batch * T, picks, D,
                   HK_ADD);
    float *dlogits = m->sparse_backward.dlogits; // [batch, T, E]
    hk_z_loss_grad_f32(dlogits, &m->auxiliary_scale, m->saved.sparse_layer_logits[i], batch * T, E,
                       0.001, HK_STORE);
    float *dmean_scores = m->sparse_backward.dmean_scores; // [batch, E]
    hk_aux_loss_grad_f32(dmean_scores, &m->auxiliary_scale, m->saved.sparse_layer_fractions[i],
                         batch, E, 0.01);
    float *mean_scores_grad = m->sparse_backward.mean_scores_grad; // [batch, T, E]
    hk_mean_scores_grad_f32(mean_scores_grad, dmean_scores, m->saved.sparse_layer_router_scores[i],
                            batch, T, E, HK_SOFTMAX);
    float *dlogits_2 = m->sparse_backward.dlogits_2; // [batch, T, E]
    hk_router_grad_f32(dlogits_2, gate_rows_grad, mean_scores_grad,
                       m->saved.sparse_layer_router_scores[i],
                       m->saved.sparse_layer_router_weights[i], m->saved.sparse_layer_router_ids[i],
                       batch * T,
                       (struct hk_router_rule){.experts = E, .topk = picks, .score = HK_SOFTMAX,
                                               .weight = HK_RENORMALIZED, .scale = 1});
#pragma omp simd
    for (int64_t j = 0; j < batch * T * E; j++) dlogits[j] += dlogits_2[j];
    hk_matmul_nt_f32(dnormed, dlogits, m->param.sparse_router[i], HK_PANELS,
                     (struct hk_matmul_dims){.m = batch * T, .n = E, .k = D}, HK_ADD, NULL);
    hk_matmul_tn_f32(m->grad.sparse_router[i], m->saved.normed_1[i], dlogits, HK_PANELS,
                     (struct hk_matmul_dims){.m = batch * T, .n = E, .k = D}, HK_ADD);
}

static void attention_backward(struct small *m, int64_t i) {
    const int64_t batch = m->batch;
    struct hk_lines lines HK_LINES_END = {0};

    // small.moe:8   return sdpa(q, k, x @ wv, causal = true) @ wo
    hk_line(&lines, "small.moe:8");
    float *dx = m->attention_backward.dx;             // [batch, T, D]
    float *contract = m->attention_backward.contract; // [batch, T, H, A]
    hk_matmul_nt_f32(contract, dx, m->param.attention_wo[i], HK_PANELS,
                     (struct hk_matmul_dims){.m = batch * T, .n = D, .k = H * A}, HK_STORE, NULL);
    hk_matmul_tn_f32(m->grad.attention_wo[i], m->saved.attention_sdpa_out[i], dx, HK_PANELS,
                     (struct hk_matmul_dims){.m = batch * T, .n = D, .k = H * A}, HK_ADD);
    float *dq = m->attention_backward.dq; // [batch, T, H, A]
    float *dk = m->attention_backward.dk; // [batch, T, G, A]
    float *dv = m->attention_backward.dv; // [batch, T, G, A]
    hk_sdpa_grad_f32(dq, dk, dv, contract, m->saved.attention_q[i], m->saved.attention_k[i],
                     m->saved.attention_x_wv[i], m->saved.attention_sdpa_out[i],
                     m->saved.attention_sdpa_lse[i],
                     (struct hk_sdpa_dims){.batch = batch, .positions = T, .heads = H, .groups = G,
                                           .width = A, .vwidth = A, .causal = true, .scale = 0.25});
    float *dattention_in = m->attention_backward.dattention_in; // [batch, T, D]
    hk_matmul_nt_f32(dattention_in, dv, m->param.attention_wv[i], HK_PANELS,
                     (struct hk_matmul_dims){.m = batch * T, .n = G * A, .k = D}, HK_STORE, NULL);
    hk_matmul_tn_f32(m->grad.attention_wv[i], m->saved.attention_in[i], dv, HK_PANELS,
                     (struct hk_matmul_dims){.m = batch * T, .n = G * A, .k = D}, HK_ADD);

    // small.moe:7   k = rope(x @ wk)
    hk_line(&lines, "small.moe:7");
    float *dx_wk = m->attention_backward.dx_wk; // [batch, T, G, A]
    hk_rope_grad_f32(dx_wk, dk, m->param.rope_table,
                     (struct hk_rope_dims){.batch = batch, .positions = T, .heads = G, .width = A},
                     HK_STORE);
    hk_matmul_nt_f32(dattention_in, dx_wk, m->param.attention_wk[i], HK_PANELS,
                     (struct hk_matmul_dims){.m = batch * T, .n = G * A, .k = D}, HK_ADD, NULL);
    hk_matmul_tn_f32(m->grad.attention_wk[i], m->saved.attention_in[i], dx_wk, HK_PANELS,
                     (struct hk_matmul_dims){.m = batch * T, .n = G * A, .k = D}, HK_ADD);

    // small.moe:6   q = rope(x @ wq)
    hk_line(&lines, "small.moe:6");
    float *dx_wq = m->attention_backward.dx_wq; // [batch, T, H, A]
    hk_rope_grad_f32(dx_wq, dq, m->param.rope_table,
                     (struct hk_rope_dims){.batch = batch, .positions = T, .heads = H, .width = A},
                     HK_STORE);
    hk_matmul_nt_f32(dattention_in, dx_wq, m->param.attention_wq[i], HK_PANELS,
                     (struct hk_matmul_dims){.m = batch * T, .n = H * A, .k = D}, HK_ADD, NULL);
    hk_matmul_tn_f32(m->grad.attention_wq[i], m->saved.attention_in[i], dx_wq, HK_PANELS,
                     (struct hk_matmul_dims){.m = batch * T, .n = H * A, .k = D}, HK_ADD);
}

static void backward(void *model, int64_t batch, const int32_t *ids, const int32_t *targets,
                     double scale, double auxiliary_scale) {
    struct hk_lines lines HK_LINES_END = {0};

    struct small *m = model;
    begin(m, batch, ids, targets, scale, auxiliary_scale);

    // small.moe:23   model small(ids[T]) -> [T, V] {
    hk_line(&lines, "small.moe:23");
    float *dloss = m->backward.dloss; // [1]
    dloss[0] = 1.0f;

    // small.moe:30   return rmsnorm(x) @ embed
    hk_line(&lines, "small.moe:30");
    hk_cross_entropy_grad_f32(m->saved.logits, dloss, m->saved.logits, m->saved.cross_entropy_lse,
                              m->targets, m->token_weights, &m->scale, batch * T, V);
    float *dnormed = m->backward.dnormed; // [batch, T, D]
    hk_matmul_nn_f32(dnormed, m->saved.logits, m->param.embed, HK_ROWS,
                     (struct hk_matmul_dims){.m = batch * T, .n = D, .k = V}, HK_STORE, NULL);
    hk_matmul_tn_f32(m->grad.embed, m->saved.logits, m->saved.normed, HK_ROWS,
                     (struct hk_matmul_dims){.m = batch * T, .n = D, .k = V}, HK_ADD);
    float *dx = m->backward.dx; // [batch, T, D]
    hk_rmsnorm_grad_f32(dx, m->grad.norm, dnormed, m->saved.x_1[layers], m->saved.normed_rstd,
                        m->param.norm, batch * T, D, HK_STORE, HK_ADD);

    for (int64_t i = layers - 1; i >= 0; i--) {
        sparse_backward(m, i);

        // small.moe:28   x = x + sparse(layernorm(x))
        hk_line(&lines, "small.moe:28");
        float *dnormed_2 = m->backward.dnormed_2; // [batch, T, D]
        hk_layernorm_grad_f32(dx, m->grad.sparse_norm_gain[i], m->grad.sparse_norm_bias[i],
                              dnormed_2, m->saved.x[i], m->saved.normed_mean[i],
                              m->saved.normed_rstd_1[i], m->param.sparse_norm_gain[i], batch * T, D,
                              HK_ADD, HK_ADD);
        attention_backward(m, i);

        // small.moe:27   x = x + attention(rmsnorm(x))
        hk_line(&lines, "small.moe:27");
        float *dattention_in = m->backward.dattention_in; // [batch, T, D]
        hk_rmsnorm_grad_f32(dx, m->grad.attention_norm[i], dattention_in, m->saved.x_1[i],
                            m->saved.attention_in_rstd[i], m->param.attention_norm[i], batch * T, D,
                            HK_ADD, HK_ADD);
    }

    // small.moe:25   x = embed[ids] * scale
    hk_line(&lines, "small.moe:25");
    float *fused = m->backward.fused; // [batch, T, D]
    for (int64_t r = 0; r < batch * T; r++) {
#pragma omp simd
        for (int64_t j = 0; j < D; j++) {
            const float t = dx[r * D + j] * m->saved.gather[r * D + j];
            fused[r * D + j] = dx[r * D + j] * m->param.scale[j];
            m->saved.gather[r * D + j] = t;
        }
    }
    hk_sum_rows_f32(m->grad.scale, m->saved.gather, batch * T, D, HK_ADD);
    hk_gather_grad_f32(m->grad.embed, fused, m->ids, batch * T, V, D, HK_ADD);
}

static const struct hrt_set sets[] = {
    {.name = "sparse", .experts = 4, .topk = 2, .layers = 2, .offset = 36416,
     .chunk_elements = 5168},
};

static const struct hrt_param params[] = {
    {.symbol = "embed", .path = "embed", .rank = 2, .dim = {"V", "D"}, .shape = {256, 32},
     .layers = 1, .index_first = -1, .index_stride = 0, .init = HRT_INIT_NORMAL, .init_value = 0.02,
     .decay = true, .trainable = true, .layout = HRT_ROWS, .rows = 256, .columns = 32,
     .elements = 8192, .set = -1, .offset = 0},
    {.symbol = "scale", .path = "scale", .rank = 1, .dim = {"D"}, .shape = {32}, .layers = 1,
     .index_first = -1, .index_stride = 0, .init = HRT_INIT_ONES, .init_value = 0, .decay = false,
     .trainable = true, .layout = HRT_ROWS, .rows = 1, .columns = 32, .elements = 32, .set = -1,
     .offset = 8192},
    {.symbol = "attention_norm", .path = "layers.{}.attention_norm", .rank = 1, .dim = {"D"},
     .shape = {32}, .layers = 2, .index_first = 0, .index_stride = 1, .init = HRT_INIT_ONES,
     .init_value = 0, .decay = false, .trainable = true, .layout = HRT_ROWS, .rows = 1,
     .columns = 32, .elements = 32, .set = -1, .offset = 8224},
    {.symbol = "attention.wq", .path = "layers.{}.attention.wq", .rank = 3, .dim = {"D", "H", "A"},
     .shape = {32, 2, 16}, .layers = 2, .index_first = 0, .index_stride = 1,
     .init = HRT_INIT_NORMAL, .init_value = 0.02, .decay = true, .trainable = true,
     .layout = HRT_PANELS, .rows = 32, .columns = 32, .elements = 2048, .set = -1, .offset = 8288},
    {.symbol = "attention.wk", .path = "layers.{}.attention.wk", .rank = 3, .dim = {"D", "G", "A"},
     .shape = {32, 1, 16}, .layers = 2, .index_first = 0, .index_stride = 1,
     .init = HRT_INIT_NORMAL, .init_value = 0.02, .decay = true, .trainable = true,
     .layout = HRT_PANELS, .rows = 32, .columns = 16, .elements = 2048, .set = -1, .offset = 12384},
    {.symbol = "attention.wv", .path = "layers.{}.attention.wv", .rank = 3, .dim = {"D", "G", "A"},
     .shape = {32, 1, 16}, .layers = 2, .index_first = 0, .index_stride = 1,
     .init = HRT_INIT_NORMAL, .init_value = 0.02, .decay = true, .trainable = true,
     .layout = HRT_PANELS, .rows = 32, .columns = 16, .elements = 2048, .set = -1, .offset = 16480},
    {.symbol = "attention.wo", .path = "layers.{}.attention.wo", .rank = 3, .dim = {"H", "A", "D"},
     .shape = {2, 16, 32}, .layers = 2, .index_first = 0, .index_stride = 1,
     .init = HRT_INIT_NORMAL, .init_value = 0.02, .decay = true, .trainable = true,
     .layout = HRT_PANELS, .rows = 32, .columns = 32, .elements = 2048, .set = -1, .offset = 20576},
    {.symbol = "rope_table", .path = "rope_table", .rank = 2, .dim = {"T", "A"}, .shape = {16, 16},
     .layers = 1, .index_first = -1, .index_stride = 0, .init = HRT_INIT_ROPE, .init_value = 1e+04,
     .decay = false, .trainable = false, .layout = HRT_ROWS, .rows = 16, .columns = 16,
     .elements = 256, .set = -1, .offset = 24672},
    {.symbol = "sparse_norm.gain", .path = "layers.{}.sparse_norm.gain", .rank = 1, .dim = {"D"},
     .shape = {32}, .layers = 2, .index_first = 0, .index_stride = 1, .init = HRT_INIT_ONES,
     .init_value = 0, .decay = false, .trainable = true, .layout = HRT_ROWS, .rows = 1,
     .columns = 32, .elements = 32, .set = -1, .offset = 24928},
    {.symbol = "sparse_norm.bias", .path = "layers.{}.sparse_norm.bias", .rank = 1, .dim = {"D"},
     .shape = {32}, .layers = 2, .index_first = 0, .index_stride = 1, .init = HRT_INIT_ZEROS,
     .init_value = 0, .decay = false, .trainable = true, .layout = HRT_ROWS, .rows = 1,
     .columns = 32, .elements = 32, .set = -1, .offset = 24992},
    {.symbol = "sparse.experts.w1", .path = "layers.{}.sparse.experts.{e}.w1", .rank = 2,
     .dim = {"D", "F"}, .shape = {32, 48}, .layers = 2, .index_first = 0, .index_stride = 1,
     .init = HRT_INIT_NORMAL, .init_value = 0.02, .decay = true, .trainable = true,
     .layout = HRT_PANELS, .rows = 32, .columns = 48, .elements = 2048, .set = 0, .offset = 0},
    {.symbol = "sparse.experts.b1", .path = "layers.{}.sparse.experts.{e}.b1", .rank = 1,
     .dim = {"F"}, .shape = {48}, .layers = 2, .index_first = 0, .index_stride = 1,
     .init = HRT_INIT_NORMAL, .init_value = 0.02, .decay = false, .trainable = true,
     .layout = HRT_ROWS, .rows = 1, .columns = 48, .elements = 48, .set = 0, .offset = 2048},
    {.symbol = "sparse.experts.w2", .path = "layers.{}.sparse.experts.{e}.w2", .rank = 2,
     .dim = {"F", "D"}, .shape = {48, 32}, .layers = 2, .index_first = 0, .index_stride = 1,
     .init = HRT_INIT_NORMAL, .init_value = 0.02, .decay = true, .trainable = true,
     .layout = HRT_PANELS, .rows = 48, .columns = 32, .elements = 3072, .set = 0, .offset = 2096},
    {.symbol = "sparse.router", .path = "layers.{}.sparse.router", .rank = 2, .dim = {"D", "E"},
     .shape = {32, 4}, .layers = 2, .index_first = 0, .index_stride = 1, .init = HRT_INIT_NORMAL,
     .init_value = 0.02, .decay = true, .trainable = true, .layout = HRT_PANELS, .rows = 32,
     .columns = 4, .elements = 2048, .set = -1, .offset = 25056},
    {.symbol = "sparse.shared.w1", .path = "layers.{}.sparse.shared.w1", .rank = 2,
     .dim = {"D", "F"}, .shape = {32, 24}, .layers = 2, .index_first = 0, .index_stride = 1,
     .init = HRT_INIT_NORMAL, .init_value = 0.02, .decay = true, .trainable = true,
     .layout = HRT_PANELS, .rows = 32, .columns = 24, .elements = 2048, .set = -1, .offset = 29152},
    {.symbol = "sparse.shared.b1", .path = "layers.{}.sparse.shared.b1", .rank = 1, .dim = {"F"},
     .shape = {24}, .layers = 2, .index_first = 0, .index_stride = 1, .init = HRT_INIT_NORMAL,
     .init_value = 0.02, .decay = false, .trainable = true, .layout = HRT_ROWS, .rows = 1,
     .columns = 24, .elements = 32, .set = -1, .offset = 33248},
    {.symbol = "sparse.shared.w2", .path = "layers.{}.sparse.shared.w2", .rank = 2,
     .dim = {"F", "D"}, .shape = {24, 32}, .layers = 2, .index_first = 0, .index_stride = 1,
     .init = HRT_INIT_NORMAL, .init_value = 0.02, .decay = true, .trainable = true,
     .layout = HRT_PANELS, .rows = 24, .columns = 32, .elements = 1536, .set = -1, .offset = 33312},
    {.symbol = "norm", .path = "norm", .rank = 1, .dim = {"D"}, .shape = {32}, .layers = 1,
     .index_first = -1, .index_stride = 0, .init = HRT_INIT_ONES, .init_value = 0, .decay = false,
     .trainable = true, .layout = HRT_ROWS, .rows = 1, .columns = 32, .elements = 32, .set = -1,
     .offset = 36384},
};

static const struct hrt_loads loads[] = {
    {.set = 0, .arena_offset = 90112, .arena_stride = 64,
     .routing_offset = offsetof(struct small, routing.sparse), .select_bias = -1, .bias_rate = 0},
};

static const struct hrt_setting settings[] = {
    {"checkpoint.dir", ""},
    {"checkpoint.every", "0"},
    {"checkpoint.keep", "3"},
    {"cluster.device", "cpu"},
    {"cluster.device.bandwidth", "auto"},
    {"cluster.device.flops", "auto"},
    {"cluster.device.memory", "auto"},
    {"cluster.devices", "1"},
    {"cluster.link.inter.bandwidth", "auto"},
    {"cluster.link.inter.latency", "auto"},
    {"cluster.link.intra.bandwidth", "auto"},
    {"cluster.link.intra.latency", "auto"},
    {"cluster.nodes", "1"},
    {"data.format", "bytes"},
    {"data.train", ""},
    {"data.val", ""},
    {"log.every", "10"},
    {"log.jsonl", ""},
    {"log.loads", "0"},
    {"names.hf.family", ""},
    {"parallel.bucket", "1048576"},
    {"parallel.dense", "replicate"},
    {"parallel.experts", "fssdp"},
    {"parallel.microbatch", "2"},
    {"parallel.placement.calibrate", "auto"},
    {"parallel.placement.dispatch", "quota"},
    {"parallel.placement.forecast", "window"},
    {"parallel.placement.forecast.iterations", "5"},
    {"parallel.placement.memory", "auto"},
    {"parallel.placement.overlap", "auto"},
    {"parallel.placement.rematerialize", "auto"},
    {"parallel.placement.reshard", "every"},
    {"parallel.placement.reshard.iterations", "100"},
    {"parallel.rows_max", "auto"},
    {"train.eval_every", "0"},
    {"train.eval_steps", "10"},
    {"train.group", "1"},
    {"train.objective", "next_token"},
    {"train.objective.rate", "0.15"},
    {"train.optimizer", "adamw"},
    {"train.optimizer.betas", "0.9,0.95"},
    {"train.optimizer.clip", "1"},
    {"train.optimizer.decay", "0.1"},
    {"train.optimizer.eps", "1e-08"},
    {"train.optimizer.lr", "0.0003"},
    {"train.precision", "fp32"},
    {"train.precision.master", "fp32"},
    {"train.precision.router", "fp32"},
    {"train.schedule", "constant"},
    {"train.schedule.final", "0.1"},
    {"train.schedule.warmup", "0"},
    {"train.seed", "1"},
    {"train.steps", "3"},
    {"train.tokens", "64"},
};

static const struct hrt_program program = {
    .name = "small",
    .source = "small.moe",
    .version = "VERSION",
    .instructions = HRT_INSTRUCTIONS,
    .precision = HRT_FP32,
    .vocabulary = 256,
    .positions = 16,
    .batch = 2,
    .param_elements = 77760,
    .arena_bytes = 172032,
    .flops_per_token = 185856,
    .params = 18, .param = params,
    .sets = 1, .set = sets,
    .loads = 1, .load = loads,
    .settings = 54, .setting = settings,
    .model_bytes = sizeof(struct small),
    .weights_offset = offsetof(struct small, token_weights),
    .logits_offset = 0,
    .bind = bind,
    .forward = forward,
    .backward = backward,
};

int main(int argc, char **argv) {
    return hrt_cli_main(argc, argv, &program);
}
