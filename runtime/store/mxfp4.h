// MXFP4: blocks of 32 elements with 4 bits each and one scale (OCP Microscaling Formats, version 1.0).
#ifndef HECATE_RUNTIME_STORE_MXFP4_H
#define HECATE_RUNTIME_STORE_MXFP4_H

#include <stdint.h>

enum { HRT_MXFP4_BLOCK = 32, HRT_MXFP4_BYTES = 16 }; // Elements of a block, and the bytes of these.

// Stores all elements of `count` blocks. Bytes hold two elements, the first in the low bits: a sign, 2 bits of
// exponent, 1 of fraction. A scale s is 2^(s - 127), 255 NaN. Exact.
void hrt_store_mxfp4_decode(const uint8_t *bytes, const uint8_t *scales, int64_t count,
                            double *values);

#endif
