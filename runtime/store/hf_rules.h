// Under which names, and how, the parameters of a model lie in folders of Hugging Face's: by paths alone, so that the
// compiler knows it, too.
//
// A family of models is a list of rules: a pattern of our paths, the name there, and its form. So one more family is
// one more file (families/*.def), and no code.
#ifndef HECATE_RUNTIME_STORE_HF_RULES_H
#define HECATE_RUNTIME_STORE_HF_RULES_H

#include <stdbool.h>

// A matrix of ours has a dim `in` and a dim `out`, which may be several dims of ours and are one there.
enum hrt_hf_form {
    HRT_HF_SAME,      // Our shape.
    HRT_HF_VECTOR,    // One dim: all of ours.
    HRT_HF_ROW,       // [1, all of ours].
    HRT_HF_STRAIGHT,  // [in, out]: our first dim, all others.
    HRT_HF_TURNED,    // [out, in], of the same.
    HRT_HF_TURNED_IN, // [out, in]: our last dim, all others.
    HRT_HF_DEPTHWISE, // [all of ours but the last dim, 1, our last dim]: a convolution of each channel by itself.
};

// One way to lie in a folder. `parts` tensors of ours may lie in one, along its `out`: one behind the other, or,
// interleaved, an element (TURNED: a row) of each in turn. All experts of a layer may, too: then it has one dim more,
// in front.
struct hrt_hf_layout {
    const char *name; // {} and {e}: layer and expert. NULL: there is no such layout.
    enum hrt_hf_form form;
    bool together; // All experts.
    bool stacked;  // With them, and no dim more: rows of all experts lie behind one another.
    bool interleaved;
    int part, parts; // Which part ours is; 0 parts are one.
    // The last words of the paths of all parts, in order, with blanks between, where their `out` may differ. NULL: it
    // does not.
    const char *joined;
    // Another tensor of the same experts, from our `out` to our `in`, and its parts. Where shapes of ours do not tell
    // whether we lie straight or turned, those of this one do. NULL: there is none.
    const char *beside;
    int beside_parts;
    // Elements are MXFP4, of a turned layout, in blocks along `in`: the last dim is blocks, with one more for their
    // bytes. This is the tensor of scales, without that one. NULL: elements are of a type that safetensors knows.
    const char *scales;
    // A matrix of the adapters of a tensor with all experts, in folders of PEFT's: [experts * rank, width], ranks of
    // one expert behind one another; or, TURNED, [width, rank * experts], experts of one rank behind one another.
    bool adapters;
    bool swapped; // PEFT takes `in` of this tensor for `out`: lora_A is of `out`, lora_B of `in`.
};

enum { HRT_HF_LAYOUTS = 3 };

// The path of rules that stand for no parameter: the name begins those of tensors that programs pass over, {} being the
// number of layers.
#define HRT_HF_PASSED "-"

// The same; the name is JSON. A text model out of a model that also reads images has these keys in its own config.json.
#define HRT_HF_ALONE "="

struct hrt_hf_rule {
    const char *ours; // Pattern of struct hrt_param's path; * is any text without a dot.
    struct hrt_hf_layout layout[HRT_HF_LAYOUTS]; // The first is the one that is written.
};

struct hrt_hf_family {
    const char *name;
    const char *like;              // Another family, whose rules come next. NULL: there is none.
    const struct hrt_hf_rule *own; // These count first. NULL: none.
};

// NULL: there is no such family.
const struct hrt_hf_family *hrt_store_hf_family_named(const char *name);

// The first rule for a parameter of this path (struct hrt_param), or NULL.
const struct hrt_hf_rule *hrt_store_hf_rule_of(const struct hrt_hf_family *family,
                                               const char *path);

// The JSON of HRT_HF_ALONE; NULL: the family has no text model that may be a part.
const char *hrt_store_hf_alone(const struct hrt_hf_family *family);

// Steps through the rules of layers and model; begin with NULL. NULL: there is no further one.
const struct hrt_hf_rule *hrt_store_hf_next_rule(const struct hrt_hf_family *family,
                                                 const struct hrt_hf_rule *rule);

// Whether a folder may have a layer behind the others that predicts a token after the next one. A program has it as
// parameters `mtp.*`; one that has none passes over it.
bool hrt_store_hf_may_predict(const struct hrt_hf_family *family);

// Whether a parameter is of the layer that predicts a token more.
bool hrt_store_hf_is_predictor(const char *path);

// Its copies of tensors that it shares with the model; the last of a model whose embedding is its head.
enum { HRT_HF_COPIES = 3 };
extern const struct hrt_hf_rule hrt_store_hf_copies[HRT_HF_COPIES];

#endif
