// CUDA twin of sum_squares: parts side by side, cut by count alone, then their sum; of many arrays at once. Bytes moved: 4 for
// a value.
// It takes `arrays` of `count` values each, one behind the other, whose sums are stored at sum[0], sum[1], ..., on the
// device: each is what it would be alone.
#include "kernels/sum_squares/sum_squares.h"

#include "kernels/cuda/rows.h"

namespace {

using namespace hkc;

constexpr int PARTS = 512, PART_LEAST = 4096, ARRAYS = 1024; // At once.
static_assert(PARTS * ARRAYS * sizeof(double) <= HKC_SCRATCH, "all parts have a place");

// parts[p] of the values of an array from p * part on. Thread t takes every vector whose number is t, modulo the threads.
template <int W>
__global__ void __launch_bounds__(WIDE_THREADS)
    square_parts(double *parts, const float *x, int64_t count, int64_t part) {
    typedef hkc_vector<float, W> values;
    HKC_SHARED(shared);
    const int64_t begin = blockIdx.x * part;
    const int64_t end = begin + part < count ? begin + part : count;
    const values *from = (const values *)(x + blockIdx.y * count + begin);
    double *own = parts + blockIdx.y * gridDim.x + blockIdx.x;
    double sum = 0;
    for (int64_t v = threadIdx.x; v < (end - begin) / W; v += WIDE_THREADS) {
        const values read = from[v];
        for (int i = 0; i < W; i++) sum += (double)read.at[i] * (double)read.at[i];
    }
    sum = block_sum(sum, (double *)shared);
    if (threadIdx.x == 0) *own = sum;
}

__global__ void __launch_bounds__(WIDE_THREADS)
    add_parts(double *sum, const double *parts, int64_t count) {
    HKC_SHARED(shared);
    const double *from = parts + blockIdx.x * count;
    double own = 0;
    for (int64_t p = threadIdx.x; p < count; p += WIDE_THREADS) own += from[p];
    own = block_sum(own, (double *)shared);
    if (threadIdx.x == 0) sum[blockIdx.x] = own;
}

template <int W>
void launch(hkc_lane *lane, double *sum, const float *x, int64_t count, int64_t part,
            int64_t arrays) {
    const unsigned blocks = blocks_of(count, part);
    const size_t shared = 32 * sizeof(double);
    double *parts = (double *)lane->scratch;
    hkc_launch(lane, square_parts<W>, dim3(blocks, (unsigned)arrays), WIDE_THREADS, shared, parts,
               x, count, part);
    hkc_launch(lane, add_parts, (unsigned)arrays, WIDE_THREADS, shared, sum, (const double *)parts,
               (int64_t)blocks);
}

} // namespace

extern "C" void hkc_sum_squares_f32(struct hkc_lane *lane, double *sum, const float *x,
                                    int64_t count, int64_t arrays) {
    int64_t part = PART_LEAST;
    while (blocks_of(count, part) > PARTS) part *= 2;
    for (int64_t first = 0; first < arrays; first += ARRAYS) {
        const int64_t now = arrays - first < ARRAYS ? arrays - first : ARRAYS;
        if (as_vectors(count, x)) {
            launch<4>(lane, sum + first, x + first * count, count, part, now);
        } else {
            launch<1>(lane, sum + first, x + first * count, count, part, now);
        }
    }
}
