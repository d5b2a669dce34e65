// Rotations by position, and attention.
#include <math.h>

#include "ir/accessors.h"
#include "tests/interpret/machine.h"

// Pairs (j, j + A/2), or (2 j, 2 j + 1), turn by the angle of their position; `sign` -1 turns back.
static void rotate(struct machine *m, MlirOperation op, double sign) {
    const struct tensor *x = in(m, op, 0), *table = in(m, op, 1);
    struct tensor *y = out(m, op, 0);
    const int64_t width = x->shape.size[x->shape.rank - 1], half = width / 2;
    const int64_t positions = x->shape.size[1], each = x->count / x->shape.size[0] / positions;
    const bool neighbours = hec_has_attr(op, "interleaved") && hec_get_bool(op, "interleaved");
    for (int64_t e = 0; e < x->count; e++) {
        const int64_t position = e / each % positions, j = e % width;
        const int64_t k = neighbours ? j / 2 : j % half, apart = neighbours ? 1 : half;
        const bool first = neighbours ? j % 2 == 0 : j < half;
        const double c = table->at[position * width + k];
        const double s = table->at[position * width + half + k] * sign;
        y->at[e] =
            first ? x->at[e] * c - x->at[e + apart] * s : x->at[e] * c + x->at[e - apart] * s;
    }
}

void run_rope(struct machine *m, MlirOperation op) {
    rotate(m, op, 1);
}

void run_rope_grad(struct machine *m, MlirOperation op) {
    rotate(m, op, -1);
}

// ---- attention

struct attention {
    int64_t batch, positions, heads, groups, width, vwidth, window, chunk;
    bool causal, rounds;
    double scale, cap;
    const struct tensor *q, *k, *v, *sinks, *begins;
};

static struct attention attention_of(struct machine *m, MlirOperation op, int q) {
    struct attention a = {.q = rounded(m, op, in(m, op, q)),
                          .k = rounded(m, op, in(m, op, q + 1)),
                          .v = rounded(m, op, in(m, op, q + 2)),
                          .window = hec_get_int(op, "window"),
                          .chunk = hec_has_attr(op, "chunk") ? hec_get_int(op, "chunk") : 0,
                          .causal = hec_get_bool(op, "causal"),
                          .rounds = hec_get_bool(op, "rounds"),
                          .scale = hec_get_float(op, "scale"),
                          .cap = hec_has_attr(op, "cap") ? hec_get_float(op, "cap") : 0};
    a.batch = a.q->shape.size[0], a.positions = a.q->shape.size[1];
    a.heads = a.q->shape.size[2], a.width = a.q->shape.size[3];
    a.groups = a.k->shape.size[2], a.vwidth = a.v->shape.size[3];
    spend(m, op, a.batch * a.heads * a.positions * a.positions * (a.width + a.vwidth));
    return a;
}

// Chunks count from where the document begins.
static bool is_seen(const struct attention *a, int64_t b, int64_t query, int64_t key) {
    const double *begins = a->begins ? a->begins->at + b * a->positions : NULL;
    const int64_t from = begins ? (int64_t)begins[query] : 0;
    return (!a->causal || key <= query) && (a->window <= 0 || query - key < a->window) &&
           (!begins || begins[key] == begins[query]) &&
           (a->chunk <= 0 || (query - from) / a->chunk == (key - from) / a->chunk);
}

// Where the vector of a sequence, position and head begins; of keys, the group of the head.
static int64_t query_at(const struct attention *a, int64_t b, int64_t t, int64_t h, int64_t width) {
    return ((b * a->positions + t) * a->heads + h) * width;
}

static int64_t key_at(const struct attention *a, int64_t b, int64_t t, int64_t h, int64_t width) {
    return ((b * a->positions + t) * a->groups + h / (a->heads / a->groups)) * width;
}

static double dot(const double *a, const double *b, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += a[i] * b[i];
    return sum;
}

static double score(const struct attention *a, int64_t b, int64_t query, int64_t key, int64_t h) {
    const double s = a->scale * dot(a->q->at + query_at(a, b, query, h, a->width),
                                    a->k->at + key_at(a, b, key, h, a->width), a->width);
    return a->cap > 0 ? a->cap * tanh(s / a->cap) : s;
}

static double log_sum(const struct attention *a, int64_t b, int64_t query, int64_t h) {
    double most = a->sinks ? a->sinks->at[h] : -INFINITY, sum = 0;
    for (int64_t key = 0; key < a->positions; key++) {
        if (is_seen(a, b, query, key)) most = fmax(most, score(a, b, query, key, h));
    }
    if (a->sinks) sum += exp(a->sinks->at[h] - most);
    for (int64_t key = 0; key < a->positions; key++) {
        if (is_seen(a, b, query, key)) sum += exp(score(a, b, query, key, h) - most);
    }
    return most + log(sum);
}

static double read_as(const struct attention *a, double value) {
    return a->rounds ? to_bf16(value) : value;
}

// Calls `each` for every sequence, head, query and key that the query sees.
typedef void each_pair(const struct attention *a, void *user, int64_t b, int64_t query, int64_t key,
                       int64_t h);
static void for_pairs(const struct attention *a, each_pair *each, void *user) {
    for (int64_t b = 0; b < a->batch; b++) {
        for (int64_t h = 0; h < a->heads; h++) {
            for (int64_t query = 0; query < a->positions; query++) {
                for (int64_t key = 0; key < a->positions; key++) {
                    if (is_seen(a, b, query, key)) each(a, user, b, query, key, h);
                }
            }
        }
    }
}

struct forward {
    struct tensor *out, *lse;
};

static void attend(const struct attention *a, void *user, int64_t b, int64_t query, int64_t key,
                   int64_t h) {
    const struct forward *f = user;
    const double lse = f->lse->at[(b * a->heads + h) * a->positions + query];
    const double weight = read_as(a, exp(score(a, b, query, key, h) - lse));
    double *to = f->out->at + query_at(a, b, query, h, a->vwidth);
    const double *v = a->v->at + key_at(a, b, key, h, a->vwidth);
    for (int64_t i = 0; i < a->vwidth; i++) to[i] += weight * v[i];
}

void run_documents(struct machine *m, MlirOperation op) {
    const struct tensor *ids = in(m, op, 0);
    struct tensor *begins = out(m, op, 0);
    const int64_t positions = ids->shape.size[1];
    for (int64_t i = 0; i < ids->count; i++) {
        const bool ended = i % positions > 0 && ids->at[i - 1] == (double)hec_get_int(op, "end");
        begins->at[i] = i % positions == 0 ? 0
                        : ended            ? (double)(i % positions)
                                           : begins->at[i - 1];
    }
}

// NULL: the operation lacks it.
static const struct tensor *maybe(struct machine *m, MlirOperation op, MlirValue value) {
    return mlirValueIsNull(value) ? NULL : value_of(m, op, value);
}

void run_sdpa(struct machine *m, MlirOperation op) {
    struct attention a = attention_of(m, op, 0);
    a.sinks = maybe(m, op, hec_sdpa_sinks(op));
    a.begins = maybe(m, op, hec_sdpa_begins(op));
    struct forward f = {out(m, op, 0), out(m, op, 1)};
    fill(f.out, 0);
    for (int64_t i = 0; i < f.lse->count; i++) {
        const int64_t query = i % a.positions, h = i / a.positions % a.heads;
        f.lse->at[i] = log_sum(&a, i / a.positions / a.heads, query, h);
    }
    for_pairs(&a, attend, &f);
}

struct backward {
    const struct tensor *dout, *exact, *out, *lse; // dout as products read it, and as it is.
    struct tensor *dq, *dk, *dv;
};

static void attend_back(const struct attention *a, void *user, int64_t b, int64_t query,
                        int64_t key, int64_t h) {
    const struct backward *g = user;
    const int64_t at_q = query_at(a, b, query, h, a->width), at_k = key_at(a, b, key, h, a->width);
    const int64_t at_o = query_at(a, b, query, h, a->vwidth);
    const int64_t at_v = key_at(a, b, key, h, a->vwidth);
    const double lse = g->lse->at[(b * a->heads + h) * a->positions + query];
    const double s = score(a, b, query, key, h), weight = exp(s - lse);
    const double slope = a->cap > 0 ? 1 - s / a->cap * (s / a->cap) : 1;
    const double delta = dot(g->exact->at + at_o, g->out->at + at_o, a->vwidth);
    const double dweight = dot(g->dout->at + at_o, a->v->at + at_v, a->vwidth);
    const double dscore = read_as(a, weight * (dweight - delta) * slope) * a->scale;
    for (int64_t i = 0; i < a->vwidth; i++)
        g->dv->at[at_v + i] += read_as(a, weight) * g->dout->at[at_o + i];
    for (int64_t i = 0; i < a->width; i++) {
        g->dq->at[at_q + i] += dscore * a->k->at[at_k + i];
        g->dk->at[at_k + i] += dscore * a->q->at[at_q + i];
    }
}

void run_sdpa_grad(struct machine *m, MlirOperation op) {
    struct attention a = attention_of(m, op, 1);
    a.begins = maybe(m, op, hec_sdpa_grad_begins(op));
    const struct tensor *dout = in(m, op, 0);
    struct backward g = {rounded(m, op, dout), dout,          in(m, op, 4), in(m, op, 5),
                         out(m, op, 0),        out(m, op, 1), out(m, op, 2)};
    fill(g.dq, 0), fill(g.dk, 0), fill(g.dv, 0);
    for_pairs(&a, attend_back, &g);
}

// The weight that a head's sink takes from a row, times the row's dout * out.
void run_sinks_grad(struct machine *m, MlirOperation op) {
    const struct tensor *dout = in(m, op, 0), *y = in(m, op, 1), *lse = in(m, op, 2);
    const struct tensor *sinks = in(m, op, 3);
    struct tensor *to = out(m, op, 0);
    const int64_t positions = y->shape.size[1], heads = y->shape.size[2], width = y->shape.size[3];
    fill(to, 0);
    for (int64_t i = 0; i < lse->count; i++) {
        const int64_t t = i % positions, h = i / positions % heads, b = i / positions / heads;
        const int64_t at = ((b * positions + t) * heads + h) * width;
        to->at[h] -= exp(sinks->at[h] - lse->at[i]) * dot(dout->at + at, y->at + at, width);
    }
}
