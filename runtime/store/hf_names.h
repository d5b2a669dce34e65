// The names of a program's tensors in Hugging Face's checkpoints, and their layouts there.
#ifndef HECATE_RUNTIME_STORE_HF_NAMES_H
#define HECATE_RUNTIME_STORE_HF_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/params/tensor.h"
#include "runtime/program.h"
#include "runtime/store/hf_rules.h"
#include "runtime/store/strips.h"

// The tensors that the layer which predicts a token more shares with the model, and folders hold twice.
struct hrt_hf_copy {
    const struct hrt_hf_rule *rule; // The name of the second one.
    struct hrt_tensor tensor;       // The one that there is here.
};

// The family that `names hf { family = ... }` of the program's text names; NULL where it names none.
const struct hrt_hf_family *hrt_store_hf_family_of(const struct hrt_program *program);

// Whether the program has the layer that predicts a token more.
bool hrt_store_hf_predicts(const struct hrt_hf_family *family, const struct hrt_program *program);

// Steps to the next copy; start with a zeroed one. False: there is none, or the program does not predict.
bool hrt_store_hf_next_copy(const struct hrt_hf_family *family, const struct hrt_program *program,
                            struct hrt_hf_copy *copy);

// The rule of an adapter's matrix in a folder of PEFT's, by that of its weight.
struct hrt_hf_adapter_rule {
    struct hrt_hf_rule rule;
    char name[HRT_PATH_MAX]; // Pattern of its layout.
};

// Whether matrices of an expert share matrices of adapters (adapt.experts = fused).
bool hrt_store_hf_fuses(const struct hrt_program *program);

// The layout of an expert's weight in one tensor with those of all experts, where adapters are fused so. NULL: they are
// not, or the family has no such tensor.
const struct hrt_hf_layout *hrt_store_hf_fused(const struct hrt_program *program,
                                               const struct hrt_hf_family *family,
                                               const struct hrt_param *weight);

// The rule of a parameter; `made` is filled in for a matrix of an adapter, and must outlive the result. NULL: it has no
// name in the family.
const struct hrt_hf_rule *hrt_store_hf_rule_for(const struct hrt_program *program,
                                                const struct hrt_hf_family *family,
                                                const struct hrt_param *param,
                                                struct hrt_hf_adapter_rule *made);

// The name of a tensor by a layout's pattern. Outside of repeats, where there is no index, {} is the number of layers:
// that of the layer that predicts a token more.
void hrt_store_hf_name(const struct hrt_program *program, const struct hrt_tensor *tensor,
                       const char *pattern, char name[HRT_PATH_MAX]);

// One of our tensors in a tensor of a file.
struct hrt_hf_view {
    int rank; // The shape of the file's tensor, all of it.
    int64_t shape[HRT_RANK_MAX + 1];
    struct hrt_place place;
    int64_t
        slab; // Elements of all parts, of one expert where all lie together: these begin at multiples of it.
    int64_t slabs; // All experts, where they do; else 1.
};

// The number of layers that a program has.
int64_t hrt_store_hf_layers(const struct hrt_program *program);

struct hrt_hf_view hrt_store_hf_view_of(const struct hrt_program *program,
                                        const struct hrt_tensor *tensor,
                                        const struct hrt_hf_layout *layout);

// The shape that `layout->beside` has; its rank is 3. The layout has such.
void hrt_store_hf_shape_beside(const struct hrt_program *program, const struct hrt_tensor *tensor,
                               const struct hrt_hf_layout *layout, int64_t shape[3]);

#endif
