// Tests of Jinja: value is name(arguments).
#include <string.h>

#include "tools/prepare/jinja/inside.h"

// Tests that look at the value alone. -1: there is none of that name.
static int test_kind(struct text name, const struct value *of) {
    const enum value_kind kind = of->kind;
    if (text_is(name, "defined")) return kind != VALUE_UNDEFINED;
    if (text_is(name, "undefined")) return kind == VALUE_UNDEFINED;
    if (text_is(name, "none")) return kind == VALUE_NONE;
    if (text_is(name, "string")) return kind == VALUE_TEXT;
    if (text_is(name, "mapping")) return kind == VALUE_MAP;
    if (text_is(name, "boolean")) return kind == VALUE_BOOLEAN;
    if (text_is(name, "integer")) return kind == VALUE_INTEGER;
    if (text_is(name, "float")) return kind == VALUE_REAL;
    if (text_is(name, "number")) return value_is_number(of);
    if (text_is(name, "true")) return kind == VALUE_BOOLEAN && of->boolean;
    if (text_is(name, "false")) return kind == VALUE_BOOLEAN && !of->boolean;
    if (text_is(name, "callable")) return kind == VALUE_MACRO || kind == VALUE_FUNCTION;
    if (text_is(name, "iterable"))
        return kind == VALUE_TEXT || kind == VALUE_LIST || kind == VALUE_MAP ||
               kind == VALUE_UNDEFINED;
    if (text_is(name, "sequence"))
        return kind == VALUE_TEXT || kind == VALUE_LIST || kind == VALUE_MAP ||
               kind == VALUE_UNDEFINED;
    return -1;
}

// Tests against another value. -1: there is none of that name.
static int test_pair(struct run *run, struct text name, const struct value *of,
                     const struct value *other) {
    static const char *const equal[] = {"eq", "equalto", "=="}, *const unequal[] = {"ne", "!="};
    for (size_t i = 0; i < sizeof equal / sizeof *equal; i++) {
        if (text_is(name, equal[i])) return value_equal(run, of, other);
    }
    for (size_t i = 0; i < sizeof unequal / sizeof *unequal; i++) {
        if (text_is(name, unequal[i])) return !value_equal(run, of, other);
    }
    if (text_is(name, "in")) return value_contains(run, other, of);
    if (text_is(name, "lt") || text_is(name, "lessthan")) return value_compare(run, of, other) < 0;
    if (text_is(name, "le")) return value_compare(run, of, other) <= 0;
    if (text_is(name, "gt") || text_is(name, "greaterthan"))
        return value_compare(run, of, other) > 0;
    if (text_is(name, "ge")) return value_compare(run, of, other) >= 0;
    if (!text_is(name, "divisibleby")) return -1;
    if (of->kind == VALUE_INTEGER && other->kind == VALUE_INTEGER && other->integer != 0)
        return other->integer == -1 || of->integer % other->integer == 0;
    run_fail(run, "divisibleby of %s by %s", value_kind_name(of), value_kind_name(other));
    return 0;
}

bool run_test(struct run *run, struct text name, const struct value *of, const struct call *call) {
    int holds = -1;
    if (call->count == 0) holds = test_kind(name, of);
    if (call->count == 0 && (text_is(name, "odd") || text_is(name, "even"))) {
        if (of->kind != VALUE_INTEGER)
            run_fail(run, "%.*s of %s", (int)name.bytes, name.at, value_kind_name(of));
        holds = (of->kind == VALUE_INTEGER && of->integer % 2 != 0) == text_is(name, "odd");
    }
    if (call->count == 1) holds = test_pair(run, name, of, &call->at[0]);
    if (holds < 0)
        run_fail(run, "the test '%.*s' with %zu arguments is not supported", (int)name.bytes,
                 name.at, call->count);
    return holds > 0;
}
