// pretend: kernels that wait as long as they would take elsewhere instead of computing, so that a few
// cores can stand for many devices while everything that moves between ranks is real. Results mean
// nothing.
#ifndef HECATE_KERNELS_CPU_PRETEND_H
#define HECATE_KERNELS_CPU_PRETEND_H

#include <stdbool.h>

#include "kernels/cpu/observe.h"

// How fast the device is that we pretend to be. A call takes the fixed time, and the longer of its
// arithmetic and its memory traffic.
struct hk_pretence {
    double product_flops;   // Per second: matmul, grouped.
    double attention_flops; // Per second: sdpa.
    double bytes;           // Per second, read and written.
    double call_s;          // Seconds of every call.
};

// From now on all public kernels called by any thread wait, but for those that decide where rows go,
// which also compute: router and route. NULL: they compute as always. Call it while no kernel runs;
// `pretence` outlives its use.
void hk_pretend(const struct hk_pretence *pretence);

// The functions below are for kernels.

extern const struct hk_pretence *hk_pretence_;

// Waits for the call; false: the kernel has to compute instead.
bool hk_pretend_call(const char *name, const struct hk_work *work);

// Placed in the public function: whether the kernel has nothing left to do. `work` is evaluated only
// when kernels pretend.
#define HK_PRETENDED(kernel, work)                                                                 \
    (__builtin_expect(hk_pretence_ != 0, 0) && hk_pretend_call(kernel, &work))

#endif
