// One pass, as data. passes/registry.c holds the table of all passes; pipelines given as text, the
// list printed by --print-passes and the driver all read it.
#ifndef HECATE_PASSES_PASS_H
#define HECATE_PASSES_PASS_H

#include "ir/op.h"

// The options of one use of a pass, as written: select-kernels(sums=apart).
enum { HEC_PASS_OPTIONS_MAX = 4 };
struct hec_pass_options {
    int count;
    const char *key[HEC_PASS_OPTIONS_MAX];
    const char *value[HEC_PASS_OPTIONS_MAX];
};

// An option a pass knows. `values` are its words with | between them; the first is the default.
struct hec_pass_option {
    const char *key, *values, *summary;
};

enum hec_pass_result {
    HEC_PASS_DONE,
    HEC_PASS_REFUSED, // The module asks for something that is wrong, or not yet possible.
    HEC_PASS_BROKEN,  // A fault of the compiler itself.
};

struct hec_pass {
    const char *flag;                     // Name in a pipeline: "differentiate".
    const char *summary;                  // One line, imperative, no full stop.
    const struct hec_pass_option *option; // Ended by a key of NULL; NULL: no options.

    // Whether the pass has anything to do in `module`; NULL: in every module. Where it has not,
    // pipelines pass it by.
    bool (*applies)(MlirOperation module);

    // Changes `module` (a builtin.module). What is not HEC_PASS_DONE was reported through the
    // context's diagnostics, and the module is then only good for printing.
    enum hec_pass_result (*run)(MlirOperation module, const struct hec_pass_options *options);
};

// The value given for `key`, or `fallback`.
const char *hec_pass_option(const struct hec_pass_options *options, const char *key,
                            const char *fallback);

extern const struct hec_pass hec_pass_check_shapes;
extern const struct hec_pass hec_pass_fingerprint;
extern const struct hec_pass hec_pass_group_experts;
extern const struct hec_pass hec_pass_inline;
extern const struct hec_pass hec_pass_simplify;
extern const struct hec_pass hec_pass_use_bf16;
extern const struct hec_pass hec_pass_fuse_head_loss;
extern const struct hec_pass hec_pass_differentiate;
extern const struct hec_pass hec_pass_recompute;
extern const struct hec_pass hec_pass_cache_keys;
extern const struct hec_pass hec_pass_distribute_experts;
extern const struct hec_pass hec_pass_gather_rows;
extern const struct hec_pass hec_pass_fuse_elementwise;
extern const struct hec_pass hec_pass_store_bf16;
extern const struct hec_pass hec_pass_fuse_swiglu;
extern const struct hec_pass hec_pass_distribute_dense;
extern const struct hec_pass hec_pass_shard;
extern const struct hec_pass hec_pass_materialize;
extern const struct hec_pass hec_pass_overlap;
extern const struct hec_pass hec_pass_fuse_epilogue;
extern const struct hec_pass hec_pass_verify_movement;
extern const struct hec_pass hec_pass_select_kernels;
extern const struct hec_pass hec_pass_place_buffers;
extern const struct hec_pass hec_pass_prove_homes;

#endif
