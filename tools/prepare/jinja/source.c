// The state of a parse: its first failure, its nodes, its tokens.
#include <stdarg.h>
#include <stdio.h>

#include "tools/prepare/jinja/inside.h"

void source_fail(struct source *source, int line, const char *format, ...) {
    char reason[512];
    va_list arguments;
    if (source->failed) return;
    source->failed = true;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    hrt_fail(source->error, "%s, line %d: %s", source->jinja->name, line, reason);
}

struct node *jinja_node(struct source *source, enum node_kind kind, int line) {
    static struct node none; // Nobody reads it: the parse has failed.
    struct node *node = arena_take(&source->jinja->arena, sizeof *node);
    if (!node) {
        source_fail(source, line, "out of memory");
        none = (struct node){0};
        return &none;
    }
    *node = (struct node){.kind = kind, .line = line};
    return node;
}

const struct token *jinja_peek(const struct source *source) {
    return &source->token[source->next];
}

bool jinja_is(const struct source *source, enum token_kind kind, const char *text) {
    const struct token *token = jinja_peek(source);
    return token->kind == kind && (!text || text_is(token->text, text));
}

bool jinja_accept(struct source *source, enum token_kind kind, const char *text) {
    const bool found = jinja_is(source, kind, text);
    source->next += found && kind != TOKEN_END;
    return found;
}

void jinja_expect(struct source *source, enum token_kind kind, const char *text) {
    static const char *const wanted[] = {
        [TOKEN_NAME] = "a name", [TOKEN_END_OUTPUT] = "}}", [TOKEN_END_BLOCK] = "%}"};
    if (jinja_accept(source, kind, text)) return;
    const struct token *token = jinja_peek(source);
    const struct text found = token->text;
    source_fail(source, token->line, "%s is wanted%s%.*s%s", text ? text : wanted[kind],
                found.bytes ? ", and found is '" : "", (int)(found.bytes > 40 ? 40 : found.bytes),
                found.bytes ? found.at : "", found.bytes ? "'" : "");
}
