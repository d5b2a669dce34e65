// observe: observers of kernels. A public kernel reports every call: its name, its
// sizes, its cost, and its time. Without an observer that is one branch.
#ifndef HECATE_KERNELS_CPU_OBSERVE_H
#define HECATE_KERNELS_CPU_OBSERVE_H

#include <stdint.h>

#include "kernels/cpu/line.h"

enum { HK_DIMS_MAX = 6 };

enum hk_kind {
    HK_KIND_PASS,     // Reads and writes memory; its arithmetic is not counted.
    HK_KIND_PRODUCT,  // matmul, grouped
    HK_KIND_ATTENTION // sdpa
};

// Facts of a call. `sizes` names the sizes, "m n k". When it begins with '~', the first of them is
// chosen by the router and differs from call to call, however alike the calls are.
struct hk_work {
    enum hk_kind kind;
    const char *sizes;
    int64_t size[HK_DIMS_MAX];
    double flops; // A multiply-add is two. 0: not counted.
    double bytes; // Bytes that must be read and written once, in any memory.
};

struct hk_call {
    const char *name; // "matmul_nn", static; NULL: nobody observes.
    struct hk_work work;
    int64_t start, end; // Nanoseconds of hk_clock.
    int64_t
        epilogue_ns;  // The part of these in a GEMM's epilogue: mean over the threads of its team.
    const char *line; // Line of the model, static, "tiny.moe:11"; NULL: unknown.
};

struct hk_observer {
    void (*called)(void *context, const struct hk_call *call);
    void *context;
};

// Reports the calls that this thread makes from now on to `observer`, which must not call kernels
// and outlive its use; NULL ends it. Results are the same with and without.
void hk_observe(const struct hk_observer *observer);

// Nanoseconds of a clock that never steps back.
int64_t hk_clock(void);

// The functions below are for kernels.

extern _Thread_local int64_t hk_epilogue_ns_; // Epilogue time of the call that is observed.

// Where the threads of a GEMM that this thread calls count what its epilogue takes; NULL: nobody
// observes.
static inline int64_t *hk_epilogue_time(void) {
    return __builtin_expect(hk_observer_ != 0, 0) ? &hk_epilogue_ns_ : 0;
}

// One of `threads` threads was in the epilogue for `ns`.
static inline void hk_epilogue_took(int64_t *time, int64_t ns, int threads) {
    __atomic_fetch_add(time, ns / threads, __ATOMIC_RELAXED);
}

void hk_call_report(struct hk_call *call);

static inline void hk_call_end(struct hk_call *call) {
    if (__builtin_expect(call->name != 0, 0)) hk_call_report(call);
}

// Placed first in a public kernel: reports the call when the function is left. `work` is evaluated
// only when someone observes.
#define HK_OBSERVE(kernel, work_)                                                                  \
    struct hk_call call_ __attribute__((cleanup(hk_call_end)));                                    \
    call_.name = 0;                                                                                \
    if (__builtin_expect(hk_observer_ != 0, 0)) {                                                  \
        call_.name = kernel;                                                                       \
        call_.work = work_;                                                                        \
        hk_epilogue_ns_ = 0;                                                                       \
        call_.start = hk_clock();                                                                  \
    }

// The work of a kernel: how many elements of its precision it reads and writes, and of int32_t;
// then the names of its sizes, and the sizes.
#define HK_PASS(elements, ints, names, ...)                                                        \
    HK_WORK_(HK_KIND_PASS, 0, elements, ints, names, __VA_ARGS__)
#define HK_PRODUCT(flops, elements, ints, names, ...)                                              \
    HK_WORK_(HK_KIND_PRODUCT, flops, elements, ints, names, __VA_ARGS__)
#define HK_ATTENTION(flops, elements, names, ...)                                                  \
    HK_WORK_(HK_KIND_ATTENTION, flops, elements, 0, names, __VA_ARGS__)
#define HK_WORK_(kind_, flops_, elements, ints, names, ...)                                        \
    ((struct hk_work){.kind = kind_,                                                               \
                      .sizes = names,                                                              \
                      .size = {__VA_ARGS__},                                                       \
                      .flops = (double)(flops_),                                                   \
                      .bytes = (double)(elements) * sizeof(real) + 4.0 * (double)(ints)})

#endif
