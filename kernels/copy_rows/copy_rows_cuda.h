// copy_rows_cuda: launcher of copy_rows on CUDA devices, see copy_rows.h and cuda/lane.h.
#ifndef HECATE_KERNELS_COPY_ROWS_CUDA_H
#define HECATE_KERNELS_COPY_ROWS_CUDA_H

#include "kernels/copy_rows/copy_rows.h"
#include "kernels/cuda/lane.h"

#ifdef __cplusplus
extern "C" {
#endif

// The sides themselves are the host's. Rows are of values of 2 or 4 bytes, a weight has 4.
void hkc_copy_rows(struct hkc_lane *lane, const struct hk_rows *to, const struct hk_rows *from,
                   int64_t count, size_t row, size_t gate);

#ifdef __cplusplus
}
#endif

#endif
