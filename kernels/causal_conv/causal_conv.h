// causal_conv: a short convolution over the positions of a sequence, each channel by itself (depthwise), which sees no
// position behind its own and none of another document. Source: as in Gu and Dao 2023, "Mamba", arXiv:2312.00752.
#ifndef HECATE_KERNELS_CAUSAL_CONV_H
#define HECATE_KERNELS_CAUSAL_CONV_H

#include "kernels/types.h"

struct hk_conv_dims {
    int64_t batch;
    int64_t positions;
    int64_t channels;
    int64_t taps;
    const int32_t *
        begins; // [batch, positions]: where the document of each position begins; NULL: with the sequence.
};

// y[b, t, c] = sum over j of w[c, j] x[b, t - (taps - 1) + j, c], of those positions that lie in the document of t; j
// ascends.
//   x, y [batch, positions, channels], w [channels, taps]
void hk_causal_conv_f32(float *y, const float *x, const float *w, struct hk_conv_dims dims);
void hk_causal_conv_f64(double *y, const double *x, const double *w, struct hk_conv_dims dims);

// dx (+)= the gradient by x, dw (+)= that by w, a sum over all tokens.
void hk_causal_conv_grad_f32(float *dx, float *dw, const float *dy, const float *x, const float *w,
                             struct hk_conv_dims dims, enum hk_write write_x,
                             enum hk_write write_w);
void hk_causal_conv_grad_f64(double *dx, double *dw, const double *dy, const double *x,
                             const double *w, struct hk_conv_dims dims, enum hk_write write_x,
                             enum hk_write write_w);

#endif
