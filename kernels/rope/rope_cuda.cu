// CUDA twin of rope: a thread for W pairs. Bytes moved: 8 for a float, 4 for a bf16; all heads of a position read the same row of
// the table, which stays in the cache.
#include "kernels/rope/rope.h"

#include "kernels/cuda/rows.h"

namespace {

using namespace hkc;

// W pairs of a head, taken apart: they lie in two vectors, halves apart or side by side.
template <class T, int W> struct pairs {
    typedef hkc_vector<T, W> values;
    typedef hkc_vector<float, W> floats;
    floats low, high;

    static __device__ int64_t at(int64_t unit, int64_t half, bool interleaved, int second) {
        return interleaved ? 2 * unit + second : unit + second * (half / W);
    }
    __device__ void load(const values *head, int64_t unit, int64_t half, bool interleaved) {
        const floats a = hkc_floats(head[at(unit, half, interleaved, 0)]),
                     b = hkc_floats(head[at(unit, half, interleaved, 1)]);
        for (int i = 0; i < W; i++) {
            const int even = 2 * i, odd = 2 * i + 1;
            low.at[i] = !interleaved ? a.at[i] : even < W ? a.at[even % W] : b.at[even % W];
            high.at[i] = !interleaved ? b.at[i] : odd < W ? a.at[odd % W] : b.at[odd % W];
        }
    }
    __device__ void store(values *head, int64_t unit, int64_t half, bool interleaved) const {
        floats a, b;
        for (int i = 0; i < W; i++) {
            const floats &first = i % 2 ? high : low, &second = (i + W) % 2 ? high : low;
            a.at[i] = interleaved ? first.at[i / 2] : low.at[i];
            b.at[i] = interleaved ? second.at[(i + W) / 2] : high.at[i];
        }
        head[at(unit, half, interleaved, 0)] = hkc_stored<T>(a);
        head[at(unit, half, interleaved, 1)] = hkc_stored<T>(b);
    }
};

// `direction` is 1 forward, -1 back. `units` of W pairs in a head.
template <class T, int W>
__global__ void __launch_bounds__(WIDE_THREADS)
    rotate(T *y, const T *x, const float *table, hk_rope_dims dims, int64_t units, float direction,
           bool add) {
    typedef hkc_vector<T, W> values;
    typedef hkc_vector<float, W> floats;
    const int64_t thread = (int64_t)blockIdx.x * WIDE_THREADS + threadIdx.x;
    const int64_t head = thread / units, unit = thread % units;
    if (head >= dims.batch * dims.positions * dims.heads) return;
    const int64_t position = head / dims.heads % dims.positions, half = dims.width / 2;
    const floats *angles = (const floats *)(table + position * dims.width);
    const floats c = angles[unit], s = angles[half / W + unit];
    values *to = (values *)(y + head * dims.width);
    pairs<T, W> in, out;
    in.load((const values *)(x + head * dims.width), unit, half, dims.interleaved);
    for (int i = 0; i < W; i++) out.low.at[i] = out.high.at[i] = 0;
    if (add) out.load(to, unit, half, dims.interleaved);
    for (int i = 0; i < W; i++) {
        const float sine = direction * s.at[i];
        out.low.at[i] += in.low.at[i] * c.at[i] - in.high.at[i] * sine;
        out.high.at[i] += in.high.at[i] * c.at[i] + in.low.at[i] * sine;
    }
    out.store(to, unit, half, dims.interleaved);
}

template <class T>
void launch(hkc_lane *lane, T *y, const T *x, const float *table, hk_rope_dims dims,
            float direction, bool add) {
    constexpr int W = VECTOR<T>;
    const int64_t half = dims.width / 2, heads = dims.batch * dims.positions * dims.heads;
    if (as_vectors<W>(half, y, x, table)) {
        hkc_launch(lane, (rotate<T, W>), blocks_of(heads * (half / W), WIDE_THREADS), WIDE_THREADS,
                   0, y, x, table, dims, half / W, direction, add);
    } else {
        hkc_launch(lane, (rotate<T, 1>), blocks_of(heads * half, WIDE_THREADS), WIDE_THREADS, 0, y,
                   x, table, dims, half, direction, add);
    }
}

} // namespace

extern "C" void hkc_rope_f32(struct hkc_lane *lane, float *y, const float *x, const float *table,
                             struct hk_rope_dims dims) {
    launch(lane, y, x, table, dims, 1, false);
}

extern "C" void hkc_rope_bf16(struct hkc_lane *lane, hk_bf16 *y, const hk_bf16 *x,
                              const float *table, struct hk_rope_dims dims) {
    launch(lane, hkc_values(y), hkc_values(x), table, dims, 1, false);
}

extern "C" void hkc_rope_grad_f32(struct hkc_lane *lane, float *dx, const float *dy,
                                  const float *table, struct hk_rope_dims dims,
                                  enum hk_write write) {
    launch(lane, dx, dy, table, dims, -1, write == HK_ADD);
}

extern "C" void hkc_rope_grad_bf16(struct hkc_lane *lane, hk_bf16 *dx, const hk_bf16 *dy,
                                   const float *table, struct hk_rope_dims dims,
                                   enum hk_write write) {
    launch(lane, hkc_values(dx), hkc_values(dy), table, dims, -1, write == HK_ADD);
}
