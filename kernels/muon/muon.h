// muon: the parts of a step of Muon that are no GEMM: the momentum, sums and factors of matrices, and the update.
// Source: Jordan et al. 2024, "Muon: an optimizer for hidden layers in neural networks".
//
// An array has `count` elements. Elementwise: layouts and their zero padding are unaffected.
#ifndef HECATE_KERNELS_MUON_H
#define HECATE_KERNELS_MUON_H

#include "kernels/clip/clip.h"
#include "kernels/types.h"

// The numbers of a step, besides the matrix's own.
struct hk_muon_rule {
    double lr;
    double momentum;   // The share of it that stays.
    double norm_eps;   // Added to the norm by which the matrix is divided.
    double decay;      // Decoupled: values shrink by lr * decay.
    double grad_scale; // Multiplies every gradient first: clipping, averaging.
    // NULL, or numbers known only when the kernel runs: gradients are scaled by its scale, too, and where it has
    // stopped values and momenta stay as they are.
    const struct hk_clipped *clipped;
};

// g = grad_scale * gradient;   momentum = share momentum + g
// gradient = g + share momentum, Nesterov's look ahead
// Where the step is skipped, gradient = 0.
void hk_muon_look_ahead_f32(float *gradient, float *momentum, int64_t count,
                            const struct hk_muon_rule *rule);
void hk_muon_look_ahead_f64(double *gradient, double *momentum, int64_t count,
                            const struct hk_muon_rule *rule);

// x = x / (sqrt(*squares) + eps), so that a matrix of zeros, or of what rounding leaves of zeros, stays nearly one;
// `squares` as of sum_squares, eps above 0. So are `arrays` of them, which lie one behind the other, as do their sums.
void hk_muon_normalize_f32(float *x, const double *squares, double eps, int64_t count,
                           int64_t arrays);
void hk_muon_normalize_f64(double *x, const double *squares, double eps, int64_t count,
                           int64_t arrays);

// x = factor x + more y
void hk_muon_blend_f32(float *x, double factor, const float *y, double more, int64_t count);
void hk_muon_blend_f64(double *x, double factor, const double *y, double more, int64_t count);

enum { HK_MUON_ARRAYS = 128 };

// value[a] = (1 - lr decay) value[a] - lr size x[a], a < arrays <= HK_MUON_ARRAYS; x[a] begins at x + a * stride.
// `value` itself is the host's, and is read before this returns.
void hk_muon_move_f32(float *const *value, const float *x, double size, int64_t count,
                      int64_t stride, int64_t arrays, const struct hk_muon_rule *rule);
void hk_muon_move_f64(double *const *value, const double *x, double size, int64_t count,
                      int64_t stride, int64_t arrays, const struct hk_muon_rule *rule);

#endif
