// The choice of instruction set: processor, build and environment, once.
#include "kernels/cpu/isa.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {
    [HK_ISA_PORTABLE] = "portable",
    [HK_ISA_AVX2] = "avx2",
    [HK_ISA_AVX512] = "avx512",
    [HK_ISA_AVX512BF16] = "avx512bf16",
};

enum { isa_count = sizeof names / sizeof *names };

// The features of -march=x86-64-v4 and -v3 that the compiler lets us ask for; the rest of those
// levels is older than what is asked for here.
enum hk_isa hk_isa_best(void) {
#ifdef HK_X86
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") ||
        !__builtin_cpu_supports("bmi2")) {
        return HK_ISA_PORTABLE;
    }
#ifdef HK_WIDE
    return HK_ISA_AVX512BF16; // Compiled for AVX2, see avx512.h.
#endif
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
        !__builtin_cpu_supports("avx512cd") || !__builtin_cpu_supports("avx512dq") ||
        !__builtin_cpu_supports("avx512vl")) {
        return HK_ISA_AVX2;
    }
    return __builtin_cpu_supports("avx512bf16") ? HK_ISA_AVX512BF16 : HK_ISA_AVX512;
#else
    return HK_ISA_PORTABLE;
#endif
}

static enum hk_isa choose(void) {
    const enum hk_isa best = hk_isa_best();
    const char *wanted = getenv("HECATE_ISA");
    if (!wanted || !*wanted) return best;

    for (int isa = 0; isa < isa_count; isa++) {
        if (strcmp(wanted, names[isa]) != 0) continue;
        if (isa <= (int)best) return (enum hk_isa)isa;
        fprintf(stderr, "HECATE_ISA=%s: this processor offers only %s\n", wanted, names[best]);
        exit(2);
    }
    fprintf(stderr, "HECATE_ISA=%s: unknown; one of avx512bf16, avx512, avx2, portable\n", wanted);
    exit(2);
}

enum hk_isa hk_isa(void) {
    static atomic_int chosen = -1; // Threads that race here choose the same.
    int isa = atomic_load_explicit(&chosen, memory_order_relaxed);
    if (isa < 0) {
        isa = (int)choose();
        atomic_store_explicit(&chosen, isa, memory_order_relaxed);
    }
    return (enum hk_isa)isa;
}

const char *hk_isa_name(enum hk_isa isa) {
    return names[isa];
}
