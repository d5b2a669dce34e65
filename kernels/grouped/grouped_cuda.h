// CUDA twin of grouped.h. Matrices lie as rows, there is no epilogue; `chunk` and `first` are read on the
// device. _bf16: see matmul_cuda.h.
#ifndef HECATE_KERNELS_GROUPED_CUDA_H
#define HECATE_KERNELS_GROUPED_CUDA_H

#include "kernels/cuda/lane.h"
#include "kernels/grouped/grouped.h"

#ifdef __cplusplus
extern "C" {
#endif

void hkc_grouped_nn_f32(struct hkc_lane *lane, float *c, const float *a, const float *const *chunk,
                        int64_t offset, const int32_t *first, struct hk_grouped_dims dims,
                        enum hk_write write, const struct hk_epilogue *epilogue);
void hkc_grouped_nt_f32(struct hkc_lane *lane, float *a, const float *c, const float *const *chunk,
                        int64_t offset, const int32_t *first, struct hk_grouped_dims dims,
                        enum hk_write write, const struct hk_epilogue *epilogue);
void hkc_grouped_tn_f32(struct hkc_lane *lane, float *const *chunk, int64_t offset, const float *a,
                        const float *c, const int32_t *first, struct hk_grouped_dims dims,
                        enum hk_write write);

void hkc_grouped_nn_bf16(struct hkc_lane *lane, hk_bf16 *c, const hk_bf16 *a,
                         const hk_bf16 *const *chunk, int64_t offset, const int32_t *first,
                         struct hk_grouped_dims dims, enum hk_write write,
                         const struct hk_epilogue *epilogue);
void hkc_grouped_nt_bf16(struct hkc_lane *lane, hk_bf16 *a, const hk_bf16 *c,
                         const hk_bf16 *const *chunk, int64_t offset, const int32_t *first,
                         struct hk_grouped_dims dims, enum hk_write write,
                         const struct hk_epilogue *epilogue);
void hkc_grouped_tn_bf16(struct hkc_lane *lane, float *const *chunk, int64_t offset,
                         const hk_bf16 *a, const hk_bf16 *c, const int32_t *first,
                         struct hk_grouped_dims dims, enum hk_write write);

#ifdef __cplusplus
}
#endif

#endif
