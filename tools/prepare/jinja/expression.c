// Expressions of Jinja: by recursive descent, in its order of precedence.
#include <string.h>

#include "tools/prepare/jinja/inside.h"

enum { DEPTH = 64 };

static struct node *parse_unary(struct source *source, bool filters);

static struct node *with(struct source *source, enum node_kind kind, int line, struct node *a) {
    struct node *node = jinja_node(source, kind, line);
    node->a = a;
    return node;
}

static struct node *constant(struct source *source, int line, struct value value) {
    struct node *node = jinja_node(source, NODE_CONSTANT, line);
    node->value = value;
    return node;
}

static void append(struct node ***last, struct node *node) {
    **last = node;
    *last = &node->next;
}

// (a, b = c) behind a call, a filter or a test.
static struct node *parse_arguments(struct source *source) {
    struct node *list = NULL, **last = &list;
    jinja_expect(source, TOKEN_SIGN, "(");
    while (!source->failed && !jinja_is(source, TOKEN_SIGN, ")")) {
        if (jinja_is(source, TOKEN_SIGN, "*") || jinja_is(source, TOKEN_SIGN, "**"))
            source_fail(source, jinja_peek(source)->line,
                        "arguments from a list (*) are not supported");
        struct node *node = jinja_expression(source, false);
        if (node->kind == NODE_NAME && jinja_accept(source, TOKEN_SIGN, "=")) {
            struct node *keyword =
                with(source, NODE_KEYWORD, node->line, jinja_expression(source, false));
            keyword->text = node->text;
            node = keyword;
        }
        append(&last, node);
        if (!jinja_accept(source, TOKEN_SIGN, ",")) break;
    }
    jinja_expect(source, TOKEN_SIGN, ")");
    return list;
}

static struct node *parse_map(struct source *source, int line) {
    struct node *map = jinja_node(source, NODE_MAP, line), **last = &map->list;
    while (!source->failed && !jinja_is(source, TOKEN_SIGN, "}")) {
        struct node *pair = jinja_node(source, NODE_PAIR, line);
        pair->a = jinja_expression(source, false);
        jinja_expect(source, TOKEN_SIGN, ":");
        pair->b = jinja_expression(source, false);
        append(&last, pair);
        if (!jinja_accept(source, TOKEN_SIGN, ",")) break;
    }
    jinja_expect(source, TOKEN_SIGN, "}");
    return map;
}

// A list in brackets or, as a tuple, in parentheses.
static struct node *parse_list(struct source *source, int line, const char *end) {
    struct node *list = jinja_node(source, NODE_LIST, line), **last = &list->list;
    while (!source->failed && !jinja_is(source, TOKEN_SIGN, end)) {
        append(&last, jinja_expression(source, false));
        if (!jinja_accept(source, TOKEN_SIGN, ",")) break;
    }
    jinja_expect(source, TOKEN_SIGN, end);
    return list;
}

static struct node *parse_name(struct source *source, const struct token *token) {
    static const struct {
        const char *name;
        int what; // -1: none, else a boolean.
    } constants[] = {{"true", 1},  {"True", 1},  {"false", 0},
                     {"False", 0}, {"none", -1}, {"None", -1}};
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++) {
        if (text_is(token->text, constants[i].name))
            return constant(source, token->line,
                            constants[i].what < 0 ? value_none()
                                                  : value_boolean(constants[i].what));
    }
    struct node *node = jinja_node(source, NODE_NAME, token->line);
    node->text = token->text;
    return node;
}

// Strings behind each other are one.
static struct node *parse_string(struct source *source) {
    struct text whole = {0};
    const int line = jinja_peek(source)->line;
    while (!source->failed && jinja_is(source, TOKEN_STRING, NULL)) {
        const struct text next = jinja_peek(source)->text;
        jinja_accept(source, TOKEN_STRING, NULL);
        char *both =
            whole.bytes ? arena_take(&source->jinja->arena, whole.bytes + next.bytes) : NULL;
        if (whole.bytes && !both) {
            source_fail(source, line, "out of memory");
        } else if (both) {
            memcpy(both, whole.at, whole.bytes);
            memcpy(both + whole.bytes, next.at, next.bytes);
            whole = (struct text){both, whole.bytes + next.bytes};
        } else {
            whole = next;
        }
    }
    return constant(source, line, value_text(whole.at, whole.bytes));
}

static struct node *parse_primary(struct source *source) {
    const struct token token = *jinja_peek(source);
    if (token.kind == TOKEN_STRING) return parse_string(source);
    if (jinja_accept(source, TOKEN_NAME, NULL)) return parse_name(source, &token);
    if (jinja_accept(source, TOKEN_INTEGER, NULL))
        return constant(source, token.line, value_integer(token.integer));
    if (jinja_accept(source, TOKEN_REAL, NULL))
        return constant(source, token.line, (struct value){.kind = VALUE_REAL, .real = token.real});
    if (jinja_accept(source, TOKEN_SIGN, "[")) return parse_list(source, token.line, "]");
    if (jinja_accept(source, TOKEN_SIGN, "{")) return parse_map(source, token.line);
    if (jinja_accept(source, TOKEN_SIGN, "(")) {
        if (jinja_is(source, TOKEN_SIGN, ")")) return parse_list(source, token.line, ")");
        struct node *node = jinja_expression(source, true);
        jinja_expect(source, TOKEN_SIGN, ")");
        return node;
    }
    source_fail(source, token.line, "an expression is wanted, and '%.*s' is none",
                (int)(token.text.bytes > 40 ? 40 : token.text.bytes),
                token.text.bytes ? token.text.at : "");
    return jinja_node(source, NODE_CONSTANT, token.line);
}

// [a], [a:b], [a:b:c]
static struct node *parse_bracket(struct source *source, struct node *of, int line) {
    struct node *bound[3] = {0};
    int colons = 0;
    while (!source->failed && !jinja_is(source, TOKEN_SIGN, "]")) {
        if (jinja_accept(source, TOKEN_SIGN, ":")) {
            if (++colons > 2) source_fail(source, line, "a slice has at most three parts");
        } else if (colons < 3 && !bound[colons]) {
            bound[colons] = jinja_expression(source, false);
        } else {
            break;
        }
    }
    jinja_expect(source, TOKEN_SIGN, "]");
    struct node *node = with(source, colons ? NODE_SLICE : NODE_ITEM, line, of);
    node->b = bound[0];
    node->c = bound[1];
    node->d = bound[2];
    if (!colons && !node->b) source_fail(source, line, "[] has no index");
    return node;
}

static struct node *parse_dot(struct source *source, struct node *of, int line) {
    const struct token token = *jinja_peek(source);
    if (jinja_accept(source, TOKEN_INTEGER, NULL)) {
        struct node *item = with(source, NODE_ITEM, line, of);
        item->b = constant(source, line, value_integer(token.integer));
        return item;
    }
    jinja_expect(source, TOKEN_NAME, NULL);
    struct node *node = with(source, NODE_ATTRIBUTE, line, of);
    node->text = token.text;
    return node;
}

static struct node *parse_call(struct source *source, struct node *of, int line) {
    struct node *call = with(source, NODE_CALL, line, of);
    call->list = parse_arguments(source);
    return call;
}

// Each turn makes the tree deeper, so it counts as depth.
static struct node *parse_postfix(struct source *source, struct node *node) {
    for (int turns = 0; !source->failed; turns++) {
        const int line = jinja_peek(source)->line;
        if (turns > DEPTH)
            source_fail(source, line, "an expression is longer than %d calls and indices", DEPTH);
        if (jinja_accept(source, TOKEN_SIGN, "."))
            node = parse_dot(source, node, line);
        else if (jinja_accept(source, TOKEN_SIGN, "["))
            node = parse_bracket(source, node, line);
        else if (jinja_is(source, TOKEN_SIGN, "("))
            node = parse_call(source, node, line);
        else
            break;
    }
    return node;
}

static struct text parse_dotted(struct source *source) {
    const struct text name = jinja_peek(source)->text;
    jinja_expect(source, TOKEN_NAME, NULL);
    if (jinja_is(source, TOKEN_SIGN, "."))
        source_fail(source, jinja_peek(source)->line,
                    "names of filters and tests with a dot are not supported");
    return name;
}

// Whether an argument without parentheses follows the name of a test: `is divisibleby 3`.
static bool has_plain_argument(const struct source *source) {
    static const char *const ends[] = {"else", "or", "and", "is", "not", "in", "if"};
    const struct token *token = jinja_peek(source);
    if (token->kind == TOKEN_SIGN) return text_is(token->text, "[") || text_is(token->text, "{");
    for (size_t i = 0; token->kind == TOKEN_NAME && i < sizeof ends / sizeof *ends; i++) {
        if (text_is(token->text, ends[i])) return false;
    }
    return token->kind == TOKEN_NAME || token->kind == TOKEN_STRING ||
           token->kind == TOKEN_INTEGER || token->kind == TOKEN_REAL;
}

static struct node *parse_test(struct source *source, struct node *of, int line) {
    const bool negated = jinja_accept(source, TOKEN_NAME, "not");
    struct node *test = with(source, NODE_TEST, line, of);
    test->text = parse_dotted(source);
    if (jinja_is(source, TOKEN_SIGN, "("))
        test->list = parse_arguments(source);
    else if (has_plain_argument(source))
        test->list = parse_postfix(source, parse_primary(source));
    return negated ? with(source, NODE_NOT, line, test) : test;
}

static struct node *parse_filters(struct source *source, struct node *node) {
    for (int turns = 0; !source->failed; turns++) {
        const int line = jinja_peek(source)->line;
        if (turns > DEPTH)
            source_fail(source, line, "an expression has more than %d filters and tests", DEPTH);
        if (jinja_accept(source, TOKEN_SIGN, "|")) {
            struct node *filter = with(source, NODE_FILTER, line, node);
            filter->text = parse_dotted(source);
            if (jinja_is(source, TOKEN_SIGN, "(")) filter->list = parse_arguments(source);
            node = filter;
        } else if (jinja_accept(source, TOKEN_NAME, "is")) {
            node = parse_test(source, node, line);
        } else if (jinja_is(source, TOKEN_SIGN, "(")) {
            node = parse_call(source, node, line);
        } else {
            break;
        }
    }
    return node;
}

static struct node *parse_unary(struct source *source, bool filters) {
    const int line = jinja_peek(source)->line;
    struct node *node;
    if (source->depth++ > DEPTH) source_fail(source, line, "more than %d levels of nesting", DEPTH);
    if (source->failed) {
        node = jinja_node(source, NODE_CONSTANT, line);
    } else if (jinja_accept(source, TOKEN_SIGN, "-")) {
        node = with(source, NODE_NEGATIVE, line, parse_unary(source, false));
    } else if (jinja_accept(source, TOKEN_SIGN, "+")) {
        source_fail(source, line, "the sign + before a value is not supported");
        node = jinja_node(source, NODE_CONSTANT, line);
    } else {
        node = parse_primary(source);
    }
    node = parse_postfix(source, node);
    source->depth--;
    return filters ? parse_filters(source, node) : node;
}

// Operators that bind alike, the loosest first. `**` is not among them: no template of a chat has it.
static const char *const binary[][5] = {{"+", "-"}, {"~"}, {"*", "/", "//", "%"}};
enum { BINARY = sizeof binary / sizeof *binary };

static struct node *parse_binary(struct source *source, int level) {
    if (level == BINARY) return parse_unary(source, true);
    struct node *node = parse_binary(source, level + 1);
    for (int turns = 0; !source->failed; turns++) {
        const struct token token = *jinja_peek(source);
        bool found = false;
        for (int i = 0; !found && binary[level][i]; i++)
            found = jinja_accept(source, TOKEN_SIGN, binary[level][i]);
        if (jinja_is(source, TOKEN_SIGN, "**"))
            source_fail(source, token.line, "the operator ** is not supported");
        if (!found) break;
        if (turns > 4 * DEPTH)
            source_fail(source, token.line, "an expression has too many operators");
        struct node *both = with(source, NODE_BINARY, token.line, node);
        both->text = token.text;
        both->b = parse_binary(source, level + 1);
        node = both;
    }
    return node;
}

static bool accept_comparison(struct source *source, struct text *operator) {
    static const char *const signs[] = {"==", "!=", "<", "<=", ">", ">="};
    *operator= jinja_peek(source)->text;
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        if (jinja_accept(source, TOKEN_SIGN, signs[i])) return true;
    }
    if (jinja_accept(source, TOKEN_NAME, "in")) return true;
    if (!jinja_is(source, TOKEN_NAME, "not")) return false;
    source->next++; // `not in`: a `not` alone does not stand behind a value.
    *operator=(struct text){"not in", 6};
    jinja_expect(source, TOKEN_NAME, "in");
    return true;
}

static struct node *parse_comparison(struct source *source) {
    struct node *first = parse_binary(source, 0), *list = NULL, **last = &list;
    const int line = jinja_peek(source)->line;
    struct text operator;
    while (!source->failed && accept_comparison(source, &operator)) {
        struct node *operand = with(source, NODE_OPERAND, line, parse_binary(source, 0));
        operand->text = operator;
        append(&last, operand);
    }
    if (!list) return first;
    struct node *node = with(source, NODE_COMPARE, line, first);
    node->list = list;
    return node;
}

static struct node *parse_not(struct source *source) {
    const int line = jinja_peek(source)->line;
    if (!jinja_accept(source, TOKEN_NAME, "not")) return parse_comparison(source);
    if (source->depth++ > DEPTH) source_fail(source, line, "more than %d levels of nesting", DEPTH);
    struct node *node =
        source->failed ? jinja_node(source, NODE_CONSTANT, line) : parse_not(source);
    source->depth--;
    return with(source, NODE_NOT, line, node);
}

// All of a chain are one list, so a long one is not deep.
static struct node *parse_chain(struct source *source, bool disjunction) {
    struct node *first = disjunction ? parse_chain(source, false) : parse_not(source);
    struct node *list = first, **last = &first->next;
    const int line = jinja_peek(source)->line;
    while (!source->failed && jinja_accept(source, TOKEN_NAME, disjunction ? "or" : "and"))
        append(&last, disjunction ? parse_chain(source, false) : parse_not(source));
    if (!first->next) return first;
    struct node *node = jinja_node(source, disjunction ? NODE_OR : NODE_AND, line);
    node->list = list;
    return node;
}

struct node *jinja_disjunction(struct source *source) {
    return parse_chain(source, true);
}

static struct node *parse_condition(struct source *source) {
    struct node *node = jinja_disjunction(source);
    for (int turns = 0; !source->failed && jinja_is(source, TOKEN_NAME, "if"); turns++) {
        struct node *choice = with(source, NODE_IF_ELSE, jinja_peek(source)->line, NULL);
        if (turns > DEPTH)
            source_fail(source, choice->line, "more than %d levels of nesting", DEPTH);
        jinja_accept(source, TOKEN_NAME, "if");
        choice->a = jinja_disjunction(source);
        choice->b = node;
        if (jinja_accept(source, TOKEN_NAME, "else")) choice->c = jinja_expression(source, false);
        node = choice;
    }
    return node;
}

struct node *jinja_expression(struct source *source, bool tuple) {
    const int line = jinja_peek(source)->line;
    if (source->depth++ > DEPTH) source_fail(source, line, "more than %d levels of nesting", DEPTH);
    struct node *node =
        source->failed ? jinja_node(source, NODE_CONSTANT, line) : parse_condition(source);
    if (tuple && jinja_is(source, TOKEN_SIGN, ",")) {
        struct node *list = jinja_node(source, NODE_LIST, line), **last = &list->list;
        append(&last, node);
        while (!source->failed && jinja_accept(source, TOKEN_SIGN, ",") &&
               !jinja_is(source, TOKEN_SIGN, ")") && !jinja_is(source, TOKEN_END_BLOCK, NULL))
            append(&last, parse_condition(source));
        node = list;
    }
    source->depth--;
    return node;
}
