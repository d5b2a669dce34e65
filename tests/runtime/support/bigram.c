// A program as hecatec emits them, written by hand: small enough that its gradient is plain to see,
// with one parameter of each kind.
//
//   logits[v] = gain[v] * table[id, v] + sum over layers of bias[layer, id % 2, v]
//   auxiliary = 0.01 * sum of the squares of all biases
//
// `table` is kept in panels, the biases are chunks of a set of 2 experts in 2 layers, and a rope
// table is there that nobody reads. Built twice: BIGRAM_BITS 32 and 64. BIGRAM_WRONG plants a wrong
// gradient, BIGRAM_NAN a loss, and gradients, that are no numbers from its third
// forward on; of 2, in the third only.
#include <math.h>
#include <string.h>

#include "hecate/kernels/matmul/matmul.h"
#include "hecate/runtime/program.h"

#ifndef BIGRAM_VOCABULARY
#define BIGRAM_VOCABULARY 256
#endif

#if BIGRAM_BITS == 64
typedef double real;
#define PRECISION HRT_FP64
#else
typedef float real;
#define PRECISION HRT_FP32
#endif

enum { V = BIGRAM_VOCABULARY, T = 16, BATCH = 4, LAYERS = 2, EXPERTS = 2, ROPE = 4 };
enum { PANELS = (V + HK_PANEL - 1) / HK_PANEL * HK_PANEL };
enum {
    TABLE = 0,
    GAIN = TABLE + V * PANELS,
    ROPE_TABLE = GAIN + V,
    SET = ROPE_TABLE + T * ROPE,
    ELEMENTS = SET + LAYERS * EXPERTS * V,
};
enum { LOADS_OFFSET = BATCH * T * V * sizeof(real) };

struct bigram {
    real *params, *grads, *logits;
    int32_t *loads; // [LAYERS, EXPERTS]
    int forwards;
};

static void bind(void *model, void *params, void *grads, void *arena) {
    struct bigram *m = model;
    m->params = params;
    m->grads = grads;
    m->logits = arena;
    m->loads = (int32_t *)((char *)arena + LOADS_OFFSET);
}

static int64_t table_at(int64_t id, int64_t v) {
    return TABLE + v / HK_PANEL * (V * HK_PANEL) + id * HK_PANEL + v % HK_PANEL;
}

static int64_t bias_at(int64_t layer, int64_t id, int64_t v) {
    return SET + (layer * EXPERTS + id % EXPERTS) * V + v;
}

// Computes the logits of one token and returns their log sum exp.
static double token_forward(struct bigram *m, int32_t id, real *logits) {
    double largest = -HUGE_VAL, sum = 0;
    for (int64_t v = 0; v < V; v++) {
        logits[v] = m->params[GAIN + v] * m->params[table_at(id, v)];
        for (int64_t l = 0; l < LAYERS; l++) logits[v] += m->params[bias_at(l, id, v)];
        largest = fmax(largest, (double)logits[v]);
    }
    for (int64_t v = 0; v < V; v++) sum += exp((double)logits[v] - largest);
    return largest + log(sum);
}

#ifdef BIGRAM_NAN
static bool is_nan(const struct bigram *m) {
    return m->forwards == 3 || (BIGRAM_NAN < 2 && m->forwards > 3);
}
#endif

static struct hrt_losses forward(void *model, int64_t batch, const int32_t *ids,
                                 const int32_t *targets, double scale, double auxiliary_scale) {
    struct bigram *m = model;
    double sum = 0, squares = 0;
    memset(m->loads, 0, LAYERS * EXPERTS * sizeof *m->loads);
    for (int64_t t = 0; t < batch * T; t++) {
        real *logits = m->logits + t * V;
        const double lse = token_forward(m, ids[t], logits);
        if (targets[t] >= 0) sum += lse - (double)logits[targets[t]];
        for (int64_t l = 0; l < LAYERS; l++) m->loads[l * EXPERTS + ids[t] % EXPERTS]++;
    }
    for (int64_t i = SET; i < ELEMENTS; i++) squares += (double)m->params[i] * (double)m->params[i];
#ifdef BIGRAM_NAN
    m->forwards++;
    if (is_nan(m)) sum = NAN;
#endif
    const struct hrt_losses losses = {.cross_entropy = scale * sum, .auxiliary = 0.01 * squares};
    return (struct hrt_losses){.loss = losses.cross_entropy + auxiliary_scale * losses.auxiliary,
                               .cross_entropy = losses.cross_entropy,
                               .auxiliary = losses.auxiliary};
}

static void backward(void *model, int64_t batch, const int32_t *ids, const int32_t *targets,
                     double scale, double auxiliary_scale) {
    struct bigram *m = model;
    for (int64_t t = 0; t < batch * T; t++) {
        if (targets[t] < 0) continue;
        real *logits = m->logits + t * V;
        const double lse = token_forward(m, ids[t], logits);
        for (int64_t v = 0; v < V; v++) {
            const double p = exp((double)logits[v] - lse);
            const real dz = (real)(scale * (p - (v == targets[t])));
            m->grads[GAIN + v] += dz * m->params[table_at(ids[t], v)];
#ifdef BIGRAM_WRONG
            m->grads[GAIN + v] += (real)1e-4 * dz;
#endif
            m->grads[table_at(ids[t], v)] += dz * m->params[GAIN + v];
            for (int64_t l = 0; l < LAYERS; l++) m->grads[bias_at(l, ids[t], v)] += dz;
        }
    }
    for (int64_t i = SET; i < ELEMENTS; i++)
        m->grads[i] += (real)(auxiliary_scale * 0.02) * m->params[i];
#ifdef BIGRAM_NAN
    if (is_nan(m)) m->grads[0] = m->grads[GAIN] = NAN;
#endif
}

static const struct hrt_param params[] = {
    {.symbol = "table",
     .path = "table",
     .rank = 2,
     .dim = {"I", "V"},
     .shape = {V, V},
     .layers = 1,
     .index_first = -1,
     .init = HRT_INIT_NORMAL,
     .init_value = 0.02,
     .decay = true,
     .trainable = true,
     .layout = HRT_PANELS,
     .rows = V,
     .columns = V,
     .elements = V * PANELS,
     .set = -1,
     .offset = TABLE},
    {.symbol = "gain",
     .path = "gain",
     .rank = 1,
     .dim = {"V"},
     .shape = {V},
     .layers = 1,
     .index_first = -1,
     .init = HRT_INIT_ONES,
     .trainable = true,
     .layout = HRT_ROWS,
     .rows = 1,
     .columns = V,
     .elements = V,
     .set = -1,
     .offset = GAIN},
    {.symbol = "rope_table",
     .path = "rope_table",
     .rank = 2,
     .dim = {"T", "A"},
     .shape = {T, ROPE},
     .layers = 1,
     .index_first = -1,
     .init = HRT_INIT_ROPE,
     .init_value = 10000,
     .layout = HRT_ROWS,
     .rows = T,
     .columns = ROPE,
     .elements = T * ROPE,
     .set = -1,
     .offset = ROPE_TABLE},
    {.symbol = "sparse.experts.bias",
     .path = "layers.{}.sparse.experts.{e}.bias",
     .rank = 1,
     .dim = {"V"},
     .shape = {V},
     .layers = LAYERS,
     .index_stride = 1,
     .init = HRT_INIT_ZEROS,
     .trainable = true,
     .layout = HRT_ROWS,
     .rows = 1,
     .columns = V,
     .elements = V,
     .set = 0,
     .offset = 0},
};

static const struct hrt_set sets[] = {{.name = "sparse",
                                       .experts = EXPERTS,
                                       .topk = 1,
                                       .layers = LAYERS,
                                       .offset = SET,
                                       .chunk_elements = V}};

static const struct hrt_loads loads[] = {{.set = 0,
                                          .arena_offset = LOADS_OFFSET,
                                          .arena_stride = EXPERTS * sizeof(int32_t),
                                          .select_bias = -1}};

static const struct hrt_setting settings[] = {
    {"parallel.microbatch", "4"},
    {"train.optimizer.lr", "0.01"},
    {"train.precision", BIGRAM_BITS == 64 ? "fp64" : "fp32"},
    {"train.steps", "20"},
};

#define COUNT(array) (int)(sizeof array / sizeof *array)

const struct hrt_program bigram = {
    .name = "bigram",
    .source = "bigram.c",
    .version = "0.1.0",
    .precision = PRECISION,
    .vocabulary = V,
    .positions = T,
    .batch = BATCH,
    .param_elements = ELEMENTS,
    .arena_bytes = LOADS_OFFSET + LAYERS * EXPERTS * sizeof(int32_t),
    .flops_per_token = 6.0 * V,
    .params = COUNT(params),
    .sets = COUNT(sets),
    .loads = COUNT(loads),
    .settings = COUNT(settings),
    .param = params,
    .set = sets,
    .load = loads,
    .setting = settings,
    .model_bytes = sizeof(struct bigram),
    .logits_offset = 0,
    .bind = bind,
    .forward = forward,
    .backward = backward,
};
