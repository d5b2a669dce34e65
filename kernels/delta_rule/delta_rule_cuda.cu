// CUDA twin of delta_rule: forward a block for each head of a sequence and STRIP columns of its values, backward one
// for each group, which goes over its heads, chunks and strips. Plain: no tensor cores, operands and states are read
// from global memory where they are needed, and scores of keys are computed by every strip. Shared memory: 59 KB
// forward, 98 KB backward.
// Differences from the contract: the triangular systems are solved column by column of the matrix, so that terms come
// in another order.
#include "kernels/delta_rule/delta_rule.h"

#include "kernels/cuda/rows.h"

namespace {

using namespace hkc;

constexpr int THREADS = 256, CHUNK = HK_DELTA_CHUNK, STRIP = 16;

// Shared memory: of a chunk, as chunk.h has it, and of a strip of columns.
struct chunk {
    double sums[CHUNK];
    float beta[CHUNK], carried[CHUNK], left[CHUNK];
    int begin[CHUNK];
    float fade[CHUNK][CHUNK], same[CHUNK][CHUNK], seen[CHUNK][CHUNK];
    float held[CHUNK][STRIP], u[CHUNK][STRIP];
};

struct backward_chunk : chunk {
    double by_sums[CHUNK];
    float by_carried[CHUNK], by_left[CHUNK], by_beta[CHUNK], warps[THREADS / 32];
    float by_seen[CHUNK][CHUNK], by_same[CHUNK][CHUNK];
    float read[CHUNK][STRIP], du[CHUNK][STRIP];
};

// Where a block works: a head of a sequence and a chunk of it.
struct place_in {
    int64_t b, head, n, first;
    int count;
};

HKC_DEVICE int64_t chunks_of(const hk_delta_dims &d) {
    return (d.positions + d.chunk - 1) / d.chunk;
}
HKC_DEVICE int64_t scalar_at(const hk_delta_dims &d, const place_in &p, int64_t t) {
    return (p.b * d.positions + p.first + t) * d.heads + p.head;
}
HKC_DEVICE int64_t key_at(const hk_delta_dims &d, const place_in &p, int64_t t) {
    const int64_t group = p.head / (d.heads / d.groups);
    return ((p.b * d.positions + p.first + t) * d.groups + group) * d.width;
}
HKC_DEVICE int64_t state_at(const hk_delta_dims &d, const place_in &p, int64_t n) {
    return ((p.b * chunks_of(d) + n) * d.heads + p.head) * d.width * d.vwidth;
}
HKC_DEVICE place_in place_of(const hk_delta_dims &d, int64_t b, int64_t head, int64_t n) {
    return {b, head, n, n * d.chunk, (int)min(d.positions - n * d.chunk, d.chunk)};
}

// Calls body(i) for all i < count, by all threads; before and behind it, all of them wait.
template <class F> HKC_DEVICE void each(int64_t count, F body) {
    __syncthreads();
    for (int64_t i = threadIdx.x; i < count; i += THREADS) body(i);
    __syncthreads();
}

// Calls body(t, column) for positions of the chunk and those columns of the strip that there are.
template <class F>
HKC_DEVICE void each_value(const hk_delta_dims &d, const place_in &p, int64_t column, F body) {
    each((int64_t)p.count * STRIP, [&](int64_t i) {
        if (column + i % STRIP < d.vwidth) body((int)(i / STRIP), (int)(i % STRIP));
    });
}

HKC_DEVICE void open_chunk(chunk *c, const hk_delta_dims &d, const place_in &p, const float *q,
                           const float *k, const float *decay, const float *beta) {
    each(1, [&](int64_t) {
        double sum = 0;
        for (int t = 0; t < p.count; t++) c->sums[t] = sum += decay[scalar_at(d, p, t)];
    });
    each(p.count, [&](int64_t t) {
        const int64_t at = p.b * d.positions + p.first + t;
        const int64_t begin = (d.begins ? d.begins[at] : 0) - p.first;
        c->beta[t] = beta[scalar_at(d, p, t)];
        c->begin[t] = begin > 0 ? (int)begin : 0;
        c->carried[t] = begin < 0 ? expf((float)c->sums[t]) : 0;
    });
    each((int64_t)p.count * p.count, [&](int64_t i) {
        const int t = (int)(i / p.count), j = (int)(i % p.count);
        const bool there = j <= t && j >= c->begin[t];
        const float *own = k + key_at(d, p, t), *other = k + key_at(d, p, j),
                    *query = q + key_at(d, p, t);
        float same = 0, seen = 0;
        for (int64_t a = 0; there && a < d.width; a++) {
            same += own[a] * other[a];
            seen += query[a] * other[a];
        }
        c->fade[t][j] = there ? expf((float)(c->sums[t] - c->sums[j])) : 0;
        c->same[t][j] = j < t ? same : 0;
        c->seen[t][j] = seen;
    });
    each(p.count, [&](int64_t j) { c->left[j] = c->fade[p.count - 1][j]; });
}

// held and u of a strip.
HKC_DEVICE void store_values(chunk *c, const hk_delta_dims &d, const place_in &p, const float *k,
                             const float *v, const float *states, int64_t column) {
    const float *state = states + state_at(d, p, p.n) + column;
    each((int64_t)p.count * STRIP, [&](int64_t i) { c->held[i / STRIP][i % STRIP] = 0; });
    each_value(d, p, column, [&](int t, int i) {
        const float *key = k + key_at(d, p, t);
        float found = 0;
        for (int64_t a = 0; a < d.width; a++) found += state[a * d.vwidth + i] * key[a];
        c->held[t][i] = v[scalar_at(d, p, t) * d.vwidth + column + i] - c->carried[t] * found;
    });
    for (int t = 0; t < p.count; t++) {
        each((int64_t)(p.count - t) * STRIP, [&](int64_t e) {
            const int s = t + (int)(e / STRIP), i = (int)(e % STRIP);
            const float u = c->beta[t] * c->held[t][i];
            if (s == t)
                c->u[t][i] = u;
            else
                c->held[s][i] -= c->fade[s][t] * c->same[s][t] * u;
        });
    }
}

__global__ void __launch_bounds__(THREADS, 1)
    delta_rule(float *out, float *states, const float *q, const float *k, const float *v,
               const float *decay, const float *beta, hk_delta_dims d) {
    HKC_SHARED(shared);
    chunk *c = (chunk *)shared;
    const int64_t b = blockIdx.x / d.heads, head = blockIdx.x % d.heads;
    const int64_t column = (int64_t)blockIdx.y * STRIP;
    const int64_t strip = min(d.vwidth - column, (int64_t)STRIP);
    float *first = states + state_at(d, place_of(d, b, head, 0), 0) + column;
    each(d.width * strip, [&](int64_t e) { first[e / strip * d.vwidth + e % strip] = 0; });
    for (int64_t n = 0; n < chunks_of(d); n++) {
        const place_in p = place_of(d, b, head, n);
        open_chunk(c, d, p, q, k, decay, beta);
        store_values(c, d, p, k, v, states, column);
        const float *state = states + state_at(d, p, n) + column;
        each_value(d, p, column, [&](int t, int i) {
            const float *query = q + key_at(d, p, t);
            float sum = 0;
            for (int64_t a = 0; a < d.width; a++) sum += state[a * d.vwidth + i] * query[a];
            sum *= c->carried[t];
            for (int j = 0; j <= t; j++) sum += c->fade[t][j] * c->seen[t][j] * c->u[j][i];
            out[scalar_at(d, p, t) * d.vwidth + column + i] = (float)d.scale * sum;
        });
        if (n + 1 == chunks_of(d)) break;
        float *next = states + state_at(d, p, n + 1) + column;
        each(d.width * strip, [&](int64_t e) {
            const int64_t a = e / strip, i = e % strip;
            float sum = c->carried[p.count - 1] * state[a * d.vwidth + i];
            for (int t = 0; t < p.count; t++)
                sum += c->left[t] * k[key_at(d, p, t) + a] * c->u[t][i];
            next[a * d.vwidth + i] = sum;
        });
    }
}

// ---- backward

struct gradients {
    float *dq, *dk, *dv, *ddecay, *dbeta, *dstate;
};
struct operands {
    const float *dout, *q, *k, *v, *decay, *beta, *states;
};

// read and du of a strip: the gradient of u, by out and the next state, then, by the transposed system, of held.
// `after`: the gradient of the state behind the chunk.
HKC_DEVICE void solve_back(backward_chunk *c, const hk_delta_dims &d, const place_in &p,
                           const operands &of, const float *after, int64_t column) {
    each((int64_t)p.count * STRIP, [&](int64_t i) {
        c->read[i / STRIP][i % STRIP] = 0;
        c->du[i / STRIP][i % STRIP] = 0;
    });
    each_value(d, p, column, [&](int t, int i) {
        c->read[t][i] = (float)d.scale * of.dout[scalar_at(d, p, t) * d.vwidth + column + i];
    });
    each_value(d, p, column, [&](int t, int i) {
        const float *key = of.k + key_at(d, p, t);
        float sum = 0;
        for (int64_t a = 0; a < d.width; a++) sum += after[a * d.vwidth + i] * key[a];
        sum *= c->left[t];
        for (int s = t; s < p.count; s++) sum += c->fade[s][t] * c->seen[s][t] * c->read[s][i];
        c->du[t][i] = sum;
    });
    for (int t = p.count - 1; t > 0; t--) {
        each((int64_t)t * STRIP, [&](int64_t e) {
            const int j = (int)(e / STRIP), i = (int)(e % STRIP);
            c->du[j][i] -= c->fade[t][j] * c->same[t][j] * c->beta[t] * c->du[t][i];
        });
    }
    each(p.count, [&](int64_t t) {
        for (int i = 0; i < STRIP; i++) {
            c->by_beta[t] += c->du[t][i] * c->held[t][i];
            c->du[t][i] *= c->beta[t];
        }
    });
}

// Adds a strip's gradients of scores, keys, queries and shares.
HKC_DEVICE void add_strip(backward_chunk *c, const hk_delta_dims &d, const place_in &p,
                          const operands &of, const gradients &to, const float *after,
                          int64_t column, int64_t strip) {
    const float *before = of.states + state_at(d, p, p.n) + column;
    each((int64_t)p.count * p.count, [&](int64_t e) {
        const int t = (int)(e / p.count), j = (int)(e % p.count);
        if (j > t || j < c->begin[t]) return;
        for (int i = 0; i < strip; i++) {
            c->by_seen[t][j] += c->read[t][i] * c->u[j][i];
            if (j < t) c->by_same[t][j] -= c->du[t][i] * c->u[j][i];
        }
    });
    each(p.count * d.width, [&](int64_t e) {
        const int t = (int)(e / d.width);
        const int64_t a = e % d.width, at = key_at(d, p, t) + a;
        float query = 0, key = 0, stored = 0;
        for (int i = 0; i < strip; i++) {
            query += before[a * d.vwidth + i] * c->read[t][i];
            key += before[a * d.vwidth + i] * c->du[t][i];
            stored += after[a * d.vwidth + i] * c->u[t][i];
        }
        to.dq[at] += c->carried[t] * query;
        to.dk[at] += c->left[t] * stored - c->carried[t] * key;
    });
    each(p.count, [&](int64_t t) {
        const float *query = of.q + key_at(d, p, t), *key = of.k + key_at(d, p, t);
        for (int64_t a = 0; a < d.width; a++) {
            for (int i = 0; i < strip; i++) {
                c->by_carried[t] +=
                    before[a * d.vwidth + i] * (query[a] * c->read[t][i] - key[a] * c->du[t][i]);
                c->by_left[t] += after[a * d.vwidth + i] * key[a] * c->u[t][i];
            }
        }
    });
}

// `state` becomes the gradient of the state before the chunk; returns the gradient by the share that is kept.
HKC_DEVICE float step_state(backward_chunk *c, const hk_delta_dims &d, const place_in &p,
                            const operands &of, float *state, int64_t column, int64_t strip) {
    const float *before = of.states + state_at(d, p, p.n) + column;
    float kept = 0;
    each(d.width * strip, [&](int64_t e) {
        const int64_t a = e / strip, i = e % strip;
        float *to = state + a * d.vwidth + i, sum = c->carried[p.count - 1] * *to;
        kept += before[a * d.vwidth + i] * *to;
        for (int t = 0; t < p.count; t++) {
            const int64_t at = key_at(d, p, t) + a;
            sum += c->carried[t] * (of.q[at] * c->read[t][i] - of.k[at] * c->du[t][i]);
        }
        *to = sum;
    });
    return block_sum(kept, c->warps);
}

HKC_DEVICE void store_decays(backward_chunk *c, const hk_delta_dims &d, const place_in &p,
                             const gradients &to, float kept) {
    const int last = p.count - 1;
    const auto by_fade = [&](int t, int j) {
        return ((double)c->by_seen[t][j] * c->seen[t][j] +
                (double)c->by_same[t][j] * c->same[t][j]) *
               c->fade[t][j];
    };
    each(p.count, [&](int64_t at) {
        const int t = (int)at;
        double sum = (double)c->by_carried[t] * c->carried[t];
        for (int j = 0; j < t; j++) sum += by_fade(t, j);
        for (int s = t + 1; s <= last; s++) sum -= by_fade(s, t);
        if (t < last) sum -= (double)c->by_left[t] * c->left[t];
        for (int j = 0; t == last && j < last; j++) sum += (double)c->by_left[j] * c->left[j];
        c->by_sums[t] = t == last ? sum + (double)kept * c->carried[last] : sum;
    });
    each(1, [&](int64_t) {
        double rest = 0;
        for (int t = last; t >= 0; t--) {
            if (t < last && c->begin[t] != c->begin[t + 1]) rest = 0;
            rest += c->by_sums[t];
            to.ddecay[scalar_at(d, p, t)] = (float)rest;
            to.dbeta[scalar_at(d, p, t)] = c->by_beta[t];
        }
    });
}

HKC_DEVICE void store_scores(backward_chunk *c, const hk_delta_dims &d, const place_in &p,
                             const operands &of, const gradients &to) {
    each(p.count * d.width, [&](int64_t e) {
        const int t = (int)(e / d.width);
        const int64_t a = e % d.width, at = key_at(d, p, t) + a;
        float query = 0, key = 0;
        for (int j = 0; j <= t; j++) {
            const float other = c->fade[t][j] * of.k[key_at(d, p, j) + a];
            query += c->by_seen[t][j] * other;
            key += c->by_same[t][j] * other;
        }
        for (int s = t; s < p.count; s++) {
            const int64_t later = key_at(d, p, s) + a;
            key +=
                c->fade[s][t] * (c->by_seen[s][t] * of.q[later] + c->by_same[s][t] * of.k[later]);
        }
        to.dq[at] += query;
        to.dk[at] += key;
    });
}

HKC_DEVICE void grad_chunk(backward_chunk *c, const hk_delta_dims &d, const place_in &p,
                           const operands &of, const gradients &to, float *state) {
    open_chunk(c, d, p, of.q, of.k, of.decay, of.beta);
    each(CHUNK * CHUNK, [&](int64_t e) {
        c->by_seen[e / CHUNK][e % CHUNK] = c->by_same[e / CHUNK][e % CHUNK] = 0;
        if (e < CHUNK) c->by_carried[e] = c->by_left[e] = c->by_beta[e] = 0;
    });
    float kept = 0;
    for (int64_t column = 0; column < d.vwidth; column += STRIP) {
        const int64_t strip = min(d.vwidth - column, (int64_t)STRIP);
        store_values(c, d, p, of.k, of.v, of.states, column);
        solve_back(c, d, p, of, state + column, column);
        each_value(d, p, column, [&](int t, int i) {
            to.dv[scalar_at(d, p, t) * d.vwidth + column + i] = c->du[t][i];
        });
        add_strip(c, d, p, of, to, state + column, column, strip);
        kept += step_state(c, d, p, of, state + column, column, strip);
    }
    store_decays(c, d, p, to, kept);
    store_scores(c, d, p, of, to);
}

__global__ void __launch_bounds__(THREADS, 1)
    delta_rule_grad(gradients to, operands of, hk_delta_dims d) {
    HKC_SHARED(shared);
    backward_chunk *c = (backward_chunk *)shared;
    const int64_t b = blockIdx.x / d.groups, group = blockIdx.x % d.groups;
    const int64_t heads = d.heads / d.groups, size = d.width * d.vwidth;
    each(d.positions * d.width, [&](int64_t e) {
        const int64_t token = b * d.positions + e / d.width;
        const int64_t at = (token * d.groups + group) * d.width + e % d.width;
        to.dq[at] = to.dk[at] = 0;
    });
    for (int64_t head = group * heads; head < (group + 1) * heads; head++) {
        float *state = to.dstate + (b * d.heads + head) * size;
        each(size, [&](int64_t e) { state[e] = 0; });
        for (int64_t n = chunks_of(d) - 1; n >= 0; n--)
            grad_chunk(c, d, place_of(d, b, head, n), of, to, state);
    }
}

} // namespace

extern "C" void hkc_delta_rule_f32(struct hkc_lane *lane, float *out, float *states, const float *q,
                                   const float *k, const float *v, const float *decay,
                                   const float *beta, struct hk_delta_dims dims) {
    const dim3 blocks((unsigned)(dims.batch * dims.heads), blocks_of(dims.vwidth, STRIP));
    hkc_launch(lane, delta_rule, blocks, THREADS, sizeof(chunk), out, states, q, k, v, decay, beta,
               dims);
}

extern "C" void hkc_delta_rule_grad_f32(struct hkc_lane *lane, float *dq, float *dk, float *dv,
                                        float *ddecay, float *dbeta, float *dstate,
                                        const float *dout, const float *q, const float *k,
                                        const float *v, const float *decay, const float *beta,
                                        const float *states, struct hk_delta_dims dims) {
    const gradients to = {dq, dk, dv, ddecay, dbeta, dstate};
    const operands of = {dout, q, k, v, decay, beta, states};
    hkc_launch(lane, delta_rule_grad, (unsigned)(dims.batch * dims.groups), THREADS,
               sizeof(backward_chunk), to, of, dims);
}
