// Target cuda: C and CUDA for NVIDIA GPUs.
#include "ir/target/target.h"

const struct hec_target hec_target_cuda = {
    .name = "cuda",
    .architectures = "all|sm_80|sm_86|sm_87|sm_89|sm_90|sm_90a|sm_100|sm_103|sm_110|sm_120|sm_121|"
                     "compute_80|compute_90",
    .compiled_for = "sm_80|sm_90a|sm_100|compute_80|compute_90",
    .panel_columns = 0, // Tensor cores read tiles of rows.
    .align_bytes = 256, // The alignment of cudaMalloc.
    .apart = true,
    .page_bytes = 2 << 20,     // HRT_PAGE_BYTES of runtime/device/pages.h.
    .scratch_bytes = 32 << 20, // HKC_SCRATCH of kernels/cuda/lane.h.
    .epilogues = false,        // Loops behind a GEMM are kernels of their own.
    .bf16_values = true,
    .gathers = true,
    .swiglu = true,
};
