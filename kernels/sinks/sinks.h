// sinks: the gradient of the sinks of sdpa (sdpa.h), a logit of each head that takes a part of every row's weights and
// has the value 0. A row's weights lose what the sink has, so
//
//   dsinks[h] = - sum over b, t of exp(sinks[h] - lse[b, h, t]) * (dout . out)[b, t, h]
#ifndef HECATE_KERNELS_SINKS_H
#define HECATE_KERNELS_SINKS_H

#include "kernels/types.h"

// dsinks[h] (+)= the sum above, row after row.
//   out, dout [batch, positions, heads, width]    lse [batch, heads, positions], as sdpa gave it with these sinks
void hk_sinks_grad_f32(float *dsinks, const float *dout, const float *out, const float *lse,
                       const float *sinks, int64_t batch, int64_t positions, int64_t heads,
                       int64_t width, enum hk_write write);
void hk_sinks_grad_f64(double *dsinks, const double *dout, const double *out, const double *lse,
                       const double *sinks, int64_t batch, int64_t positions, int64_t heads,
                       int64_t width, enum hk_write write);

#endif
