// store: the numbers are an argument of the kernel. One thread, for what is read by index would lie in local memory.
#include "kernels/cuda/store.h"

#include <string.h>

#include "kernels/cuda/device.h"

namespace {

struct few_words {
    int32_t at[HKC_STORE_MOST];
};

__global__ void __launch_bounds__(32) store(int32_t *to, few_words from, int words) {
    if (threadIdx.x > 0) return;
#pragma unroll
    for (int i = 0; i < HKC_STORE_MOST; i++) {
        if (i < words) to[i] = from.at[i];
    }
}

struct few_places {
    const float *at[HKC_COLLECT_MOST];
};

__global__ void __launch_bounds__(32) collect(float *to, few_places from, int count) {
    if (threadIdx.x > 0) return;
#pragma unroll
    for (int i = 0; i < HKC_COLLECT_MOST; i++) {
        if (i < count) to[i] = *from.at[i];
    }
}

} // namespace

void hkc_store(hkc_lane *lane, void *to, const void *from, int words) {
    few_words all = {};
    memcpy(all.at, from, (size_t)words * sizeof all.at[0]);
    hkc_launch(lane, store, 1, 32, 0, (int32_t *)to, all, words);
}

void hkc_collect(hkc_lane *lane, float *to, const float *const *from, int count) {
    few_places all = {};
    for (int i = 0; i < count; i++) all.at[i] = from[i];
    hkc_launch(lane, collect, 1, 32, 0, to, all, count);
}
