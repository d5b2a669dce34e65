// CUDA twin of rmsnorm. A row of up to NARROW values belongs to a warp, a wider one to a block; threads keep what they
// have read of it in registers for the second pass. Columns of dgain are summed for parts of the rows side by side.
//
// Bytes moved: forward 8 for a value, dx 12, dgain 8 more, of which most come from the second cache behind dx.
#include "kernels/rmsnorm/rmsnorm_cuda.h"

#include "kernels/cuda/device.h"

namespace {

constexpr int NARROW = 1024, NARROW_THREADS = 128, WIDE_THREADS = 256;

// Where a thread stands: one of `threads` that share a row, and the row.
struct place {
    int64_t row;
    int first, threads;
};

template <bool WIDE> HKC_DEVICE place place_of_thread() {
    if (WIDE) return {(int64_t)blockIdx.x, (int)threadIdx.x, WIDE_THREADS};
    const int warp = (int)threadIdx.x / 32;
    return {(int64_t)blockIdx.x * (NARROW_THREADS / 32) + warp, (int)threadIdx.x % 32, 32};
}

template <bool WIDE> HKC_DEVICE float row_sum(float value) {
    if (!WIDE) return warp_sum(value);
    HKC_SHARED(shared);
    return block_sum(value, (float *)shared);
}

// Calls body(vector, index) for the thread's vectors of W values. Of the first HELD ones it is known at compile
// time which they are, so that what is kept of them stays in registers; those behind have -1.
template <int HELD, class F> HKC_DEVICE void each_vector(const place &at, int64_t vectors, F body) {
#pragma unroll
    for (int h = 0; h < HELD; h++) {
        const int64_t v = at.first + (int64_t)h * at.threads;
        if (v < vectors) body(v, h);
    }
    for (int64_t v = at.first + (int64_t)HELD * at.threads; v < vectors; v += at.threads)
        body(v, -1);
}

// `share` is 1 / n: a division would be a call.
template <class T, int W, bool WIDE>
__global__ void __launch_bounds__(WIDE ? WIDE_THREADS : NARROW_THREADS)
    rmsnorm(T *y, float *rstd, const T *x, const float *gain, int64_t m, int64_t n, float share,
            float eps) {
    typedef hkc_vector<T, W> values;
    typedef hkc_vector<float, W> floats;
    constexpr int HELD = W == 1 ? 2 : 8;
    const place at = place_of_thread<WIDE>();
    if (at.row >= m) return;
    const values *from = (const values *)(x + at.row * n);
    values *to = (values *)(y + at.row * n);
    const floats *gains = (const floats *)gain;
    values held[HELD];
    float squares = 0;
    each_vector<HELD>(at, n / W, [&](int64_t v, int h) {
        const values read = from[v];
        if (h >= 0) held[h] = read;
        for (int i = 0; i < W; i++) squares += hkc_float(read.at[i]) * hkc_float(read.at[i]);
    });
    const float r = rsqrtf(row_sum<WIDE>(squares) * share + eps);
    if (at.first == 0) rstd[at.row] = r;
    each_vector<HELD>(at, n / W, [&](int64_t v, int h) {
        const values read = h >= 0 ? held[h] : from[v];
        floats scale;
        for (int i = 0; i < W; i++) scale.at[i] = 1;
        if (gain) scale = gains[v];
        values out;
        for (int i = 0; i < W; i++) out.at[i] = (T)(hkc_float(read.at[i]) * r * scale.at[i]);
        to[v] = out;
    });
}

template <class T, int W, bool WIDE>
__global__ void __launch_bounds__(WIDE ? WIDE_THREADS : NARROW_THREADS)
    rmsnorm_grad(T *dx, const T *dy, const T *x, const float *rstd, const float *gain, int64_t m,
                 int64_t n, float share, bool add) {
    typedef hkc_vector<T, W> values;
    typedef hkc_vector<float, W> floats;
    constexpr int HELD = W == 1 ? 2 : 4;
    const place at = place_of_thread<WIDE>();
    if (at.row >= m) return;
    const values *dys = (const values *)(dy + at.row * n), *xs = (const values *)(x + at.row * n);
    values *to = (values *)(dx + at.row * n);
    const floats *gains = (const floats *)gain;
    floats held[HELD]; // dy gain
    values held_x[HELD];
    const auto gained = [&](int64_t v) {
        const values read = dys[v];
        floats out;
        for (int i = 0; i < W; i++) out.at[i] = hkc_float(read.at[i]);
        if (gain) {
            const floats scale = gains[v];
            for (int i = 0; i < W; i++) out.at[i] *= scale.at[i];
        }
        return out;
    };
    float along = 0;
    each_vector<HELD>(at, n / W, [&](int64_t v, int h) {
        const floats g = gained(v);
        const values read = xs[v];
        if (h >= 0) held[h] = g;
        if (h >= 0) held_x[h] = read;
        for (int i = 0; i < W; i++) along += g.at[i] * hkc_float(read.at[i]);
    });
    const float r = rstd[at.row], back = row_sum<WIDE>(along) * r * r * share;
    each_vector<HELD>(at, n / W, [&](int64_t v, int h) {
        const floats g = h >= 0 ? held[h] : gained(v);
        const values read = h >= 0 ? held_x[h] : xs[v];
        values out;
        for (int i = 0; i < W; i++) out.at[i] = (T)0;
        if (add) out = to[v];
        for (int i = 0; i < W; i++) {
            const float d = r * (g.at[i] - hkc_float(read.at[i]) * back);
            out.at[i] = (T)(hkc_float(out.at[i]) + d);
        }
        to[v] = out;
    });
}

// dgain: parts of the rows, then all of them.
constexpr int COLUMNS = 32, LINES = 8, PART_ROWS = 64, PARTS_MAX = 256;

// parts[p, j]: the sum over the rows of part p. A thread takes every eighth row of a column.
template <class T>
__global__ void __launch_bounds__(COLUMNS *LINES)
    rmsnorm_gain_parts(float *parts, const T *dy, const T *x, const float *rstd, int64_t m,
                       int64_t n, int64_t part_rows) {
    HKC_SHARED(shared);
    float(*sums)[COLUMNS] = (float(*)[COLUMNS])shared;
    const int64_t j = (int64_t)blockIdx.x * COLUMNS + threadIdx.x;
    const int64_t begin = (int64_t)blockIdx.y * part_rows;
    int64_t end = begin + part_rows;
#if HKC_FAULT != 3 // asan: the last part goes on beyond the last row.
    if (end > m) end = m;
#endif
    float sum = 0;
    for (int64_t i = begin + threadIdx.y; i < end && j < n; i += LINES) {
        sum += hkc_float(dy[i * n + j]) * (hkc_float(x[i * n + j]) * rstd[i]);
    }
    sums[threadIdx.y][threadIdx.x] = sum;
#if HKC_FAULT != 1 // race: sums are read before the other threads have written them.
    __syncthreads();
#endif
    if (threadIdx.y != 0 || j >= n) return;
    for (int line = 1; line < LINES; line++) sum += sums[line][threadIdx.x];
    parts[blockIdx.y * n + j] = sum;
}

__global__ void __launch_bounds__(WIDE_THREADS)
    rmsnorm_gain(float *dgain, const float *parts, int64_t count, int64_t n, bool add) {
    const int64_t j = (int64_t)blockIdx.x * WIDE_THREADS + threadIdx.x;
    if (j >= n) return;
    float sum = 0;
#if HKC_FAULT == 2 // plain: the last part is left out.
    count--;
#endif
    for (int64_t p = 0; p < count; p++) sum += parts[p * n + j];
    dgain[j] = (add ? dgain[j] : 0) + sum;
}

// Whether rows of n values can be read as vectors of four: NULL counts as a multiple of anything.
bool as_vectors(int64_t n, const void *a, const void *b, const void *c, const void *d) {
    return n % 4 == 0 && (((uintptr_t)a | (uintptr_t)b | (uintptr_t)c | (uintptr_t)d) % 16) == 0;
}

unsigned blocks(int64_t count, int64_t per_block) {
    return (unsigned)((count + per_block - 1) / per_block);
}

template <int W>
void launch_forward(hkc_lane *lane, float *y, float *rstd, const float *x, const float *gain,
                    int64_t m, int64_t n, float eps) {
    if (n > NARROW) {
        hkc_launch(lane, (rmsnorm<float, W, true>), (unsigned)m, WIDE_THREADS, 32 * sizeof(float),
                   y, rstd, x, gain, m, n, 1 / (float)n, eps);
    } else {
        hkc_launch(lane, (rmsnorm<float, W, false>), blocks(m, NARROW_THREADS / 32), NARROW_THREADS,
                   0, y, rstd, x, gain, m, n, 1 / (float)n, eps);
    }
}

template <int W>
void launch_grad(hkc_lane *lane, float *dx, const float *dy, const float *x, const float *rstd,
                 const float *gain, int64_t m, int64_t n, bool add) {
    if (n > NARROW) {
        hkc_launch(lane, (rmsnorm_grad<float, W, true>), (unsigned)m, WIDE_THREADS,
                   32 * sizeof(float), dx, dy, x, rstd, gain, m, n, 1 / (float)n, add);
    } else {
        hkc_launch(lane, (rmsnorm_grad<float, W, false>), blocks(m, NARROW_THREADS / 32),
                   NARROW_THREADS, 0, dx, dy, x, rstd, gain, m, n, 1 / (float)n, add);
    }
}

void launch_gain(hkc_lane *lane, float *dgain, const float *dy, const float *x, const float *rstd,
                 int64_t m, int64_t n, bool add) {
    const int64_t room = HKC_SCRATCH / (int64_t)sizeof(float) / (n > 0 ? n : 1);
    const int64_t parts_max = room < PARTS_MAX ? room : PARTS_MAX;
    assert(parts_max > 0);
    int64_t part_rows = PART_ROWS;
    while (blocks(m, part_rows) > parts_max) part_rows *= 2;
    const unsigned parts = blocks(m, part_rows);
    hkc_launch(lane, rmsnorm_gain_parts<float>, dim3(blocks(n, COLUMNS), parts),
               dim3(COLUMNS, LINES), COLUMNS * LINES * sizeof(float), (float *)lane->scratch, dy, x,
               rstd, m, n, part_rows);
    hkc_launch(lane, rmsnorm_gain, blocks(n, WIDE_THREADS), WIDE_THREADS, 0, dgain,
               (const float *)lane->scratch, (int64_t)parts, n, add);
}

} // namespace

void hkc_rmsnorm_f32(hkc_lane *lane, float *y, float *rstd, const float *x, const float *gain,
                     int64_t m, int64_t n, double eps) {
    if (as_vectors(n, y, x, gain, NULL)) {
        launch_forward<4>(lane, y, rstd, x, gain, m, n, (float)eps);
    } else {
        launch_forward<1>(lane, y, rstd, x, gain, m, n, (float)eps);
    }
}

void hkc_rmsnorm_grad_f32(hkc_lane *lane, float *dx, float *dgain, const float *dy, const float *x,
                          const float *rstd, const float *gain, int64_t m, int64_t n,
                          hk_write dx_write, hk_write dgain_write) {
    if (as_vectors(n, dx, dy, x, gain)) {
        launch_grad<4>(lane, dx, dy, x, rstd, gain, m, n, dx_write == HK_ADD);
    } else {
        launch_grad<1>(lane, dx, dy, x, rstd, gain, m, n, dx_write == HK_ADD);
    }
    if (dgain) launch_gain(lane, dgain, dy, x, rstd, m, n, dgain_write == HK_ADD);
}
