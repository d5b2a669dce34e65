// store: a few numbers that go along with a launch, so that nobody waits for a copy; collect: a few that lie apart.
#ifndef HECATE_KERNELS_CUDA_STORE_H
#define HECATE_KERNELS_CUDA_STORE_H

#include "kernels/cuda/lane.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HKC_STORE_MOST = 16 };

// Copies `words` <= HKC_STORE_MOST words of 4 bytes from the host's memory, which is read before this returns, to the
// device's.
void hkc_store(struct hkc_lane *lane, void *to, const void *from, int words);

enum { HKC_COLLECT_MOST = 12 };

// to[i] = *from[i], i < count <= HKC_COLLECT_MOST. `from` itself is the host's, and is read before this returns.
void hkc_collect(struct hkc_lane *lane, float *to, const float *const *from, int count);

#ifdef __cplusplus
}
#endif

#endif
