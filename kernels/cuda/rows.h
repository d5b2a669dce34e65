// rows: shared by kernels that go over the rows of a matrix. A row of up to NARROW values belongs to a warp, a
// wider one to a block; values are read in vectors of 16 bytes where they lie so.
#ifndef HECATE_KERNELS_CUDA_ROWS_H
#define HECATE_KERNELS_CUDA_ROWS_H

#include "kernels/cuda/device.h"

namespace hkc {

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

// Over the threads of a row; all of them get it. In a block, `shared` has a number for each warp.
template <bool WIDE, class T> HKC_DEVICE T row_sum(T value, T *shared) {
    return WIDE ? block_sum(value, shared) : warp_sum(value);
}
template <bool WIDE, class T> HKC_DEVICE T row_max(T value, T *shared) {
    return WIDE ? block_max(value, shared) : warp_max(value);
}

// Calls body(vector, index) for the thread's vectors. The indices of the first HELD ones are compile-time constants, so
// that arrays indexed by them stay in registers; the index of all others is -1.
template <int HELD, class F> HKC_DEVICE void each_vector(const place &at, int64_t vectors, F body) {
#pragma unroll
    for (int h = 0; h < HELD; h++) {
        const int64_t v = at.first + (int64_t)h * at.threads;
        if (v < vectors) body(v, h);
    }
    for (int64_t v = at.first + (int64_t)HELD * at.threads; v < vectors; v += at.threads)
        body(v, -1);
}

// Blocks of `each` for `count`.
inline unsigned blocks_of(int64_t count, int64_t each) {
    return (unsigned)((count + each - 1) / each);
}

inline unsigned row_blocks(int64_t rows, bool wide) {
    return wide ? (unsigned)rows : blocks_of(rows, NARROW_THREADS / 32);
}

inline unsigned row_threads(bool wide) {
    return wide ? WIDE_THREADS : NARROW_THREADS;
}

// Values of type T in 16 bytes.
template <class T> constexpr int VECTOR = 16 / (int)sizeof(T);

// Whether rows of n values can be read as vectors of W, all of them in steps of up to 16 bytes. NULL lies well.
template <int W = 4, class... P> bool as_vectors(int64_t n, const P *...pointers) {
    uintptr_t all = 0;
    for (const void *pointer : {(const void *)pointers...}) all |= (uintptr_t)pointer;
    return n % W == 0 && all % 16 == 0;
}

// ---- sums of columns, in an order that depends on the sizes only

constexpr int COLUMNS = 32, LINES = 8, PART_ROWS = 64, PARTS_MAX = 256;

// Columns that a thread sums where rows lie so: 4 bytes of each row.
template <class T> constexpr int NEIGHBOURS = 4 / (int)sizeof(T);

// Vector j of row i of a matrix of n columns.
template <int W, class T>
HKC_DEVICE hkc_vector<float, W> vector_at(const T *x, int64_t n, int64_t i, int64_t j) {
    return hkc_floats(((const hkc_vector<T, W> *)(x + i * n))[j]);
}

// A matrix whose elements are summed.
template <class T> struct elements {
    const T *x;
    int64_t n;
    template <int W> HKC_DEVICE hkc_vector<float, W> at(int64_t i, int64_t j) const {
        return vector_at<W>(x, n, i, j);
    }
};

// parts[p, j]: the sum over the rows of part p of value.at(i, j), a vector of W columns. A thread takes every eighth
// row.
template <int W, class F>
__global__ void __launch_bounds__(COLUMNS *LINES)
    column_parts(float *parts, F value, int64_t m, int64_t vectors, int64_t part_rows) {
    typedef hkc_vector<float, W> floats;
    HKC_SHARED(shared);
    floats(*sums)[COLUMNS] = (floats(*)[COLUMNS])shared;
    const int64_t j = (int64_t)blockIdx.x * COLUMNS + threadIdx.x;
    const int64_t begin = (int64_t)blockIdx.y * part_rows;
    const int64_t end = begin + part_rows < m ? begin + part_rows : m;
    floats sum = {};
    const int64_t rows_end = end;
    for (int64_t i = begin + threadIdx.y; i < rows_end && j < vectors; i += LINES) {
        const floats read = value.template at<W>(i, j);
        for (int k = 0; k < W; k++) sum.at[k] += read.at[k];
    }
    sums[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y != 0 || j >= vectors) return;
    for (int line = 1; line < LINES; line++) {
        for (int k = 0; k < W; k++) sum.at[k] += sums[line][threadIdx.x].at[k];
    }
    ((floats *)parts)[blockIdx.y * vectors + j] = sum;
}

template <class T>
__global__ void __launch_bounds__(WIDE_THREADS)
    column_totals(T *to, const float *parts, int64_t count, int64_t n, bool add) {
    const int64_t j = (int64_t)blockIdx.x * WIDE_THREADS + threadIdx.x;
    if (j >= n) return;
    float sum = 0;
    for (int64_t p = 0; p < count; p++) sum += parts[p * n + j];
    to[j] = (add ? to[j] : 0) + sum;
}

// As below, in vectors of W columns.
template <int W, class F>
void launch_column_sums(hkc_lane *lane, float *to, F value, int64_t m, int64_t n, bool add) {
    const int64_t room = HKC_SCRATCH / (int64_t)sizeof(float) / (n > 0 ? n : 1);
    const int64_t parts_max = room < PARTS_MAX ? room : PARTS_MAX;
    assert(parts_max > 0);
    int64_t part_rows = PART_ROWS;
    while (blocks_of(m, part_rows) > parts_max) part_rows *= 2;
    const unsigned parts = blocks_of(m, part_rows);
    hkc_launch(lane, (column_parts<W, F>), dim3(blocks_of(n / W, COLUMNS), parts),
               dim3(COLUMNS, LINES), COLUMNS * LINES * W * sizeof(float), (float *)lane->scratch,
               value, m, n / W, part_rows);
    hkc_launch(lane, column_totals<float>, blocks_of(n, WIDE_THREADS), WIDE_THREADS, 0, to,
               (const float *)lane->scratch, (int64_t)parts, n, add);
}

// to[j] (+)= sum over i of value.at(i, j), which is copied to the device and reads `first` and `others`, matrices of n
// columns. Takes the lane's scratch.
template <class F, class T, class... P>
void column_sums(hkc_lane *lane, float *to, F value, int64_t m, int64_t n, bool add, const T *first,
                 const P *...others) {
    constexpr int W = NEIGHBOURS<T>;
    if (as_vectors<W>(n, first, others...)) {
        launch_column_sums<W>(lane, to, value, m, n, add);
    } else {
        launch_column_sums<1>(lane, to, value, m, n, add);
    }
}

} // namespace hkc

#endif
