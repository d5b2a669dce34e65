// Finds blocks.
#include "runtime/params/packed.h"

#include <assert.h>

#include "kernels/packed/packed.h"

_Static_assert((int)HRT_MXFP4 == (int)HK_MXFP4 && (int)HRT_FP8 == (int)HK_FP8,
               "as enum hk_packing");

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static enum hk_packing packing_of(const struct hrt_param *param) {
    return (enum hk_packing)param->packing;
}

int64_t hrt_params_unit(const struct hrt_param *param) {
    return param->packing ? HK_PACKED_ROWS * param->columns : 1;
}

void hrt_params_packed_read(const struct hrt_param *param, const void *stored, int64_t first,
                            int64_t count, float *elements) {
    for (int64_t i = 0; i < count; i++) {
        const int64_t row = (first + i) / param->columns, column = (first + i) % param->columns;
        const void *block =
            hk_packed_block(packing_of(param), (void *)stored, param->rows, row, column);
        elements[i] = hk_bf16_float(
            hk_packed_element(packing_of(param), block, row % HK_PACKED_ROWS, column % HK_PANEL));
    }
}

void hrt_params_packed_put(const struct hrt_param *param, void *stored, int64_t row, int64_t column,
                           int64_t rows, int64_t columns, int64_t pitch, const float *elements,
                           float scale) {
    assert(row % HK_PACKED_ROWS == 0 && column % HK_PANEL == 0 && rows <= HK_PACKED_ROWS &&
           columns <= HK_PANEL);
    hk_pack(packing_of(param), hk_packed_block(packing_of(param), stored, param->rows, row, column),
            elements, pitch, rows, columns, scale);
}

void hrt_params_packed_write(const struct hrt_param *param, void *stored, int64_t first,
                             int64_t count, const float *elements) {
    const int64_t unit = hrt_params_unit(param), columns = param->columns;
    assert(first % unit == 0 && (count % unit == 0 || first + count == param->rows * columns));
    for (int64_t at = 0; at < count; at += unit) {
        const int64_t rows = least(unit, count - at) / columns;
        for (int64_t column = 0; column < columns; column += HK_PANEL)
            hrt_params_packed_put(param, stored, (first + at) / columns, column, rows,
                                  least(HK_PANEL, columns - column), columns,
                                  elements + at + column, 0);
    }
}
