// The table of all passes.
#include <string.h>

#include "passes/pipeline.h"

#define HEC_PASS(id, ...) extern const struct hec_pass_code hec_pass_##id;
#define HEC_PASS_AGAIN(flag)
#define HEC_PASS_APART HEC_PASS
#include "passes/passes.def"
#undef HEC_PASS
#undef HEC_PASS_AGAIN
#undef HEC_PASS_APART

const struct hec_pass hec_passes[] = {
#define HEC_PASS(id, flag, summary, leaves) {flag, summary, &hec_pass_##id},
#define HEC_PASS_AGAIN(flag)
#define HEC_PASS_APART HEC_PASS
#include "passes/passes.def"
#undef HEC_PASS
#undef HEC_PASS_AGAIN
#undef HEC_PASS_APART
    {0},
};

static const char steps[] =
#define HEC_PASS(id, flag, ...) "," flag
#define HEC_PASS_AGAIN(flag) "," flag
#define HEC_PASS_APART(...)
#include "passes/passes.def"
    ;
const char *const hec_pipeline_default = &steps[1];

const struct hec_pass *hec_pass_find(const char *flag, size_t length) {
    for (const struct hec_pass *pass = hec_passes; pass->flag; pass++) {
        if (strlen(pass->flag) == length && !memcmp(pass->flag, flag, length)) return pass;
    }
    return NULL;
}

void hec_passes_print(FILE *out) {
    for (const struct hec_pass *pass = hec_passes; pass->flag; pass++) {
        fprintf(out, "%-18s %s\n", pass->flag, pass->summary);
        const struct hec_pass_option *option = pass->code->option;
        for (; option && option->key; option++) {
            fprintf(out, "    %s=%s  %s\n", option->key, option->values, option->summary);
        }
    }
    fprintf(out, "\ndefault: %s\n", hec_pipeline_default);
    fputs("Other names are upstream's: canonicalize, cse, func.func(canonicalize), ...\n", out);
}
