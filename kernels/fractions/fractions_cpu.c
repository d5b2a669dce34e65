// CPU twin of fractions: counts are whole numbers, so that no order of sums matters.
#include "kernels/fractions/fractions.h"

#include "kernels/cpu/real.h"

HK_KERNEL(void, fractions,
          (real * fractions, int32_t *running, const int32_t *ids, int64_t sequences,
           int64_t tokens, int64_t topk, int64_t experts, int64_t group, int64_t iteration),
          (fractions, running, ids, sequences, tokens, topk, experts, group, iteration),
          HK_PASS(sequences *experts, sequences *tokens *topk, "sequences tokens experts",
                  sequences, tokens, experts)) {
    int32_t count[HK_EXPERTS_MAX];
    int64_t picks = 0;
    assert(experts <= HK_EXPERTS_MAX);
    for (int64_t e = 0; e < experts; e++) {
        count[e] = running && iteration > 1 ? running[e] : 0;
        picks += count[e];
    }
    if (group == 0) group = sequences;
    for (int64_t first = 0; first < sequences; first += group) {
        const int64_t end = first + group < sequences ? first + group : sequences;
        for (int64_t e = 0; e < experts && !running; e++) count[e] = 0;
        const int64_t here = (end - first) * tokens * topk;
        picks = here + (running ? picks : 0);
        for (int64_t p = 0; p < here; p++) count[ids[first * tokens * topk + p]]++;
        for (int64_t s = first; s < end; s++) {
            for (int64_t e = 0; e < experts; e++) {
                const double fraction = picks > 0 ? (double)count[e] / (double)picks : 0;
                fractions[s * experts + e] = (real)fraction;
            }
        }
    }
    for (int64_t e = 0; e < experts && running && iteration > 0; e++) running[e] = count[e];
}
