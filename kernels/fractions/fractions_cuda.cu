// CUDA twin of fractions: a block counts the choices of a sequence, then a block divides those of a group, or of all
// groups where counts go on from one to the next.
//
// Bytes moved: 4 a choice and 12 a sequence and expert. Its time is two launches, the latency of a pass, and the
// shared memory's counting: a few microseconds for 4096 tokens a sequence.
#include "kernels/fractions/fractions.h"

#include "kernels/cuda/device.h"

namespace {

constexpr int COUNT_BLOCK = 512, DIVIDE_BLOCK = 512;

// Leaves the counts of a sequence where its fractions will be: a whole number's bits in place of a float's.
__global__ void __launch_bounds__(COUNT_BLOCK)
    count_picks(float *fractions, const int32_t *ids, int64_t picks, int experts) {
    HKC_SHARED(memory);
    int32_t *count = (int32_t *)memory;
    for (int e = threadIdx.x; e < experts; e += COUNT_BLOCK) count[e] = 0;
    __syncthreads();
    for (int64_t p = threadIdx.x; p < picks; p += COUNT_BLOCK) {
        atomicAdd(count + ids[blockIdx.x * picks + p], 1);
    }
    __syncthreads();
    for (int e = threadIdx.x; e < experts; e += COUNT_BLOCK) {
        fractions[blockIdx.x * (int64_t)experts + e] = __int_as_float(count[e]);
    }
}

struct division {
    int64_t sequences, picks, group; // picks: of a sequence.
    int experts;
};

// Replaces the counts of one expert in the sequences of a group, which follow `before` choices of the expert in `picks`
// of all; `picks` has those of the group by now. Returns the expert's.
HKC_DEVICE int divide_group(float *fractions, int64_t first, int64_t end, int before, int64_t picks,
                            int experts) {
    int count = before;
    for (int64_t s = first; s < end; s++) count += __float_as_int(fractions[s * experts]);
    const float fraction = picks > 0 ? (float)((double)count / (double)picks) : 0;
    for (int64_t s = first; s < end; s++) fractions[s * experts] = fraction;
    return count;
}

// `running` is NULL here where nothing is carried on from group to group: then each block has a group.
__global__ void __launch_bounds__(DIVIDE_BLOCK)
    divide(float *fractions, int32_t *running, struct division x, int64_t iteration) {
    HKC_SHARED(memory);
    unsigned long long *sum = (unsigned long long *)memory, own = 0;
    const bool carries = running && iteration > 1;
    if (threadIdx.x == 0) *sum = 0;
    __syncthreads();
    for (int e = threadIdx.x; e < x.experts && carries; e += DIVIDE_BLOCK) own += running[e];
    atomicAdd(sum, own);
    __syncthreads();
    for (int e = threadIdx.x; e < x.experts; e += DIVIDE_BLOCK) {
        int64_t first = blockIdx.x * x.group, picks = (int64_t)*sum;
        int count = carries ? running[e] : 0;
        do {
            const int64_t end = min(x.sequences, first + x.group);
            picks += (end - first) * x.picks;
            count = divide_group(fractions + e, first, end, count, picks, x.experts);
            first = end;
        } while (running && first < x.sequences);
        if (running && iteration > 0) running[e] = count;
    }
}

} // namespace

extern "C" void hkc_fractions_f32(struct hkc_lane *lane, float *fractions, int32_t *running,
                                  const int32_t *ids, int64_t sequences, int64_t tokens,
                                  int64_t topk, int64_t experts, int64_t group, int64_t iteration) {
    assert(experts <= HK_EXPERTS_MAX);
    const int64_t each = group ? group : sequences, picks = tokens * topk;
    const struct division x = {sequences, picks, each, (int)experts};
    const int64_t groups = each > 0 ? (sequences + each - 1) / each : 0;
    hkc_launch(lane, count_picks, (unsigned)sequences, COUNT_BLOCK,
               (size_t)experts * sizeof(int32_t), fractions, ids, picks, (int)experts);
    hkc_launch(lane, divide, running ? 1 : (unsigned)groups, DIVIDE_BLOCK,
               sizeof(unsigned long long), fractions, running, x, iteration);
}
