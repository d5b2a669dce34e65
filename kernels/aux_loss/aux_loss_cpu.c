// CPU twin of aux_loss: a few numbers of each sequence, by one thread.
#include "kernels/aux_loss/aux_loss.h"

#include "kernels/cpu/real.h"

HK_KERNEL(void, aux_loss,
          (real * loss, const real *means, const real *fractions, int64_t sequences,
           int64_t experts, double coef),
          (loss, means, fractions, sequences, experts, coef),
          HK_PASS(2 * sequences * experts, 0, "sequences experts", sequences, experts)) {
    double sum = 0;
    for (int64_t i = 0; i < sequences * experts; i++)
        sum += (double)means[i] * (double)fractions[i];
    loss[0] = sequences > 0 ? (real)(coef * (double)experts * sum / (double)sequences) : 0;
}

HK_KERNEL(void, aux_loss_grad,
          (real * dmeans, const real *dloss, const real *fractions, int64_t sequences,
           int64_t experts, double coef),
          (dmeans, dloss, fractions, sequences, experts, coef),
          HK_PASS(2 * sequences * experts, 0, "sequences experts", sequences, experts)) {
    const double factor = (double)dloss[0] * coef * (double)experts / (double)sequences;
    for (int64_t i = 0; i < sequences * experts; i++)
        dmeans[i] = (real)(factor * (double)fractions[i]);
}
