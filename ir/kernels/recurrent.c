// Convolutions over positions, and the delta rule.
#include "ir/accessors.h"
#include "ir/kernels/choose.h"
#include "ir/ops/rule.h"

static void add_tokens(struct hec_choice *choice, const struct hec_tensor *t) {
    hec_choice_size(choice, "batch", t, 0, 1);
    hec_choice_size(choice, "positions", t, 1, 2);
}

void hec_choose_causal_conv(MlirOperation op, struct hec_choice *choice) {
    const struct hec_tensor x = hec_tensor_at(hec_convolution_x(op)),
                            w = hec_tensor_at(hec_convolution_w(op));
    hec_choice_own_kernel(choice, op);
    add_tokens(choice, &x);
    hec_choice_size(choice, "channels", &x, 2, x.rank);
    hec_choice_size(choice, "taps", &w, w.rank - 1, w.rank);
}

void hec_choose_delta_rule(MlirOperation op, struct hec_choice *choice) {
    const struct hec_tensor q = hec_tensor_at(hec_delta_q(op)), v = hec_tensor_at(hec_delta_v(op));
    hec_choice_own_kernel(choice, op);
    add_tokens(choice, &q);
    hec_choice_size(choice, "heads", &v, 2, 3);
    hec_choice_size(choice, "groups", &q, 2, 3);
    hec_choice_size(choice, "width", &q, 3, 4);
    hec_choice_size(choice, "vwidth", &v, 3, 4);
}
