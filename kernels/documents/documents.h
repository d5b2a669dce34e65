// documents: where the documents of a sequence begin, each of which ends with a token of its own.
#ifndef HECATE_KERNELS_DOCUMENTS_H
#define HECATE_KERNELS_DOCUMENTS_H

#include "kernels/types.h"

// begins[s, t]: the first position of the document of position t. A token `end` is the last one of its document.
//   ids, begins [sequences, positions]
//   before: positions of the one sequence that lie before these, whose ids and begins lie before those of the call. On CUDA
//           devices 0.
void hk_documents(int32_t *begins, const int32_t *ids, int64_t sequences, int64_t positions,
                  int64_t end, int64_t before);

#endif
