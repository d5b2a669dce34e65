// documents_cuda: the launcher of documents on CUDA devices, see documents.h and cuda/lane.h.
#ifndef HECATE_KERNELS_DOCUMENTS_CUDA_H
#define HECATE_KERNELS_DOCUMENTS_CUDA_H

#include "kernels/cuda/lane.h"
#include "kernels/documents/documents.h"

#ifdef __cplusplus
extern "C" {
#endif

void hkc_documents(struct hkc_lane *lane, int32_t *begins, const int32_t *ids, int64_t sequences,
                   int64_t positions, int64_t end, int64_t before);

#ifdef __cplusplus
}
#endif

#endif
