// CPU twin of sum_squares: at most `blocks` partial sums, cut by count alone.
#include "kernels/sum_squares/sum_squares.h"

#include "kernels/cpu/real.h"

// Arrays below shared_min are one thread's: waking the others would take longer.
enum { blocks = 512, side_by_side = 32, shared_min = 65536 };

// Sums run side by side in double; element i of the block goes to sum i % side_by_side.
static double block_squares(const real *x, int64_t count) {
    double sum[side_by_side] = {0};
    const int64_t whole = count / side_by_side * side_by_side;
    for (int64_t i = 0; i < whole; i += side_by_side) {
        for (int j = 0; j < side_by_side; j++) {
            const double v = (double)x[i + j];
            sum[j] += v * v;
        }
    }
    for (int64_t i = whole; i < count; i++) sum[i - whole] += (double)x[i] * (double)x[i];
    double total = 0;
    for (int j = 0; j < side_by_side; j++) total += sum[j];
    return total;
}

// Sum of squares of block b.
static double block_of(const real *x, int64_t count, int64_t block, int64_t b) {
    const int64_t left = count - b * block;
    return left > 0 ? block_squares(x + b * block, left < block ? left : block) : 0;
}

HK_KERNEL(double, sum_squares, (const real *x, int64_t count), (x, count),
          HK_PASS(count, 0, "count", count)) {
    const int64_t block = (count + blocks * 1024 - 1) / (blocks * 1024) * 1024;
    double partial[blocks] = {0};
    if (count < shared_min) { // Without OpenMP, which would make a team of one.
        for (int64_t b = 0; b * block < count; b++) partial[b] = block_of(x, count, block, b);
    } else {
#pragma omp parallel for schedule(static)
        for (int64_t b = 0; b < blocks; b++) partial[b] = block_of(x, count, block, b);
    }
    double total = 0;
    for (int b = 0; b < blocks; b++) total += partial[b];
    return total;
}
