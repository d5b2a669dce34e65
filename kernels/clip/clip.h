// clip: the factor that AdamW scales all gradients by, so that their norm is at most a given one; and whether a step
// may be taken at all.
#ifndef HECATE_KERNELS_CLIP_H
#define HECATE_KERNELS_CLIP_H

#include "kernels/scalar.h"
#include "kernels/types.h"

struct hk_clipped {
    double norm;  // Of the gradients.
    double scale; // For them.
    int64_t
        stopped; // 1: a number was not finite, in this step or in one before; nothing is updated.
};

// The factor that brings gradients of norm `norm` to at most `clip` (0: any norm).
HK_SCALAR double hk_clip_scale(double clip, double norm) {
    return clip == 0 || norm <= clip ? 1 : clip / norm;
}

// norm = sqrt(sums[0] + ...), in an order that depends on `count` alone. scale = hk_clip_scale(clip, norm). Where the norm, or one of `numbers` (losses; `numbered` of them) is not finite, stopped = 1; it never
// goes back to 0.
void hk_clip(struct hk_clipped *clipped, const double *sums, int64_t count, const float *numbers,
             int64_t numbered, double clip);

#endif
