// Tokens further on: sequences moved to the left.
#include "kernels/gather/gather.h"

#include "kernels/cpu/observe.h"

void hk_ahead(int32_t *ids, const int32_t *targets, int64_t sequences, int64_t positions,
              int64_t by) {
    HK_OBSERVE("ahead", ((struct hk_work){.sizes = "sequences positions",
                                          .size = {sequences, positions},
                                          .bytes = 8.0 * (double)(sequences * positions)}))
    for (int64_t s = 0; s < sequences; s++) {
        for (int64_t t = 0; t < positions; t++)
            ids[s * positions + t] = t + by < positions ? targets[s * positions + t + by] : -1;
    }
}
