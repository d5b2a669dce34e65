// From doubles to stored elements.
#include "runtime/params/element.h"

#include <math.h>
#include <string.h>

static const struct {
    const char *name, *config;
    size_t bytes;
} types[] = {[HRT_HF_BF16] = {"BF16", "bfloat16", 2},
             [HRT_HF_F16] = {"F16", "float16", 2},
             [HRT_HF_F32] = {"F32", "float32", 4},
             [HRT_HF_F64] = {"F64", "float64", 8}};
enum { TYPES = sizeof types / sizeof *types };

const char *hrt_params_hf_type_name(enum hrt_hf_type type) {
    return types[type].name;
}

size_t hrt_params_hf_type_bytes(enum hrt_hf_type type) {
    return types[type].bytes;
}

enum hrt_hf_type hrt_params_hf_type_find(const char *name) {
    for (int i = 0; name && i < TYPES; i++) {
        if (strcmp(name, types[i].name) == 0 || strcmp(name, types[i].config) == 0)
            return (enum hrt_hf_type)i;
    }
    return HRT_HF_BF16;
}

// hk_bf16_round makes denormal numbers zeros, as GEMMs do; files keep them.
static uint16_t to_bf16(double value) {
    const float narrow = (float)value;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    if ((bits & 0x7fffffff) > 0x7f800000) return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// 5 bits of exponent, 10 of fraction. A fraction that rounds up to 2 is the next exponent's 1 by itself.
static uint16_t to_f16(double value) {
    const uint16_t sign = signbit(value) ? 0x8000 : 0;
    const double size = fabs(value);
    int exponent = -14;
    if (isnan(value)) return sign | 0x7e00;
    if (size >= 65520) return sign | 0x7c00;
    if (size >= 0x1p-14) exponent = ilogb(size);
    const int fraction = (int)rint(ldexp(size, 10 - exponent));
    return (uint16_t)(sign | (((exponent + 14) << 10) + fraction));
}

void hrt_params_hf_encode(enum hrt_hf_type type, const double *values, int64_t count,
                          void *elements) {
    for (int64_t i = 0; i < count; i++) {
        const double value = values[i];
        switch (type) {
        case HRT_HF_BF16:
            ((uint16_t *)elements)[i] = to_bf16(value);
            break;
        case HRT_HF_F16:
            ((uint16_t *)elements)[i] = to_f16(value);
            break;
        case HRT_HF_F32:
            ((float *)elements)[i] = (float)value;
            break;
        case HRT_HF_F64:
            ((double *)elements)[i] = value;
            break;
        }
    }
}
