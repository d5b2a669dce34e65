// CUDA twin of sum. Bytes moved: 4 for a value; columns of narrow matrices leave part of the device idle.
#include "kernels/sum/sum_cuda.h"

#include "kernels/cuda/rows.h"

namespace {

using namespace hkc;

// y[i] (+)= sum over the row.
template <int W, bool WIDE>
__global__ void __launch_bounds__(WIDE ? WIDE_THREADS : NARROW_THREADS)
    sum_columns(float *y, const float *x, int64_t m, int64_t n, bool add) {
    typedef hkc_vector<float, W> values;
    HKC_SHARED(shared);
    const place at = place_of_thread<WIDE>();
    if (at.row >= m) return;
    const values *from = (const values *)(x + at.row * n);
    float sum = 0;
    each_vector<4>(at, n / W, [&](int64_t v, int) {
        const values read = from[v];
        for (int i = 0; i < W; i++) sum += read.at[i];
    });
    sum = row_sum<WIDE>(sum, (float *)shared);
    if (at.first == 0) y[at.row] = (add ? y[at.row] : 0) + sum;
}

template <int W, bool WIDE>
void launch(hkc_lane *lane, float *y, const float *x, int64_t m, int64_t n, bool add) {
    hkc_launch(lane, (sum_columns<W, WIDE>), row_blocks(m, WIDE), row_threads(WIDE),
               32 * sizeof(float), y, x, m, n, add);
}

struct element {
    const float *x;
    int64_t n;
    HKC_DEVICE float operator()(int64_t i, int64_t j) const {
        return x[i * n + j];
    }
};

} // namespace

void hkc_sum_rows_f32(hkc_lane *lane, float *y, const float *x, int64_t m, int64_t n,
                      hk_write write) {
    column_sums(lane, y, element{x, n}, m, n, write == HK_ADD);
}

void hkc_sum_columns_f32(hkc_lane *lane, float *y, const float *x, int64_t m, int64_t n,
                         hk_write write) {
    const bool add = write == HK_ADD;
    if (as_vectors(n, x)) {
        n > NARROW ? launch<4, true>(lane, y, x, m, n, add)
                   : launch<4, false>(lane, y, x, m, n, add);
    } else {
        n > NARROW ? launch<1, true>(lane, y, x, m, n, add)
                   : launch<1, false>(lane, y, x, m, n, add);
    }
}
