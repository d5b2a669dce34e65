// CUDA twin of noise: see factors_device.h.
//
// Bytes moved: 4 an element, written. About 100 instructions a thread and 12 in double: 60 to 80 % of the bandwidth of
// writes where doubles run at half of the rate of floats.
#include "kernels/noise/noise.h"

#include "kernels/noise/factors_device.h"

namespace {

struct uniform {
    static constexpr uint32_t purpose = 0x6A697474; // "jitt", as on the CPU.
    double amount;

    __device__ float of(uint32_t word) const {
        const double u = ((double)word + 0.5) * 0x1p-31 - 1;
        return (float)(1 + amount * u);
    }
};

} // namespace

extern "C" void hkc_noise_f32(struct hkc_lane *lane, float *y, struct hk_noise noise, int64_t layer,
                              int64_t sequences, int64_t tokens, int64_t width, double amount) {
    launch_factors(lane, y, noise, layer, sequences, tokens, width, uniform{amount});
}
