// pieces: copies, sums and conversions of many arrays by one launch; the list of them goes along with it.
#ifndef HECATE_KERNELS_CUDA_PIECES_H
#define HECATE_KERNELS_CUDA_PIECES_H

#include <stdint.h>

#include "kernels/cuda/lane.h"

#ifdef __cplusplus
extern "C" {
#endif

enum hkc_pieces_kind {
    HKC_PIECES_COPY,   // Elements have 2 bytes.
    HKC_PIECES_ADD,    // Floats, `from` added to `to`.
    HKC_PIECES_NARROW, // Floats, rounded to bf16.
    HKC_PIECES_WIDEN,  // bf16, to floats.
};

// `count` elements.
struct hkc_piece {
    void *to;
    const void *from;
    int64_t count;
};

enum { HKC_PIECES_MOST = 128 };

// Does the same to each of `pieces` <= HKC_PIECES_MOST arrays, in any order: none reads or writes the target of another
// one. `piece` itself is the host's, and is read before this returns. Elementwise.
void hkc_pieces(struct hkc_lane *lane, enum hkc_pieces_kind kind, const struct hkc_piece *piece,
                int pieces);

#ifdef __cplusplus
}
#endif

#endif
