// CUDA twin of aux_loss: a few numbers of each sequence, by one block. Its time is a launch and the latency of
// a pass.
#include "kernels/aux_loss/aux_loss.h"

#include "kernels/cuda/device.h"

namespace {

constexpr int WARP = 32, BLOCK = 512, GRAD_BLOCK = 256;

__global__ void __launch_bounds__(BLOCK)
    aux_loss(float *loss, const float *means, const float *fractions, int64_t count,
             double factor) {
    HKC_SHARED(memory);
    double sum = 0;
    for (int64_t i = threadIdx.x; i < count; i += BLOCK) {
        sum += (double)means[i] * (double)fractions[i];
    }
    sum = block_sum(sum, (double *)memory);
    if (threadIdx.x == 0) loss[0] = (float)(factor * sum);
}

__global__ void __launch_bounds__(GRAD_BLOCK)
    aux_loss_grad(float *dmeans, const float *dloss, const float *fractions, int64_t count,
                  double factor) {
    const int64_t i = (int64_t)blockIdx.x * GRAD_BLOCK + threadIdx.x;
    if (i < count) dmeans[i] = (float)((double)dloss[0] * factor * (double)fractions[i]);
}

// The factor of the sum over sequences and experts.
double factor_of(int64_t sequences, int64_t experts, double coef) {
    return sequences > 0 ? coef * (double)experts / (double)sequences : 0;
}

} // namespace

extern "C" void hkc_aux_loss_f32(struct hkc_lane *lane, float *loss, const float *means,
                                 const float *fractions, int64_t sequences, int64_t experts,
                                 double coef) {
    hkc_launch(lane, aux_loss, 1, BLOCK, WARP * sizeof(double), loss, means, fractions,
               sequences * experts, factor_of(sequences, experts, coef));
}

extern "C" void hkc_aux_loss_grad_f32(struct hkc_lane *lane, float *dmeans, const float *dloss,
                                      const float *fractions, int64_t sequences, int64_t experts,
                                      double coef) {
    const int64_t count = sequences * experts;
    hkc_launch(lane, aux_loss_grad, (unsigned)((count + GRAD_BLOCK - 1) / GRAD_BLOCK), GRAD_BLOCK,
               0, dmeans, dloss, fractions, count, factor_of(sequences, experts, coef));
}
