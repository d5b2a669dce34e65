// Rounds tensor by tensor: a panel of the copy has another shape than one of the parameter.
#include "runtime/params/rounded.h"

#include <assert.h>

#include "kernels/bf16.h"
#include "runtime/params/tensor.h"

void hrt_params_round_tensor(const struct hrt_param *param, int64_t offset, const void *params,
                             void *rounded) {
    const float *from = (const float *)params + offset;
    hk_bf16 *to = (hk_bf16 *)rounded + offset;
    if (param->layout == HRT_PANELS) {
        hk_round_panels_bf16(to, from, param->rows, param->columns);
    } else {
        hk_round_bf16(to, from, hrt_params_size(param));
    }
}

void hrt_params_round(const struct hrt_placement *placement, const void *params, void *rounded,
                      bool parted) {
    struct hrt_tensor tensor = {0};
    if (!placement->program->bind_rounded) return;
    assert(placement->program->precision == HRT_FP32);
    while (hrt_params_tensor_next_here(placement, &tensor)) {
        const bool shared = tensor.param->set < 0 || !placement->program->owned;
        if (!tensor.param->rounded || (parted && shared)) continue;
        hrt_params_round_tensor(tensor.param, tensor.offset, params, rounded);
    }
}

size_t hrt_params_rounded_bytes(const struct hrt_program *program) {
    return program->bind_rounded ? (size_t)program->param_elements * sizeof(hk_bf16) : 0;
}
