// Functions that the grammar's actions call. Private to parse.y, parse_make.c and syntax_error.c.
#ifndef HECATE_LANG_PARSE_MAKE_H
#define HECATE_LANG_PARSE_MAKE_H

#include "lang/grammar.h"

void hec_make_definitions(struct hec_parser *parser, enum hec_item_kind kind, struct hec_span at,
                          struct hec_definitions definitions);
void hec_make_import(struct hec_parser *parser, struct hec_span at, const char *path);
void hec_make_code(struct hec_parser *parser, enum hec_item_kind kind, const char *name,
                   struct hec_span at, const struct hec_declaration *signature,
                   struct hec_stmts body);
void hec_make_moe(struct hec_parser *parser, const char *name, struct hec_span at,
                  const struct hec_declaration *signature, struct hec_sets sets);
void hec_make_section(struct hec_parser *parser, struct hec_set section);

struct hec_expr *hec_make_text(struct hec_parser *parser, enum hec_expr_kind kind,
                               struct hec_span at, const char *text);
struct hec_expr *hec_make_number(struct hec_parser *parser, struct hec_span at,
                                 const struct hec_token *token);
struct hec_expr *hec_make_bool(struct hec_parser *parser, struct hec_span at, bool truth);
struct hec_expr *hec_make_list(struct hec_parser *parser, struct hec_span at,
                               struct hec_arguments items);
struct hec_expr *hec_make_call(struct hec_parser *parser, struct hec_span at, const char *callee,
                               struct hec_span callee_at, struct hec_arguments arguments);
struct hec_expr *hec_make_index(struct hec_parser *parser, struct hec_span at,
                                struct hec_expr *base, struct hec_arguments indices);
struct hec_expr *hec_make_field(struct hec_parser *parser, struct hec_span at,
                                struct hec_expr *base, const char *name, struct hec_span name_at);
struct hec_expr *hec_make_unary(struct hec_parser *parser, enum hec_operator operation,
                                struct hec_expr *right, struct hec_span operator_at);
struct hec_expr *hec_make_binary(struct hec_parser *parser, enum hec_operator operation,
                                 struct hec_expr *left, struct hec_expr *right,
                                 struct hec_span operator_at);
struct hec_expr *hec_make_parenthesized(struct hec_expr *inner, struct hec_span at);

struct hec_stmt hec_stmt_named(enum hec_stmt_kind kind, struct hec_span at, const char *name,
                               struct hec_span name_at, struct hec_expr *value);
struct hec_stmt hec_stmt_if(struct hec_span at, struct hec_expr *condition, struct hec_stmts body,
                            struct hec_stmts otherwise);
struct hec_set hec_set_section(const char *name, struct hec_span at, struct hec_set label,
                               struct hec_sets body);

// Reports that the token the scanner handed out last is none of `expected` (bison's symbol names).
void hec_syntax_error(struct hec_parser *parser, const char *const *expected, int count);

#endif
