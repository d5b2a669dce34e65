// CPU twin of gather. The gradient goes by strips of columns: threads never meet, and every
// element adds its rows in ascending order.
#include "kernels/gather/gather.h"

#include "kernels/cpu/row.h"

HK_KERNEL(void, gather,
          (real * y, const real *table, const int32_t *ids, int64_t count, int64_t width),
          (y, table, ids, count, width),
          HK_PASS(2 * count * width, count, "count width", count, width)) {
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < count; i++) {
        if (ids[i] < 0)
            memset(y + i * width, 0, (size_t)width * sizeof *y);
        else
            memcpy(y + i * width, table + ids[i] * width, (size_t)width * sizeof *y);
    }
}

HK_KERNEL(void, gather_grad,
          (real * dtable, const real *dy, const int32_t *ids, int64_t count, int64_t rows,
           int64_t width, enum hk_write write),
          (dtable, dy, ids, count, rows, width, write),
          HK_PASS(3 * count * width + (write == HK_STORE ? rows * width : 0), count,
                  "count rows width", count, rows, width)) {
    const int64_t strip = strip_width(width);
#pragma omp parallel for schedule(static)
    for (int64_t begin = 0; begin < width; begin += strip) {
        const int64_t columns = width - begin < strip ? width - begin : strip;
        for (int64_t r = 0; write == HK_STORE && r < rows; r++) {
            memset(dtable + r * width + begin, 0, (size_t)columns * sizeof *dtable);
        }
        for (int64_t i = 0; i < count; i++) {
            assert(ids[i] < rows);
            if (ids[i] < 0) continue;
            real *to = dtable + ids[i] * width + begin;
            const real *from = dy + i * width + begin;
#pragma omp simd
            for (int64_t j = 0; j < columns; j++) to[j] += from[j];
        }
    }
}
