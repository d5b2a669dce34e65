// CUDA twin of rope: a thread for W pairs. Bytes moved: 8 for a float, 4 for a bf16; all heads of a position read the same row of
// the table, which stays in the cache.
#include "kernels/rope/rope_cuda.h"

#include "kernels/cuda/rows.h"

namespace {

using namespace hkc;

// `direction` is 1 forward, -1 back. `units` of W pairs in a head.
template <class T, int W>
__global__ void __launch_bounds__(WIDE_THREADS)
    rotate(T *y, const T *x, const float *table, hk_rope_dims dims, int64_t units, float direction,
           bool add) {
    typedef hkc_vector<T, W> values;
    typedef hkc_vector<float, W> floats;
    const int64_t thread = (int64_t)blockIdx.x * WIDE_THREADS + threadIdx.x;
    const int64_t head = thread / units, unit = thread % units;
#if HKC_FAULT != 1 // asan: threads behind the last head rotate, too.
    if (head >= dims.batch * dims.positions * dims.heads) return;
#endif
#if HKC_FAULT == 3 // plain: heads are taken for positions.
    const int64_t position = head % dims.positions, half = dims.width / 2;
#else
    const int64_t position = head / dims.heads % dims.positions, half = dims.width / 2;
#endif
    const floats *angles = (const floats *)(table + position * dims.width);
    const floats c = angles[unit], s = angles[half / W + unit];
    const values *from = (const values *)(x + head * dims.width);
    values *to = (values *)(y + head * dims.width);
    const floats low = hkc_floats(from[unit]), high = hkc_floats(from[half / W + unit]);
    floats out_low, out_high;
    for (int i = 0; i < W; i++) out_low.at[i] = out_high.at[i] = 0;
    if (add) out_low = hkc_floats(to[unit]), out_high = hkc_floats(to[half / W + unit]);
    for (int i = 0; i < W; i++) {
#if HKC_FAULT == 2 // plain: the gradient rotates forward.
        direction = 1;
#endif
        const float sine = direction * s.at[i];
        out_low.at[i] += low.at[i] * c.at[i] - high.at[i] * sine;
        out_high.at[i] += high.at[i] * c.at[i] + low.at[i] * sine;
    }
    to[unit] = hkc_stored<T>(out_low);
    to[half / W + unit] = hkc_stored<T>(out_high);
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

void hkc_rope_f32(hkc_lane *lane, float *y, const float *x, const float *table, hk_rope_dims dims) {
    launch(lane, y, x, table, dims, 1, false);
}

void hkc_rope_bf16(hkc_lane *lane, hk_bf16 *y, const hk_bf16 *x, const float *table,
                   hk_rope_dims dims) {
    launch(lane, hkc_values(y), hkc_values(x), table, dims, 1, false);
}

void hkc_rope_grad_f32(hkc_lane *lane, float *dx, const float *dy, const float *table,
                       hk_rope_dims dims, hk_write write) {
    launch(lane, dx, dy, table, dims, -1, write == HK_ADD);
}

void hkc_rope_grad_bf16(hkc_lane *lane, hk_bf16 *dx, const hk_bf16 *dy, const float *table,
                        hk_rope_dims dims, hk_write write) {
    launch(lane, hkc_values(dx), hkc_values(dy), table, dims, -1, write == HK_ADD);
}
