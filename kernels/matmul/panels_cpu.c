// CPU twin of the change of layout, from rows to panels and back.
#include "kernels/cpu/pack.h"
#include "kernels/matmul/matmul.h"

HK_KERNEL(void, panels_pack, (real * panels, const real *rows, int64_t k, int64_t n),
          (panels, rows, k, n), HK_PASS(2 * k * n, 0, "k n", k, n)) {
#pragma omp parallel for schedule(static)
    for (int64_t j = 0; j < n; j += HK_PANEL) {
        pack_panel(panels + j * k, rows + j, n, k, n - j);
    }
}

HK_KERNEL(void, panels_unpack, (real * rows, const real *panels, int64_t k, int64_t n),
          (rows, panels, k, n), HK_PASS(2 * k * n, 0, "k n", k, n)) {
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < k; i++) {
        for (int64_t j = 0; j < n; j++) {
            rows[i * n + j] = panels[(j / HK_PANEL * k + i) * HK_PANEL + j % HK_PANEL];
        }
    }
}
