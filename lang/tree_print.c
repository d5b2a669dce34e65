// Prints a tree as .moe text, in one style, with no more parentheses than the tree needs.
#include <stdlib.h>

#include "lang/tree.h"

static const struct {
    const char *text;
    int level;
} operators[] = {
    [HEC_OP_OR] = {"or", 1},      [HEC_OP_AND] = {"and", 2}, [HEC_OP_NOT] = {"not", 3},
    [HEC_OP_EQ] = {"==", 4},      [HEC_OP_NE] = {"!=", 4},   [HEC_OP_LT] = {"<", 4},
    [HEC_OP_LE] = {"<=", 4},      [HEC_OP_GT] = {">", 4},    [HEC_OP_GE] = {">=", 4},
    [HEC_OP_RANGE] = {"..", 5},   [HEC_OP_ADD] = {"+", 6},   [HEC_OP_SUB] = {"-", 6},
    [HEC_OP_MUL] = {"*", 7},      [HEC_OP_DIV] = {"/", 7},   [HEC_OP_MOD] = {"%", 7},
    [HEC_OP_CONTRACT] = {"@", 7}, [HEC_OP_NEG] = {"-", 8},
};

enum { LEVEL_POSTFIX = 9 };

const char *hec_operator_text(enum hec_operator operation) {
    return operators[operation].text;
}

static void print_string(const char *text, FILE *out) {
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') fputc('\\', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

// Writes one expression on one line.
static void print_expr(const struct hec_expr *expr, FILE *out);

static void print_arguments(const struct hec_arguments *arguments, FILE *out) {
    for (int i = 0; i < arguments->count; i++) {
        const struct hec_argument *argument = &arguments->item[i];
        if (i) fputs(", ", out);
        if (argument->name) fprintf(out, "%s = ", argument->name);
        print_expr(argument->value, out);
    }
}

static int level_of(const struct hec_expr *expr) {
    const bool operation = expr->kind == HEC_EXPR_UNARY || expr->kind == HEC_EXPR_BINARY;
    return operation ? operators[expr->operation].level : LEVEL_POSTFIX;
}

// Prints an operand of something that binds at `level`.
static void print_operand(const struct hec_expr *operand, int level, FILE *out) {
    const bool wrapped = level_of(operand) < level;
    if (wrapped) fputc('(', out);
    print_expr(operand, out);
    if (wrapped) fputc(')', out);
}

static void print_operation(const struct hec_expr *expr, FILE *out) {
    const int level = operators[expr->operation].level;
    const char *text = operators[expr->operation].text;
    if (expr->kind == HEC_EXPR_UNARY) {
        fprintf(out, "%s%s", text, expr->operation == HEC_OP_NOT ? " " : "");
        print_operand(expr->right, level, out);
        return;
    }
    const bool alone = level == 4 || level == 5; // Comparisons and ranges do not chain.
    print_operand(expr->left, alone ? level + 1 : level, out);
    if (expr->operation == HEC_OP_RANGE)
        fputs(text, out);
    else
        fprintf(out, " %s ", text);
    print_operand(expr->right, level + 1, out);
}

static void print_expr(const struct hec_expr *expr, FILE *out) {
    switch (expr->kind) {
    case HEC_EXPR_NAME:
    case HEC_EXPR_NUMBER:
        fputs(expr->text, out);
        break;
    case HEC_EXPR_STRING:
        print_string(expr->text, out);
        break;
    case HEC_EXPR_BOOL:
        fputs(expr->truth ? "true" : "false", out);
        break;
    case HEC_EXPR_LIST:
        fputc('[', out);
        print_arguments(&expr->arguments, out);
        fputc(']', out);
        break;
    case HEC_EXPR_CALL:
        if (expr->label) fprintf(out, "%s: ", expr->label);
        fprintf(out, "%s(", expr->text);
        print_arguments(&expr->arguments, out);
        fputc(')', out);
        break;
    case HEC_EXPR_INDEX:
        print_operand(expr->left, LEVEL_POSTFIX, out);
        fputc('[', out);
        print_arguments(&expr->arguments, out);
        fputc(']', out);
        break;
    case HEC_EXPR_FIELD:
        print_operand(expr->left, LEVEL_POSTFIX, out);
        fprintf(out, ".%s", expr->text);
        break;
    case HEC_EXPR_UNARY:
    case HEC_EXPR_BINARY:
        print_operation(expr, out);
        break;
    }
}

const char *hec_expr_text(struct hec_arena *arena, const struct hec_expr *expr) {
    char *printed = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&printed, &bytes);
    if (!out) return "";
    print_expr(expr, out);
    fclose(out);
    const char *text = hec_arena_copy(arena, printed, bytes);
    free(printed);
    return text;
}

static void indent(int depth, FILE *out) {
    fprintf(out, "%*s", 2 * depth, "");
}

static void print_variables(const struct hec_variables *variables, FILE *out) {
    for (int i = 0; i < variables->count; i++) {
        const struct hec_variable *variable = &variables->item[i];
        fprintf(out, "%s%s[", i ? ", " : "", variable->name);
        print_arguments(&variable->dims, out);
        fputc(']', out);
        if (variable->options.count == 0) continue;
        fputs(" (", out);
        print_arguments(&variable->options, out);
        fputc(')', out);
    }
}

static void print_statements(const struct hec_stmts *stmts, int depth, FILE *out);

static void print_if(const struct hec_stmt *stmt, int depth, FILE *out) {
    fputs("if ", out);
    print_expr(stmt->value, out);
    fputs(" {\n", out);
    print_statements(&stmt->body, depth + 1, out);
    indent(depth, out);
    fputc('}', out);
    if (stmt->otherwise.count == 0) {
        fputc('\n', out);
    } else if (stmt->otherwise.count == 1 && stmt->otherwise.item[0].kind == HEC_STMT_IF) {
        fputs(" else ", out);
        print_if(&stmt->otherwise.item[0], depth, out);
    } else {
        fputs(" else {\n", out);
        print_statements(&stmt->otherwise, depth + 1, out);
        indent(depth, out);
        fputs("}\n", out);
    }
}

static void print_statement(const struct hec_stmt *stmt, int depth, FILE *out) {
    indent(depth, out);
    switch (stmt->kind) {
    case HEC_STMT_PARAM:
        fputs("param ", out);
        print_variables(&stmt->params, out);
        fputc('\n', out);
        break;
    case HEC_STMT_ASSIGN:
        fprintf(out, "%s = ", stmt->name);
        print_expr(stmt->value, out);
        fputc('\n', out);
        break;
    case HEC_STMT_LOSS:
        fprintf(out, "loss %s", stmt->name);
        if (stmt->options.count) {
            fputs(" (", out);
            print_arguments(&stmt->options, out);
            fputc(')', out);
        }
        fputs(" = ", out);
        print_expr(stmt->value, out);
        fputc('\n', out);
        break;
    case HEC_STMT_RETURN:
        fputs("return ", out);
        print_expr(stmt->value, out);
        fputc('\n', out);
        break;
    case HEC_STMT_REPEAT:
        fprintf(out, "repeat %s < ", stmt->name);
        print_expr(stmt->value, out);
        fputs(" {\n", out);
        print_statements(&stmt->body, depth + 1, out);
        indent(depth, out);
        fputs("}\n", out);
        break;
    case HEC_STMT_IF:
        print_if(stmt, depth, out);
        break;
    }
}

static void print_statements(const struct hec_stmts *stmts, int depth, FILE *out) {
    for (int i = 0; i < stmts->count; i++) print_statement(&stmts->item[i], depth, out);
}

static void print_sets(const struct hec_sets *sets, int depth, FILE *out) {
    for (int i = 0; i < sets->count; i++) {
        const struct hec_set *set = &sets->item[i];
        indent(depth, out);
        fputs(set->name, out);
        if (set->kind == HEC_SET_VALUE) {
            fputs(" = ", out);
            print_expr(set->value, out);
            fputc('\n', out);
            continue;
        }
        fputc(' ', out);
        if (set->label && set->label_quoted)
            print_string(set->label, out);
        else if (set->label)
            fputs(set->label, out);
        fputs(set->label ? " {\n" : "{\n", out);
        print_sets(&set->body, depth + 1, out);
        indent(depth, out);
        fputs("}\n", out);
    }
}

static void print_definitions(const char *keyword, const struct hec_definitions *definitions,
                              FILE *out) {
    fputs(keyword, out);
    for (int i = 0; i < definitions->count; i++) {
        fprintf(out, "%s%s = ", i ? ", " : " ", definitions->item[i].name);
        print_expr(definitions->item[i].value, out);
    }
    fputc('\n', out);
}

static void print_unit(const char *keyword, const struct hec_declaration *unit, FILE *out) {
    fprintf(out, "\n%s %s(", keyword, unit->name);
    print_variables(&unit->arguments, out);
    fputs(") -> [", out);
    print_arguments(&unit->result, out);
    fputs("] {\n", out);
    if (unit->kind == HEC_ITEM_MOE)
        print_sets(&unit->sets, 1, out);
    else
        print_statements(&unit->body, 1, out);
    fputs("}\n", out);
}

void hec_tree_print(const struct hec_tree *tree, FILE *out) {
    for (int i = 0; i < tree->declarations.count; i++) {
        const struct hec_declaration *item = &tree->declarations.item[i];
        switch (item->kind) {
        case HEC_ITEM_DIM:
            print_definitions("dim", &item->definitions, out);
            break;
        case HEC_ITEM_LET:
            print_definitions("let", &item->definitions, out);
            break;
        case HEC_ITEM_IMPORT:
            fputs("import ", out);
            print_string(item->path, out);
            fputc('\n', out);
            break;
        case HEC_ITEM_BLOCK:
            print_unit("block", item, out);
            break;
        case HEC_ITEM_MODEL:
            print_unit("model", item, out);
            break;
        case HEC_ITEM_MOE:
            print_unit("moe", item, out);
            break;
        case HEC_ITEM_SECTION: {
            struct hec_sets alone = {.item = (struct hec_set *)&item->section, .count = 1};
            fputc('\n', out);
            print_sets(&alone, 0, out);
            break;
        }
        }
    }
}
