// From 4 bits to doubles.
#include "runtime/store/mxfp4.h"

#include <math.h>

static const double element[] = {0,    0.5,  1,    1.5,  2,    3,    4,    6,
                                 -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0};

void hrt_store_mxfp4_decode(const uint8_t *bytes, const uint8_t *scales, int64_t count,
                            double *values) {
    for (int64_t block = 0; block < count; block++) {
        const double scale = scales[block] == 255 ? NAN : ldexp(1, scales[block] - 127);
        for (int i = 0; i < HRT_MXFP4_BYTES; i++) {
            const uint8_t both = *bytes++;
            *values++ = element[both & 15] * scale;
            *values++ = element[both >> 4] * scale;
        }
    }
}
