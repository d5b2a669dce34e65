// CUDA twin of limit: a block for each expert, which goes from group to group. The weight that just stays is found
// digit by digit, 8 bits at a time, by counting in shared memory.
//
// Bytes moved: at the most six times the pairs and weights of the experts that have too many, which stay in the caches, and
// 12 a row. Its time is two launches and, for a group of a few thousand rows, about ten passes' latency.
#include "kernels/limit/limit.h"

#include <math.h>

#include "kernels/cuda/scan.h"

namespace {

constexpr int WARP = 32, BLOCK = 256, DIGIT_BITS = 8, DIGITS = 1 << DIGIT_BITS;
static_assert(DIGITS == BLOCK, "a digit for each thread");

struct groups {
    int64_t size, pairs, experts; // size: pairs of a group; the last one may have fewer.
    int64_t most, most_of_last;   // Rows that an expert keeps of a group, at most.
};

// The shared memory of a block.
struct limit_memory {
    int32_t count[DIGITS]; // One for each digit.
    int32_t sums[BLOCK / WARP];
    uint32_t digit; // A digit of the lowest weight that stays,
    int32_t left;   // and how many of its weights stay.
};

// A whole number that orders weights as they are: the bits of a float that is not negative.
HKC_DEVICE uint32_t order_of(float weight) {
    return weight > 0 ? (uint32_t)__float_as_int(weight) : 0;
}

// The first of `rows` ascending pairs that is `end` or more.
HKC_DEVICE int rows_below(const int32_t *pair, int rows, int64_t end) {
    int low = 0, high = rows;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (pair[middle] < end) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

HKC_DEVICE int most_of(const struct groups &groups, int64_t group) {
    const bool last = (group + 1) * groups.size > groups.pairs;
    return (int)(last ? groups.most_of_last : groups.most);
}

// keeps[expert]: rows that it keeps of all groups. A warp for each expert.
__global__ void __launch_bounds__(BLOCK)
    count_kept(int32_t *keeps, const int32_t *first, const int32_t *pair, struct groups groups) {
    const int lane = threadIdx.x % WARP;
    const int64_t e = ((int64_t)blockIdx.x * BLOCK + threadIdx.x) / WARP;
    if (e >= groups.experts) return;
    const int32_t *own = pair + first[e];
    const int rows = first[e + 1] - first[e];
    int kept = 0;
    for (int64_t g = lane; g * groups.size < groups.pairs; g += WARP) {
        const int begin = rows_below(own, rows, g * groups.size);
        const int here = rows_below(own, rows, (g + 1) * groups.size) - begin;
        kept += min(here, most_of(groups, g));
    }
    kept = warp_sum(kept);
    if (lane == 0) keeps[e] = kept;
}

// The order of the lowest weight among the `most` largest of `rows`, 1 <= most <= rows; *room: how many of
// that order stay.
HKC_DEVICE uint32_t lowest_kept(struct limit_memory *own, const float *weights, const int32_t *pair,
                                int rows, int most, int *room) {
    uint32_t least = 0, known = 0; // known: mask of the digits found.
    for (int shift = 32 - DIGIT_BITS; shift >= 0; shift -= DIGIT_BITS) {
        own->count[threadIdx.x] = 0;
        __syncthreads();
        for (int r = threadIdx.x; r < rows; r += BLOCK) {
            const uint32_t order = order_of(weights[pair[r]]);
            if ((order & known) == least) atomicAdd(&own->count[order >> shift & (DIGITS - 1)], 1);
        }
        __syncthreads();
        // The largest digit is the first thread's.
        const uint32_t digit = DIGITS - 1 - threadIdx.x;
        const int count = own->count[digit];
        int total = 0;
        const int above = block_sum_before(count, own->sums, &total);
        if (above < most && most <= above + count) {
            own->digit = digit;
            own->left = most - above;
        }
        __syncthreads();
        least |= own->digit << shift;
        known |= (uint32_t)(DIGITS - 1) << shift;
        most = own->left;
    }
    *room = most;
    return least;
}

// Rows of one expert and group, in order: kept ones from row `row` on, dropped ones from `behind`.
HKC_DEVICE void limit_group(struct limit_memory *own, int32_t *kept_pair, int32_t *kept_slot,
                            const float *weights, const int32_t *pair, int rows, int most, int row,
                            int behind, enum hk_drop drop) {
    const bool weighs = rows > most && most > 0 && drop == HK_LOWEST;
    int room = most; // For pairs that weigh as much as the lowest.
    const uint32_t least = weighs ? lowest_kept(own, weights, pair, rows, most, &room) : 0;
    int greater_before = 0, equal_before = 0;
    for (int from = 0; from < rows; from += BLOCK) {
        const int r = from + (int)threadIdx.x;
        const int32_t p = r < rows ? pair[r] : 0;
        const uint32_t order = r < rows && weighs ? order_of(weights[p]) : least;
        const bool greater = r < rows && order > least, equal = r < rows && order == least;
        int total = 0; // Two counts in one number: of greater ones, and of equal ones.
        const int before = block_sum_before((greater ? BLOCK * 2 : 0) + equal, own->sums, &total);
        const int equals = equal_before + before % (BLOCK * 2);
        const int kept = greater_before + before / (BLOCK * 2) + min(equals, room);
        const bool keeps = greater || (equal && equals < room);
        if (r < rows) {
            kept_slot[p] = keeps ? row + kept : -1;
            kept_pair[keeps ? row + kept : behind + r - kept] = p;
        }
        greater_before += total / (BLOCK * 2);
        equal_before += total % (BLOCK * 2);
    }
}

// Sums of keeps: of the experts before this block's, and of all.
HKC_DEVICE int kept_before(struct limit_memory *own, const int32_t *keeps, int experts,
                           int *total) {
    int before = 0, all = 0;
    for (int from = 0; from < experts; from += BLOCK) {
        const int e = from + (int)threadIdx.x;
        const int count = e < experts ? keeps[e] : 0;
        all += count;
        before += e < (int)blockIdx.x ? count : 0;
    }
    int sum = 0;
    block_sum_before(before, own->sums, &sum);
    block_sum_before(all, own->sums, total);
    return sum;
}

__global__ void __launch_bounds__(BLOCK)
    limit(int32_t *kept_first, int32_t *kept_pair, int32_t *kept_slot, const float *weights,
          const int32_t *first, const int32_t *pair, const int32_t *keeps, struct groups groups,
          enum hk_drop drop) {
    HKC_SHARED(memory);
    struct limit_memory *own = (struct limit_memory *)memory;
    const int e = blockIdx.x, experts = (int)groups.experts;
    int total = 0;
    int row = kept_before(own, keeps, experts, &total);
    int behind = total + first[e] - row;
    if (threadIdx.x == 0) {
        kept_first[e] = row;
        if (e == experts - 1) kept_first[experts] = total;
    }
    const int end = first[e + 1];
    for (int from = first[e]; from < end;) {
        const int64_t group = pair[from] / groups.size;
        const int here = rows_below(pair + from, end - from, (group + 1) * groups.size);
        const int most = most_of(groups, group);
        limit_group(own, kept_pair, kept_slot, weights, pair + from, here, most, row, behind, drop);
        row += min(here, most);
        behind += here - min(here, most);
        from += here;
    }
}

__global__ void __launch_bounds__(BLOCK)
    limit_ids(int32_t *kept, const int32_t *ids, const int32_t *kept_slot, int64_t limited,
              int64_t count) {
    const int64_t p = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (p < count) kept[p] = p < limited && kept_slot[p] >= 0 ? ids[p] : -1;
}

int64_t most_of_tokens(int64_t tokens, int64_t topk, int64_t experts, double capacity) {
    return (int64_t)ceil(capacity * (double)(tokens * topk) / (double)experts);
}

} // namespace

extern "C" void hkc_limit_f32(struct hkc_lane *lane, int32_t *kept_first, int32_t *kept_pair,
                              int32_t *kept_slot, const float *weights, const int32_t *first,
                              const int32_t *pair, int64_t tokens, int64_t topk, int64_t experts,
                              int64_t group, double capacity, enum hk_drop drop) {
    constexpr int warps = BLOCK / WARP;
    const int64_t size = group && group < tokens ? group : tokens;
    const int64_t last = size > 0 && tokens % size > 0 ? tokens % size : size;
    const struct groups groups = {size * topk, tokens * topk, experts,
                                  most_of_tokens(size, topk, experts, capacity),
                                  most_of_tokens(last, topk, experts, capacity)};
    int32_t *keeps = (int32_t *)lane->scratch;
    if (experts == 0) return;
    hkc_launch(lane, count_kept, (unsigned)((experts + warps - 1) / warps), BLOCK, 0, keeps, first,
               pair, groups);
    hkc_launch(lane, limit, (unsigned)experts, BLOCK, sizeof(struct limit_memory), kept_first,
               kept_pair, kept_slot, weights, first, pair, keeps, groups, drop);
}

// kept[p] = ids[p] where kept_slot[p] is a row and p < limited; -1 in all the others of `count`.
extern "C" void hkc_limit_ids(struct hkc_lane *lane, int32_t *kept, const int32_t *ids,
                              const int32_t *kept_slot, int64_t limited, int64_t count) {
    hkc_launch(lane, limit_ids, (unsigned)((count + BLOCK - 1) / BLOCK), BLOCK, 0, kept, ids,
               kept_slot, limited, count);
}
