// The tree of a .moe file, as written: nothing is resolved. The parser builds it, tree_print.c
// writes it back, check/ reads it. Everything lives in the arena of the compilation; names are
// interned.
#ifndef HECATE_LANG_TREE_H
#define HECATE_LANG_TREE_H

#include <stdbool.h>
#include <stdio.h>

#include "lang/base/source.h"
#include "lang/base/vec.h"

// The quantity that a unit measures. Values are kept in the base unit: bytes, seconds, bytes/s, FLOP/s.
enum hec_measure {
    HEC_PLAIN,
    HEC_BYTES,
    HEC_SECONDS,
    HEC_BYTES_PER_SECOND,
    HEC_FLOPS,
};

struct hec_number {
    double value;
    bool integral; // No fraction and exact: at most 2^53.
    enum hec_measure measure;
};

enum hec_operator {
    HEC_OP_OR,
    HEC_OP_AND,
    HEC_OP_NOT,
    HEC_OP_EQ,
    HEC_OP_NE,
    HEC_OP_LT,
    HEC_OP_LE,
    HEC_OP_GT,
    HEC_OP_GE,
    HEC_OP_RANGE,
    HEC_OP_ADD,
    HEC_OP_SUB,
    HEC_OP_MUL,
    HEC_OP_DIV,
    HEC_OP_MOD,
    HEC_OP_CONTRACT,
    HEC_OP_NEG,
};

enum { HEC_DEPTH_MAX = 500 }; // Depth of an expression: its walkers are recursive.

enum hec_expr_kind {
    HEC_EXPR_NAME,   // text
    HEC_EXPR_NUMBER, // number; text as written
    HEC_EXPR_STRING, // text, without quotes and escapes
    HEC_EXPR_BOOL,   // truth
    HEC_EXPR_LIST,   // arguments, none named
    HEC_EXPR_CALL,   // text is the callee; label or NULL; arguments
    HEC_EXPR_INDEX,  // left[arguments]
    HEC_EXPR_FIELD,  // left.text
    HEC_EXPR_UNARY,  // operation, right
    HEC_EXPR_BINARY, // operation, left, right
};

struct hec_argument {
    const char *name; // NULL: by position.
    struct hec_span at;
    struct hec_expr *value;
};

struct hec_arguments {
    struct hec_argument *item;
    int count, room;
};

struct hec_expr {
    enum hec_expr_kind kind;
    struct hec_span at;
    const char *text;
    struct hec_span text_at; // Text of a call's callee, a field's name, an operator.
    struct hec_number number;
    bool truth;
    int depth; // Depth of the tree below: the parser keeps it within HEC_DEPTH_MAX.
    enum hec_operator operation;
    struct hec_expr *left, *right;
    struct hec_arguments arguments;
    const char *label;
    struct hec_span label_at;
};

// dim NAME = value; let NAME = value
struct hec_definition {
    const char *name;
    struct hec_span at;
    struct hec_expr *value;
};

struct hec_definitions {
    struct hec_definition *item;
    int count, room;
};

// NAME[dims], and for a parameter its options.
struct hec_variable {
    const char *name;
    struct hec_span at;
    struct hec_arguments dims; // None named.
    struct hec_span dims_at;
    struct hec_arguments options;
};

struct hec_variables {
    struct hec_variable *item;
    int count, room;
};

enum hec_stmt_kind {
    HEC_STMT_PARAM,
    HEC_STMT_ASSIGN,
    HEC_STMT_LOSS,
    HEC_STMT_RETURN,
    HEC_STMT_REPEAT,
    HEC_STMT_IF
};

struct hec_stmts {
    struct hec_stmt *item;
    int count, room;
};

struct hec_stmt {
    enum hec_stmt_kind kind;
    struct hec_span at;
    const char *name; // Assigned variable, repeat's, or the loss.
    struct hec_span name_at;
    struct hec_expr
        *value; // Assigned, returned, repeat's bound, if's condition, a loss's expression.
    struct hec_arguments options; // Options of a loss.
    struct hec_variables params;
    struct hec_stmts body;
    struct hec_stmts otherwise; // `else if` is an `if` in here.
};

enum hec_set_kind { HEC_SET_VALUE, HEC_SET_SECTION };

struct hec_sets {
    struct hec_set *item;
    int count, room;
};

// NAME = value, or NAME label { ... }, inside a section or moe, or a section at the top.
struct hec_set {
    enum hec_set_kind kind;
    const char *name;
    struct hec_span at;
    struct hec_expr *value;
    const char *label; // Or NULL.
    struct hec_span label_at;
    bool label_quoted;
    struct hec_sets body;
};

enum hec_item_kind {
    HEC_ITEM_DIM,
    HEC_ITEM_LET,
    HEC_ITEM_IMPORT,
    HEC_ITEM_BLOCK,
    HEC_ITEM_MODEL,
    HEC_ITEM_MOE,
    HEC_ITEM_SECTION,
};

struct hec_declaration {
    enum hec_item_kind kind;
    struct hec_span at;
    struct hec_definitions definitions; // dim, let
    const char *path;                   // import
    const char *name;                   // block, model, moe
    struct hec_span name_at;
    struct hec_variables arguments;
    struct hec_arguments result; // Dims; none named.
    struct hec_span result_at;
    struct hec_stmts body; // block, model
    struct hec_sets sets;  // moe
    struct hec_set section;
};

struct hec_tree {
    HEC_VEC(struct hec_declaration) declarations;
};

// As written: "@", "and".
const char *hec_operator_text(enum hec_operator operation);

// Writes `tree` as .moe text that parses to the same tree: one style, no comments.
void hec_tree_print(const struct hec_tree *tree, FILE *out);

// One expression on one line, as text in `arena`.
const char *hec_expr_text(struct hec_arena *arena, const struct hec_expr *expr);

#endif
