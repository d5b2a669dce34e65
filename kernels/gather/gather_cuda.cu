// CUDA twin of gather. The table is always float. Bytes moved: 4 for a value and the value. The gradient adds the rows
// of an id in ascending order. Integers, which no order of threads changes, count where an id stands first, and how
// often. Then a warp for each row of the table walks over ids from there on, SEEN at a time, until it has found them
// all. Rare ids stop at once, frequent ones are soon found: reads of ids are few beside the rows. AHEAD rows of those
// that were seen are read before they are added, one after the other: an id that every 20th token has waits for memory
// a third as often as row by row.
// Differences from the contract: the table has at most HKC_SCRATCH / 8 rows.
#include "kernels/gather/gather.h"

#include "kernels/cuda/rows.h"

namespace {

using namespace hkc;

template <class T, int W>
__global__ void __launch_bounds__(WIDE_THREADS)
    gather(T *y, const float *table, const int32_t *ids, int64_t count, int64_t vectors) {
    typedef hkc_vector<float, W> floats;
    const int64_t thread = (int64_t)blockIdx.x * WIDE_THREADS + threadIdx.x;
    const int64_t row = thread / vectors, v = thread % vectors;
    if (row >= count) return;
    floats read = {};
    if (ids[row] >= 0) read = ((const floats *)table)[(int64_t)ids[row] * vectors + v];
    ((hkc_vector<T, W> *)y)[thread] = hkc_stored<T>(read);
}

// The uses of an id: where it stands first, and how often it stands anywhere.
struct uses {
    int first, count;
};

__global__ void __launch_bounds__(WIDE_THREADS) clear_uses(uses *use, int64_t rows) {
    const int64_t id = (int64_t)blockIdx.x * WIDE_THREADS + threadIdx.x;
    if (id < rows) use[id] = {INT32_MAX, 0};
}

__global__ void __launch_bounds__(WIDE_THREADS)
    count_uses(uses *use, const int32_t *ids, int64_t count) {
    const int64_t i = (int64_t)blockIdx.x * WIDE_THREADS + threadIdx.x;
    if (i >= count || ids[i] < 0) return;
    atomicMin(&use[ids[i]].first, (int)i);
    atomicAdd(&use[ids[i]].count, 1);
}

__global__ void __launch_bounds__(WIDE_THREADS)
    ahead(int32_t *ids, const int32_t *targets, int64_t count, int64_t positions, int64_t by) {
    const int64_t i = (int64_t)blockIdx.x * WIDE_THREADS + threadIdx.x;
    if (i < count) ids[i] = i % positions + by < positions ? targets[i + by] : -1;
}

// Vectors of a row that a thread sums; a warp has 32 times as many.
template <int W> constexpr int HELD = W > 4 ? 2 : 4;

constexpr int SEEN = 128, WORDS = SEEN / 32, AHEAD = 4;

// Where an id stands among SEEN of them, a bit for each.
struct seen {
    unsigned at[WORDS];
};

HKC_DEVICE seen find_id(const int32_t *ids, int64_t begin, int64_t count, int64_t id) {
    const int lane = (int)threadIdx.x % 32;
    seen found;
#pragma unroll
    for (int w = 0; w < WORDS; w++) {
        const int64_t i = begin + w * 32 + lane;
        found.at[w] = __ballot_sync(~0u, i < count && ids[i] == id);
    }
    return found;
}

// Takes the first of them; -1: there is none.
HKC_DEVICE int take_first(seen *found) {
#pragma unroll
    for (int w = 0; w < WORDS; w++) {
        if (!found->at[w]) continue;
        const int bit = __ffs((int)found->at[w]) - 1;
        found->at[w] &= found->at[w] - 1;
        return w * 32 + bit;
    }
    return -1;
}

// A warp: HELD * 32 vectors of the gradient of one id.
template <class T, int W>
__global__ void __launch_bounds__(NARROW_THREADS)
    gather_grad(float *dtable, const T *dy, const int32_t *ids, const uses *use, int64_t count,
                int64_t rows, int64_t vectors, bool add) {
    typedef hkc_vector<T, W> values;
    typedef hkc_vector<float, W> floats;
    const int lane = (int)threadIdx.x % 32;
    const int64_t id = (int64_t)blockIdx.x * (NARROW_THREADS / 32) + threadIdx.x / 32;
    if (id >= rows || (add && use[id].count == 0)) return;
    const int64_t first = (int64_t)blockIdx.y * HELD<W> * 32 + lane;
    floats *to = (floats *)dtable + id * vectors;
    floats sum[HELD<W>];
    for (int h = 0; h < HELD<W>; h++) {
        for (int i = 0; i < W; i++) sum[h].at[i] = 0;
        if (add && first + h * 32 < vectors) sum[h] = to[first + h * 32];
    }
    int left = use[id].count;
    for (int64_t begin = use[id].first / 32 * 32; left > 0; begin += SEEN) {
        seen found = find_id(ids, begin, count, id);
        for (int row = take_first(&found); row >= 0;) {
            values read[AHEAD][HELD<W>];
            int rows = 0;
#pragma unroll
            for (int a = 0; a < AHEAD; a++) {
                if (row < 0) continue;
                const values *from = (const values *)dy + (begin + row) * vectors;
                for (int h = 0; h < HELD<W>; h++) {
                    if (first + h * 32 < vectors) read[a][h] = from[first + h * 32];
                }
                rows++;
                row = take_first(&found);
            }
            left -= rows;
#pragma unroll
            for (int a = 0; a < AHEAD; a++) {
                for (int h = 0; h < HELD<W>; h++) {
                    if (a >= rows || first + h * 32 >= vectors) continue;
                    for (int i = 0; i < W; i++) sum[h].at[i] += hkc_float(read[a][h].at[i]);
                }
            }
        }
    }
    for (int h = 0; h < HELD<W>; h++) {
        if (first + h * 32 < vectors) to[first + h * 32] = sum[h];
    }
}

template <class T, int W>
void launch_grad(hkc_lane *lane, float *dtable, const T *dy, const int32_t *ids, const uses *use,
                 int64_t count, int64_t rows, int64_t vectors, bool add) {
    hkc_launch(lane, (gather_grad<T, W>),
               dim3(blocks_of(rows, NARROW_THREADS / 32), blocks_of(vectors, HELD<W> * 32)),
               NARROW_THREADS, 0, dtable, dy, ids, use, count, rows, vectors, add);
}

template <class T>
void forward(hkc_lane *lane, T *y, const float *table, const int32_t *ids, int64_t count,
             int64_t width) {
    constexpr int W = VECTOR<T>;
    if (as_vectors<W>(width, y, table)) {
        hkc_launch(lane, (gather<T, W>), blocks_of(count * (width / W), WIDE_THREADS), WIDE_THREADS,
                   0, y, table, ids, count, width / W);
    } else {
        hkc_launch(lane, (gather<T, 1>), blocks_of(count * width, WIDE_THREADS), WIDE_THREADS, 0, y,
                   table, ids, count, width);
    }
}

template <class T>
void backward(hkc_lane *lane, float *dtable, const T *dy, const int32_t *ids, int64_t count,
              int64_t rows, int64_t width, bool add) {
    constexpr int W = VECTOR<T>;
    uses *use = (uses *)lane->scratch;
    assert(rows <= HKC_SCRATCH / (int64_t)sizeof *use);
    hkc_launch(lane, clear_uses, blocks_of(rows, WIDE_THREADS), WIDE_THREADS, 0, use, rows);
    hkc_launch(lane, count_uses, blocks_of(count, WIDE_THREADS), WIDE_THREADS, 0, use, ids, count);
    if (as_vectors<W>(width, dtable, dy)) {
        launch_grad<T, W>(lane, dtable, dy, ids, use, count, rows, width / W, add);
    } else {
        launch_grad<T, 1>(lane, dtable, dy, ids, use, count, rows, width, add);
    }
}

} // namespace

extern "C" void hkc_gather_f32(struct hkc_lane *lane, float *y, const float *table,
                               const int32_t *ids, int64_t count, int64_t width) {
    forward(lane, y, table, ids, count, width);
}

extern "C" void hkc_gather_bf16(struct hkc_lane *lane, hk_bf16 *y, const float *table,
                                const int32_t *ids, int64_t count, int64_t width) {
    forward(lane, hkc_values(y), table, ids, count, width);
}

extern "C" void hkc_gather_grad_f32(struct hkc_lane *lane, float *dtable, const float *dy,
                                    const int32_t *ids, int64_t count, int64_t rows, int64_t width,
                                    enum hk_write write) {
    backward(lane, dtable, dy, ids, count, rows, width, write == HK_ADD);
}

extern "C" void hkc_gather_grad_bf16(struct hkc_lane *lane, float *dtable, const hk_bf16 *dy,
                                     const int32_t *ids, int64_t count, int64_t rows, int64_t width,
                                     enum hk_write write) {
    backward(lane, dtable, hkc_values(dy), ids, count, rows, width, write == HK_ADD);
}

extern "C" void hkc_ahead(struct hkc_lane *lane, int32_t *ids, const int32_t *targets,
                          int64_t sequences, int64_t positions, int64_t by) {
    const int64_t count = sequences * positions;
    hkc_launch(lane, ahead, blocks_of(count, WIDE_THREADS), WIDE_THREADS, 0, ids, targets, count,
               positions, by);
}
