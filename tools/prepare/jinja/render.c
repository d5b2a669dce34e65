// Running a template: statements, macros, the text.
#include <stdlib.h>
#include <string.h>

#include "tools/prepare/jinja/inside.h"

// Bounds of one rendering. A template that is within them ends within seconds.
enum { DEPTH = 900 };
static const int64_t work_most = 50000000;

static void assign(struct run *run, struct text name, struct value value) {
    map_set(run, &run->scope->names, value_text(name.at, name.bytes), value);
}

// Assigns to one name, or to each of several an element.
static void assign_targets(struct run *run, const struct node *targets, struct value value) {
    if (run->failed) return;
    if (!targets->next) {
        assign(run, targets->text, value);
        return;
    }
    const struct list *list = value_iterate(run, &value);
    size_t i = 0;
    for (const struct node *target = targets; target && !run->failed; target = target->next, i++) {
        if (i < list->count)
            assign(run, target->text, list->at[i]);
        else
            run_fail(run, "there are more names than %zu elements", list->count);
    }
    if (!run->failed && i < list->count)
        run_fail(run, "there are fewer names than %zu elements", list->count);
}

static void set(struct run *run, const struct node *targets, struct value value) {
    if (targets->kind != NODE_ATTRIBUTE) {
        assign_targets(run, targets, value);
        return;
    }
    const struct value of = run_evaluate(run, targets->a);
    if (run->failed) return;
    if (of.kind != VALUE_NAMESPACE)
        run_fail(run, "an attribute of %s is set; only those of a namespace can be",
                 value_kind_name(&of));
    else
        map_set(run, of.map, value_text(targets->text.at, targets->text.bytes), value);
}

// Statements in a scope of their own.
static void run_inside(struct run *run, const struct node *list, struct scope *scope) {
    run->scope = scope;
    run_statements(run, list);
    run->scope = scope->outer;
}

// The text that statements write.
static struct value capture(struct run *run, const struct node *list, struct scope *scope) {
    struct buffer buffer = {0}, *out = run->out;
    run->out = &buffer;
    run_inside(run, list, scope);
    run->out = out;
    return buffer_value(&buffer);
}

// The elements that a loop goes through: those that its condition keeps.
static struct list *elements_of(struct run *run, const struct node *node) {
    const struct value of = run_evaluate(run, node->a);
    struct list *all = run->failed ? NULL : value_iterate(run, &of);
    if (!all || run->failed || !node->b) return all;
    struct list *kept = value_list(run, 0).list;
    for (size_t i = 0; i < all->count && !run->failed; i++) {
        struct scope scope = {.outer = run->scope};
        run->scope = &scope;
        assign_targets(run, node->targets, all->at[i]);
        const struct value keep = run->failed ? value_none() : run_evaluate(run, node->b);
        run->scope = scope.outer;
        if (value_is_true(&keep)) list_add(run, kept, all->at[i]);
    }
    return kept;
}

static void run_for(struct run *run, const struct node *node) {
    const struct list *list = elements_of(run, node);
    struct loop *loop = run_take(run, sizeof *loop);
    if (run->failed) return;
    *loop = (struct loop){.items = list, .depth = ++run->loops};
    const struct value self = {.kind = VALUE_LOOP, .loop = loop};
    for (; loop->index < list->count && !run->failed && run->flow != FLOW_BREAK; loop->index++) {
        struct scope scope = {.outer = run->scope};
        run->flow = FLOW_ON;
        run->scope = &scope;
        assign(run, (struct text){"loop", 4}, self);
        assign_targets(run, node->targets, list->at[loop->index]);
        run_inside(run, node->list, &scope);
    }
    run->loops--;
    run->flow = FLOW_ON;
    if (list->count == 0 && node->other) {
        struct scope scope = {.outer = run->scope};
        run_inside(run, node->other, &scope);
    }
}

static void run_if(struct run *run, const struct node *node) {
    for (; node && node->kind == NODE_IF; node = node->other) {
        const struct value condition = run_evaluate(run, node->a);
        if (run->failed) return;
        if (!value_is_true(&condition)) {
            if (node->other && node->other->kind == NODE_IF && node->other->next == NULL) continue;
            run_statements(run, node->other);
            return;
        }
        run_statements(run, node->list);
        return;
    }
}

static void run_generation(struct run *run, const struct node *node) {
    struct jinja_rendered *rendered = run->rendered;
    struct scope scope = {.outer = run->scope};
    if (run->out != &run->whole) {
        run_fail(run, "a generation block inside of a macro or a set block is not supported");
        return;
    }
    const size_t begin = run->whole.bytes;
    run_inside(run, node->list, &scope);
    struct jinja_span *grown = realloc(rendered->span, (rendered->spans + 1) * sizeof *grown);
    if (!grown) {
        run_fail(run, "out of memory");
        return;
    }
    rendered->span = grown;
    grown[rendered->spans++] = (struct jinja_span){begin, run->whole.bytes};
}

static void run_leave(struct run *run, const struct node *node) {
    if (run->loops == 0)
        run_fail(run, "%s outside of a loop", node->kind == NODE_BREAK ? "break" : "continue");
    run->flow = node->kind == NODE_BREAK ? FLOW_BREAK : FLOW_CONTINUE;
}

static bool is_safe(const struct node *node) {
    return node->kind == NODE_FILTER && text_is(node->text, "safe");
}

static void run_statement(struct run *run, const struct node *node) {
    struct value value;
    struct text text;
    struct scope scope = {.outer = run->scope};
    switch (node->kind) {
    case NODE_DATA:
        buffer_add(run, run->out, node->text.at, node->text.bytes);
        break;
    case NODE_OUTPUT: // Nothing is escaped, so `safe` changes nothing at the end; elsewhere it does.
        value = run_evaluate(run, is_safe(node->a) ? node->a->a : node->a);
        text = run->failed ? (struct text){0} : value_print(run, &value);
        buffer_add(run, run->out, text.at, text.bytes);
        break;
    case NODE_IF:
        run_if(run, node);
        break;
    case NODE_FOR:
        run_for(run, node);
        break;
    case NODE_SET:
        value = run_evaluate(run, node->a);
        set(run, node->targets, value);
        break;
    case NODE_SET_BLOCK:
        value = capture(run, node->list, &scope);
        set(run, node->targets, value);
        break;
    case NODE_MACRO:
        assign(run, node->text, (struct value){.kind = VALUE_MACRO, .macro = node});
        break;
    case NODE_GENERATION:
        run_generation(run, node);
        break;
    default:
        run_leave(run, node);
    }
}

void run_statements(struct run *run, const struct node *list) {
    if (run->depth++ > DEPTH) run_fail(run, "the template calls itself too deeply");
    for (; list && run->flow == FLOW_ON && run_pay(run, 1); list = list->next) {
        run->line = list->line;
        run_statement(run, list);
    }
    run->depth--;
}

// A macro sees its arguments and the names of the whole template.
static struct value run_macro(struct run *run, const struct node *macro, const struct call *call) {
    enum { PRICE = 30 }; // A call takes more of the stack than an expression.
    struct scope scope = {.outer = &run->globals}, *before = run->scope;
    size_t index = 0, named = 0;
    const int loops = run->loops;
    run->scope = &scope;
    for (const struct node *parameter = macro->targets; parameter && !run->failed;
         parameter = parameter->next, index++) {
        const struct value *given = map_name(&call->keywords, parameter->text);
        named += given != NULL;
        if (given && index < call->count) run_fail(run, "an argument is given twice");
        if (index < call->count) given = &call->at[index];
        struct value value = {.kind = VALUE_UNDEFINED, .text = parameter->text};
        if (!given && parameter->a) value = run_evaluate(run, parameter->a);
        assign(run, parameter->text, given ? *given : value);
    }
    if (call->count > index || call->keywords.count > named)
        run_fail(run, "the macro '%.*s' has not so many arguments, or others",
                 (int)macro->text.bytes, macro->text.at);
    run->loops = 0;
    run->depth += PRICE;
    if (run->depth > DEPTH) run_fail(run, "the template calls itself too deeply");
    const struct value text = capture(run, macro->list, &scope);
    run->depth -= PRICE;
    run->loops = loops;
    run->scope = before;
    return text;
}

static bool keep(struct run *run, struct jinja_rendered *rendered) {
    char *text = run->failed ? NULL : malloc(run->whole.bytes + 1);
    if (!text) return run->failed ? false : hrt_fail(run->error, "out of memory");
    if (run->whole.bytes) memcpy(text, run->whole.at, run->whole.bytes);
    text[run->whole.bytes] = '\0';
    rendered->text = text;
    rendered->bytes = run->whole.bytes;
    return true;
}

bool jinja_render(const struct jinja *jinja, const json_t *context, const char *date,
                  struct jinja_rendered *rendered, struct hrt_error *error) {
    struct run run = {.jinja = jinja,
                      .date = date,
                      .error = error,
                      .line = 1,
                      .work = work_most,
                      .arena = {.most = RUN_MEMORY},
                      .rendered = rendered,
                      .macro = run_macro};
    jinja_rendered_free(rendered);
    run.out = &run.whole;
    const struct value variables = value_of_json(&run, context);
    if (!run.failed && variables.kind == VALUE_MAP) run.globals.names = *variables.map;
    run.scope = &run.globals;
    run_statements(&run, jinja->body);
    const bool kept = keep(&run, rendered);
    arena_free(&run.arena);
    if (!kept) jinja_rendered_free(rendered);
    return kept;
}

void jinja_rendered_free(struct jinja_rendered *rendered) {
    free(rendered->text);
    free(rendered->span);
    *rendered = (struct jinja_rendered){0};
}
