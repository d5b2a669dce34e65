// heads: shared by attention of floats (sdpa_cuda.cu) and of bf16 (bf16_cuda.cu): a head's rows, the keys that a query
// sees, and the sums that gradients begin with.
#ifndef HECATE_KERNELS_SDPA_HEADS_DEVICE_H
#define HECATE_KERNELS_SDPA_HEADS_DEVICE_H

#include "kernels/cuda/device.h"
#include "kernels/scalar.h"
#include "kernels/sdpa/sdpa.h"

namespace attention {

// Rows of a tensor [.., positions, heads, width] that are one head's: row i at `at` + i * stride, `rows` of them.
template <class T> struct head_rows {
    const T *at;
    int64_t stride, rows, width;
};

// Queries, keys and values of batch b and head or group h.
template <class T>
HKC_DEVICE head_rows<T> rows_of(const T *all, const hk_sdpa_dims &d, int64_t b, int64_t h,
                                int64_t heads, int64_t width) {
    return {all + (b * d.positions * heads + h) * width, heads * width, d.positions, width};
}

// Kernels are compiled twice: SPECIAL ones are for documents, chunks and scores with a cap, so that the others pay
// nothing for these.
inline bool is_special(const hk_sdpa_dims &d) {
    return d.begins || (d.chunk > 0 && d.chunk < d.positions) || d.cap > 0;
}

// Which keys a query sees.
template <bool SPECIAL> struct mask {
    int64_t positions, window;
    bool causal;
    unsigned chunk;        // For special ones; 0: no limit.
    const int32_t *begins; // For special ones: of the sequence; NULL: it is one document.

    // Where the document of a position begins, and where the next one does.
    HKC_DEVICE int64_t document_from(int64_t position) const {
        if (!SPECIAL || !begins) return 0;
        return begins[position < positions ? position : positions - 1];
    }
    HKC_DEVICE int64_t document_to(int64_t position) const {
        if (!SPECIAL || !begins) return positions;
        const int64_t behind = 0;
        int64_t from = position + 1, to = positions; // The first query of another one lies there.
        while (from < to) {
            const int64_t middle = (from + to) / 2;
            if (begins[middle] > position) {
                to = middle;
            } else {
                from = middle + 1;
            }
        }
        return to + (to < positions ? behind : 0);
    }
    // The same of its chunk in the document.
    HKC_DEVICE int64_t part_from(int64_t position) const {
        if (!SPECIAL) return 0;
        const int64_t from = document_from(position);
        return chunk > 0 ? from + (int64_t)((unsigned)(position - from) / chunk * chunk) : from;
    }
    HKC_DEVICE int64_t part_to(int64_t position) const {
        const int64_t to = document_to(position);
        if (!SPECIAL || chunk == 0) return to;
        const int64_t from = document_from(position);
        const int64_t end = from + (int64_t)(((unsigned)(position - from) / chunk + 1) * chunk);
        return end < to ? end : to;
    }
    HKC_DEVICE bool sees(int64_t query, int64_t key) const {
        const bool later = key > query;
        const int64_t from = part_from(query);
        return query < positions && key < positions && !(causal && later) &&
               !(window > 0 && query - key >= window) && !(SPECIAL && key < from) &&
               !(SPECIAL && !causal && document_from(key) > query);
    }
    // Whether each query of a range sees each key of the other one, and whether some query may see some key. Queries
    // without a position do not count.
    HKC_DEVICE bool sees_all(int64_t query, int64_t last_query, int64_t key,
                             int64_t last_key) const {
        return last_key < positions && !(causal && last_key > query) &&
               !(window > 0 && last_query - key >= window) &&
               !(SPECIAL && key < part_from(last_query)) &&
               !(SPECIAL && !causal && document_from(last_key) > query);
    }
    HKC_DEVICE bool sees_some(int64_t query, int64_t last_query, int64_t key,
                              int64_t last_key) const {
        return query < positions && key < positions && !(causal && key > last_query) &&
               !(window > 0 && query - last_key >= window) &&
               !(SPECIAL && last_key < part_from(query)) &&
               !(SPECIAL && !causal && document_from(key) > last_query);
    }
    // Keys that some query of first .. last sees, and queries that see some key of them: from .. to - 1.
    HKC_DEVICE int64_t keys_from(int64_t first) const {
        const int64_t from = part_from(first);
        return window > 0 && first >= from + window ? first - window + 1 : from;
    }
    HKC_DEVICE int64_t keys_to(int64_t last) const {
        if (!causal) return document_to(last);
        return last + 1 < positions ? last + 1 : positions;
    }
    HKC_DEVICE int64_t queries_from(int64_t first) const {
        return causal ? first : document_from(first);
    }
    HKC_DEVICE int64_t queries_to(int64_t last) const {
        const int64_t to = part_to(last);
        return window > 0 && last + window < to ? last + window : to;
    }
};

// Begins of a sequence.
template <bool SPECIAL> HKC_DEVICE mask<SPECIAL> mask_of(const hk_sdpa_dims &d, int64_t sequence) {
    return {d.positions, d.window, d.causal, d.chunk < d.positions ? (unsigned)d.chunk : 0,
            SPECIAL && d.begins ? d.begins + sequence * d.positions : NULL};
}

// Scores with a cap are tanh of a multiple of the products of rows, times the cap; those without are a multiple of
// them.
HKC_DEVICE float bend_of(const hk_sdpa_dims &d) {
    return (float)d.scale / (float)d.cap;
}
template <bool SPECIAL> HKC_DEVICE float factor_of(const hk_sdpa_dims &d) {
    return (float)(SPECIAL && d.cap > 0 ? d.cap : d.scale);
}

// The logit of a sink joins a row's sum of weights, relative to `most`. Returns what the weights then shrink by.
HKC_DEVICE float add_sink(float &most, float &total, float sink) {
    const float highest = fmaxf(most, sink), shrink = expf(most - highest);
    total = total * shrink + expf(sink - highest);
    most = highest;
    return shrink;
}

constexpr int DELTA_THREADS = 256;

// delta[b, h, p]: the sum of dout * out of a row, by a warp.
template <class T>
__global__ void __launch_bounds__(DELTA_THREADS)
    sum_deltas(float *delta, const T *dout, const T *out, hk_sdpa_dims d) {
    const int64_t row = (int64_t)blockIdx.x * (DELTA_THREADS / 32) + threadIdx.x / 32; // [b, p, h]
    if (row >= d.batch * d.positions * d.heads) return;
    float sum = 0;
    for (int64_t c = threadIdx.x % 32; c < d.vwidth; c += 32)
        sum += hkc_float(dout[row * d.vwidth + c]) * hkc_float(out[row * d.vwidth + c]);
    sum = warp_sum(sum);
    const int64_t h = row % d.heads, p = row / d.heads % d.positions;
    const int64_t b = row / d.heads / d.positions;
    if (threadIdx.x % 32 == 0) delta[(b * d.heads + h) * d.positions + p] = sum;
}

// Into the lane's scratch.
template <class T>
const float *launch_deltas(hkc_lane *lane, const T *dout, const T *out, const hk_sdpa_dims &d) {
    float *delta = (float *)lane->scratch;
    const int64_t rows = d.batch * d.positions * d.heads;
    assert(rows <= HKC_SCRATCH / (int64_t)sizeof *delta);
    const unsigned blocks = (unsigned)((rows + DELTA_THREADS / 32 - 1) / (DELTA_THREADS / 32));
    hkc_launch(lane, sum_deltas<T>, blocks, DELTA_THREADS, 0, delta, dout, out, d);
    return delta;
}

} // namespace attention

#endif
