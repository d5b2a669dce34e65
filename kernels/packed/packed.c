// Packs blocks, and reads elements one at a time: GEMMs unpack as they read (matmul/unpack.h).
#include "kernels/packed/packed.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { MXFP4_NAN = 255, MXFP4_BIAS = 127, FP8_NAN = 0x7f, SIGN = 0x80 };

static const float fp8_largest = 448;

// ---- elements

// The numbers of codes, without sign.
static float mxfp4_magnitude(int code) {
    static const float magnitude[] = {0, 0.5F, 1, 1.5F, 2, 3, 4, 6};
    return magnitude[code];
}

static float fp8_magnitude(int code) {
    const int exponent = code >> 3, fraction = code & 7;
    if (code == FP8_NAN) return NAN;
    return exponent ? ldexpf((float)(8 + fraction), exponent - 10) : ldexpf((float)fraction, -9);
}

// Codes of the nearest magnitude, ties to even; the largest for what is beyond it.
static int mxfp4_nearest(float value) {
    return (value > 0.25F) + (value >= 0.75F) + (value > 1.25F) + (value >= 1.75F) +
           (value > 2.5F) + (value >= 3.5F) + (value > 5);
}

static int fp8_nearest(float value) {
    const float denormal = 0x1p-6F;
    uint32_t bits;
    if (value < denormal)
        return (int)rintf(value * 512); // 8 is the code of what is no longer denormal.
    if (value >= fp8_largest) return FP8_NAN - 1;
    memcpy(&bits, &value, sizeof bits);
    return (int)((bits + 0x7ffff + (bits >> 20 & 1)) >> 20) - (120 << 3);
}

static float mxfp4_scale(uint8_t byte) {
    return byte == MXFP4_NAN ? NAN : ldexpf(1, byte - MXFP4_BIAS);
}

hk_bf16 hk_packed_element(enum hk_packing packing, const void *block, int64_t row, int64_t column) {
    const uint8_t *scales = block, *codes = scales + HK_PACKED_HEAD;
    const int64_t at = row / 2 * HK_PANEL + column;
    float magnitude, scale;
    bool negative;
    if (packing == HK_MXFP4) {
        const int code = row % 2 ? codes[at] >> 4 : codes[at] & 15;
        magnitude = mxfp4_magnitude(code & 7), negative = code & 8;
        scale = mxfp4_scale(scales[column]);
    } else {
        const int code = codes[2 * at + row % 2];
        magnitude = fp8_magnitude(code & ~SIGN), negative = code & SIGN;
        memcpy(&scale, scales, sizeof scale);
    }
    return hk_bf16_round((negative ? -magnitude : magnitude) * scale);
}

// ---- packing

// Values of a block that are packed together.
struct tile {
    const float *values;
    int64_t pitch, rows, columns;
};

// The largest magnitude of those that are finite. `odd`: whether there are others.
static float largest(const struct tile *tile, bool *odd) {
    float most = 0;
    *odd = false;
    for (int64_t i = 0; i < tile->rows; i++) {
        for (int64_t j = 0; j < tile->columns; j++) {
            const float magnitude = fabsf(tile->values[i * tile->pitch + j]);
            *odd |= !isfinite(magnitude);
            if (isfinite(magnitude) && magnitude > most) most = magnitude;
        }
    }
    return most;
}

static uint8_t mxfp4_scale_of(const struct tile *column) {
    bool odd;
    const float most = largest(column, &odd);
    if (odd) return MXFP4_NAN;
    const int exponent = most > 0 ? ilogbf(most) - 2 + MXFP4_BIAS : MXFP4_BIAS;
    return (uint8_t)(exponent < 0 ? 0 : exponent);
}

static void pack_mxfp4(uint8_t *block, const struct tile *tile) {
    float factor[HK_PANEL];
    for (int64_t j = 0; j < tile->columns; j++) {
        const struct tile column = {tile->values + j, tile->pitch, tile->rows, 1};
        block[j] = mxfp4_scale_of(&column);
        factor[j] = block[j] == MXFP4_NAN ? 0 : ldexpf(1, MXFP4_BIAS - block[j]);
    }
    for (int64_t i = 0; i < tile->rows; i++) {
        uint8_t *to = block + HK_PACKED_HEAD + i / 2 * HK_PANEL;
        for (int64_t j = 0; j < tile->columns; j++) {
            const float value = tile->values[i * tile->pitch + j] * factor[j];
            const int code = mxfp4_nearest(fabsf(value)) | (signbit(value) ? 8 : 0);
            to[j] |= (uint8_t)(code << i % 2 * 4);
        }
    }
}

// ---- scales of fp8

// Scales that may have made what was read: all of [low, high] give the values seen so far.
struct range {
    double low, high;
};

// Narrows the range to scales with which an element becomes `value`, a magnitude of bf16, once it is rounded; the
// middle of the range says which element. False: none does.
static bool narrow(struct range *range, float value) {
    uint32_t bits;
    float before, behind;
    const float code =
        fp8_magnitude(fp8_nearest((float)(2 * (double)value / (range->low + range->high))));
    memcpy(&bits, &value, sizeof bits);
    if (bits & 0xffff || code == 0) return false;
    const uint32_t neighbours[] = {bits - 0x10000, bits + 0x10000};
    memcpy(&before, &neighbours[0], sizeof before);
    memcpy(&behind, &neighbours[1], sizeof behind);
    const double low = ((double)before + value) / 2 / code,
                 high = ((double)behind + value) / 2 / code;
    if (low > range->low) range->low = low;
    if (high < range->high) range->high = high;
    return range->low <= range->high;
}

// Whether all values are what elements become with this scale.
static bool makes(const struct tile *tile, float scale) {
    for (int64_t i = 0; i < tile->rows; i++) {
        for (int64_t j = 0; j < tile->columns; j++) {
            const float value = fabsf(tile->values[i * tile->pitch + j]);
            const float made = fp8_magnitude(fp8_nearest(value / scale)) * scale;
            if (hk_bf16_float(hk_bf16_round(made)) != value) return false;
        }
    }
    return true;
}

// A scale with which the largest value is an element and all others are, too, once rounded; 0: there is none.
static float fp8_scale_found(const struct tile *tile, float most, float element) {
    struct range range = {most / element * (1 - 0x1p-8), most / element * (1 + 0x1p-8)};
    for (int64_t i = 0; i < tile->rows; i++) {
        for (int64_t j = 0; j < tile->columns; j++) {
            const float value = fabsf(tile->values[i * tile->pitch + j]);
            if (value != 0 && !narrow(&range, value)) return 0;
        }
    }
    const float scale = (float)((range.low + range.high) / 2);
    return makes(tile, scale) ? scale : 0;
}

// One of the elements with as many bits, the largest with each fraction, is the largest value. Where no scale has made
// the values it is the least power of two in whose range they are.
static float fp8_scale_of(const struct tile *tile) {
    bool odd;
    const float most = largest(tile, &odd);
    if (most < FLT_MIN * 512) return most == 0 ? 1 : FLT_MIN;
    for (int fraction = 0; fraction < 8 && !odd; fraction++) {
        const float element = fp8_magnitude(fraction == 7 ? 0x77 : 0x78 | fraction);
        const float scale = fp8_scale_found(tile, most, element);
        if (scale != 0) return scale;
    }
    const float power = ldexpf(1, ilogbf(most) - 8);
    return most > fp8_largest * power ? 2 * power : power;
}

static int fp8_code(float value, float scale) {
    const float magnitude = value == 0 ? 0 : fabsf(value) / fabsf(scale);
    const int sign = !signbit(value) == !signbit(scale) ? 0 : SIGN;
    if (!isfinite(value) || isnan(magnitude)) return sign | FP8_NAN;
    return sign | fp8_nearest(magnitude);
}

static void pack_fp8(uint8_t *block, const struct tile *tile, float scale) {
    if (scale == 0) scale = fp8_scale_of(tile);
    memcpy(block, &scale, sizeof scale);
    for (int64_t i = 0; i < tile->rows; i++) {
        uint8_t *to = block + HK_PACKED_HEAD + i / 2 * 2 * HK_PANEL + i % 2;
        for (int64_t j = 0; j < tile->columns; j++)
            to[2 * j] = (uint8_t)fp8_code(tile->values[i * tile->pitch + j], scale);
    }
}

void hk_pack(enum hk_packing packing, void *block, const float *values, int64_t pitch, int64_t rows,
             int64_t columns, float scale) {
    const struct tile tile = {values, pitch, rows, columns};
    memset(block, 0, (size_t)hk_packed_block_bytes(packing));
    if (packing == HK_MXFP4)
        pack_mxfp4(block, &tile);
    else
        pack_fp8(block, &tile, scale);
}
