// Syntax errors in words: the expected tokens, the token found, and the probable cause.
//
//   tiny.moe:9:14: error: expected `,` or `]` after `H`, found the end of the line
#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "lang/parse_make.h"

// The tokens that bison expects, with one word for each group of them.
struct expected {
    const char *name[64];
    int count;
};

static bool holds(const char *const *names, int count, const char *name) {
    for (int i = 0; i < count; i++) {
        if (!strcmp(names[i], name)) return true;
    }
    return false;
}

static const char *const begins_expression[] = {
    "a name", "a number", "a string", "`true`", "`false`", "`not`", "'('", "'['", "'-'",
};
static const char *const continues_expression[] = {
    "`or`", "`and`", "`==`", "`!=`", "`<=`", "`>=`", "'<'", "'>'", "`..`", "'+'",
    "'-'",  "'*'",   "'/'",  "'%'",  "'@'",  "'['",  "'.'", "'('", "':'",
};
static const char *const begins_statement[] = {
    "`param`", "`loss`", "`return`", "`repeat`", "`if`", "a name", "';'",
};
static const char *const begins_declaration[] = {
    "`dim`", "`let`", "`import`", "`block`", "`moe`", "`model`", "a name", "';'", "end of file",
};

static const char *const labels[] = {"a name", "a string"};

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

// Copies `names` without those in `group`; puts `word` in their stead unless it is NULL.
static struct expected without(const struct expected *names, const char *const *group, int size,
                               const char *word) {
    struct expected rest = {0};
    if (word) rest.name[rest.count++] = word;
    for (int i = 0; i < names->count; i++) {
        if (!holds(group, size, names->name[i])) rest.name[rest.count++] = names->name[i];
    }
    return rest;
}

static struct expected summarize(const char *const *names, int count) {
    struct expected all = {0};
    for (int i = 0; i < count && i < COUNT(all.name); i++) all.name[all.count++] = names[i];
    if (holds(names, count, "`block`"))
        return without(
            &all, begins_declaration, COUNT(begins_declaration),
            "a declaration (`dim`, `let`, `import`, `block`, `moe`, `model`) or a section");
    if (holds(names, count, "`param`"))
        return without(&all, begins_statement, COUNT(begins_statement), "a statement");
    if (holds(names, count, "a number"))
        return without(&all, begins_expression, COUNT(begins_expression), "an expression");
    if (holds(names, count, "'@'"))
        return without(&all, continues_expression, COUNT(continues_expression), NULL);
    if (holds(names, count, "'='") &&
        holds(names, count, "'{'")) // A section's label may be left out.
        return without(&all, labels, COUNT(labels), NULL);
    return all;
}

// "'{'" and "`{`" alike become "`{`"; the `;` is what its author did not write.
static const char *symbol_text(struct hec_arena *arena, const char *name) {
    if (!strcmp(name, "';'")) return "the end of the line";
    if (name[0] == '\'') return hec_arena_format(arena, "`%c`", name[1]);
    return name;
}

static const char *list_text(struct hec_arena *arena, const struct expected *expected) {
    const char *text = "";
    for (int i = 0; i < expected->count; i++) {
        const char *glue = i == 0 ? "" : i + 1 == expected->count ? " or " : ", ";
        text = hec_arena_format(arena, "%s%s%s", text, glue, symbol_text(arena, expected->name[i]));
    }
    return text;
}

static const char *found_text(struct hec_scan *scan) {
    const struct hec_token *found = &scan->last;
    if (found->kind == 0) return "the end";
    if (!found->automatic) {
        return hec_arena_format(scan->arena, "`%s`", hec_span_text(scan->arena, found->at));
    }
    const bool before_brace =
        scan->has_pending && scan->pending.kind == '}' && scan->pending.at.line == found->at.line;
    return before_brace ? "`}`" : "the end of the line";
}

static bool is_operator(int kind) {
    return kind == '+' || kind == '*' || kind == '/' || kind == '@' || kind == '.' ||
           kind == HEC_T_AND || kind == HEC_T_OR;
}

// Whether the mistake is where the text broke off, and not where it goes on, lines later or never.
static bool breaks_off(const struct hec_scan *scan) {
    const struct hec_token *found = &scan->last, *before = &scan->previous;
    if (!before->kind || before->at.line == found->at.line) return false;
    if (found->kind == 0) return true;
    return !before->automatic && before->kind != '{' && before->kind != '}';
}

void hec_syntax_error(struct hec_parser *parser, const char *const *expected_names, int count) {
    struct hec_scan *scan = &parser->scan;
    const struct hec_token *found = &scan->last, *before = &scan->previous;
    const struct expected expected = summarize(expected_names, count);

    const char *after = "";
    const struct hec_span at = breaks_off(scan) ? hec_span_after(before->at) : found->at;
    if (before->at.length && !before->automatic) {
        after =
            hec_arena_format(scan->arena, " after `%s`", hec_span_text(scan->arena, before->at));
    }
    assert(expected.count > 0);
    hec_diag_report(scan->diag, HEC_ERROR, at, "expected %s%s, found %s",
                    list_text(scan->arena, &expected), after, found_text(scan));
    if (expected.count == 1 && !strcmp(expected.name[0], "'{'") && found->automatic) {
        hec_diag_report(scan->diag, HEC_NOTE, HEC_NOWHERE, "`{` stands on the line of its header");
    }
    if (before->automatic && is_operator(found->kind)) {
        hec_diag_report(scan->diag, HEC_NOTE, HEC_NOWHERE,
                        "the line before is complete without it; to continue a line, end it with "
                        "the operator");
    }
}
