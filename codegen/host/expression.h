// The arithmetic of elementwise operations as C: the same text for any loop around it, on a processor or on a
// device.
#ifndef HECATE_CODEGEN_HOST_EXPRESSION_H
#define HECATE_CODEGEN_HOST_EXPRESSION_H

#include "codegen/host/emitter.h"
#include "ir/ops/fused.h"

// The tensors of a loop's body at the current element: "x[r * D + j]", or a number in a variable.
struct hec_elements {
    const char *input[HEC_FUSED_VALUES];  // In the order of the operation's inputs.
    const char *output[HEC_FUSED_VALUES]; // Names of its outputs.
    bool adds[HEC_FUSED_VALUES];          // The output is added to.
    const char *rounds
        [HEC_FUSED_VALUES]; // Functions that round a number for the output; NULL: it is kept as computed.
};

// The statement of one elementwise operation: "y[j] = x[j] * w[j];". At most 4 inputs.
const char *hec_elementwise_text(struct hec_emitter *e, MlirOperation op,
                                 const struct hec_elements *at);

// The statements of a region. Where one is enough it is returned; else they are appended to `body`, behind
// constants for values that are used more than once, and the result is NULL. Names are those of the current function.
const char *hec_region_text(struct hec_emitter *e, const struct hec_fused *of,
                            const struct hec_elements *at, struct hec_writer *body);

#endif
