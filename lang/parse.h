#ifndef HECATE_LANG_PARSE_H
#define HECATE_LANG_PARSE_H

#include "lang/base/diag.h"
#include "lang/base/str.h"
#include "lang/tree.h"

// Parses the whole of `source`. Always returns a tree: of the parts that could be understood, when errors
// were reported. It lives in `arena`, its names in `names`.
struct hec_tree *hec_parse(const struct hec_source *source, struct hec_arena *arena,
                           struct hec_names *names, struct hec_diag *diag);

// Parses one expression that starts at byte `offset` of `source` and is all that follows. Returns
// NULL after reporting an error.
struct hec_expr *hec_parse_expression(const struct hec_source *source, uint32_t offset,
                                      struct hec_arena *arena, struct hec_names *names,
                                      struct hec_diag *diag);

#endif
