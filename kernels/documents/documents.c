// Sequences one after the other: nothing next to what attention takes.
#include "kernels/documents/documents.h"

#include <assert.h>

#include "kernels/cpu/observe.h"

void hk_documents(int32_t *begins, const int32_t *ids, int64_t sequences, int64_t positions,
                  int64_t end, int64_t before) {
    HK_OBSERVE("documents", ((struct hk_work){.sizes = "sequences positions",
                                              .size = {sequences, positions},
                                              .bytes = 8.0 * (double)(sequences * positions)}))
    assert(before == 0 || sequences == 1);
    for (int64_t s = 0; s < sequences; s++) {
        const int32_t *id = ids + s * positions;
        int32_t *begin = begins + s * positions;
        for (int64_t t = 0; t < positions; t++) {
            const bool first = before + t == 0;
            begin[t] = first ? 0 : id[t - 1] == end ? (int32_t)(before + t) : begin[t - 1];
        }
    }
}
