// Groups of parameters: train { parameters "PATTERN" { ... } }. Private to check/.
#ifndef HECATE_LANG_CHECK_GROUPS_H
#define HECATE_LANG_CHECK_GROUPS_H

#include "lang/check/checker.h"

// Reads the groups of all sections and of --set. Call it before the model is elaborated: iterations of a repeat that
// groups freeze, or give to another optimizer, apart from others are no loop.
void hec_read_groups(struct hec_checker *checker);

// Appends to `text` the paths that groups may match behind `path`, the beginning of paths.
const char *hec_groups_sign(struct hec_checker *checker, const char *path, const char *text);

// Gives the model's parameters the values of the groups that match them, and decides which Muon may move: their roles
// are known. Reports a group that matches none. Call it of a model without errors.
void hec_apply_groups(struct hec_checker *checker);

// Whether a pattern is a path in which `*` stands for any characters; reports when not.
bool hec_check_pattern(struct hec_checker *checker, const char *pattern, struct hec_span at);

// Whether a pattern, given at `at`, is for a layer of a parameter. Its experts are alike, and reported where they are
// not.
bool hec_group_takes(struct hec_checker *checker, const char *pattern, struct hec_span at,
                     const struct hec_param *param, int64_t layer);

// Reports a pattern that matches no parameter.
void hec_group_unmatched(struct hec_checker *checker, const char *pattern, struct hec_span at);

// Whether a parameter has two dims or more, without the experts'.
bool hec_group_is_matrix(const struct hec_param *param);

// Warns of groups that Muon should move where AdamW moves everything.
void hec_look_at_groups(struct hec_checker *checker);

// Whether a setting's key, or a flag that sets it, is of a group: it stands for a pattern and has no value of its own.
bool hec_is_group_key(const char *key);

// The settings of a group, as text: "lr_scale = 0.1, decay = 0".
const char *hec_group_text(struct hec_checker *checker, const struct hec_group *group);

#endif
