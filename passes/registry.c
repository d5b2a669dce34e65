// The table of all passes.
#include <string.h>

#include "passes/pipeline.h"

const struct hec_pass *const hec_passes[] = {
    // In the order in which the default pipeline has them first.
    &hec_pass_check_shapes,       //
    &hec_pass_fingerprint,        //
    &hec_pass_group_experts,      //
    &hec_pass_inline,             //
    &hec_pass_simplify,           //
    &hec_pass_use_bf16,           // Of programs with train.precision = bf16.
    &hec_pass_fuse_head_loss,     // Of programs with a number as parallel.logits.
    &hec_pass_differentiate,      //
    &hec_pass_recompute,          //
    &hec_pass_cache_keys,         // Of programs of one rank, where tensors lie with the host.
    &hec_pass_distribute_experts, // Of programs of several ranks.
    &hec_pass_gather_rows,        // On targets that gather.
    &hec_pass_fuse_elementwise,   //
    &hec_pass_store_bf16,         // Of programs with train.precision = bf16, on some targets.
    &hec_pass_fuse_swiglu,        // On targets that have it.
    &hec_pass_distribute_dense,   // Of programs of several ranks.
    &hec_pass_shard,              // Of programs whose experts move: this one to overlap,
    &hec_pass_materialize,        //
    &hec_pass_overlap,            //
    &hec_pass_fuse_epilogue,      //
    &hec_pass_verify_movement,    // and this one.
    &hec_pass_select_kernels,     //
    &hec_pass_place_buffers,      //
    &hec_pass_prove_homes,        //
    NULL,
};

const struct hec_pass *hec_pass_find(const char *flag, size_t length) {
    for (int i = 0; hec_passes[i]; i++) {
        if (strlen(hec_passes[i]->flag) == length && !memcmp(hec_passes[i]->flag, flag, length))
            return hec_passes[i];
    }
    return NULL;
}

void hec_passes_print(FILE *out) {
    for (int i = 0; hec_passes[i]; i++) {
        fprintf(out, "%-18s %s\n", hec_passes[i]->flag, hec_passes[i]->summary);
        const struct hec_pass_option *option = hec_passes[i]->option;
        for (; option && option->key; option++) {
            fprintf(out, "    %s=%s  %s\n", option->key, option->values, option->summary);
        }
    }
    fprintf(out, "\ndefault: %s\n", HEC_PIPELINE_DEFAULT);
    fputs("Other names are upstream's: canonicalize, cse, func.func(canonicalize), ...\n", out);
}
