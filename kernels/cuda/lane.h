// A lane of a GPU: work that is done in the order in which it was asked for.
//
// Every CUDA kernel has a launcher, hkc_NAME, with C linkage: it takes the lane, and then the arguments of the
// contract kernels/OP/OP.h, whose pointers the device can read. Launchers only ask for work: they return nothing
// and never wait. The first launch that fails leaves its error in the lane; later ones do nothing.
#ifndef HECATE_KERNELS_CUDA_LANE_H
#define HECATE_KERNELS_CUDA_LANE_H

// Bytes of a lane's scratch.
enum { HKC_SCRATCH = 32 << 20 };

struct hkc_lane {
    struct CUstream_st *stream; // A cudaStream_t.
    void *scratch;              // Of the device: between the kernels of one launcher.
    // Cuts work into as many blocks as the device has room for, where that changes no order of sums.
    int multiprocessors;
    int error;          // A cudaError_t; 0: none.
    const char *failed; // The kernel that could not be launched.
};

#endif
