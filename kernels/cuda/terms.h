// terms: the sum of many arrays by one launch; the list of them goes along with it.
#ifndef HECATE_KERNELS_CUDA_TERMS_H
#define HECATE_KERNELS_CUDA_TERMS_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/cuda/lane.h"

#ifdef __cplusplus
extern "C" {
#endif

// An array that is added.
struct hkc_term {
    const void *from;
    bool narrow; // In bf16, each number of which becomes a float; else floats.
};

enum { HKC_TERMS_MOST = 128 };

// to[i] = ((a + b) + c) + ... of the `count` elements of `terms` arrays, 1 to HKC_TERMS_MOST, in their order: the same
// bits as a copy of the first one and an addition of each other one. `adds`: to what is there, (to + a) + b. No term
// overlaps `to`, which is on the device as they are. `term` itself is the host's, and is read before this returns.
void hkc_sum_terms(struct hkc_lane *lane, float *to, bool adds, const struct hkc_term *term,
                   int terms, int64_t count);

#ifdef __cplusplus
}
#endif

#endif
