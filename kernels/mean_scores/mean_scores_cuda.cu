// CUDA twin of mean_scores: a sequence is cut into parts, each summed by one block, a column by a thread; a second kernel
// sums the parts.
//
// Bytes moved: 4 a token and expert, for the gradient 8; rows that are divided by their sums are read twice, the second
// time from the caches. Loads of a column wait for nothing, eight are under way: 60 % of the copy bandwidth expected.
#include "kernels/mean_scores/mean_scores.h"

#include "kernels/cuda/device.h"

namespace {

constexpr int WARP = 32, BLOCK = 256, WARPS = 4;
constexpr int PART_MIN = 32, PARTS_MAX = 128, CHUNK = 16;

struct means {
    int64_t tokens;           // In a sequence.
    int experts, parts, part; // part: tokens of a part.
};

HKC_DEVICE float row_sum(const float *row, int experts, int lane) {
    float sum = 0;
    for (int e = lane; e < experts; e += WARP) sum += row[e];
    return warp_sum(sum);
}

// The factor of each of the rows: 1 / (its sum + floor).
HKC_DEVICE void find_factors(double *factor, const float *scores, int rows, int experts) {
    const int lane = threadIdx.x % WARP;
    for (int t = threadIdx.x / WARP; t < rows; t += blockDim.x / WARP) {
        const float sum = row_sum(scores + (int64_t)t * experts, experts, lane);
        if (lane == 0) factor[t] = 1 / ((double)sum + HK_SCORES_FLOOR);
    }
}

// sums[sequence][part][expert], of the sequence blockIdx.y.
__global__ void __launch_bounds__(BLOCK)
    sum_parts(double *sums, const float *scores, struct means x, enum hk_score score) {
    HKC_SHARED(memory);
    double *factor = (double *)memory;
    const int64_t begin = (int64_t)blockIdx.x * x.part;
    const int64_t end = min(x.tokens, begin + x.part);
    const float *from = scores + (int64_t)blockIdx.y * x.tokens * x.experts;
    double *to = sums + ((int64_t)blockIdx.y * x.parts + blockIdx.x) * x.experts;
    for (int e = threadIdx.x; e < x.experts; e += blockDim.x) to[e] = 0;
    const int64_t chunk_rows = score == HK_SOFTMAX ? x.part : CHUNK;
    const double more = HK_SCORES_FLOOR / x.experts;
    for (int64_t t = begin; t < end; t += chunk_rows) {
        const int rows = (int)min(chunk_rows, end - t);
        const float *chunk = from + t * x.experts;
        if (score != HK_SOFTMAX) {
            __syncthreads();
            find_factors(factor, chunk, rows, x.experts);
            __syncthreads();
        }
        for (int e = threadIdx.x; e < x.experts; e += blockDim.x) {
            double sum = to[e];
#pragma unroll 8
            for (int i = 0; i < rows; i++) {
                const double value = chunk[(int64_t)i * x.experts + e];
                sum += score == HK_SOFTMAX ? value : factor[i] * (value + more);
            }
            to[e] = sum;
        }
    }
}

__global__ void __launch_bounds__(BLOCK)
    mean_parts(float *means, const double *sums, struct means x, int64_t count) {
    const int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (i >= count) return;
    const double *from = sums + i / x.experts * x.parts * x.experts + i % x.experts;
    double sum = 0;
    for (int p = 0; p < x.parts; p++) sum += from[(int64_t)p * x.experts];
    means[i] = x.tokens > 0 ? (float)(sum / (double)x.tokens) : 0;
}

// p = (s + more) / whole: the gradient of s is (d - mean of d weighted by p) / whole.
__global__ void __launch_bounds__(WARPS *WARP)
    mean_scores_grad(float *dscores, const float *dmeans, const float *scores, int64_t rows,
                     int64_t tokens, int experts, enum hk_score score) {
    const int lane = threadIdx.x % WARP;
    const int64_t t = (int64_t)blockIdx.x * WARPS + threadIdx.x / WARP;
    if (t >= rows) return;
    const float *d = dmeans + t / tokens * experts, *from = scores + t * experts;
    float mean = 0, whole = 1;
    if (score != HK_SOFTMAX) {
        const float floor = (float)HK_SCORES_FLOOR, more = floor / (float)experts;
        whole = row_sum(from, experts, lane) + floor;
        for (int e = lane; e < experts; e += WARP) mean += d[e] * from[e];
        mean = warp_sum(mean) / whole + row_sum(d, experts, lane) * (more / whole);
    }
    const float c = (float)(1 / ((double)whole * (double)tokens));
    for (int e = lane; e < experts; e += WARP) dscores[t * experts + e] = c * (d[e] - mean);
}

} // namespace

// Sequences are done as many at a time as the lane's scratch has room for their parts.
extern "C" void hkc_mean_scores_f32(struct hkc_lane *lane, float *means, const float *scores,
                                    int64_t sequences, int64_t tokens, int64_t experts,
                                    enum hk_score score) {
    if (experts == 0) return;
    assert(experts <= HK_EXPERTS_MAX);
    const int64_t least = (tokens + PARTS_MAX - 1) / PARTS_MAX;
    const int part = least < PART_MIN ? PART_MIN : (int)least;
    const int parts = (int)((tokens + part - 1) / part);
    const struct means x = {tokens, (int)experts, parts, part};
    const int64_t room = HKC_SCRATCH / (int64_t)sizeof(double) / (PARTS_MAX * experts);
    const int threads = experts < BLOCK ? (int)(experts + WARP - 1) / WARP * WARP : BLOCK;
    double *sums = (double *)lane->scratch;
    for (int64_t s = 0; s < sequences; s += room) {
        const int64_t here = sequences - s < room ? sequences - s : room, count = here * experts;
        hkc_launch(lane, sum_parts, dim3((unsigned)parts, (unsigned)here), threads,
                   CHUNK * sizeof(double), sums, scores + s * tokens * experts, x, score);
        hkc_launch(lane, mean_parts, (unsigned)((count + BLOCK - 1) / BLOCK), BLOCK, 0,
                   means + s * experts, sums, x, count);
    }
}

extern "C" void hkc_mean_scores_grad_f32(struct hkc_lane *lane, float *dscores, const float *dmeans,
                                         const float *scores, int64_t sequences, int64_t tokens,
                                         int64_t experts, enum hk_score score) {
    const int64_t rows = sequences * tokens;
    hkc_launch(lane, mean_scores_grad, (unsigned)((rows + WARPS - 1) / WARPS), WARPS * WARP, 0,
               dscores, dmeans, scores, rows, tokens, (int)experts, score);
}
