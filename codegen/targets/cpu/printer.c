// The C code of each operation.
#include "codegen/host/kernel_call.h"
#include "codegen/targets/cpu/ops.h"

void hec_emit_call(struct hec_emitter *e, MlirOperation op) {
    hec_kernel_call(e, op, "hk_", "");
}

static hec_emit_op *find(enum hec_op op) {
    static hec_emit_op *const table[HEC_OP_OTHER + 1] = {
#define HEC_BY_HOST(id, function)
#define HEC_BY_TARGET(id) [HEC_OP_##id] = hec_emit_##id,
#define HEC_BY_LOOP(id) [HEC_OP_##id] = hec_emit_elementwise,
#define HEC_BY_KERNEL(id)
#define HEC_BY_NOBODY(id)
#include "codegen/host/printed.def"
#define HEC_OP(id, dialect, operands, results, attributes)
#define HEC_SCALAR(id, operands, results) [HEC_OP_##id] = hec_emit_elementwise,
#include "ir/ops.def"
#undef HEC_OP
    };
    return table[op];
}

const struct hec_back_end hec_back_end_cpu = {
    .name = "cpu",
    .ranks = "mpi",
    .headers = (const char *const[]){"hecate/kernels/kernels.h", NULL},
    .lines = "struct hk_lines lines HK_LINES_END = {0};",
    .line = "hk_line(&lines, ",
    .memory = &hec_host_memory,
    .of = find,
    .tuner = "hecate-tune",
    .tuned_file = "hecate.blocking",
    .calibrator = "hecate-calibrate",
    .epilogue = hec_epilogue,
};
