// The C and CUDA code of each operation.
#include "codegen/host/kernel_call.h"
#include "codegen/targets/cuda/nvcc.h"
#include "codegen/targets/cuda/ops.h"

void hec_cuda_call(struct hec_emitter *e, MlirOperation op) {
    hec_kernel_call(e, op, "hkc_", "m->lane");
}

static hec_emit_op *find(enum hec_op op) {
    static hec_emit_op *const table[HEC_OP_OTHER + 1] = {
#define HEC_BY_HOST(id, function)
#define HEC_BY_TARGET(id) [HEC_OP_##id] = hec_cuda_##id,
#define HEC_BY_LOOP(id) [HEC_OP_##id] = hec_cuda_elementwise,
#define HEC_BY_KERNEL(id)
#define HEC_BY_NOBODY(id)
#include "codegen/host/printed.def"
#define HEC_OP(id, dialect, operands, results, attributes)
#define HEC_SCALAR(id, operands, results) [HEC_OP_##id] = hec_cuda_elementwise,
#include "ir/ops.def"
#undef HEC_OP
    };
    return table[op];
}

const struct hec_back_end hec_back_end_cuda = {
    .name = "cuda",
    .ranks = "tcp", // The executor moves what is large.
    .executor = "cuda",
    .headers = (const char *const[]){"hecate/kernels/launchers.h", NULL},
    .device_headers =
        (const char *const[]){"hecate/kernels/cuda/loop.h", "hecate/kernels/cuda/program.h", NULL},
    .lines = "struct hrt_lines lines HRT_LINES_END = {0};",
    .line = "hrt_device_line(m->device, &lines, ",
    .memory = &hec_cuda_memory,
    .of = find,
    .compile = hec_nvcc_compile,
    .tuner = "hecate-tune-cuda",
    .tuned_file = "hecate.products",
};
