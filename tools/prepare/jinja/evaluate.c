// Evaluation of Jinja's expressions.
#include <math.h>
#include <string.h>

#include "tools/prepare/jinja/inside.h"

enum { DEPTH = 900 };

static struct value look_up(struct run *run, struct text name) {
    for (const struct scope *scope = run->scope; scope; scope = scope->outer) {
        if (!run_pay(run, scope->names.count / 4)) break;
        const struct value *found = map_name(&scope->names, name);
        if (found) return *found;
    }
    const struct function *function = find_function(name);
    if (function) return (struct value){.kind = VALUE_FUNCTION, .function = function};
    return (struct value){.kind = VALUE_UNDEFINED, .text = name};
}

static struct value make_list(struct run *run, const struct node *node) {
    struct value list = value_list(run, 0);
    for (const struct node *item = node->list; item && !run->failed; item = item->next)
        list_add(run, list.list, run_evaluate(run, item));
    return list;
}

static struct value make_map(struct run *run, const struct node *node) {
    struct map *map = run_take(run, sizeof *map);
    if (!map) return value_none();
    *map = (struct map){0};
    for (const struct node *pair = node->list; pair && !run->failed; pair = pair->next) {
        const struct value key = run_evaluate(run, pair->a);
        map_set(run, map, key, run_evaluate(run, pair->b));
    }
    return (struct value){.kind = VALUE_MAP, .map = map};
}

static struct value slice(struct run *run, const struct node *node) {
    const struct value of = run_evaluate(run, node->a);
    const struct node *const bounds[3] = {node->b, node->c, node->d};
    struct value bound[3];
    for (int i = 0; i < 3; i++) bound[i] = bounds[i] ? run_evaluate(run, bounds[i]) : value_none();
    return run->failed ? value_none() : value_slice(run, &of, bound);
}

static struct call evaluate_arguments(struct run *run, const struct node *list) {
    struct value values = value_list(run, 0);
    struct call call = {0};
    for (; list && !run->failed; list = list->next) {
        if (list->kind == NODE_KEYWORD)
            map_set(run, &call.keywords, value_text(list->text.at, list->text.bytes),
                    run_evaluate(run, list->a));
        else
            list_add(run, values.list, run_evaluate(run, list));
    }
    call.at = values.list->at;
    call.count = values.list->count;
    return call;
}

static struct value call(struct run *run, const struct node *node) {
    const bool attribute = node->a->kind == NODE_ATTRIBUTE;
    const struct value of = run_evaluate(run, attribute ? node->a->a : node->a);
    const struct call call = evaluate_arguments(run, node->list);
    run->line = node->line;
    if (run->failed) return value_none();
    if (attribute && of.kind == VALUE_UNDEFINED) return value_attribute(run, &of, node->a->text);
    if (attribute && is_method(&of, node->a->text))
        return run_method(run, &of, node->a->text, &call);
    const struct value function = attribute ? value_attribute(run, &of, node->a->text) : of;
    if (run->failed) return value_none();
    if (function.kind == VALUE_MACRO) return run->macro(run, function.macro, &call);
    if (function.kind == VALUE_FUNCTION) return function.function->call(run, &call);
    if (function.kind == VALUE_UNDEFINED)
        return run_fail(run, "the function or method '%.*s' is not known", (int)function.text.bytes,
                        function.text.at);
    return run_fail(run, "%s is called", value_kind_name(&function));
}

static bool compare(struct run *run, struct text operator, const struct value * a,
                    const struct value *b) {
    if (text_is(operator, "==")) return value_equal(run, a, b);
    if (text_is(operator, "!=")) return !value_equal(run, a, b);
    if (text_is(operator, "in")) return value_contains(run, b, a);
    if (text_is(operator, "not in")) return !value_contains(run, b, a);
    const int order = value_compare(run, a, b);
    if (text_is(operator, "<")) return order < 0;
    if (text_is(operator, "<=")) return order <= 0;
    return text_is(operator, ">") ? order > 0 : order >= 0;
}

static struct value compare_all(struct run *run, const struct node *node) {
    struct value left = run_evaluate(run, node->a);
    bool holds = true;
    for (const struct node *operand = node->list; operand && holds && !run->failed;
         operand = operand->next) {
        const struct value right = run_evaluate(run, operand->a);
        run->line = operand->line;
        holds = !run->failed && compare(run, operand->text, &left, &right);
        left = right;
    }
    return value_boolean(holds);
}

static struct value add_texts(struct run *run, struct text a, struct text b) {
    struct buffer both = {0};
    buffer_add(run, &both, a.at, a.bytes);
    buffer_add(run, &both, b.at, b.bytes);
    return buffer_value(&both);
}

static struct value add_lists(struct run *run, const struct list *a, const struct list *b) {
    struct value sum = value_list(run, a->count + b->count);
    for (size_t i = 0; i < a->count && run_pay(run, 1); i++) list_add(run, sum.list, a->at[i]);
    for (size_t i = 0; i < b->count && run_pay(run, 1); i++) list_add(run, sum.list, b->at[i]);
    return sum;
}

// Whole numbers: / is a real one, // and % round down, as in Python.
static struct value calculate_whole(struct run *run, char operator, int64_t a, int64_t b) {
    int64_t c = 0;
    if (operator!= '+' && operator!= '-' && operator!= '*' && b == 0)
        return run_fail(run, "division by zero");
    if (operator== '/') return (struct value){.kind = VALUE_REAL, .real = (double)a / (double)b};
    const bool over = operator== '+' ? __builtin_add_overflow(a, b, &c) :
                      operator== '-' ? __builtin_sub_overflow(a, b, &c)
                      :
                      operator== '*' ? __builtin_mul_overflow(a, b, &c)
                                     : b == - 1 && a == INT64_MIN;
    if (over) return run_fail(run, "a number of more than 64 bits");
    if (operator== 'd') c = a / b - (a % b != 0 && (a < 0) != (b < 0));
    if (operator== '%') c = a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0);
    return value_integer(c);
}

static struct value calculate(struct run *run, const struct node *node, const struct value *a,
                              const struct value *b) {
    const char operator= text_is(node->text, "//") ? 'd' : *node->text.at;
    if (a->kind != VALUE_REAL && b->kind != VALUE_REAL)
        return calculate_whole(run, operator, a->kind == VALUE_BOOLEAN ? a->boolean : a->integer,
                               b->kind == VALUE_BOOLEAN ? b->boolean : b->integer);
    const double x = value_number(a), y = value_number(b);
    double result = 0;
    if (operator== 'd' || operator== '%')
        return run_fail(run, "the operator %.*s of numbers that are not whole is not supported",
                        (int)node->text.bytes, node->text.at);
    if (operator== '/' && y == 0) return run_fail(run, "division by zero");
    if (operator== '+') result = x + y;
    if (operator== '-') result = x - y;
    if (operator== '*') result = x * y;
    if (operator== '/') result = x / y;
    return (struct value){.kind = VALUE_REAL, .real = result};
}

static struct value repeat(struct run *run, struct text text, int64_t times) {
    struct buffer out = {0};
    for (; times > 0 && run_pay(run, 1); times--) buffer_add(run, &out, text.at, text.bytes);
    return buffer_value(&out);
}

static struct value combine(struct run *run, const struct node *node) {
    const struct value a = run_evaluate(run, node->a), b = run_evaluate(run, node->b);
    run->line = node->line;
    if (run->failed) return value_none();
    if (text_is(node->text, "~")) {
        const struct text left = value_print(run, &a), right = value_print(run, &b);
        return run->failed ? value_none() : add_texts(run, left, right);
    }
    if (value_is_number(&a) && value_is_number(&b)) return calculate(run, node, &a, &b);
    if (text_is(node->text, "+") && a.kind == VALUE_TEXT && b.kind == VALUE_TEXT)
        return add_texts(run, a.text, b.text);
    if (text_is(node->text, "+") && a.kind == VALUE_LIST && b.kind == VALUE_LIST)
        return add_lists(run, a.list, b.list);
    if (text_is(node->text, "*") && a.kind == VALUE_TEXT && b.kind == VALUE_INTEGER)
        return repeat(run, a.text, b.integer);
    const struct value *missing = a.kind == VALUE_UNDEFINED   ? &a
                                  : b.kind == VALUE_UNDEFINED ? &b
                                                              : NULL;
    if (missing)
        return run_fail(run, "'%.*s' is undefined", (int)missing->text.bytes, missing->text.at);
    return run_fail(run, "%.*s of %s and %s is not supported", (int)node->text.bytes, node->text.at,
                    value_kind_name(&a), value_kind_name(&b));
}

static struct value negative(struct run *run, const struct node *node) {
    const struct value of = run_evaluate(run, node->a);
    if (of.kind == VALUE_REAL) return (struct value){.kind = VALUE_REAL, .real = -of.real};
    if (of.kind != VALUE_INTEGER || of.integer == INT64_MIN)
        return run_fail(run, "- of %s", value_kind_name(&of));
    return value_integer(-of.integer);
}

// and, or: the first operand that decides.
static struct value decide(struct run *run, const struct node *node) {
    struct value value = value_none();
    for (const struct node *operand = node->list; operand && !run->failed;
         operand = operand->next) {
        value = run_evaluate(run, operand);
        if (value_is_true(&value) == (node->kind == NODE_OR)) break;
    }
    return value;
}

static struct value choose(struct run *run, const struct node *node) {
    const struct value condition = run_evaluate(run, node->a);
    if (run->failed) return value_none();
    if (value_is_true(&condition)) return run_evaluate(run, node->b);
    if (node->c) return run_evaluate(run, node->c);
    return (struct value){.kind = VALUE_UNDEFINED, .text = {"an if without else", 18}};
}

static struct value change(struct run *run, const struct node *node) {
    const struct value of = run_evaluate(run, node->a);
    const struct call call = evaluate_arguments(run, node->list);
    run->line = node->line;
    if (run->failed) return value_none();
    if (node->kind == NODE_FILTER) return run_filter(run, node->text, &of, &call);
    return value_boolean(run_test(run, node->text, &of, &call));
}

static struct value find_item(struct run *run, const struct node *node) {
    const struct value of = run_evaluate(run, node->a);
    const struct value key = run_evaluate(run, node->b);
    run->line = node->line;
    return run->failed ? value_none() : value_item(run, &of, &key);
}

static struct value find_attribute(struct run *run, const struct node *node) {
    const struct value of = run_evaluate(run, node->a);
    run->line = node->line;
    return run->failed ? value_none() : value_attribute(run, &of, node->text);
}

static struct value not_of(struct run *run, const struct node *node) {
    const struct value of = run_evaluate(run, node->a);
    return value_boolean(!value_is_true(&of));
}

static struct value evaluate_kind(struct run *run, const struct node *node) {
    switch (node->kind) {
    case NODE_CONSTANT:
        return node->value;
    case NODE_NAME:
        return look_up(run, node->text);
    case NODE_LIST:
        return make_list(run, node);
    case NODE_MAP:
        return make_map(run, node);
    case NODE_ATTRIBUTE:
        return find_attribute(run, node);
    case NODE_ITEM:
        return find_item(run, node);
    case NODE_SLICE:
        return slice(run, node);
    case NODE_CALL:
        return call(run, node);
    case NODE_FILTER:
    case NODE_TEST:
        return change(run, node);
    case NODE_NOT:
        return not_of(run, node);
    case NODE_NEGATIVE:
        return negative(run, node);
    case NODE_AND:
    case NODE_OR:
        return decide(run, node);
    case NODE_IF_ELSE:
        return choose(run, node);
    case NODE_COMPARE:
        return compare_all(run, node);
    default:
        return combine(run, node);
    }
}

struct value run_evaluate(struct run *run, const struct node *node) {
    if (!run_pay(run, 1)) return value_none();
    run->line = node->line;
    if (run->depth++ > DEPTH) run_fail(run, "the template calls itself too deeply");
    const struct value value = run->failed ? value_none() : evaluate_kind(run, node);
    run->depth--;
    return value;
}
