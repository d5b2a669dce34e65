// Statements of Jinja, and a template as a whole.
#include <stdlib.h>
#include <string.h>

#include "tools/prepare/jinja/inside.h"

enum { BYTES = 1 << 20, MEMORY = 256 << 20, DEPTH = 64 };

// Where a list of statements ends: a block with one of the words. The word is left.
static struct node *parse_until(struct source *source, const char *const *ends);

static void expect_end(struct source *source) {
    jinja_expect(source, TOKEN_END_BLOCK, NULL);
}

static void expect_word(struct source *source, const char *word) {
    jinja_expect(source, TOKEN_NAME, word);
    expect_end(source);
}

// Behind `if` or `elif`.
static struct node *parse_if(struct source *source, int line) {
    static const char *const ends[] = {"elif", "else", "endif", NULL}, *const last[] = {"endif",
                                                                                        NULL};
    struct node *first = NULL, **place = &first;
    for (bool more = true; more && !source->failed; line = jinja_peek(source)->line) {
        struct node *node = jinja_node(source, NODE_IF, line);
        node->a = jinja_expression(source, true);
        expect_end(source);
        node->list = parse_until(source, ends);
        *place = node;
        place = &node->other;
        more = jinja_accept(source, TOKEN_NAME, "elif");
    }
    if (jinja_accept(source, TOKEN_NAME, "else")) {
        expect_end(source);
        *place = parse_until(source, last);
    }
    expect_word(source, "endif");
    return first ? first : jinja_node(source, NODE_IF, line);
}

// a, b or (a, b), which values are assigned to.
static struct node *parse_targets(struct source *source) {
    struct node *list = NULL, **last = &list;
    const bool closed = jinja_accept(source, TOKEN_SIGN, "(");
    do {
        struct node *name = jinja_node(source, NODE_NAME, jinja_peek(source)->line);
        name->text = jinja_peek(source)->text;
        jinja_expect(source, TOKEN_NAME, NULL);
        *last = name;
        last = &name->next;
    } while (!source->failed && jinja_accept(source, TOKEN_SIGN, ",") &&
             !jinja_is(source, TOKEN_SIGN, ")") && !jinja_is(source, TOKEN_NAME, "in"));
    if (closed) jinja_expect(source, TOKEN_SIGN, ")");
    return list;
}

static struct node *parse_for(struct source *source, int line) {
    static const char *const ends[] = {"else", "endfor", NULL}, *const last[] = {"endfor", NULL};
    struct node *node = jinja_node(source, NODE_FOR, line);
    node->targets = parse_targets(source);
    jinja_expect(source, TOKEN_NAME, "in");
    node->a = jinja_disjunction(source);
    if (jinja_accept(source, TOKEN_NAME, "if")) node->b = jinja_expression(source, false);
    if (jinja_is(source, TOKEN_NAME, "recursive"))
        source_fail(source, line, "recursive loops are not supported");
    expect_end(source);
    node->list = parse_until(source, ends);
    if (jinja_accept(source, TOKEN_NAME, "else")) {
        expect_end(source);
        node->other = parse_until(source, last);
    }
    expect_word(source, "endfor");
    return node;
}

static struct node *parse_set(struct source *source, int line) {
    static const char *const ends[] = {"endset", NULL};
    struct node *node = jinja_node(source, NODE_SET, line);
    node->targets = parse_targets(source);
    if (jinja_accept(source, TOKEN_SIGN, ".")) { // An attribute of a namespace.
        struct node *attribute = jinja_node(source, NODE_ATTRIBUTE, line);
        attribute->a = node->targets;
        attribute->text = jinja_peek(source)->text;
        jinja_expect(source, TOKEN_NAME, NULL);
        node->targets = attribute;
    }
    if (jinja_accept(source, TOKEN_SIGN, "=")) {
        node->a = jinja_expression(source, true);
        expect_end(source);
        return node;
    }
    if (jinja_is(source, TOKEN_SIGN, "|"))
        source_fail(source, line, "a set block with a filter is not supported");
    node->kind = NODE_SET_BLOCK;
    expect_end(source);
    node->list = parse_until(source, ends);
    expect_word(source, "endset");
    return node;
}

static struct node *parse_macro(struct source *source, int line) {
    static const char *const ends[] = {"endmacro", NULL};
    struct node *node = jinja_node(source, NODE_MACRO, line), **last = &node->targets;
    const struct node *before = NULL; // The default of the parameter before.
    node->text = jinja_peek(source)->text;
    jinja_expect(source, TOKEN_NAME, NULL);
    jinja_expect(source, TOKEN_SIGN, "(");
    while (!source->failed && !jinja_is(source, TOKEN_SIGN, ")")) {
        struct node *parameter = jinja_node(source, NODE_KEYWORD, line);
        parameter->text = jinja_peek(source)->text;
        jinja_expect(source, TOKEN_NAME, NULL);
        if (jinja_accept(source, TOKEN_SIGN, "="))
            parameter->a = jinja_expression(source, false);
        else if (before)
            source_fail(source, line, "a parameter without a default stands behind one with it");
        before = parameter->a;
        *last = parameter;
        last = &parameter->next;
        if (!jinja_accept(source, TOKEN_SIGN, ",")) break;
    }
    jinja_expect(source, TOKEN_SIGN, ")");
    expect_end(source);
    node->list = parse_until(source, ends);
    jinja_expect(source, TOKEN_NAME, "endmacro");
    jinja_accept(source, TOKEN_NAME, NULL); // The name may follow.
    expect_end(source);
    return node;
}

static struct node *parse_generation(struct source *source, int line) {
    static const char *const ends[] = {"endgeneration", NULL};
    struct node *node = jinja_node(source, NODE_GENERATION, line);
    source->jinja->generates = true;
    expect_end(source);
    node->list = parse_until(source, ends);
    expect_word(source, "endgeneration");
    return node;
}

static struct node *parse_break(struct source *source, int line) {
    expect_end(source);
    return jinja_node(source, NODE_BREAK, line);
}

static struct node *parse_continue(struct source *source, int line) {
    expect_end(source);
    return jinja_node(source, NODE_CONTINUE, line);
}

static struct node *parse_block(struct source *source) {
    static const struct {
        const char *word;
        struct node *(*parse)(struct source *source, int line);
    } blocks[] = {{"if", parse_if},
                  {"for", parse_for},
                  {"set", parse_set},
                  {"macro", parse_macro},
                  {"break", parse_break},
                  {"continue", parse_continue},
                  {"generation", parse_generation}};
    const struct token token = *jinja_peek(source);
    jinja_expect(source, TOKEN_NAME, NULL);
    for (size_t i = 0; !source->failed && i < sizeof blocks / sizeof *blocks; i++) {
        if (text_is(token.text, blocks[i].word)) return blocks[i].parse(source, token.line);
    }
    const bool end = token.text.bytes > 2 && memcmp(token.text.at, "end", 3) == 0;
    source_fail(source, token.line,
                end ? "'%.*s' ends nothing here" : "the statement '%.*s' is not supported",
                (int)(token.text.bytes > 40 ? 40 : token.text.bytes),
                token.text.bytes ? token.text.at : "");
    return jinja_node(source, NODE_DATA, token.line);
}

static struct node *parse_until(struct source *source, const char *const *ends) {
    struct node *list = NULL, **last = &list;
    const int line = jinja_peek(source)->line;
    if (source->depth++ > DEPTH) source_fail(source, line, "more than %d levels of nesting", DEPTH);
    while (!source->failed) {
        const struct token token = *jinja_peek(source);
        struct node *node;
        if (jinja_accept(source, TOKEN_DATA, NULL)) {
            node = jinja_node(source, NODE_DATA, token.line);
            node->text = token.text;
        } else if (jinja_accept(source, TOKEN_BEGIN_OUTPUT, NULL)) {
            node = jinja_node(source, NODE_OUTPUT, token.line);
            node->a = jinja_expression(source, true);
            jinja_expect(source, TOKEN_END_OUTPUT, NULL);
        } else if (jinja_accept(source, TOKEN_BEGIN_BLOCK, NULL)) {
            for (const char *const *end = ends; *end; end++) {
                if (!jinja_is(source, TOKEN_NAME, *end)) continue;
                source->depth--;
                return list;
            }
            node = parse_block(source);
        } else {
            if (*ends) source_fail(source, line, "the block has no %s", ends[0]);
            break;
        }
        *last = node;
        last = &node->next;
    }
    source->depth--;
    return list;
}

struct jinja *jinja_parse(const char *name, const char *text, size_t bytes,
                          struct hrt_error *error) {
    static const char *const ends[] = {NULL};
    struct jinja *jinja = calloc(1, sizeof *jinja);
    if (!jinja || !(jinja->name = strdup(name))) {
        free(jinja);
        hrt_fail(error, "out of memory");
        return NULL;
    }
    jinja->arena.most = MEMORY;
    struct source source = {.jinja = jinja, .error = error};
    if (bytes > BYTES)
        source_fail(&source, 1, "a template of more than %d bytes", BYTES);
    else
        jinja_scan(&source, text, bytes);
    if (!source.failed) jinja->body = parse_until(&source, ends);
    free(source.token);
    if (!source.failed) return jinja;
    jinja_free(jinja);
    return NULL;
}

void jinja_free(struct jinja *jinja) {
    if (!jinja) return;
    arena_free(&jinja->arena);
    free(jinja->name);
    free(jinja);
}

bool jinja_has_generation(const struct jinja *jinja) {
    return jinja->generates;
}
