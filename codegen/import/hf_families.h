// The families whose config.json is known: facts of each that its file does not state, and its keys. Data alone, a file
// of runtime/store/families each: hf_read.c reads by it.
#ifndef HECATE_CODEGEN_IMPORT_HF_FAMILIES_H
#define HECATE_CODEGEN_IMPORT_HF_FAMILIES_H

#include <stdbool.h>

#include "codegen/import/hf_config.h"
#include "codegen/import/hf_model.h"

// Facts of a family that its config.json does not state.
struct hec_hf_family {
    const char *name;
    const char *
        like; // Another family, which has all but the name and `outer`. NULL: it is one of its own.
    const char *
        outer; // The model_type of models that also read images, and have this text model. NULL: none has.
    // Ended by a key without a name. An unlisted key is no key of the family, and has no effect.
    const struct hec_hf_key *keys;
    const char
        *experts[2]; // Keys that say how many: its name, and one that transformers takes for it.
    const char *topk[2]; // The same of the experts of each token; NULL: num_experts_per_tok.
    const char *expert_width;
    const char *dense_width; // NULL: intermediate_size.
    enum hec_hf_norm norm;
    const char *norm_flag; // A key: whether there are such norms. NULL: there are.
    const char *bias;      // A key: whether the GEMMs of queries, keys and values have biases.
    bool bias_out;         // With it the GEMM behind attention has one, too.
    bool window_by_flag;   // A window counts where use_sliding_window says so.
    // Which layers have the window: all; those that layer_types names, or from max_window_layers on; those that are
    // named, as versions of transformers differ in what they take otherwise; or all but each so many-th, as
    // sliding_window_pattern says.
    enum {
        HEC_HF_ALL_LAYERS,
        HEC_HF_LAST_LAYERS,
        HEC_HF_NAMED_LAYERS,
        HEC_HF_PATTERN_OF_LAYERS
    } windows;
    // Layers with a window rotate in their own way: rope_parameters has an object for each kind.
    bool rope_by_kind;
    bool
        renormalized; // Always the weights of the chosen experts; otherwise as norm_topk_prob says.
    bool aux;         // The loss that output_router_logits asks for.
    bool sigmoid;     // With a selection bias, unless
    bool on_input;    // weights multiply the experts' input.
    bool select_bias; // With scores that are a softmax, too.
    bool shared_one;  // There is one shared expert, as wide as the others.
    bool shared_gate;
    bool local; // Attention (hf_local.c).
    bool latent;
    // The values of scoring_func and topk_method; NULL: they say nothing.
    const char *score, *method;
    bool greedy;    // Another topk_method: no groups.
    bool one_theta; // Two keys say theta, and must agree.
    bool scaled;    // Rope's scaling must be there.
    bool partial;   // Rope may rotate a part of each head.
    bool no_aux;    // The loss that output_router_logits asks for is not one that the language has.
    bool dense;     // There are no experts: each layer has an MLP of intermediate_size.
    bool dense_one; // The first layer is dense, and first_k_dense_replace says so or nothing.
    bool sinks, clamped;
    bool interleaved;   // Rope turns neighbouring elements.
    bool norm_last;     // Queries and keys are rotated first, and normalized then.
    bool ntk_alpha;     // rope_type dynamic with an alpha changes theta.
    bool nope;          // Layers without a window know no positions, if others have one.
    bool fn_key;        // expert_selection_fn says what scores are.
    bool layer_norm;    // Unless rms_norm_eps is there, norms subtract the mean, and have no bias.
    bool zero_centered; // Gains of norms are 1 and what is stored.
    bool gelu_tanh;     // hidden_act "gelu" is the form with tanh.
    bool gated;         // Attention has a gate.
    enum hec_hf_order order; // Where a layer has its norms.
};

// The family of that name, or the one that it is like; NULL: none has the name.
const struct hec_hf_family *hec_hf_family_of(const char *name);

// The family behind another one, NULL behind the last; behind NULL the first.
const struct hec_hf_family *hec_hf_next_family(const struct hec_hf_family *family);

// Rope (hf_rope.c).
void hec_hf_read_rope(struct hec_hf_config *config, const struct hec_hf_family *family,
                      struct hec_hf_model *model);

#endif
