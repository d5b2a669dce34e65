// warpgroup: GEMMs by a warpgroup, four warps whose first is a multiple of four (sm_90a only). Two bodies each, as
// in instructions.h.
//
// wgmma reads both operands from shared memory, through another path than stores take: a thread that has written there
// calls async_fence() before the barrier that stands between. wgmma goes on after the call returns: nobody touches the
// operands or `d` before wgmma_wait().
#ifndef HECATE_KERNELS_CUDA_WARPGROUP_H
#define HECATE_KERNELS_CUDA_WARPGROUP_H

#include "kernels/cuda/device.h"

#ifndef __CUDACC__
#include <warpgroup.h>
#endif

// Whether the code being compiled may contain these instructions.
#if !defined __CUDA_ARCH__ || defined __CUDA_ARCH_FEAT_SM90_ALL
#define HKC_WARPGROUPS 1
#else
#define HKC_WARPGROUPS 0
#endif

// An operand with 128-byte swizzle: lines of 64 values, of which eight are 1024 bytes, at multiples of that; piece p of
// line i lies at p ^ i % 8. K-major: lines are rows or columns of the result, the 16 terms of an instruction begin
// at `at`. MN-major: lines are terms, 64 rows or columns each; the next 64 lie `leading` bytes away.
HKC_DEVICE uint64_t wgmma_operand(uint32_t at, uint32_t leading) {
    return (uint64_t)(at >> 4 & 0x3fff) | (uint64_t)(leading >> 4) << 16 |
           (uint64_t)(1024 >> 4) << 32 | (uint64_t)1 << 62;
}

#if HKC_WARPGROUPS
HKC_DEVICE void async_fence() {
    HKC_PTX(simt::async_fence(), "fence.proxy.async.shared::cta;" ::: "memory");
}

#ifdef __CUDACC__
// Before the first wgmma, and where registers of `d` may have been touched: behind every wgmma_wait().
HKC_DEVICE void wgmma_fence() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
// Ends a group; waits until at most LEFT groups are under way.
HKC_DEVICE void wgmma_commit() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int LEFT> HKC_DEVICE void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
}
#else
HKC_DEVICE void wgmma_fence(SIMT_SITE) {
    simt::wgmma_fence(site);
}
HKC_DEVICE void wgmma_commit(SIMT_SITE) {
    simt::wgmma_commit(site);
}
template <int LEFT> HKC_DEVICE void wgmma_wait(SIMT_SITE) {
    simt::wgmma_wait(LEFT, site);
}
#endif

// Where sums are written before wgmma_fence(), and where they are read behind wgmma_wait(): compilers do not know what
// these are for, and may move the one or the other over them.
template <int N> HKC_DEVICE void wgmma_sums(float (&d)[N]) {
#pragma unroll
    for (int i = 0; i < N; i++) HKC_PTX(, "" : "+f"(d[i])::"memory");
    (void)d;
}

// d += a b for 64 x 16 and 16 x N matrices of bf16, sums in float; A_TURNED, B_TURNED: MN-major. Warp w has rows 16 w
// and on, its lane l columns 2 (l % 4) and the next one of row l / 4, then of row l / 4 + 8, for every eight columns.
// clang-format off
template <int A_TURNED, int B_TURNED>
HKC_DEVICE void wgmma(float (&d)[32], uint64_t a, uint64_t b HKC_SITE) {
    HKC_PTX((simt::wgmma_issue({d, 64, a, b, A_TURNED != 0, B_TURNED != 0, true}, site)),
            "{.reg .pred add; setp.eq.u32 add, 0, 0; wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"
            "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
            "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
            "%32, %33, add, 1, 1, %34, %35;}"
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
              "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
              "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
              "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
            : "l"(a), "l"(b), "n"(A_TURNED), "n"(B_TURNED));
}
template <int A_TURNED, int B_TURNED>
HKC_DEVICE void wgmma(float (&d)[64], uint64_t a, uint64_t b HKC_SITE) {
    HKC_PTX((simt::wgmma_issue({d, 128, a, b, A_TURNED != 0, B_TURNED != 0, true}, site)),
            "{.reg .pred add; setp.eq.u32 add, 0, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
            "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
            "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
            "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
            "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
            "%64, %65, add, 1, 1, %66, %67;}"
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
              "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
              "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
              "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]),
              "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]),
              "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]),
              "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]),
              "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
            : "l"(a), "l"(b), "n"(A_TURNED), "n"(B_TURNED));
}
template <int A_TURNED, int B_TURNED>
HKC_DEVICE void wgmma(float (&d)[128], uint64_t a, uint64_t b HKC_SITE) {
    HKC_PTX((simt::wgmma_issue({d, 256, a, b, A_TURNED != 0, B_TURNED != 0, true}, site)),
            "{.reg .pred add; setp.eq.u32 add, 0, 0; wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
            "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
            "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
            "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
            "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
            "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
            "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
            "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
            "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, "
            "%128, %129, add, 1, 1, %130, %131;}"
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
              "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
              "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
              "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]),
              "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]),
              "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]),
              "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]),
              "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63]),
              "+f"(d[64]), "+f"(d[65]), "+f"(d[66]), "+f"(d[67]), "+f"(d[68]), "+f"(d[69]), "+f"(d[70]), "+f"(d[71]),
              "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75]), "+f"(d[76]), "+f"(d[77]), "+f"(d[78]), "+f"(d[79]),
              "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), "+f"(d[83]), "+f"(d[84]), "+f"(d[85]), "+f"(d[86]), "+f"(d[87]),
              "+f"(d[88]), "+f"(d[89]), "+f"(d[90]), "+f"(d[91]), "+f"(d[92]), "+f"(d[93]), "+f"(d[94]), "+f"(d[95]),
              "+f"(d[96]), "+f"(d[97]), "+f"(d[98]), "+f"(d[99]), "+f"(d[100]), "+f"(d[101]), "+f"(d[102]), "+f"(d[103]),
              "+f"(d[104]), "+f"(d[105]), "+f"(d[106]), "+f"(d[107]), "+f"(d[108]), "+f"(d[109]), "+f"(d[110]), "+f"(d[111]),
              "+f"(d[112]), "+f"(d[113]), "+f"(d[114]), "+f"(d[115]), "+f"(d[116]), "+f"(d[117]), "+f"(d[118]), "+f"(d[119]),
              "+f"(d[120]), "+f"(d[121]), "+f"(d[122]), "+f"(d[123]), "+f"(d[124]), "+f"(d[125]), "+f"(d[126]), "+f"(d[127])
            : "l"(a), "l"(b), "n"(A_TURNED), "n"(B_TURNED));
}
// clang-format on
#endif

#endif
