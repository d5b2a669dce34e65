// isa: which build of the kernels this process runs.
#ifndef HECATE_KERNELS_CPU_ISA_H
#define HECATE_KERNELS_CPU_ISA_H

// Each includes those before it. avx512bf16 differs from avx512 only in the bf16 GEMMs.
enum hk_isa { HK_ISA_PORTABLE, HK_ISA_AVX2, HK_ISA_AVX512, HK_ISA_AVX512BF16 };

// The best that this build and this processor have.
enum hk_isa hk_isa_best(void);

// hk_isa_best, or the one that the environment variable HECATE_ISA
// (avx512bf16, avx512, avx2, portable) names. Decided at the first call; the same for the whole process. A
// value that is unknown, or that this processor or this build lacks, ends the process with
// exit code 2 and a message naming it.
enum hk_isa hk_isa(void);

// The word for HECATE_ISA.
const char *hk_isa_name(enum hk_isa isa);

#endif
