// CUDA twin of copy_rows: a row is a warp's, which copies it in vectors of 16 bytes where both sides lie so. Rows with
// weights do not, as each weight moves the next row. Bytes moved: twice the rows, and 8 a row for numbers.
#include "kernels/copy_rows/copy_rows_cuda.h"

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
    copy_rows(hk_rows to, hk_rows from, int count, int width, int gate) {
    const int lane = (int)threadIdx.x % 32;
    const int i = (int)(blockIdx.x * WARPS + threadIdx.x / 32);
#if HKC_FAULT == 1 // plain: the row behind the last one is copied, too.
    if (i > count) return;
#else
    if (i >= count) return;
#endif
    const int there = number_of(to.at, i), here = number_of(from.at, i);
    T *row = (T *)(to.rows + there / to.share * (int64_t)to.stride);
#if HKC_FAULT == 2 // plain: a token's rows are taken for its picks.
    const T *source = (const T *)(from.rows + here * (int64_t)from.stride);
#else
    const T *source = (const T *)(from.rows + here / from.share * (int64_t)from.stride);
#endif
    for (int v = lane; v < width; v += 32) row[v] = source[v];
#if HKC_FAULT != 3 // race: all lanes write the weight.
    if (lane != 0) return;
#endif
    char *weight = to.gates + there * (int64_t)to.gate_stride;
    const char *given = from.gates + here * (int64_t)from.gate_stride;
    if (gate == 4) *(float *)weight = *(const float *)given;
    if (gate == 2) *(uint16_t *)weight = *(const uint16_t *)given;
}

bool lies_well(const hk_rows *side) {
    return (uintptr_t)side->rows % 16 == 0 && side->stride % 16 == 0;
}

} // namespace

void hkc_copy_rows(hkc_lane *lane, const hk_rows *to, const hk_rows *from, int64_t count,
                   size_t row, size_t element) {
    assert(element == 2 || element == 4);
    const int gate = to->gates && from->gates ? (int)element : 0;
    const unsigned blocks = blocks_of(count, WARPS);
    assert(count <= INT32_MAX);
    if (count == 0) return;
    if (row % 16 == 0 && lies_well(to) && lies_well(from)) {
        hkc_launch(lane, copy_rows<uint4>, blocks, WARPS * 32, 0, *to, *from, (int)count,
                   (int)(row / 16), gate);
    } else if (element == 4) {
        hkc_launch(lane, copy_rows<uint32_t>, blocks, WARPS * 32, 0, *to, *from, (int)count,
                   (int)(row / 4), gate);
    } else {
        hkc_launch(lane, copy_rows<uint16_t>, blocks, WARPS * 32, 0, *to, *from, (int)count,
                   (int)(row / 2), gate);
    }
}
