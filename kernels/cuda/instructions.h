// instructions: those that CUDA C++ has no function for. Each has two bodies: PTX, and the emulator's (tests/simt).
// Included by device.h only.
#ifndef HECATE_KERNELS_CUDA_INSTRUCTIONS_H
#define HECATE_KERNELS_CUDA_INSTRUCTIONS_H

#ifdef __CUDACC__
#define HKC_PTX(emulated, ...) asm volatile(__VA_ARGS__)
#define HKC_EMULATED(emulated) ((void)0)
#define HKC_SITE
#else
#define HKC_PTX(emulated, ...) emulated
#define HKC_EMULATED(emulated) emulated // A check that a device makes by itself.
#define HKC_SITE , SIMT_SITE            // The caller's line, for reports.
#endif

// A 32-bit address in shared memory, as the instructions below take them.
HKC_DEVICE uint32_t shared_address(const void *p) {
    return (uint32_t)__cvta_generic_to_shared(p);
}

// Stores 16 bytes of device memory at once. Left to itself, nvcc takes vectors apart that were made number by number.
HKC_DEVICE void store16(uint4 *to, uint4 x) {
    HKC_PTX(*to = x, "st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(x.x), "r"(x.y),
            "r"(x.z), "r"(x.w)
            : "memory");
}

// cp.async: asynchronously copies 16 (4) bytes from device to shared memory, of which the first `size` are read and
// the rest become 0. Both places are multiples of 16 (4); with size 0 nothing is read.
HKC_DEVICE void copy16(uint32_t to, const void *from, int size = 16) {
    HKC_PTX(simt::copy_async(to, from, 16, size),
            "cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(size)
            : "memory");
}
HKC_DEVICE void copy4(uint32_t to, const void *from, int size = 4) {
    HKC_PTX(simt::copy_async(to, from, 4, size),
            "cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(size)
            : "memory");
}

// Ends a group of this thread's copies; waits until at most LEFT of its groups are under way.
HKC_DEVICE void copy_commit() {
    HKC_PTX(simt::copy_commit(), "cp.async.commit_group;" ::: "memory");
}
template <int LEFT> HKC_DEVICE void copy_wait() {
    HKC_PTX(simt::copy_wait(LEFT), "cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
}

// ldmatrix: four 8 x 8 matrices of 2-byte values. Lane l gives the address of row l % 8 of matrix l / 8 and gets,
// in r[i], values 2 (l % 4) and the next one of row l / 4 of matrix i; transposed, of its column l / 4.
HKC_DEVICE void load4(uint32_t (&r)[4], uint32_t from HKC_SITE) {
    HKC_PTX(simt::load_matrices(r, from, false, site),
            "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
            : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
            : "r"(from)
            : "memory");
}
HKC_DEVICE void load4_transposed(uint32_t (&r)[4], uint32_t from HKC_SITE) {
    HKC_PTX(simt::load_matrices(r, from, true, site),
            "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
            : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
            : "r"(from)
            : "memory");
}

// mma: d += a b for 16 x 16 and 16 x 8 matrices of bf16, sums in float. With g = lane / 4 and t = 2 (lane % 4), a has
// rows g and g + 8 in turn, columns t and t + 1, then those from t + 8; b rows t and t + 1, then t + 8 and t + 9, of
// column g; d columns t and t + 1 of row g, then of row g + 8.
HKC_DEVICE void mma(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1 HKC_SITE) {
    HKC_PTX(simt::multiply_matrices(d, a, b0, b1, site),
            "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
            "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

#endif
