// CUDA twin of dropout: see factors_device.h.
//
// Bytes moved: 4 an element, written. About 100 instructions a thread: counted, 59 (sm_100) to 100 % (sm_80) of the
// bandwidth of copies.
#include "kernels/dropout/dropout.h"

#include "kernels/noise/factors_device.h"

namespace {

struct mask {
    static constexpr uint32_t purpose = 0x64726F70; // "drop", as on the CPU.
    uint64_t dropped;                               // Out of 2^32 words.
    float kept;

    __device__ float of(uint32_t word) const {
        return word < dropped ? 0 : kept;
    }
};

} // namespace

extern "C" void hkc_dropout_f32(struct hkc_lane *lane, float *y, struct hk_noise noise,
                                int64_t layer, int64_t sequences, int64_t tokens, int64_t width,
                                double rate) {
    launch_factors(lane, y, noise, layer, sequences, tokens, width,
                   mask{(uint64_t)(rate * 0x1p32), (float)(1 / (1 - rate))});
}
