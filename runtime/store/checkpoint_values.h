// Which values of the parameters a checkpoint has, and how its files are called.
#ifndef HECATE_RUNTIME_STORE_CHECKPOINT_VALUES_H
#define HECATE_RUNTIME_STORE_CHECKPOINT_VALUES_H

#include "runtime/params/tensor.h"

#define HRT_FACTS_FILE "state.json"

enum { HRT_VALUE_FILES = 3 };

static const struct {
    enum hrt_values values;
    const char *name;
} hrt_value_files[HRT_VALUE_FILES] = {
    {HRT_PARAMETERS, "parameters"},
    {HRT_MEANS, "means"},
    {HRT_VARIANCES, "variances"},
};

#endif
