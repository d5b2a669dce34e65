// rope: rotary position embedding. Element j of the first half of a head is rotated together with element j of
// the second half, as Hugging Face's models do; interleaved, element 2 j together with 2 j + 1, as the paper does.
// Source: Su et al. 2021, "RoFormer", arXiv:2104.09864.
#ifndef HECATE_KERNELS_ROPE_H
#define HECATE_KERNELS_ROPE_H

#include "kernels/types.h"

struct hk_rope_dims {
    int64_t batch;
    int64_t positions;
    int64_t heads;
    int64_t width;    // Width of one head; even.
    bool interleaved; // Pairs are neighbours.
};

// The angle of element j at a position p is p * f(j), f(j) = theta^(-2 j / width). Scaling to longer
// sequences divides f(j) by `factor` where j >= high, leaves it where j <= low, and mixes the two in
// proportion between: YaRN (Peng et al. 2023, arXiv:2309.00071, section 3.2). low = -1, high = 0 is
// linear scaling. With `original` positions, low and high are not elements but how often one turns in so many
// positions: f(j) is divided below `low` turns and left above `high` ones (Llama 3.1, arXiv:2407.21783); low may be
// high. Cosines and sines are multiplied with `amplitude`. A factor of 0 is no scaling.
struct hk_rope_rule {
    double theta;
    double factor, low, high, amplitude;
    double original; // 0: none.
};

// table [positions, width]: per position, from `first` on, width/2 cosines, then width/2 sines of the angles. Computed
// in double and rounded once.
void hk_rope_table_f32(float *table, int64_t first, int64_t positions, int64_t width,
                       struct hk_rope_rule rule);
void hk_rope_table_f64(double *table, int64_t first, int64_t positions, int64_t width,
                       struct hk_rope_rule rule);

// y, x [batch, positions, heads, width]; in place (y = x) is allowed.
void hk_rope_f32(float *y, const float *x, const float *table, struct hk_rope_dims dims);
void hk_rope_f64(double *y, const double *x, const double *table, struct hk_rope_dims dims);

// dx (+)= dy rotated back. In place (dx = dy, HK_STORE) is allowed.
void hk_rope_grad_f32(float *dx, const float *dy, const float *table, struct hk_rope_dims dims,
                      enum hk_write write);
void hk_rope_grad_f64(double *dx, const double *dy, const double *table, struct hk_rope_dims dims,
                      enum hk_write write);

#endif
