// lane: where a CUDA kernel runs. A lane's kernels run one after another on its stream; lanes run side by side.
// Plain C: emitted programs and their runtime include it without CUDA's headers.
//
// Launchers (`hkc_NAME` for the kernel `hk_NAME`) take a lane first and then the CPU kernel's arguments. They
// return nothing and never wait. All pointers they are given can be read and written by the device, also those to
// tables and to single numbers. The first launch that fails leaves its error in the lane, later ones do nothing:
// a program looks once a step.
//
// `hkc_NAME_bf16` does the same with activations and their gradients in memory as bf16. Parameters, their gradients,
// statistics, gates and losses are float there, too, as the arguments' types say. Arithmetic and sums are float; each
// result is rounded once, as it is stored.
//
// How a launcher cuts its work depends on sizes only, not on `multiprocessors`, wherever that would change the
// order of a sum: same inputs, same bits, on every device.
#ifndef HECATE_KERNELS_CUDA_LANE_H
#define HECATE_KERNELS_CUDA_LANE_H

#include <stdbool.h>

struct CUstream_st;
struct hkc_library; // cuda/library.h

enum { HKC_SCRATCH = 32 << 20 };

struct hkc_lane {
    struct CUstream_st *stream;
    void *
        scratch; // HKC_SCRATCH bytes of device memory of this lane alone, between kernels of one launcher.
    int multiprocessors;
    int capability; // 10 times the device's major one: 90 for sm_90. A library's choices are those of one.
    bool warpgroups; // hkc_library_code(); false: GEMMs of bf16 are those that every device has.
    struct hkc_library *library; // May compute dense GEMMs; NULL: there is none.
    int error;                   // A cudaError_t; 0 as long as every launch went well.
    const char *failed;          // The kernel whose launch failed, or NULL.
};

#ifdef __cplusplus
extern "C" {
#endif

// The architectures that these kernels, or the program's own, are compiled for: in "sm_80 sm_90a compute_80" the first
// two are machine code, and a driver compiles compute_80 for any device as new or newer. Returns a cudaError_t if there
// is no code for the current device. `warpgroups`: whether the code that the driver has chosen has wgmma. Machine code
// of sm_90a has it; code that the driver compiles has not, even if the device could run it.
int hkc_library_code(const char **compiled_for, bool *warpgroups);
int hkc_program_code(const char **compiled_for);

#ifdef __cplusplus
}
#endif

#endif
