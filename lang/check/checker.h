// State and services shared by the files of check/. Private to them.
#ifndef HECATE_LANG_CHECK_CHECKER_H
#define HECATE_LANG_CHECK_CHECKER_H

#include "lang/base/str.h"
#include "lang/base/vec.h"
#include "lang/check.h"
#include "lang/scan.h"
#include "lang/tree.h"

// A value known when compiling.
struct hec_constant {
    enum { HEC_CONSTANT_NUMBER, HEC_CONSTANT_BOOL } kind;
    struct hec_number number;
    bool truth;
};

// A name at file level: dim, let, block, moe or model.
struct hec_entry {
    enum hec_item_kind kind;
    const char *name;
    struct hec_span at;
    const struct hec_expr *value;       // dim, let
    const struct hec_declaration *unit; // block, moe, model
    enum { HEC_ENTRY_NEW, HEC_ENTRY_BUSY, HEC_ENTRY_KNOWN, HEC_ENTRY_BROKEN } state;
    struct hec_constant constant; // dim, let: once known.
    bool elaborated;              // unit: some call site was checked.
};

// The meaning of names of dims and lets inside a call, innermost first: those rebound by a call, and the
// variable of a repeat. NULL: as at file level.
struct hec_env {
    const struct hec_env *outer;
    const char *name;
    bool is_dim;
    struct hec_dim dim; // is_dim
    struct hec_constant constant;
};

// The settings of a group of parameters (groups.c), in the order of their merging.
enum hec_group_value {
    HEC_GROUP_FROZEN,
    HEC_GROUP_LR_SCALE,
    HEC_GROUP_DECAY,
    HEC_GROUP_OPTIMIZER,
    HEC_GROUP_VALUES,
};

struct hec_group {
    const char *pattern; // Pattern of paths.
    struct hec_span at;
    const char *text[HEC_GROUP_VALUES]; // NULL: not given.
    struct hec_span given[HEC_GROUP_VALUES];
};

// The adapter of a weight: x @ weight + (x @ a * scale) @ b, with a [rank, in] and b [rank, out]. Shapes have no expert
// dimension.
struct hec_adapter {
    const struct hec_param *weight, *a, *b;
    const struct hec_node *input; // x, of the first such GEMM.
    struct hec_shape a_shape, b_shape;
};

// The section `adapt` (adapt.c). No patterns: there are no adapters.
struct hec_adapt {
    int64_t rank;
    double scale, dropout;
    bool fused; // Matrices of an expert that multiply one input share `a`.
    HEC_VEC(const char *) patterns;
    HEC_VEC(const struct hec_adapter *) adapters; // So far.
    struct hec_span of, rank_at;
};

struct hec_checker {
    const struct hec_front_options *options;
    const struct hec_walk *walk;
    struct hec_arena *arena;
    struct hec_names names;
    struct hec_sources sources;
    struct hec_diag *diag;
    HEC_VEC(struct hec_entry *) entries;
    HEC_VEC(const struct hec_set *) sections;
    HEC_VEC(struct hec_group) groups;
    struct hec_adapt adapt;
    HEC_VEC(struct hec_import {
        const char *path;
        struct hec_span at;
        bool open;
    })
    imports;

    int levels;      // Levels of hec_constant_of in progress.
    bool incomplete; // Something was not understood or not found: names may be missing for it.
    struct hec_names symbols; // Taken symbols of units and parameters.
    HEC_VEC(struct hec_param *) params;
    HEC_VEC(const struct hec_moe *) moes;
    HEC_VEC(struct hec_named_loss) losses;
    int units;             // Elaborated so far.
    int dropouts;          // Calls so far.
    const char *positions; // The dim of the model's ids.
    struct hec_program *program;
};

#define hec_error(checker, at, ...) hec_diag_report((checker)->diag, HEC_ERROR, (at), __VA_ARGS__)
#define hec_warning(checker, at, ...)                                                              \
    hec_diag_report((checker)->diag, HEC_WARNING, (at), __VA_ARGS__)
#define hec_note(checker, at, ...) hec_diag_report((checker)->diag, HEC_NOTE, (at), __VA_ARGS__)
#define hec_detail(checker, ...) hec_diag_detail((checker)->diag, __VA_ARGS__)

// -- files.c: loading and file-level names

// Loads `path` and its imports. Errors are reported.
void hec_load(struct hec_checker *checker, const char *path);

// Whether the file `outer` imports `inner`, itself or through others.
bool hec_imports(struct hec_checker *checker, const struct hec_source *outer,
                 const struct hec_source *inner);
// Loads a file of a `cluster` section, which replaces the ones loaded before.
void hec_load_cluster(struct hec_checker *checker, const char *path);
void hec_apply_defines(struct hec_checker *checker);
struct hec_entry *hec_find_entry(const struct hec_checker *checker, const char *name);
// Adds the text of a command line flag ("-D L=4") as a source of its own.
struct hec_source *hec_flag_source(struct hec_checker *checker, const char *flag, const char *text);

// -- constant.c: values that are known when compiling

// Evaluates `expr`. Returns false after reporting why it has no value.
bool hec_constant_of(struct hec_checker *checker, const struct hec_env *env,
                     const struct hec_expr *expr, struct hec_constant *value);
bool hec_constant_integer(struct hec_checker *checker, const struct hec_env *env,
                          const struct hec_expr *expr, int64_t smallest, int64_t largest,
                          const char *what, int64_t *value);
bool hec_constant_real(struct hec_checker *checker, const struct hec_env *env,
                       const struct hec_expr *expr, const char *what, double *value);
bool hec_constant_bool(struct hec_checker *checker, const struct hec_env *env,
                       const struct hec_expr *expr, const char *what, bool *value);
bool hec_constant_operate(struct hec_checker *checker, const struct hec_expr *expr,
                          const struct hec_constant *left, const struct hec_constant *right,
                          struct hec_constant *value);
// Calls sqrt, exp, minimum or maximum. Returns false, silently, when `name` is none of them.
bool hec_constant_call(const char *name, const struct hec_constant *argument, int count,
                       struct hec_constant *value);
// Whether `expr` is made of numbers, dims, lets and repeat variables alone.
bool hec_is_constant(const struct hec_checker *checker, const struct hec_env *env,
                     const struct hec_expr *expr);
// Resolves a name to a dim or let or repeat variable. Returns false, silently, when it is none.
// Sets `value`; a broken definition gives false and `broken`.
bool hec_resolve_constant(struct hec_checker *checker, const struct hec_env *env, const char *name,
                          struct hec_constant *value, bool *broken);
// Evaluates the definition itself.
bool hec_entry_evaluate(struct hec_checker *checker, struct hec_entry *entry);
const char *hec_constant_text(struct hec_checker *checker, const struct hec_constant *value);

// -- shape.c: lists of dims

bool hec_dim_of(struct hec_checker *checker, const struct hec_env *env, const struct hec_expr *expr,
                struct hec_dim *dim);
// Reads "[T, D]". Reports unknown names, too many dims, and a dim that stands twice.
bool hec_shape_of(struct hec_checker *checker, const struct hec_env *env,
                  const struct hec_arguments *dims, struct hec_span at, struct hec_shape *shape);
int hec_shape_find(const struct hec_shape *shape, const char *name); // -1: not in it.
bool hec_shape_same(const struct hec_shape *a, const struct hec_shape *b);
const char *hec_shape_text(struct hec_arena *arena, const struct hec_shape *shape);
// "[T, D = 64]" where `other` has a dim of that name and another size.
const char *hec_shape_text_beside(struct hec_arena *arena, const struct hec_shape *shape,
                                  const struct hec_shape *other);

// -- suggest.c

// Adds "; did you mean `x`?" and the fix to an error about an unknown name. Reports the error.
void hec_unknown(struct hec_checker *checker, struct hec_span at, const char *what,
                 const char *name, const char *const *candidates, int count);
// The same for a name that belongs to something: "unknown setting `x` of `train`".
void hec_unknown_of(struct hec_checker *checker, struct hec_span at, const char *what,
                    const char *name, const char *owner, const char *const *candidates, int count);

#endif
