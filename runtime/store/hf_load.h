// Parameters from a folder of Hugging Face's.
#ifndef HECATE_RUNTIME_STORE_HF_LOAD_H
#define HECATE_RUNTIME_STORE_HF_LOAD_H

#include <stdbool.h>

#include "runtime/base/error.h"
#include "runtime/params/slice.h"
#include "runtime/store/weights.h"

// Reads all parameters of the program but adapters that are on this rank, F64, F32, BF16, F16, F8_E4M3 with a scale
// per block of 128 x 128, or MXFP4, rounding to its precision; a strip of a tensor at a time. As hrt_store_restore:
// headers are checked whole before the first parameter is changed, and a folder that lacks a tensor, has one of another
// shape, or one that the program has not, is refused with the reason. Not collective.
bool hrt_store_hf_load(const struct hrt_buffer *params, const char *path,
                       struct hrt_store_doubts *doubts, struct hrt_error *error);

// Reads the program's adapters from a folder of PEFT's, in the same way: one that has others, or of another rank or
// alpha, is refused.
bool hrt_store_hf_load_adapters(const struct hrt_buffer *params, const char *path,
                                struct hrt_store_doubts *doubts, struct hrt_error *error);

#endif
