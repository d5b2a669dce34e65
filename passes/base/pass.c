// The arguments of passes.
#include "passes/base/pass.h"

#include <string.h>

const char *hec_pass_option(const struct hec_pass_options *options, const char *key,
                            const char *fallback) {
    for (int i = 0; i < options->count; i++) {
        if (strcmp(options->key[i], key) == 0) return options->value[i];
    }
    return fallback;
}
