// clip: the factor that AdamW scales all gradients by, so that their norm is at most a given one; and whether a step
// may be taken at all.
#ifndef HECATE_KERNELS_CLIP_H
#define HECATE_KERNELS_CLIP_H

#include "kernels/types.h"

struct hk_clipped {
    double norm;  // Of the gradients.
    double scale; // For them.
    int64_t
        stopped; // 1: a number was not finite, in this step or in one before; nothing is updated.
};

// norm = sqrt(sums[0] + ...), in an order that depends on `count` alone. scale = 1 where norm <= clip or clip = 0, else
// clip / norm. Where the norm, or one of `numbers` (losses; `numbered` of them) is not finite, stopped = 1; it never
// goes back to 0.
void hk_clip(struct hk_clipped *clipped, const double *sums, int64_t count, const float *numbers,
             int64_t numbered, double clip);

#endif
