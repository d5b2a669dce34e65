// Elements in the types that folders are written in.
#ifndef HECATE_RUNTIME_PARAMS_ELEMENT_H
#define HECATE_RUNTIME_PARAMS_ELEMENT_H

#include <stddef.h>
#include <stdint.h>

enum hrt_hf_type { HRT_HF_BF16, HRT_HF_F16, HRT_HF_F32, HRT_HF_F64 };

const char *hrt_params_hf_type_name(enum hrt_hf_type type); // "BF16"
size_t hrt_params_hf_type_bytes(enum hrt_hf_type type);

// The type of that name in safetensors, or in config.json ("bfloat16"); bf16 for any other, also of NULL.
enum hrt_hf_type hrt_params_hf_type_find(const char *name);

// Rounds to the nearest, ties to even, denormal numbers too: a value read from a type and not changed has the same
// bits. `elements` may be `values`.
void hrt_params_hf_encode(enum hrt_hf_type type, const double *values, int64_t count,
                          void *elements);

#endif
