// CUDA twin of add. Bytes moved: 12 an element.
#include "kernels/add/add.h"

#include "kernels/cuda/loop.h"

namespace {

__global__ void add(float *sum, const float *term, int64_t count) {
    HKC_FOR(i, count) sum[i] += term[i];
}

__global__ void add_vectors(float4 *sum, const float4 *term, int64_t count) {
    HKC_FOR(i, count) {
        const float4 a = sum[i], b = term[i];
        sum[i] = make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
    }
}

} // namespace

extern "C" void hkc_add_f32(struct hkc_lane *lane, float *sum, const float *term, int64_t count) {
    if (((uintptr_t)sum | (uintptr_t)term) % 16 == 0 && count % 4 == 0) {
        hkc_launch_loop(lane, add_vectors, count / 4, (float4 *)sum, (const float4 *)term,
                        count / 4);
    } else {
        hkc_launch_loop(lane, add, count, sum, term, count);
    }
}
