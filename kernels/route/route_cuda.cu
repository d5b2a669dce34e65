// CUDA twin of route: a counting sort in three kernels. Each warp has a tile of pairs, which it counts by expert; the
// counts of an expert are summed up tile by tile; then each warp places its tile's pairs, in order.
//
// Bytes moved: 16 a pair and 16 for each expert and tile, a few megabytes at the most: its time is the latency of
// three launches and of the pairs of a tile, 32 at a time.
#include "kernels/route/route.h"

#include "kernels/cuda/scan.h"
#include "kernels/cuda/warps.h"

namespace {

constexpr int WARP = 32, WARPS_MAX = 4, TILE_MIN = 256, TABLE_MAX = 1 << 20;

// The cut of pairs. Buckets are the experts and, last, the dropped pairs.
struct cut {
    int pairs, tile, tiles, buckets;
};

HKC_DEVICE int bucket_of(int32_t id, const struct cut &cut) {
    return id < 0 ? cut.buckets - 1 : id;
}

// table[bucket][tile] = pairs of the tile that are of the bucket.
__global__ void count_tiles(int32_t *table, const int32_t *ids, struct cut cut) {
    HKC_SHARED(memory);
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const int tile = blockIdx.x * (blockDim.x / WARP) + warp;
    if (tile >= cut.tiles) return;
    int32_t *count = (int32_t *)memory + warp * cut.buckets;
    for (int b = lane; b < cut.buckets; b += WARP) count[b] = 0;
    __syncwarp();
    const int end = min(cut.pairs, (tile + 1) * cut.tile);
    for (int p = tile * cut.tile + lane; p < end; p += WARP) {
        atomicAdd(count + bucket_of(ids[p], cut), 1);
    }
    __syncwarp();
    for (int b = lane; b < cut.buckets; b += WARP) table[(int64_t)b * cut.tiles + tile] = count[b];
}

// From counts to pairs of the same bucket in earlier tiles, in place; totals[bucket]. A warp for each bucket.
__global__ void sum_tiles(int32_t *table, int32_t *totals, struct cut cut) {
    const int lane = threadIdx.x % WARP;
    const int bucket = (blockIdx.x * blockDim.x + threadIdx.x) / WARP;
    if (bucket >= cut.buckets) return;
    int32_t *row = table + (int64_t)bucket * cut.tiles;
    int before = 0;
    for (int from = 0; from < cut.tiles; from += WARP) {
        const int tile = from + lane, count = tile < cut.tiles ? row[tile] : 0;
        const int sum = warp_sum_up_to(count);
        if (tile < cut.tiles) row[tile] = before + sum - count;
        before += __shfl_sync(~0u, sum, WARP - 1);
    }
    if (lane == 0) totals[bucket] = before;
}

// Where each bucket begins, by the block's first warp.
HKC_DEVICE void find_starts(int32_t *starts, int buckets, int lane) {
    int before = 0;
    for (int from = 0; from < buckets; from += WARP) {
        const int bucket = from + lane, total = bucket < buckets ? starts[bucket] : 0;
        const int sum = warp_sum_up_to(total);
        if (bucket < buckets) starts[bucket] = before + sum - total;
        before += __shfl_sync(~0u, sum, WARP - 1);
    }
}

// Places the pairs of a tile; next[bucket] is the bucket's next row.
HKC_DEVICE void place_tile(int32_t *pair, int32_t *slot, int32_t *next, const int32_t *ids,
                           int tile, const struct cut &cut, int lane) {
    const int end = min(cut.pairs, (tile + 1) * cut.tile);
    for (int from = tile * cut.tile; from < end; from += WARP) {
        const int p = from + lane;
        const int bucket = p < end ? bucket_of(ids[p], cut) : cut.buckets;
        const unsigned same = __match_any_sync(~0u, bucket);
        const int row = p < end ? next[bucket] + __popc(same & ((1u << lane) - 1)) : 0;
        __syncwarp();
        if (p < end && same >> lane == 1) next[bucket] = row + 1;
        __syncwarp();
        if (p < end) {
            pair[row] = p;
            slot[p] = bucket < cut.buckets - 1 ? row : -1;
        }
    }
}

__global__ void place_pairs(int32_t *first, int32_t *pair, int32_t *slot, const int32_t *ids,
                            const int32_t *table, const int32_t *totals, struct cut cut) {
    HKC_SHARED(memory);
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const int tile = blockIdx.x * (blockDim.x / WARP) + warp;
    int32_t *starts = (int32_t *)memory, *next = starts + (1 + warp) * cut.buckets;
    for (int b = threadIdx.x; b < cut.buckets; b += blockDim.x) starts[b] = totals[b];
    __syncthreads();
    if (warp == 0) find_starts(starts, cut.buckets, lane);
    __syncthreads();
    for (int b = threadIdx.x; b < cut.buckets && blockIdx.x == 0; b += blockDim.x) {
        first[b] = starts[b];
    }
    if (tile >= cut.tiles) return;
    for (int b = lane; b < cut.buckets; b += WARP) {
        next[b] = starts[b] + table[(int64_t)b * cut.tiles + tile];
    }
    __syncwarp();
    place_tile(pair, slot, next, ids, tile, cut, lane);
}

// Tiles are larger where there are many pairs and experts, so that the table stays small.
struct cut cut_pairs(int64_t pairs, int64_t experts) {
    assert(pairs <= INT32_MAX / 2);
    assert(experts < TABLE_MAX);
    const int64_t least = (pairs * (experts + 1) + TABLE_MAX - 1) / TABLE_MAX;
    const int64_t tile = least < TILE_MIN ? TILE_MIN : (least + WARP - 1) / WARP * WARP;
    return {(int)pairs, (int)tile, (int)((pairs + tile - 1) / tile), (int)experts + 1};
}

} // namespace

// At most 2^30 pairs.
extern "C" void hkc_route(struct hkc_lane *lane, int32_t *first, int32_t *pair, int32_t *slot,
                          const int32_t *ids, int64_t tokens, int64_t topk, int64_t experts) {
    const struct cut cut = cut_pairs(tokens * topk, experts);
    int32_t *table = (int32_t *)lane->scratch, *totals = table + (int64_t)cut.buckets * cut.tiles;
    const int64_t bytes = 4 * cut.buckets;
    const int counting = hkc_warps(bytes, 0, WARPS_MAX);
    const int placing = hkc_warps(bytes, bytes, WARPS_MAX);
    const unsigned place_blocks = (unsigned)((cut.tiles + placing - 1) / placing);
    hkc_launch(lane, count_tiles, (unsigned)((cut.tiles + counting - 1) / counting),
               counting * WARP, (size_t)(counting * bytes), table, ids, cut);
    hkc_launch(lane, sum_tiles, (unsigned)((cut.buckets + WARPS_MAX - 1) / WARPS_MAX),
               WARPS_MAX * WARP, 0, table, totals, cut);
    hkc_launch(lane, place_pairs, place_blocks > 0 ? place_blocks : 1, placing * WARP,
               (size_t)((1 + placing) * bytes), first, pair, slot, ids, table, totals, cut);
}
