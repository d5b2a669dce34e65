// First values of the parameters.
#ifndef HECATE_RUNTIME_PARAMS_INIT_H
#define HECATE_RUNTIME_PARAMS_INIT_H

#include <stdint.h>

#include "runtime/params/slice.h"

// Fills `params` [param_elements], zeroed by the caller (padding stays zero). Normal numbers come
// from (seed, path, logical element): the same for any layout, number of threads, owner or order.
void hrt_params_init(const struct hrt_buffer *params, uint64_t seed);

// The same of adapters alone, which files of their base do not hold.
void hrt_params_init_adapters(const struct hrt_buffer *params, uint64_t seed);

// Fills in the parameters that no file holds: the tables that follow from the model.
void hrt_params_init_tables(const struct hrt_buffer *params);

#endif
