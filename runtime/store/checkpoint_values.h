// Which values of the parameters a checkpoint has, and how its files are called.
#ifndef HECATE_RUNTIME_STORE_CHECKPOINT_VALUES_H
#define HECATE_RUNTIME_STORE_CHECKPOINT_VALUES_H

#include <stdio.h>

#include "runtime/params/tensor.h"
#include "runtime/store/checkpoint_part.h"

#define HRT_FACTS_FILE "state.json"

// Files of each rank: those of values, and one with loads, where experts move.
enum { HRT_VALUE_FILES = 3, HRT_LOADS_FILE = HRT_VALUE_FILES, HRT_RANK_FILES };

static const struct {
    enum hrt_values values;
    const char *name;
} hrt_value_files[HRT_VALUE_FILES] = {
    {HRT_PARAMETERS, "parameters"},
    {HRT_MEANS, "means"},
    {HRT_VARIANCES, "variances"},
};

// "parameters.0.safetensors"
static inline void hrt_store_file_name(char name[HRT_PART_NAME], int file, int rank) {
    const char *kind = file < HRT_VALUE_FILES ? hrt_value_files[file].name : "loads";
    snprintf(name, HRT_PART_NAME, "%s.%d.safetensors", kind, rank);
}

#endif
