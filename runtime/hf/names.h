// What Hugging Face's checkpoints call the tensors of a program, and how they lie there.
//
// A family of models is a list of rules: a pattern of our paths, the name there, and its form. So one more family is one
// more list (names.c), and no code.
#ifndef HECATE_RUNTIME_HF_NAMES_H
#define HECATE_RUNTIME_HF_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/params/tensor.h"
#include "runtime/program.h"

// [in, out] of ours is [out, in] there; `in` and `out` may be several dims of ours, and are one there.
enum hrt_hf_form {
    HRT_HF_SAME,      // Our shape.
    HRT_HF_VECTOR,    // One dim: all of ours.
    HRT_HF_ROW,       // [1, all of ours].
    HRT_HF_TURNED,    // Our first dim is `in`, the others are `out`.
    HRT_HF_TURNED_IN, // Our last dim is `out`, the others are `in`.
};

struct hrt_hf_rule {
    const char *ours;   // Pattern of struct hrt_param's path; * is any text without a dot.
    const char *theirs; // {} and {e}: layer and expert.
    enum hrt_hf_form form;
    // The layout that has all experts of a layer in one tensor, [experts, parts * out, in]: ours is the part `part`. NULL:
    // there is none.
    const char *fused;
    int part, parts;
};

struct hrt_hf_family {
    const char *name;
    const struct hrt_hf_rule *own; // These count first. NULL: none.
    // A folder may have layers behind the others that predict a token after the next one. Programs have none, and pass over them.
    bool predictors;
};

// The family that `names hf { family = ... }` of the program's text names; NULL where it names none.
const struct hrt_hf_family *hrt_hf_family_of(const struct hrt_program *program);

// The first rule for a parameter, or NULL.
const struct hrt_hf_rule *hrt_hf_rule_of(const struct hrt_hf_family *family,
                                         const struct hrt_param *param);

// Where the elements of one of our tensors lie in a tensor of a file: `rows` rows of `columns` elements, one behind the
// other from element `first` on. Turned: row o, column i is our element i * rows + o. Else `rows` is 1.
struct hrt_hf_view {
    int rank; // The shape of the file's tensor, all of it.
    int64_t shape[HRT_RANK_MAX];
    int64_t first, rows, columns;
    bool turned;
};

// `fused`: of the rule's fused layout, which it has then.
struct hrt_hf_view hrt_hf_view_of(const struct hrt_program *program,
                                  const struct hrt_tensor *tensor, const struct hrt_hf_rule *rule,
                                  bool fused);

#endif
