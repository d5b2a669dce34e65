// What Hugging Face's checkpoints call the tensors of a program, and how they lie there.
//
// A family of models is a list of rules: a pattern of our paths, the name there, and its form. So one more family is one
// more list (names.c), and no code.
#ifndef HECATE_RUNTIME_STORE_HF_NAMES_H
#define HECATE_RUNTIME_STORE_HF_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/params/strips.h"
#include "runtime/params/tensor.h"
#include "runtime/program.h"

// A matrix of ours has a dim `in` and a dim `out`, which may be several dims of ours and are one there.
enum hrt_hf_form {
    HRT_HF_SAME,      // Our shape.
    HRT_HF_VECTOR,    // One dim: all of ours.
    HRT_HF_ROW,       // [1, all of ours].
    HRT_HF_STRAIGHT,  // [in, out]: our first dim, all others.
    HRT_HF_TURNED,    // [out, in], of the same.
    HRT_HF_TURNED_IN, // [out, in]: our last dim, all others.
};

// One way to lie in a folder. `parts` tensors of ours may lie in one, along its `out`: one behind the other, or, interleaved, an
// element (TURNED: a row) of each in turn. All experts of a layer may, too: then it has one dim more, in front.
struct hrt_hf_layout {
    const char *name; // {} and {e}: layer and expert. NULL: there is no such layout.
    enum hrt_hf_form form;
    bool together; // All experts.
    bool interleaved;
    int part, parts; // Which part ours is; 0 parts are one.
    // Another tensor of the same experts, from our `out` to our `in`, and its parts. Where shapes of ours do not tell whether we
    // lie straight or turned, those of this one do. NULL: there is none.
    const char *beside;
    int beside_parts;
    // Elements are MXFP4, of a turned layout, in blocks along `in`: the last dim is blocks, with one more for their bytes. This is the
    // tensor of scales, without that one. NULL: elements are of a type that safetensors knows.
    const char *scales;
};

enum { HRT_HF_LAYOUTS = 3 };

struct hrt_hf_rule {
    const char *ours; // Pattern of struct hrt_param's path; * is any text without a dot.
    struct hrt_hf_layout layout[HRT_HF_LAYOUTS]; // The first is the one that is written.
};

struct hrt_hf_family {
    const char *name;
    const struct hrt_hf_rule *own; // These count first. NULL: none.
    // A folder may have a layer behind the others that predicts a token after the next one. A program has it as parameters
    // `mtp.*`; one that has none passes over it.
    bool predictors;
};

// What the layer that predicts a token more shares with the model, and folders hold twice.
struct hrt_hf_copy {
    const struct hrt_hf_rule *rule; // The name of the second one.
    struct hrt_tensor tensor;       // The one that there is here.
};

// The family that `names hf { family = ... }` of the program's text names; NULL where it names none.
const struct hrt_hf_family *hrt_hf_family_of(const struct hrt_program *program);

// The first rule for a parameter, or NULL.
const struct hrt_hf_rule *hrt_hf_rule_of(const struct hrt_hf_family *family,
                                         const struct hrt_param *param);

// Whether the program has the layer that predicts a token more.
bool hrt_hf_predicts(const struct hrt_hf_family *family, const struct hrt_program *program);

// Steps to the next copy; start with a zeroed one. False: there is none, or the program does not predict.
bool hrt_hf_next_copy(const struct hrt_hf_family *family, const struct hrt_program *program,
                      struct hrt_hf_copy *copy);

// The name of a tensor by a layout's pattern. Outside of repeats, where there is no index, {} is the number of layers: that of the
// layer that predicts a token more.
void hrt_hf_name(const struct hrt_program *program, const struct hrt_tensor *tensor,
                 const char *pattern, char name[HRT_PATH_MAX]);

// One of our tensors in a tensor of a file.
struct hrt_hf_view {
    int rank; // The shape of the file's tensor, all of it.
    int64_t shape[HRT_RANK_MAX + 1];
    struct hrt_place place;
    int64_t
        slab; // Elements of all parts, of one expert where all lie together: these begin at multiples of it.
};

struct hrt_hf_view hrt_hf_view_of(const struct hrt_program *program,
                                  const struct hrt_tensor *tensor,
                                  const struct hrt_hf_layout *layout);

// The shape that `layout->beside` has; its rank is 3. The layout has such.
void hrt_hf_shape_beside(const struct hrt_program *program, const struct hrt_tensor *tensor,
                         const struct hrt_hf_layout *layout, int64_t shape[3]);

#endif
