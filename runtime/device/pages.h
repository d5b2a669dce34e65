// Memory of a GPU whose addresses are reserved at once. Pages stand behind them only where somebody has asked for them
// (CUDA's virtual memory). So every rank has the same places, and takes memory for its own experts alone.
#ifndef HECATE_RUNTIME_DEVICE_PAGES_H
#define HECATE_RUNTIME_DEVICE_PAGES_H

#include <stdbool.h>
#include <stddef.h>

#include <cuda_runtime_api.h>

#include "runtime/device/device.h"

enum { HRT_PAGE_BYTES = 2 << 20 }; // The least of every GPU so far.

// One reservation. A page stands as long as somebody who has touched it has not left it.
struct hrt_pages;

// Reserves `bytes` of addresses for GPU `gpu`, and links them before `later`. NULL: there are no addresses left, or the
// driver has no virtual memory.
struct hrt_pages *hrt_device_pages_reserve(int gpu, size_t bytes, struct hrt_pages *later);

// Gives addresses and all pages back, and returns the ones behind them. Nothing may use them any more.
struct hrt_pages *hrt_device_pages_release(struct hrt_pages *pages);

void *hrt_device_pages_base(const struct hrt_pages *pages);

// The reservation that holds `at`, of `first` and those behind it; NULL: none does.
struct hrt_pages **hrt_device_pages_find(struct hrt_pages **first, const void *at);

// Makes pages stand behind `bytes` from `at`. The bytes, and the rest of new pages, are zeroed in the order of
// `stream`. New pages are the GPU's, or the host's, on the node that is nearest to the GPU. False: there is not enough
// memory, or the driver has none of that kind; nothing has changed.
bool hrt_device_pages_touch(struct hrt_pages *pages, void *at, size_t bytes, enum hrt_home home,
                            cudaStream_t stream);

// Undoes one touch of the same bytes. Pages that nobody else has touched go at once, so work that uses them has to be
// complete. hrt_device_pages_leaves: whether any page would go.
void hrt_device_pages_leave(struct hrt_pages *pages, void *at, size_t bytes);
bool hrt_device_pages_leaves(const struct hrt_pages *pages, const void *at, size_t bytes);

// Copies as cudaMemcpyAsync does, whichever memory either end is. Where pages of both homes stand side by side, no copy
// has more than one of them at an end.
cudaError_t hrt_device_pages_copy(void *to, const void *from, size_t bytes, cudaStream_t stream);

#endif
