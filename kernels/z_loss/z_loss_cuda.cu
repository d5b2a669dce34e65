// CUDA twin of z_loss: a warp for each token. Tokens are dealt to a number of warps that depends on sizes only; each
// sums its own in double, and one block sums the warps.
//
// Bytes moved: 4 a token and expert, for the gradient 8, 12 where it adds; rows are read twice, the second time from the
// first-level cache. For 128 experts about 20 instructions an element: 60 % of the copy bandwidth expected.
#include "kernels/z_loss/z_loss.h"

#include "kernels/cuda/device.h"
#include "kernels/scalar.h"

namespace {

constexpr int WARP = 32, WARPS = 4, WARPS_MAX = 4096, SUM_BLOCK = 256;

// log(sum of exp(row)), for all lanes.
HKC_DEVICE float log_sum_exp(const float *row, int experts, int lane) {
    float peak = -INFINITY, sum = 0;
    for (int e = lane; e < experts; e += WARP) peak = row[e] > peak ? row[e] : peak;
    peak = warp_max(peak);
    for (int e = lane; e < experts; e += WARP) sum += hk_exp_f32(row[e] - peak);
    return peak + logf(warp_sum(sum));
}

__global__ void __launch_bounds__(WARPS *WARP)
    sum_squares(double *partial, const float *logits, int64_t tokens, int experts, int warps) {
    const int lane = threadIdx.x % WARP, warp = blockIdx.x * WARPS + threadIdx.x / WARP;
    double sum = 0;
    if (warp >= warps) return;
    for (int64_t t = warp; t < tokens; t += warps) {
        const double lse = log_sum_exp(logits + t * experts, experts, lane);
        sum += lse * lse;
    }
    if (lane == 0) partial[warp] = sum;
}

__global__ void __launch_bounds__(SUM_BLOCK)
    sum_partial(float *loss, const double *partial, int warps, double factor) {
    HKC_SHARED(memory);
    double sum = 0;
    for (int w = threadIdx.x; w < warps; w += SUM_BLOCK) sum += partial[w];
    sum = block_sum(sum, (double *)memory);
    if (threadIdx.x == 0) loss[0] = (float)(factor * sum);
}

__global__ void __launch_bounds__(WARPS *WARP)
    z_loss_grad(float *dlogits, const float *dloss, const float *logits, int64_t tokens,
                int experts, double coef, enum hk_write write) {
    const int lane = threadIdx.x % WARP;
    const int64_t t = (int64_t)blockIdx.x * WARPS + threadIdx.x / WARP;
    if (t >= tokens) return;
    const float *row = logits + t * experts;
    float *to = dlogits + t * experts;
    const float lse = log_sum_exp(row, experts, lane);
    const float c = (float)(2 * coef * (double)dloss[0] / (double)tokens * (double)lse);
    for (int e = lane; e < experts; e += WARP) {
        to[e] = (write == HK_ADD ? to[e] : 0) + c * hk_exp_f32(row[e] - lse);
    }
}

unsigned blocks_of(int64_t warps) {
    return (unsigned)((warps + WARPS - 1) / WARPS);
}

} // namespace

extern "C" void hkc_z_loss_f32(struct hkc_lane *lane, float *loss, const float *logits,
                               int64_t tokens, int64_t experts, double coef) {
    const int warps = tokens < WARPS_MAX ? (int)tokens : WARPS_MAX;
    double *partial = (double *)lane->scratch;
    hkc_launch(lane, sum_squares, blocks_of(warps), WARPS * WARP, 0, partial, logits, tokens,
               (int)experts, warps);
    hkc_launch(lane, sum_partial, 1, SUM_BLOCK, WARP * sizeof(double), loss, partial, warps,
               tokens > 0 ? coef / (double)tokens : 0.0);
}

extern "C" void hkc_z_loss_grad_f32(struct hkc_lane *lane, float *dlogits, const float *dloss,
                                    const float *logits, int64_t tokens, int64_t experts,
                                    double coef, enum hk_write write) {
    hkc_launch(lane, z_loss_grad, blocks_of(tokens), WARPS * WARP, 0, dlogits, dloss, logits,
               tokens, (int)experts, coef, write);
}
