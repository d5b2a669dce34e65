// Target cpu: C that calls the kernels of this machine.
#include "codegen/c/emit_c.h"

#include "codegen/c/ops.h"
#include "codegen/host/program.h"

bool hec_emit_c(MlirOperation module, const struct hec_emit_options *options,
                struct hec_writer *out) {
    static const struct hec_printer printer = {.target = "cpu", .of = hec_c_op};
    return hec_emit_program(module, &printer, options, out);
}
