// CUDA twin of spread. How many rows there are is known to the device only: as many blocks as it has room for walk
// over them. Bytes moved: 4 for a float, 8 where it is added to; of bf16 half of that.
// Differences from the contract: rows of an expert are summed in an order that depends on their number.
#include "kernels/spread/spread.h"

#include "kernels/cuda/rows.h"

namespace {

using namespace hkc;

// The expert of a row: the last one that begins at it or before.
HKC_DEVICE int64_t expert_of(const int32_t *first, int64_t experts, int64_t row) {
    int64_t low = 0, high = experts;
    while (high - low > 1) {
        const int64_t middle = (low + high) / 2;
        if (first[middle] <= row) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

template <class T>
__global__ void __launch_bounds__(WIDE_THREADS)
    spread(T *y, const float *const *chunk, int64_t offset, const int32_t *first, int64_t experts,
           int64_t n, bool add) {
    for (int64_t row = blockIdx.x; row < first[experts]; row += gridDim.x) {
        const float *from = chunk[expert_of(first, experts, row)] + offset;
        T *to = y + row * n;
        for (int64_t j = threadIdx.x; j < n; j += WIDE_THREADS)
            to[j] = (T)((add ? hkc_float(to[j]) : 0) + from[j]);
    }
}

// A block: COLUMNS columns of one expert; a thread takes every eighth row.
template <class T>
__global__ void __launch_bounds__(COLUMNS *LINES)
    spread_grad(float *const *chunk, int64_t offset, const T *dy, const int32_t *first, int64_t n,
                bool add) {
    HKC_SHARED(shared);
    float(*sums)[COLUMNS] = (float(*)[COLUMNS])shared;
    const int64_t j = (int64_t)blockIdx.x * COLUMNS + threadIdx.x, expert = blockIdx.y;
    const int64_t end = first[expert + 1];
    float sum = 0;
    for (int64_t i = first[expert] + threadIdx.y; i < end && j < n; i += LINES)
        sum += hkc_float(dy[i * n + j]);
    sums[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y != 0 || j >= n) return;
    for (int line = 1; line < LINES; line++) sum += sums[line][threadIdx.x];
    float *to = chunk[expert] + offset;
    to[j] = (add ? to[j] : 0) + sum;
}

constexpr int BLOCKS_OF_MULTIPROCESSOR = 8;

template <class T>
void forward(hkc_lane *lane, T *y, const float *const *chunk, int64_t offset, const int32_t *first,
             int64_t experts, int64_t n, bool add) {
    const unsigned blocks = (unsigned)(lane->multiprocessors * BLOCKS_OF_MULTIPROCESSOR);
    hkc_launch(lane, spread<T>, blocks, WIDE_THREADS, 0, y, chunk, offset, first, experts, n, add);
}

template <class T>
void backward(hkc_lane *lane, float *const *chunk, int64_t offset, const T *dy,
              const int32_t *first, int64_t experts, int64_t n, bool add) {
    hkc_launch(lane, spread_grad<T>, dim3(blocks_of(n, COLUMNS), (unsigned)experts),
               dim3(COLUMNS, LINES), COLUMNS * LINES * sizeof(float), chunk, offset, dy, first, n,
               add);
}

} // namespace

extern "C" void hkc_spread_f32(struct hkc_lane *lane, float *y, const float *const *chunk,
                               int64_t offset, const int32_t *first, int64_t experts, int64_t n,
                               enum hk_write write) {
    forward(lane, y, chunk, offset, first, experts, n, write == HK_ADD);
}

extern "C" void hkc_spread_bf16(struct hkc_lane *lane, hk_bf16 *y, const float *const *chunk,
                                int64_t offset, const int32_t *first, int64_t experts, int64_t n,
                                enum hk_write write) {
    forward(lane, hkc_values(y), chunk, offset, first, experts, n, write == HK_ADD);
}

extern "C" void hkc_spread_grad_f32(struct hkc_lane *lane, float *const *chunk, int64_t offset,
                                    const float *dy, const int32_t *first, int64_t experts,
                                    int64_t n, enum hk_write write) {
    backward(lane, chunk, offset, dy, first, experts, n, write == HK_ADD);
}

extern "C" void hkc_spread_grad_bf16(struct hkc_lane *lane, float *const *chunk, int64_t offset,
                                     const hk_bf16 *dy, const int32_t *first, int64_t experts,
                                     int64_t n, enum hk_write write) {
    backward(lane, chunk, offset, hkc_values(dy), first, experts, n, write == HK_ADD);
}
