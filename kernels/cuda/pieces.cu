// pieces: a row of blocks for each, as many as the longest needs. Bytes moved: as copies and sums of one array.
#include "kernels/cuda/pieces.h"

#include <string.h>

#include "kernels/cuda/device.h"

namespace {

constexpr int THREADS = 256, EACH = 8, BLOCKS_MOST = 128;

struct list {
    hkc_piece at[HKC_PIECES_MOST];
};

HKC_DEVICE void put(uint16_t &to, uint16_t from) {
    to = from;
}
HKC_DEVICE void put(float &to, float from) {
    to += from;
}
HKC_DEVICE void put(hk_bf16 &to, float from) {
    to = hk_bf16_round(from);
}
HKC_DEVICE void put(float &to, hk_bf16 from) {
    to = hk_bf16_float(from);
}

template <int W, bool READS, class T, class F>
HKC_DEVICE void run_piece(T *to, const F *from, int64_t vectors) {
    const int64_t first = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    for (int64_t v = first; v < vectors; v += (int64_t)gridDim.x * THREADS) {
        const hkc_vector<F, W> read = ((const hkc_vector<F, W> *)from)[v];
        hkc_vector<T, W> out = {};
        if (READS) out = ((const hkc_vector<T, W> *)to)[v];
        for (int i = 0; i < W; i++) put(out.at[i], read.at[i]);
        ((hkc_vector<T, W> *)to)[v] = out;
    }
}

// READS: it reads `to`, too. In vectors of 16 bytes on the wider side, where a piece lies so.
template <class T, class F, bool READS>
__global__ void __launch_bounds__(THREADS) pieces_of(list all) {
    constexpr int W = 16 / (int)(sizeof(T) > sizeof(F) ? sizeof(T) : sizeof(F));
    const hkc_piece piece = all.at[blockIdx.y];
    T *to = (T *)piece.to;
    const F *from = (const F *)piece.from;
    if (((uintptr_t)to | (uintptr_t)from) % 16 == 0 && piece.count % W == 0)
        run_piece<W, READS>(to, from, piece.count / W);
    else
        run_piece<1, READS>(to, from, piece.count);
}

} // namespace

void hkc_pieces(hkc_lane *lane, hkc_pieces_kind kind, const hkc_piece *piece, int pieces) {
    list all = {};
    int64_t most = 0;
    assert(pieces <= HKC_PIECES_MOST);
    for (int i = 0; i < pieces; i++) most = piece[i].count > most ? piece[i].count : most;
    memcpy(all.at, piece, (size_t)pieces * sizeof *piece);
    const int64_t blocks = (most + THREADS * EACH - 1) / (THREADS * EACH);
    const dim3 grid((unsigned)(blocks < BLOCKS_MOST ? blocks : BLOCKS_MOST), (unsigned)pieces);
    switch (kind) {
    case HKC_PIECES_COPY:
        hkc_launch(lane, (pieces_of<uint16_t, uint16_t, false>), grid, THREADS, 0, all);
        break;
    case HKC_PIECES_ADD:
        hkc_launch(lane, (pieces_of<float, float, true>), grid, THREADS, 0, all);
        break;
    case HKC_PIECES_NARROW:
        hkc_launch(lane, (pieces_of<hk_bf16, float, false>), grid, THREADS, 0, all);
        break;
    case HKC_PIECES_WIDEN:
        hkc_launch(lane, (pieces_of<float, hk_bf16, false>), grid, THREADS, 0, all);
        break;
    }
}
