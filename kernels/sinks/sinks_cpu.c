// CPU twin of sinks. A thread has whole heads; their rows are summed in double.
#include "kernels/sinks/sinks.h"

#include "kernels/cpu/row.h"

HK_KERNEL(void, sinks_grad,
          (real * dsinks, const real *dout, const real *out, const real *lse, const real *sinks,
           int64_t batch, int64_t positions, int64_t heads, int64_t width, enum hk_write write),
          (dsinks, dout, out, lse, sinks, batch, positions, heads, width, write),
          HK_PASS(batch *positions *heads *(2 * width + 1), 0, "batch positions heads width", batch,
                  positions, heads, width)) {
#pragma omp parallel for schedule(static)
    for (int64_t h = 0; h < heads; h++) {
        double sum = 0;
        for (int64_t row = 0; row < batch * positions; row++) {
            const int64_t at = (row * heads + h) * width;
            const real part = lse[(row / positions * heads + h) * positions + row % positions];
            sum += HK_REAL(exp)(sinks[h] - part) * row_dot(dout + at, out + at, width);
        }
        dsinks[h] = (write == HK_ADD ? dsinks[h] : 0) - (real)sum;
    }
}
