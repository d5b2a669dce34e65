// Elaboration: each call site of a block or moe becomes a unit of its own. Private to check/.
#ifndef HECATE_LANG_CHECK_UNIT_H
#define HECATE_LANG_CHECK_UNIT_H

#include "lang/check/checker.h"

// A value in a body: a node, or a number known when compiling.
struct hec_value {
    const struct hec_node *node; // NULL: `constant`, unless broken.
    struct hec_constant constant;
    bool broken; // Its error is reported: its users report no further one.
};

struct hec_local {
    const char *name;
    struct hec_span at;
    struct hec_value value;
    bool used;
    bool quiet; // An argument: need not be used.
};

struct hec_items {
    struct hec_item *item;
    int count, room;
};

// A name that stands in the path of parameters: of a call site, a norm or a parameter.
struct hec_taken {
    const char *name;
    struct hec_span at;
};

struct hec_taken_names {
    struct hec_taken *item;
    int count, room;
};

// One unit under construction.
struct hec_site {
    struct hec_checker *checker;
    const struct hec_site *caller; // NULL: the model.
    const struct hec_declaration *code;
    const struct hec_env *env;
    const char *symbol; // Its parameters' symbols begin with it; "" in the model.
    const char *path;   // Their paths begin with it: "layers.{}.attention.", or "".

    int64_t layers, index_first, index_stride; // As in hec_param.
    int64_t layers_before;                     // Iterations of the repeats so far.
    const struct hec_moe *expert_of;           // In an expert's body.

    struct hec_items items;
    HEC_VEC(struct hec_local) locals;
    struct hec_taken_names taken;
    struct hec_taken_names untaken; // Variables of branches that are not taken.
    const struct hec_node *result;
    bool returned;
    bool broken; // A statement could not be understood: names may be missing for that reason.
    uint32_t raised_before;           // Errors raised before this unit.
    const char *assigned;             // Variable that the present statement assigns, or NULL.
    const struct hec_expr *statement; // The expression of that statement.
};

// Statements have expressions, expressions calls, and a call has a body of statements. A file of this
// folder knows only those below it; the call that closes the circle goes through this (front.c).
struct hec_walk {
    struct hec_value (*call)(struct hec_site *site, const struct hec_expr *expr,
                             const char *callee);                             // hec_call
    void (*statements)(struct hec_site *site, const struct hec_stmts *stmts); // hec_statements
    // hec_elaborate_expert
    struct hec_unit *(*expert)(const struct hec_site *site, const struct hec_declaration *code,
                               const struct hec_env *env, const char *name, const char *path_name,
                               const struct hec_moe *moe, const struct hec_node *argument);
};

// -- node.c

// The node of a value; numbers become nodes. NULL when broken.
const struct hec_node *hec_node_of(struct hec_site *site, struct hec_value value,
                                   struct hec_span at);
// Adds a node to the body.
const struct hec_node *hec_add_node(struct hec_site *site, struct hec_node node);
struct hec_value hec_node_value(const struct hec_node *node);
// x with each element dropped at this rate in training steps.
const struct hec_node *hec_drop(struct hec_site *site, const struct hec_node *x, double rate,
                                struct hec_span at);
// Adds the lines "x is [T, D]" for two operands to an error.
void hec_describe(struct hec_checker *checker, const struct hec_expr *left,
                  const struct hec_node *a, const struct hec_expr *right, const struct hec_node *b);

// -- name.c

struct hec_local *hec_find_local(struct hec_site *site, const char *name);
void hec_assign(struct hec_site *site, const char *name, struct hec_span at,
                struct hec_value value);
// Forgets the locals from `count` on, and warns of those never used.
void hec_drop_locals(struct hec_site *site, int count);
// Report an unknown name, or an unknown callee.
void hec_unknown_name(struct hec_site *site, const struct hec_expr *expr);
void hec_unknown_function(struct hec_site *site, const struct hec_expr *expr);

// -- loss.c

// A `loss` statement.
void hec_declare_loss(struct hec_site *site, const struct hec_stmt *stmt);

// -- argument.c

// The argument `name` of a call, or NULL.
const struct hec_argument *hec_argument(const struct hec_expr *call, const char *name);
// Reports arguments that are not among `allowed`, named twice, or positional beyond `positional`.
bool hec_check_arguments(struct hec_checker *checker, const struct hec_expr *call, int positional,
                         const char *const *allowed, int count);
// The same of a builtin function's call, by its row.
bool hec_check_builtin(struct hec_checker *checker, const struct hec_expr *expr,
                       enum hec_builtin builtin);
// Numbers and truths among a call's arguments; the default stays when it is not given.
bool hec_argument_real(struct hec_site *site, const struct hec_expr *call, const char *name,
                       double *value);
bool hec_argument_bool(struct hec_site *site, const struct hec_expr *call, const char *name,
                       bool *value);
bool hec_argument_integer(struct hec_site *site, const struct hec_expr *call, const char *name,
                          int64_t smallest, int64_t *value);

// -- rebind.c

// The part of `env` that is visible inside a call: not the variable of a repeat.
const struct hec_env *hec_seen_inside(const struct hec_checker *checker, const struct hec_env *env);
// Rebinds the dims and lets named by a call's arguments. Returns the environment inside it.
const struct hec_env *hec_rebind(struct hec_checker *checker, const struct hec_env *env,
                                 const struct hec_arguments *arguments, const char *callee);

// -- call.c

// `callee` as in hec_evaluate.
struct hec_value hec_call(struct hec_site *site, const struct hec_expr *expr, const char *callee);

// -- unit.c

struct hec_value hec_call_unit(struct hec_site *site, const struct hec_expr *expr,
                               const struct hec_entry *entry);
// Checks the model and every unit nobody called. Returns the model's unit, or NULL.
struct hec_unit *hec_elaborate_model(struct hec_checker *checker,
                                     const struct hec_declaration *code);
void hec_elaborate_uncalled(struct hec_checker *checker);

// A unit's expert or shared body: as a call at `name` inside moe `unit`, with fresh parameters.
struct hec_unit *hec_elaborate_expert(const struct hec_site *site,
                                      const struct hec_declaration *code, const struct hec_env *env,
                                      const char *name, const char *path_name,
                                      const struct hec_moe *moe, const struct hec_node *argument);

// -- param.c

// Adds a parameter named `name` to the program and reports a clash of names in this body.
// `shape` is without the expert dimension.
struct hec_param *hec_add_param(struct hec_site *site, const char *name, struct hec_span at,
                                const struct hec_shape *shape, enum hec_init init, double value);
// Adds a matrix of the adapter of `weight`, of its layers and experts; paths continue that of the weight.
struct hec_param *hec_add_param_of(struct hec_checker *checker, const struct hec_param *weight,
                                   enum hec_lora lora, const struct hec_shape *shape,
                                   enum hec_init init, double value);
// "layers.{}.attention.wq" is taken only once in one body.
bool hec_take_name(struct hec_site *site, const char *name, struct hec_span at);
const char *hec_unique_symbol(struct hec_checker *checker, const char *base);
const struct hec_node *hec_param_node(struct hec_site *site, const struct hec_param *param,
                                      const struct hec_shape *shape);
void hec_declare_params(struct hec_site *site, const struct hec_stmt *stmt);

// -- statement.c

void hec_statements(struct hec_site *site, const struct hec_stmts *stmts);
// -- untaken.c

// Reports unknown names in a branch that is not taken.
void hec_check_untaken(struct hec_site *site, const struct hec_stmts *stmts);

// -- repeat.c

void hec_repeat(struct hec_site *site, const struct hec_stmt *stmt);

// -- expression.c

// `callee` is the name of the call whose argument `expr` directly is, or NULL.
struct hec_value hec_evaluate(struct hec_site *site, const struct hec_expr *expr,
                              const char *callee);
// -- transpose.c

// Whether `dims` are those of `shape` from `first` on, in their order.
bool hec_stand_at(const struct hec_shape *dims, const struct hec_shape *shape, int first);
// `shape` with these of its dims in front of the others, or behind them; the others keep their order.
struct hec_shape hec_shape_with(const struct hec_shape *shape, const struct hec_shape *dims,
                                bool last);
// Whether the compiler can transpose `x`: parameters of experts lie where GEMMs find them, and nothing else does.
bool hec_may_transpose(const struct hec_site *site, const struct hec_node *x);
// `x` with its dims in the order of `shape`; itself where they stand so.
const struct hec_node *hec_transpose(struct hec_site *site, const struct hec_node *x,
                                     const struct hec_shape *shape, struct hec_span at);

// -- operators.c

struct hec_value hec_elementwise(struct hec_site *site, enum hec_builtin builtin,
                                 const struct hec_expr *expr, const struct hec_expr *left,
                                 const struct hec_node *a, const struct hec_expr *right,
                                 const struct hec_node *b);
struct hec_value hec_contract(struct hec_site *site, const struct hec_expr *expr,
                              const struct hec_node *a, const struct hec_node *b);
struct hec_value hec_gather(struct hec_site *site, const struct hec_expr *expr,
                            const struct hec_node *table, const struct hec_node *ids);

// -- builtin.c

struct hec_value hec_call_builtin(struct hec_site *site, const struct hec_expr *expr,
                                  enum hec_builtin builtin, const char *callee);

// Calls of one rule of lang/builtins.def each: parts.c, tokens.c, reduce.c, attention.c,
// recurrent.c, loss.c.
typedef struct hec_value hec_call_fn(struct hec_site *site, const struct hec_expr *expr,
                                     enum hec_builtin builtin);
hec_call_fn hec_call_slice, hec_call_concat, hec_call_ahead, hec_call_documents, hec_call_sum,
    hec_call_softmax, hec_call_rope, hec_call_sdpa, hec_call_causal_conv, hec_call_delta_rule,
    hec_call_loss;

// -- attention.c

// False after reporting that an expert, which must treat every token alone, calls this function.
bool hec_may_relate_positions(struct hec_site *site, const struct hec_expr *expr);
// Reads `documents = d`: adds it to the node's operands.
bool hec_read_documents(struct hec_site *site, const struct hec_expr *expr, struct hec_node *node);

// -- norm.c

// Whether an argument's value is `zero_centered`, of gains of norms.
bool hec_is_zero_centered(const struct hec_expr *value);

struct hec_value hec_norm(struct hec_site *site, const struct hec_expr *expr,
                          enum hec_builtin builtin, const char *callee);

// -- model.c

// Checks the whole of a model without errors, settings included: reports tables that token ids
// exceed, and warns of attention that sees the tokens to be predicted.
void hec_check_model(struct hec_checker *checker);

// -- roles.c

// Finds out which parameters are embeddings, heads and routers, of a model without errors.
void hec_find_roles(struct hec_checker *checker);

// -- moe.c

void hec_elaborate_moe(struct hec_site *site, struct hec_unit *unit);

#endif
