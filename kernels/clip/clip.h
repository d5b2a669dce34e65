// clip: the factor that AdamW scales all gradients by, so that their norm is at most a given one; and whether a step
// may be taken at all.
#ifndef HECATE_KERNELS_CLIP_H
#define HECATE_KERNELS_CLIP_H

#include "kernels/scalar.h"
#include "kernels/types.h"

enum hk_step_is { HK_STEP_TAKEN, HK_STEP_SKIPPED, HK_STEP_STOPPED };

struct hk_clipped {
    double norm;     // Norm of the gradients.
    double scale;    // For them.
    int64_t skipped; // Steps in a row, this one included, with a number that was not finite.
    int64_t
        stopped; // enum hk_step_is. Skipped: gradients are cleared, and that is all; stopped: nothing changes any more.
};

// The factor that brings gradients of norm `norm` to at most `clip` (0: any norm).
HK_SCALAR double hk_clip_scale(double clip, double norm) {
    return clip == 0 || norm <= clip ? 1 : clip / norm;
}

// norm = sqrt(sums[0] + ...), in an order that depends on `count` alone. scale = hk_clip_scale(clip, norm). Where the
// norm, or one of `numbers` (losses; `numbered` of them) is not finite, the step is skipped; if as many as `skips`
// before it have been, it is stopped, and so are all that follow.
void hk_clip(struct hk_clipped *clipped, const double *sums, int64_t count, const float *numbers,
             int64_t numbered, double clip, int64_t skips);

// The outcome of the step, of which a number may not be finite.
HK_SCALAR void hk_clip_decide(struct hk_clipped *clipped, bool finite, int64_t skips) {
    if (clipped->stopped == HK_STEP_STOPPED) return;
    clipped->skipped = finite ? 0 : clipped->skipped + 1;
    clipped->stopped = finite                      ? HK_STEP_TAKEN
                       : clipped->skipped <= skips ? HK_STEP_SKIPPED
                                                   : HK_STEP_STOPPED;
}

#endif
