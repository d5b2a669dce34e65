// CUDA twin of copy_rows: a row is a warp's, which copies it in vectors of 16 bytes where both sides lie so, or of 4.
// Bytes moved: twice the rows, and 8 a row for numbers.
#include "kernels/copy_rows/copy_rows.h"

#include <cassert>

#include "kernels/cuda/rows.h"

namespace {

using namespace hkc;

constexpr int WARPS = 4;

HKC_DEVICE int number_of(const int32_t *at, int i) {
    return at ? at[i] : i;
}

template <class T>
__global__ void __launch_bounds__(WARPS * 32)
    copy_rows(hk_rows to, hk_rows from, int count, int width) {
    const int lane = (int)threadIdx.x % 32;
    const int i = (int)(blockIdx.x * WARPS + threadIdx.x / 32);
    if (i >= count) return;
    const int there = number_of(to.at, i), here = number_of(from.at, i);
    T *row = (T *)(to.rows + there / to.share * (int64_t)to.stride);
    const T *source = (const T *)(from.rows + here / from.share * (int64_t)from.stride);
    for (int v = lane; v < width; v += 32) row[v] = source[v];
    if (lane != 0) return;
    if (!to.gates || !from.gates) return;
    *(float *)(to.gates + there * (int64_t)to.gate_stride) =
        *(const float *)(from.gates + here * (int64_t)from.gate_stride);
}

// Whether all rows are vectors of T at multiples of its size.
template <class T> bool are_of(const hk_rows *to, const hk_rows *from, size_t row) {
    const size_t all = (size_t)to->rows | to->stride | (size_t)from->rows | from->stride | row;
    return all % sizeof(T) == 0;
}

template <class T>
void launch(hkc_lane *lane, const hk_rows *to, const hk_rows *from, int64_t count, size_t row) {
    hkc_launch(lane, copy_rows<T>, blocks_of(count, WARPS), WARPS * 32, 0, *to, *from, (int)count,
               (int)(row / sizeof(T)));
}

} // namespace

// The sides themselves are the host's. Rows are of values of 2 or 4 bytes, a weight has 4.
extern "C" void hkc_copy_rows(struct hkc_lane *lane, const struct hk_rows *to,
                              const struct hk_rows *from, int64_t count, size_t row, size_t gate) {
    assert(gate == sizeof(float) && count <= INT32_MAX);
    if (are_of<uint4>(to, from, row)) {
        launch<uint4>(lane, to, from, count, row);
    } else if (are_of<uint32_t>(to, from, row)) {
        launch<uint32_t>(lane, to, from, count, row);
    } else {
        assert(are_of<uint16_t>(to, from, row));
        launch<uint16_t>(lane, to, from, count, row);
    }
}
