// CUDA twins of the movements by a route. A warp has a segment of one row: four loads of 16 bytes a lane are under way
// before the first is used. Rows that are no multiple of 16 bytes move element by element.
//
// Bytes moved: permute (topk + 1) rows a token, if a token's row stays in the second-level cache between its choices;
// combine the same, and one more row where it adds. Nothing is computed: 85 % of the copy bandwidth expected for rows of
// 2 KiB and more, half of it for narrow ones, whose lanes idle. gate_rows moves 12 bytes a row, 4 of them at random.
#include "kernels/cuda/device.h"
#include "kernels/route/route.h"

namespace {

constexpr int WARP = 32, WARPS = 8, PIECES = 4;

// The part of a row that a warp has.
struct segment {
    int64_t row;
    int first, end; // Pieces: first and then every WARP-th, below end.
};

// Which part this warp has of rows of `width` pieces; of row `rows` or more where there is nothing to do.
HKC_DEVICE struct segment segment_of(int width) {
    const int segments = (width + PIECES * WARP - 1) / (PIECES * WARP);
    const int64_t warp = (int64_t)blockIdx.x * WARPS + threadIdx.x / WARP;
    const int first = (int)(warp % segments) * PIECES * WARP;
    return {warp / segments, first + (int)(threadIdx.x % WARP), min(width, first + PIECES * WARP)};
}

// rows [rows, width], x [tokens, width]; widths are pieces.
template <class T, int COUNT>
__global__ void __launch_bounds__(WARPS *WARP)
    permute(T *rows, const T *x, const int32_t *pair, int64_t count, int topk, int width) {
    const struct segment mine = segment_of(width);
    if (mine.row >= count) return;
    const auto *from = (const hkc_vector<T, COUNT> *)x + (int64_t)(pair[mine.row] / topk) * width;
    auto *to = (hkc_vector<T, COUNT> *)rows + mine.row * width;
    hkc_vector<T, COUNT> moved[PIECES];
#pragma unroll
    for (int i = 0; i < PIECES; i++) {
        if (mine.first + i * WARP < mine.end) moved[i] = from[mine.first + i * WARP];
    }
#pragma unroll
    for (int i = 0; i < PIECES; i++) {
        if (mine.first + i * WARP < mine.end) to[mine.first + i * WARP] = moved[i];
    }
}

// y [tokens, width]. Sums are always float.
template <class T, int COUNT>
__global__ void __launch_bounds__(WARPS *WARP)
    combine(T *y, const T *rows, const int32_t *slot, int64_t tokens, int topk, int width,
            enum hk_write write) {
    const struct segment mine = segment_of(width);
    if (mine.row >= tokens) return;
    float sum[PIECES][COUNT] = {};
#pragma unroll 2
    for (int j = 0; j < topk; j++) {
        const int32_t row = slot[mine.row * topk + j];
        if (row < 0) continue;
        const auto *from = (const hkc_vector<T, COUNT> *)rows + (int64_t)row * width;
#pragma unroll
        for (int i = 0; i < PIECES; i++) {
            if (mine.first + i * WARP >= mine.end) continue;
            const hkc_vector<T, COUNT> added = from[mine.first + i * WARP];
            for (int k = 0; k < COUNT; k++) sum[i][k] += hkc_float(added.at[k]);
        }
    }
    const int end = mine.end;
    auto *to = (hkc_vector<T, COUNT> *)y + mine.row * width;
    hkc_vector<T, COUNT> written[PIECES] = {};
#pragma unroll
    for (int i = 0; i < PIECES; i++) {
        if (write == HK_ADD && mine.first + i * WARP < end) written[i] = to[mine.first + i * WARP];
    }
#pragma unroll
    for (int i = 0; i < PIECES; i++) {
        for (int k = 0; k < COUNT; k++) {
            written[i].at[k] = (T)(hkc_float(written[i].at[k]) + sum[i][k]);
        }
        if (mine.first + i * WARP < end) to[mine.first + i * WARP] = written[i];
    }
}

__global__ void gate_rows(float *g, const float *weights, const int32_t *pair, int64_t count) {
    const int64_t r = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (r < count) g[r] = weights[pair[r]];
}

__global__ void gate_rows_grad(float *dweights, const float *dg, const int32_t *slot,
                               int64_t count) {
    const int64_t p = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (p < count) dweights[p] = slot[p] < 0 ? 0 : dg[slot[p]];
}

// Blocks for a warp for each segment of `rows` rows of `width` pieces.
unsigned blocks_of(int64_t rows, int64_t width) {
    const int64_t segments = (width + PIECES * WARP - 1) / (PIECES * WARP);
    return (unsigned)((rows * segments + WARPS - 1) / WARPS);
}

// Whether rows of `width` values of `size` bytes are whole pieces of 16 bytes at such addresses.
bool in_pieces(int64_t width, size_t size, const void *a, const void *b) {
    return width * size % 16 == 0 && (uintptr_t)a % 16 == 0 && (uintptr_t)b % 16 == 0;
}

template <class T, int COUNT>
void launch_permute(struct hkc_lane *lane, T *rows, const T *x, const int32_t *pair, int64_t count,
                    int64_t topk, int64_t width) {
    hkc_launch(lane, (permute<T, COUNT>), blocks_of(count, width / COUNT), WARPS * WARP, 0, rows, x,
               pair, count, (int)topk, (int)(width / COUNT));
}

template <class T>
void choose_permute(struct hkc_lane *lane, T *rows, const T *x, const int32_t *pair, int64_t tokens,
                    int64_t topk, int64_t width) {
    constexpr int whole = 16 / sizeof(T);
    if (in_pieces(width, sizeof(T), rows, x)) {
        launch_permute<T, whole>(lane, rows, x, pair, tokens * topk, topk, width);
    } else {
        launch_permute<T, 1>(lane, rows, x, pair, tokens * topk, topk, width);
    }
}

template <class T, int COUNT>
void launch_combine(struct hkc_lane *lane, T *y, const T *rows, const int32_t *slot, int64_t tokens,
                    int64_t topk, int64_t width, enum hk_write write) {
    hkc_launch(lane, (combine<T, COUNT>), blocks_of(tokens, width / COUNT), WARPS * WARP, 0, y,
               rows, slot, tokens, (int)topk, (int)(width / COUNT), write);
}

template <class T>
void choose_combine(struct hkc_lane *lane, T *y, const T *rows, const int32_t *slot, int64_t tokens,
                    int64_t topk, int64_t width, enum hk_write write) {
    constexpr int whole = 16 / sizeof(T);
    if (in_pieces(width, sizeof(T), y, rows)) {
        launch_combine<T, whole>(lane, y, rows, slot, tokens, topk, width, write);
    } else {
        launch_combine<T, 1>(lane, y, rows, slot, tokens, topk, width, write);
    }
}

constexpr int GATE_BLOCK = 256;

unsigned gate_blocks(int64_t count) {
    return (unsigned)((count + GATE_BLOCK - 1) / GATE_BLOCK);
}

} // namespace

extern "C" void hkc_permute_f32(struct hkc_lane *lane, float *rows, const float *x,
                                const int32_t *pair, int64_t tokens, int64_t topk, int64_t width) {
    choose_permute(lane, rows, x, pair, tokens, topk, width);
}

extern "C" void hkc_combine_f32(struct hkc_lane *lane, float *y, const float *rows,
                                const int32_t *slot, int64_t tokens, int64_t topk, int64_t width,
                                enum hk_write write) {
    choose_combine(lane, y, rows, slot, tokens, topk, width, write);
}

extern "C" void hkc_permute_bf16(struct hkc_lane *lane, hk_bf16 *rows, const hk_bf16 *x,
                                 const int32_t *pair, int64_t tokens, int64_t topk, int64_t width) {
    choose_permute(lane, (__nv_bfloat16 *)rows, (const __nv_bfloat16 *)x, pair, tokens, topk,
                   width);
}

// Sums are float and rounded once, when they are written.
extern "C" void hkc_combine_bf16(struct hkc_lane *lane, hk_bf16 *y, const hk_bf16 *rows,
                                 const int32_t *slot, int64_t tokens, int64_t topk, int64_t width,
                                 enum hk_write write) {
    choose_combine(lane, (__nv_bfloat16 *)y, (const __nv_bfloat16 *)rows, slot, tokens, topk, width,
                   write);
}

extern "C" void hkc_gate_rows_f32(struct hkc_lane *lane, float *g, const float *weights,
                                  const int32_t *pair, int64_t count) {
    hkc_launch(lane, gate_rows, gate_blocks(count), GATE_BLOCK, 0, g, weights, pair, count);
}

extern "C" void hkc_gate_rows_grad_f32(struct hkc_lane *lane, float *dweights, const float *dg,
                                       const int32_t *slot, int64_t count) {
    hkc_launch(lane, gate_rows_grad, gate_blocks(count), GATE_BLOCK, 0, dweights, dg, slot, count);
}
