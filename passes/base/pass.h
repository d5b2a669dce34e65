// One pass, as data. passes.def lists all.
// The registry, the default pipeline, --print-passes and docs/ir.md follow from it.
#ifndef HECATE_PASSES_BASE_PASS_H
#define HECATE_PASSES_BASE_PASS_H

#include "ir/core/op.h"

enum hec_pass_result {
    HEC_PASS_DONE,
    HEC_PASS_REFUSED, // The module asks for something that is wrong, or not yet possible.
    HEC_PASS_BROKEN,  // A fault of the compiler itself.
};

// The options of one use of a pass, as written: select-kernels(sums=apart).
enum { HEC_PASS_OPTIONS_MAX = 4 };
struct hec_pass_options {
    int count;
    const char *key[HEC_PASS_OPTIONS_MAX];
    const char *value[HEC_PASS_OPTIONS_MAX];
    // Runs the passes behind this one over a module, a copy of the pass's own, which is not verified; NULL:
    // there is no pipeline.
    enum hec_pass_result (*rest)(const struct hec_pass_options *options, MlirOperation module);
    void *pipeline; // For `rest`, as its place.
    int step;
};

// An option a pass knows. `values` are its words with | between them; the first is the default.
struct hec_pass_option {
    const char *key, *values, *summary;
};

// At the end of the pass's own file.
struct hec_pass_code {
    const struct hec_pass_option *option; // Ended by a key of NULL; NULL: no options.

    // Whether the pass has anything to do in `module`; NULL: in every module. Where it has not,
    // pipelines pass it by.
    bool (*applies)(MlirOperation module);

    // Changes `module` (a builtin.module). Every result but HEC_PASS_DONE was reported through the
    // context's diagnostics, and the module is then only good for printing.
    enum hec_pass_result (*run)(MlirOperation module, const struct hec_pass_options *options);
};

// A row of passes.def.
struct hec_pass {
    const char *flag, *summary;
    const struct hec_pass_code *code;
};

// The value given for `key`, or `fallback`.
const char *hec_pass_option(const struct hec_pass_options *options, const char *key,
                            const char *fallback);

#endif
