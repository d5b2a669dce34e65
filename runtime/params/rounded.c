// Rounds tensor by tensor: a panel of the copy has another shape than one of the parameter.
#include "runtime/params/rounded.h"

#include <assert.h>

#include "kernels/bf16.h"
#include "runtime/params/part.h"
#include "runtime/params/tensor.h"

void hrt_params_round_tensor(const struct hrt_param *param, const float *tensor, hk_bf16 *rounded) {
    if (param->layout == HRT_PANELS) {
        hk_round_panels_bf16(rounded, tensor, param->rows, param->columns);
    } else {
        hk_round_bf16(rounded, tensor, hrt_params_size(param));
    }
}

void hrt_params_round(const struct hrt_placement *placement, const void *params, void *rounded) {
    const struct hrt_program *program = placement->program;
    struct hrt_tensor tensor = {0};
    if (!program->bind_rounded) return;
    assert(program->precision == HRT_FP32);
    while (hrt_params_tensor_next_here(placement, &tensor)) {
        if (tensor.param->rounded && !tensor.param->rounded_only &&
            !hrt_params_is_cut(program, tensor.param, HRT_PARAMETERS))
            hrt_params_round_tensor(tensor.param, (const float *)params + tensor.offset,
                                    (hk_bf16 *)rounded + tensor.offset);
    }
}

size_t hrt_params_rounded_bytes(const struct hrt_program *program) {
    return program->bind_rounded ? (size_t)program->param_elements * sizeof(hk_bf16) : 0;
}
