// CUDA twin of sum. Bytes moved: 4 for a float, 2 for a bf16; columns of narrow matrices leave part of the device idle.
// Differences from the contract: sums of columns run in an order that depends on m and n.
#include "kernels/sum/sum.h"

#include "kernels/cuda/rows.h"

namespace {

using namespace hkc;

// y[i] (+)= sum over the row.
template <class T, int W, bool WIDE>
__global__ void __launch_bounds__(WIDE ? WIDE_THREADS : NARROW_THREADS)
    sum_columns(float *y, const T *x, int64_t m, int64_t n, bool add) {
    typedef hkc_vector<T, W> values;
    HKC_SHARED(shared);
    const place at = place_of_thread<WIDE>();
    if (at.row >= m) return;
    const values *from = (const values *)(x + at.row * n);
    float sum = 0;
    each_vector<4>(at, n / W, [&](int64_t v, int) {
        const values read = from[v];
        for (int i = 0; i < W; i++) sum += hkc_float(read.at[i]);
    });
    sum = row_sum<WIDE>(sum, (float *)shared);
    if (at.first == 0) y[at.row] = (add ? y[at.row] : 0) + sum;
}

template <class T, int W, bool WIDE>
void launch(hkc_lane *lane, float *y, const T *x, int64_t m, int64_t n, bool add) {
    hkc_launch(lane, (sum_columns<T, W, WIDE>), row_blocks(m, WIDE), row_threads(WIDE),
               32 * sizeof(float), y, x, m, n, add);
}

template <class T>
void sums_of_rows(hkc_lane *lane, float *y, const T *x, int64_t m, int64_t n, bool add) {
    constexpr int W = VECTOR<T>;
    const bool wide = n > NARROW;
    const auto launch_it = as_vectors<W>(n, x) ? (wide ? launch<T, W, true> : launch<T, W, false>)
                                               : (wide ? launch<T, 1, true> : launch<T, 1, false>);
    launch_it(lane, y, x, m, n, add);
}

template <class T>
void sums_of_columns(hkc_lane *lane, float *y, const T *x, int64_t m, int64_t n, bool add) {
    column_sums(lane, y, elements<T>{x, n}, m, n, add, x);
}

} // namespace

extern "C" void hkc_sum_rows_f32(struct hkc_lane *lane, float *y, const float *x, int64_t m,
                                 int64_t n, enum hk_write write) {
    sums_of_columns(lane, y, x, m, n, write == HK_ADD);
}

extern "C" void hkc_sum_rows_bf16(struct hkc_lane *lane, float *y, const hk_bf16 *x, int64_t m,
                                  int64_t n, enum hk_write write) {
    sums_of_columns(lane, y, hkc_values(x), m, n, write == HK_ADD);
}

extern "C" void hkc_sum_columns_f32(struct hkc_lane *lane, float *y, const float *x, int64_t m,
                                    int64_t n, enum hk_write write) {
    sums_of_rows(lane, y, x, m, n, write == HK_ADD);
}

extern "C" void hkc_sum_columns_bf16(struct hkc_lane *lane, float *y, const hk_bf16 *x, int64_t m,
                                     int64_t n, enum hk_write write) {
    sums_of_rows(lane, y, hkc_values(x), m, n, write == HK_ADD);
}
