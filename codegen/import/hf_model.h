// The model that a config.json of Hugging Face's describes, as far as the language can express it, and the model as
// text.
#ifndef HECATE_CODEGEN_IMPORT_HF_MODEL_H
#define HECATE_CODEGEN_IMPORT_HF_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "codegen/import/hf_config.h"
#include "codegen/text/writer.h"

#define HEC_HF_WINDOWED "sliding_attention" // A word of layer_types.

// Attention of which most layers see the positions of a chunk, and rotate; the others see all, and know no positions
// (Llama 4).
struct hec_hf_local {
    int64_t chunk;        // 0: those see all, too.
    int64_t global_every; // Each so many-th layer is one of the others; 0: attention is not so.
    json_t *layers;       // In place of that: 0 for one of the others; borrowed, may be NULL.
    int64_t
        floor; // From so many positions on queries of the others have a factor; 0: they have none.
};

// Multi-head latent attention (DeepSeek-V2, arXiv:2405.04434): ranks of the latent vectors, widths of parts of heads.
struct hec_hf_latent {
    int64_t query_rank; // 0: queries have no latent vector.
    int64_t rank;       // Rank of keys and values; 0: attention is not latent.
    int64_t plain, turned, value;
    double mscale; // Its square is a factor of the scores.
};

// PLAIN: of each head that was rotated, without a gain.
enum hec_hf_norm { HEC_HF_NO_NORM, HEC_HF_NORM_HEADS, HEC_HF_NORM_ALL, HEC_HF_NORM_PLAIN };

// Where a layer has norms: of the input of attention and experts, of their output, or of both; or attention and experts
// stand beside each other, behind one norm.
enum hec_hf_order { HEC_HF_BEFORE, HEC_HF_AFTER, HEC_HF_AROUND, HEC_HF_BESIDE };

// Factors (muP, arXiv:2203.03466).
struct hec_hf_factors {
    double embedding,
        residual;  // Factors of embeddings, and of the values that layers add; 1: none.
    double scores; // A factor of attention's scores; 0: 1 / sqrt(head_width).
    double logits; // Logits are divided by it.
    double cap_scores, cap_logits; // Caps of scores and of logits; 0: none.
};

// How rope turns.
struct hec_hf_rope {
    double theta;
    const char *scaling; // As the language writes it; NULL: none.
    bool none;           // It does not.
};

struct hec_hf_model {
    const char *family;
    int64_t vocabulary, width, layers, positions;
    int64_t heads, groups, head_width; // Sizes of attention.
    struct hec_hf_latent latent;       // In place of groups and head_width.
    struct hec_hf_local local;
    struct hec_hf_factors factors;
    enum hec_hf_order order;
    bool interleaved;      // Rotates neighbouring elements.
    bool norm_last;        // Norms of queries and keys come after rope.
    bool apart;            // Layers with a window rotate in their own way, `windowed`.
    bool layer_norm;       // Norms subtract the mean, and have no bias.
    bool zero_centered;    // Gains of norms are 1 and what is stored.
    bool gated;            // Attention's output is multiplied by a gate of its own.
    enum hec_hf_norm norm; // Norm of queries and keys: of each head, or of all together.
    bool bias_qkv, bias_out, sinks;
    double clip;         // Clips queries, keys and values; 0: none.
    int64_t window;      // 0: none.
    int64_t window_from; // The first layer with it,
    json_t *layer_types; // where these do not say which layers have it; borrowed, may be NULL.
    double eps;
    struct hec_hf_rope rope, windowed;
    double partial;  // The part of a head's width that rope rotates.
    int64_t rotated; // The same in elements, the first ones.
    const char *act; // "silu"
    // For experts whose GEMMs are clamped, and have biases as the router has: the largest value, and a factor in the
    // sigmoid.
    double limit, alpha; // 0: not so.
    int64_t mlp_width;   // Without experts; 0: there are some.
    int64_t experts, topk, expert_width;
    int64_t shared_width; // 0: no shared expert.
    bool shared_gate;
    bool averaged; // Experts and shared expert count half each.
    bool sigmoid;  // Scores; else softmax.
    bool select_bias;
    bool on_input;        // Weights multiply the experts' input.
    bool softmax_of_topk; // Weights are a softmax of the chosen logits.
    bool renormalized;    // The weights of the chosen experts.
    int64_t expert_groups, topk_groups;
    double scale, jitter, aux;
    int64_t sparse_step, dense_first,
        dense_width;      // Every sparse_step-th layer is sparse, but for the first ones.
    json_t *dense_layers; // Numbers of layers that are not; borrowed, may be NULL.
    bool predictor;       // There is a layer more, which predicts a token after the next one,
    bool predictor_there; // and the folder has its weights, if it has any.
    bool tied, bf16;
    const char *base; // How weights are stored, as adapt.base says it; NULL: not packed.
};

// Reads the model; refuses parts that the language cannot express. False: something was refused.
bool hec_hf_read_model(struct hec_hf_config *config, struct hec_hf_model *model);

// Writes it as the text of a .moe file.
void hec_hf_write_model(const struct hec_hf_model *model, struct hec_writer *out);

// Whether the folder `path` has a tensor of that name; `otherwise` where it has no weights, or none that can be read.
bool hec_hf_has_tensor(struct hec_arena *arena, const char *path, const char *name, bool otherwise);

// The part of latent attention (hf_latent.c): its keys, but for those that all attention has; its dims; its block, with
// `scaling` as an argument of rope.
void hec_hf_read_latent(struct hec_hf_config *config, struct hec_hf_model *model);
void hec_hf_write_latent_dims(const struct hec_hf_model *model, struct hec_writer *out);
void hec_hf_write_latent(const struct hec_hf_model *model, const char *scaling,
                         struct hec_writer *out);

// The same of local attention (hf_local.c), and whether a layer is one that sees a chunk.
void hec_hf_read_local(struct hec_hf_config *config, struct hec_hf_model *model);
bool hec_hf_is_local(const struct hec_hf_model *model, int64_t layer);
void hec_hf_write_local_dims(const struct hec_hf_model *model, struct hec_writer *out);
void hec_hf_write_local(const struct hec_hf_model *model, const char *scaling,
                        struct hec_writer *out);

#endif
