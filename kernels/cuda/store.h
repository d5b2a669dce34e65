// store: a few numbers of the host's that go to memory along with a launch, so that nobody waits for a copy.
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

#ifdef __cplusplus
}
#endif

#endif
