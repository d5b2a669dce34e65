// muon_cuda: launchers of muon on CUDA devices, see muon.h and cuda/lane.h. The rule is read when the launcher is
// called, the targets of `clipped` and `squares` when the kernel runs.
#ifndef HECATE_KERNELS_MUON_CUDA_H
#define HECATE_KERNELS_MUON_CUDA_H

#include "kernels/cuda/lane.h"
#include "kernels/muon/muon.h"

#ifdef __cplusplus
extern "C" {
#endif

void hkc_muon_look_ahead_f32(struct hkc_lane *lane, float *gradient, float *momentum, int64_t count,
                             const struct hk_muon_rule *rule);
void hkc_muon_normalize_f32(struct hkc_lane *lane, float *x, const double *squares, double eps,
                            int64_t count);
void hkc_muon_blend_f32(struct hkc_lane *lane, float *x, double factor, const float *y, double more,
                        int64_t count);
void hkc_muon_move_f32(struct hkc_lane *lane, float *value, const float *x, double size,
                       int64_t count, const struct hk_muon_rule *rule);

#ifdef __cplusplus
}
#endif

#endif
