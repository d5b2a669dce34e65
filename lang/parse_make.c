// Builds the tree: functions for the grammar's actions, and the two ways into the parser.
#include "lang/parse_make.h"

#include "lang/parse.h"

static void add_declaration(struct hec_parser *parser, struct hec_declaration declaration) {
    HEC_PUSH(parser->scan.arena, &parser->tree->declarations, declaration);
}

void hec_make_definitions(struct hec_parser *parser, enum hec_item_kind kind, struct hec_span at,
                          struct hec_definitions definitions) {
    add_declaration(parser,
                    (struct hec_declaration){.kind = kind, .at = at, .definitions = definitions});
}

void hec_make_import(struct hec_parser *parser, struct hec_span at, const char *path) {
    add_declaration(parser,
                    (struct hec_declaration){.kind = HEC_ITEM_IMPORT, .at = at, .path = path});
}

void hec_make_code(struct hec_parser *parser, enum hec_item_kind kind, const char *name,
                   struct hec_span at, const struct hec_declaration *signature,
                   struct hec_stmts body) {
    struct hec_declaration code = *signature;
    code.kind = kind;
    code.at = code.name_at = at;
    code.name = name;
    code.body = body;
    add_declaration(parser, code);
}

void hec_make_moe(struct hec_parser *parser, const char *name, struct hec_span at,
                  const struct hec_declaration *signature, struct hec_sets sets) {
    struct hec_declaration moe = *signature;
    moe.kind = HEC_ITEM_MOE;
    moe.at = moe.name_at = at;
    moe.name = name;
    moe.sets = sets;
    add_declaration(parser, moe);
}

void hec_make_section(struct hec_parser *parser, struct hec_set section) {
    add_declaration(parser, (struct hec_declaration){
                                .kind = HEC_ITEM_SECTION, .at = section.at, .section = section});
}

static struct hec_expr *make(struct hec_parser *parser, struct hec_expr expr) {
    struct hec_expr *kept = HEC_NEW(parser->scan.arena, struct hec_expr);
    *kept = expr;
    if (expr.left) kept->depth = expr.left->depth;
    if (expr.right && expr.right->depth > kept->depth) kept->depth = expr.right->depth;
    for (int i = 0; i < expr.arguments.count; i++) {
        const int depth = expr.arguments.item[i].value->depth;
        if (depth > kept->depth) kept->depth = depth;
    }
    if (++kept->depth <= HEC_DEPTH_MAX) return kept;
    hec_diag_report(parser->scan.diag, HEC_ERROR, expr.at,
                    "this expression is nested more than %d deep", HEC_DEPTH_MAX);
    *kept = (struct hec_expr){.kind = HEC_EXPR_BOOL, .at = expr.at, .depth = 1};
    return kept;
}

struct hec_expr *hec_make_text(struct hec_parser *parser, enum hec_expr_kind kind,
                               struct hec_span at, const char *text) {
    return make(parser, (struct hec_expr){.kind = kind, .at = at, .text = text});
}

struct hec_expr *hec_make_number(struct hec_parser *parser, struct hec_span at,
                                 const struct hec_token *token) {
    return make(parser, (struct hec_expr){.kind = HEC_EXPR_NUMBER,
                                          .at = at,
                                          .text = token->text,
                                          .number = token->number});
}

struct hec_expr *hec_make_bool(struct hec_parser *parser, struct hec_span at, bool truth) {
    return make(parser, (struct hec_expr){.kind = HEC_EXPR_BOOL, .at = at, .truth = truth});
}

struct hec_expr *hec_make_list(struct hec_parser *parser, struct hec_span at,
                               struct hec_arguments items) {
    return make(parser, (struct hec_expr){.kind = HEC_EXPR_LIST, .at = at, .arguments = items});
}

struct hec_expr *hec_make_call(struct hec_parser *parser, struct hec_span at, const char *callee,
                               struct hec_span callee_at, struct hec_arguments arguments) {
    return make(parser, (struct hec_expr){.kind = HEC_EXPR_CALL,
                                          .at = at,
                                          .text = callee,
                                          .text_at = callee_at,
                                          .arguments = arguments});
}

struct hec_expr *hec_make_index(struct hec_parser *parser, struct hec_span at,
                                struct hec_expr *base, struct hec_arguments indices) {
    return make(parser, (struct hec_expr){
                            .kind = HEC_EXPR_INDEX, .at = at, .left = base, .arguments = indices});
}

struct hec_expr *hec_make_field(struct hec_parser *parser, struct hec_span at,
                                struct hec_expr *base, const char *name, struct hec_span name_at) {
    return make(
        parser,
        (struct hec_expr){
            .kind = HEC_EXPR_FIELD, .at = at, .left = base, .text = name, .text_at = name_at});
}

struct hec_expr *hec_make_unary(struct hec_parser *parser, enum hec_operator operation,
                                struct hec_expr *right, struct hec_span operator_at) {
    return make(parser, (struct hec_expr){.kind = HEC_EXPR_UNARY,
                                          .at = hec_span_join(operator_at, right->at),
                                          .operation = operation,
                                          .text_at = operator_at,
                                          .right = right});
}

struct hec_expr *hec_make_binary(struct hec_parser *parser, enum hec_operator operation,
                                 struct hec_expr *left, struct hec_expr *right,
                                 struct hec_span operator_at) {
    return make(parser, (struct hec_expr){.kind = HEC_EXPR_BINARY,
                                          .at = hec_span_join(left->at, right->at),
                                          .operation = operation,
                                          .text_at = operator_at,
                                          .left = left,
                                          .right = right});
}

struct hec_expr *hec_make_parenthesized(struct hec_expr *inner, struct hec_span at) {
    inner->at = at;
    return inner;
}

struct hec_stmt hec_stmt_named(enum hec_stmt_kind kind, struct hec_span at, const char *name,
                               struct hec_span name_at, struct hec_expr *value) {
    return (struct hec_stmt){
        .kind = kind, .at = at, .name = name, .name_at = name_at, .value = value};
}

struct hec_stmt hec_stmt_if(struct hec_span at, struct hec_expr *condition, struct hec_stmts body,
                            struct hec_stmts otherwise) {
    return (struct hec_stmt){
        .kind = HEC_STMT_IF, .at = at, .value = condition, .body = body, .otherwise = otherwise};
}

struct hec_set hec_set_section(const char *name, struct hec_span at, struct hec_set label,
                               struct hec_sets body) {
    label.kind = HEC_SET_SECTION;
    label.name = name;
    label.at = at;
    label.body = body;
    return label;
}

static struct hec_parser parser_of(int start, struct hec_arena *arena, struct hec_names *names,
                                   struct hec_diag *diag) {
    return (struct hec_parser){
        .scan = {.arena = arena, .names = names, .diag = diag},
        .start = start,
    };
}

struct hec_tree *hec_parse(const struct hec_source *source, struct hec_arena *arena,
                           struct hec_names *names, struct hec_diag *diag) {
    struct hec_parser parser = parser_of(HEC_T_START_FILE, arena, names, diag);
    parser.tree = HEC_NEW(arena, struct hec_tree);
    hec_scan_open(&parser.scan, source, 0);
    hec_parse_parse(&parser);
    hec_scan_close(&parser.scan);
    return parser.tree;
}

struct hec_expr *hec_parse_expression(const struct hec_source *source, uint32_t offset,
                                      struct hec_arena *arena, struct hec_names *names,
                                      struct hec_diag *diag) {
    const uint32_t errors_before = diag->errors;
    struct hec_parser parser = parser_of(HEC_T_START_EXPRESSION, arena, names, diag);
    hec_scan_open(&parser.scan, source, offset);
    const int status = hec_parse_parse(&parser);
    hec_scan_close(&parser.scan);
    return status || diag->errors != errors_before ? NULL : parser.expression;
}
