// CUDA twin of matmul.h. B lies as rows, there is no epilogue.
//
// The lane's library may compute them (cuda/library.h); else every element is one sum in ascending order of the
// contracted index; in tn, sums of 1024 rows each, added in order. _bf16 differs from the cpu's: A and C lie in memory
// as bf16, too, and a result that is A or C is rounded once, when it is written (HK_ADD: after it was added). The
// gradient of B is float.
#ifndef HECATE_KERNELS_MATMUL_CUDA_H
#define HECATE_KERNELS_MATMUL_CUDA_H

#include "kernels/cuda/lane.h"
#include "kernels/matmul/matmul.h"

#ifdef __cplusplus
extern "C" {
#endif

void hkc_matmul_nn_f32(struct hkc_lane *lane, float *c, const float *a, const float *b,
                       enum hk_layout layout, struct hk_matmul_dims dims, enum hk_write write,
                       const struct hk_epilogue *epilogue);
void hkc_matmul_nt_f32(struct hkc_lane *lane, float *a, const float *c, const float *b,
                       enum hk_layout layout, struct hk_matmul_dims dims, enum hk_write write,
                       const struct hk_epilogue *epilogue);
void hkc_matmul_tn_f32(struct hkc_lane *lane, float *b, const float *a, const float *c,
                       enum hk_layout layout, struct hk_matmul_dims dims, enum hk_write write);

void hkc_matmul_nn_bf16(struct hkc_lane *lane, hk_bf16 *c, const hk_bf16 *a, const hk_bf16 *b,
                        enum hk_layout layout, struct hk_matmul_dims dims, enum hk_write write,
                        const struct hk_epilogue *epilogue);
void hkc_matmul_nt_bf16(struct hkc_lane *lane, hk_bf16 *a, const hk_bf16 *c, const hk_bf16 *b,
                        enum hk_layout layout, struct hk_matmul_dims dims, enum hk_write write,
                        const struct hk_epilogue *epilogue);
void hkc_matmul_tn_bf16(struct hkc_lane *lane, float *b, const hk_bf16 *a, const hk_bf16 *c,
                        enum hk_layout layout, struct hk_matmul_dims dims, enum hk_write write);

#ifdef __cplusplus
}
#endif

#endif
