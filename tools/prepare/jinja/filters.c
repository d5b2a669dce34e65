// Filters of Jinja: value | name(arguments).
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/prepare/jinja/inside.h"

typedef struct value filter(struct run *run, const struct value *of, const struct call *call);

static struct value trim(struct run *run, const struct value *of, const struct call *call) {
    const struct value *signs = call_argument(call, 0, "chars");
    const struct text text = value_print(run, of);
    if (signs && signs->kind != VALUE_TEXT) return run_fail(run, "trim wants a text of characters");
    const struct text left = text_strip(text, signs ? &signs->text : NULL, true, true);
    return value_text(left.at, left.bytes);
}

static struct value length(struct run *run, const struct value *of, const struct call *call) {
    (void)call;
    if (of->kind == VALUE_TEXT)
        return run_pay(run, of->text.bytes / 16) ? value_integer((int64_t)text_length(of->text))
                                                 : value_none();
    if (of->kind == VALUE_LIST) return value_integer((int64_t)of->list->count);
    if (of->kind == VALUE_MAP) return value_integer((int64_t)of->map->count);
    if (of->kind == VALUE_UNDEFINED) return value_integer(0);
    return run_fail(run, "%s has no length", value_kind_name(of));
}

static struct value to_json(struct run *run, const struct value *of, const struct call *call) {
    static const char *const names[] = {"indent", "ensure_ascii", NULL};
    const struct value *indent = call_argument(call, 1, "indent"),
                       *ascii = call_argument(call, 0, "ensure_ascii");
    if (!call_check(run, "tojson", call, 0, 2, names)) return value_none();
    if (ascii && value_is_true(ascii))
        return run_fail(run, "tojson with ensure_ascii=true is not supported");
    if (!indent || indent->kind == VALUE_NONE) return value_dump(run, of, -1);
    if (indent->kind != VALUE_INTEGER || indent->integer < 0 || indent->integer > 16)
        return run_fail(run, "tojson: an indent from 0 to 16 is wanted");
    return value_dump(run, of, indent->integer);
}

static struct value or_default(struct run *run, const struct value *of, const struct call *call) {
    static const char *const names[] = {"default_value", "boolean", NULL};
    const struct value *other = call_argument(call, 0, "default_value"),
                       *boolean = call_argument(call, 1, "boolean");
    if (!call_check(run, "default", call, 0, 2, names)) return value_none();
    const bool missing =
        of->kind == VALUE_UNDEFINED || (boolean && value_is_true(boolean) && !value_is_true(of));
    return !missing ? *of : other ? *other : value_string("");
}

static struct value end_of(struct run *run, const struct value *of, bool last) {
    const struct list *list = value_iterate(run, of);
    if (run->failed) return value_none();
    if (list->count) return list->at[last ? list->count - 1 : 0];
    return (struct value){.kind = VALUE_UNDEFINED, .text = {"an element", 10}};
}

static struct value first(struct run *run, const struct value *of, const struct call *call) {
    (void)call;
    return end_of(run, of, false);
}

static struct value last(struct run *run, const struct value *of, const struct call *call) {
    (void)call;
    return end_of(run, of, true);
}

static struct value to_list(struct run *run, const struct value *of, const struct call *call) {
    (void)call;
    const struct list *all = value_iterate(run, of);
    struct value list = value_list(run, all->count);
    for (size_t i = 0; i < all->count && run_pay(run, 1); i++) list_add(run, list.list, all->at[i]);
    return list;
}

static struct value reverse(struct run *run, const struct value *of, const struct call *call) {
    (void)call;
    const struct value bound[3] = {value_none(), value_none(), value_integer(-1)};
    if (of->kind == VALUE_TEXT || of->kind == VALUE_LIST) return value_slice(run, of, bound);
    const struct value list = to_list(run, of, call);
    return run->failed ? list : value_slice(run, &list, bound);
}

static struct value join(struct run *run, const struct value *of, const struct call *call) {
    static const char *const names[] = {"d", "attribute", NULL};
    const struct value *by = call_argument(call, 0, "d"),
                       *attribute = call_argument(call, 1, "attribute");
    struct buffer out = {0};
    if (!call_check(run, "join", call, 0, 2, names)) return value_none();
    if (attribute && attribute->kind != VALUE_TEXT)
        return run_fail(run, "join: the name of an attribute is wanted");
    const struct text between = by ? value_print(run, by) : (struct text){"", 0};
    const struct list *list = value_iterate(run, of);
    for (size_t i = 0; i < list->count && !run->failed; i++) {
        const struct value item =
            attribute ? value_item(run, &list->at[i], attribute) : list->at[i];
        const struct text text = run->failed ? (struct text){0} : value_print(run, &item);
        if (i) buffer_add(run, &out, between.at, between.bytes);
        buffer_add(run, &out, text.at, text.bytes);
    }
    return buffer_value(&out);
}

static struct value to_text(struct run *run, const struct value *of, const struct call *call) {
    (void)call;
    const struct text text = value_print(run, of);
    return value_text(text.at, text.bytes);
}

static struct value to_integer(struct run *run, const struct value *of, const struct call *call) {
    const struct value *other = call_argument(call, 0, "default");
    if (of->kind == VALUE_INTEGER) return *of;
    if (of->kind == VALUE_BOOLEAN) return value_integer(of->boolean);
    if (of->kind == VALUE_REAL && fabs(of->real) < 0x1p62) return value_integer((int64_t)of->real);
    const struct text text =
        of->kind == VALUE_TEXT ? text_strip(of->text, NULL, true, true) : (struct text){0};
    if (text.bytes > 0 && text.bytes < 19) {
        char digits[20], *end;
        memcpy(digits, text.at, text.bytes);
        digits[text.bytes] = '\0';
        const int64_t integer = strtoll(digits, &end, 10);
        if (*end == '\0') return value_integer(integer);
    }
    if (of->kind == VALUE_TEXT || of->kind == VALUE_UNDEFINED)
        return other ? *other : value_integer(0);
    return run_fail(run, "int of %s", value_kind_name(of));
}

static struct value to_items(struct run *run, const struct value *of, const struct call *call) {
    if (of->kind == VALUE_UNDEFINED) return value_list(run, 0);
    if (of->kind != VALUE_MAP) return run_fail(run, "items of %s", value_kind_name(of));
    return run_method(run, of, (struct text){"items", 5}, call);
}

static struct value indent(struct run *run, const struct value *of, const struct call *call) {
    static const char *const names[] = {"width", "first", "blank", NULL};
    const struct value *width = call_argument(call, 0, "width"),
                       *first = call_argument(call, 1, "first"),
                       *blank = call_argument(call, 2, "blank");
    const int64_t count = width && width->kind == VALUE_INTEGER ? width->integer : 4;
    struct buffer out = {0};
    if (!call_check(run, "indent", call, 0, 3, names)) return value_none();
    if (count < 0 || count > 64 || of->kind != VALUE_TEXT)
        return run_fail(run, "indent of a text by 0 to 64 is wanted");
    const struct text text = of->text;
    for (size_t from = 0; from <= text.bytes && run_pay(run, 1);) {
        size_t end = from;
        while (end < text.bytes && text.at[end] != '\n') end++;
        const bool skips = from == 0 ? !first || !value_is_true(first)
                                     : end == from && !(blank && value_is_true(blank));
        for (int64_t i = 0; i < count && !skips; i++) buffer_add(run, &out, " ", 1);
        buffer_add(run, &out, text.at + from, end - from + (end < text.bytes));
        from = end + 1;
    }
    return buffer_value(&out);
}

static struct value absolute(struct run *run, const struct value *of, const struct call *call) {
    (void)call;
    if (of->kind == VALUE_REAL) return (struct value){.kind = VALUE_REAL, .real = fabs(of->real)};
    if (of->kind != VALUE_INTEGER || of->integer == INT64_MIN)
        return run_fail(run, "abs of %s", value_kind_name(of));
    return value_integer(llabs(of->integer));
}

// Pairs of a mapping, by their keys; texts without regard to case.
static struct value sort_map(struct run *run, const struct value *of, const struct call *call) {
    if (!call_check(run, "dictsort", call, 0, 0, NULL)) return value_none();
    const struct value pairs = to_items(run, of, call);
    for (size_t i = 1; !run->failed && i < pairs.list->count; i++) {
        for (size_t j = i; j > 0 && run_pay(run, 1); j--) {
            struct value *at = &pairs.list->at[j];
            struct value key[2] = {at[-1].list->at[0], at[0].list->at[0]};
            for (int k = 0; k < 2; k++) {
                if (key[k].kind == VALUE_TEXT)
                    key[k] = run_method(run, &key[k], (struct text){"lower", 5}, call);
            }
            if (run->failed || value_compare(run, &key[0], &key[1]) <= 0) break;
            const struct value later = at[-1];
            at[-1] = at[0];
            at[0] = later;
        }
    }
    return pairs;
}

// map(attribute = NAME) or map(FILTER).
static struct value map(struct run *run, const struct value *of, const struct call *call) {
    static const char *const names[] = {"attribute", "default", NULL};
    const struct value *attribute = call_argument(call, 1000, "attribute"),
                       *other = call_argument(call, 1000, "default");
    struct value list = value_list(run, 0);
    if (!call_check(run, "map", call, 0, 16, names)) return value_none();
    if (!attribute && (call->count == 0 || call->at[0].kind != VALUE_TEXT))
        return run_fail(run, "map wants attribute=NAME, or a filter");
    const struct call rest = {.at = call->at + 1, .count = call->count ? call->count - 1 : 0};
    const struct list *all = value_is_true(of) ? value_iterate(run, of) : list.list;
    for (size_t i = 0; i < all->count && !run->failed; i++) {
        struct value item = attribute ? value_item(run, &all->at[i], attribute)
                                      : run_filter(run, call->at[0].text, &all->at[i], &rest);
        if (other && item.kind == VALUE_UNDEFINED) item = *other;
        list_add(run, list.list, item);
    }
    return list;
}

// select, reject: by a test of each; selectattr, rejectattr: of its attribute. Without a test: whether it is true.
static struct value choose(struct run *run, const struct value *of, const struct call *call,
                           bool attribute, bool keeps) {
    struct value list = value_list(run, 0);
    const size_t used = attribute;
    if (!call_check(run, "select", call, used, 4, NULL)) return value_none();
    for (size_t i = 0; i < call->count && i < used + 1; i++) {
        if (call->at[i].kind != VALUE_TEXT)
            return run_fail(run, "select wants names of attributes and tests");
    }
    const bool tests = call->count > used;
    const struct call rest = {.at = call->at + used + 1,
                              .count = tests ? call->count - used - 1 : 0};
    const struct list *all = value_is_true(of) ? value_iterate(run, of) : list.list;
    for (size_t i = 0; i < all->count && !run->failed; i++) {
        const struct value item =
            attribute ? value_item(run, &all->at[i], &call->at[0]) : all->at[i];
        if (run->failed) break;
        const bool holds =
            tests ? run_test(run, call->at[used].text, &item, &rest) : value_is_true(&item);
        if (holds == keeps) list_add(run, list.list, all->at[i]);
    }
    return list;
}

static struct value select_all(struct run *run, const struct value *of, const struct call *call) {
    return choose(run, of, call, false, true);
}

static struct value reject(struct run *run, const struct value *of, const struct call *call) {
    return choose(run, of, call, false, false);
}

static struct value select_by(struct run *run, const struct value *of, const struct call *call) {
    return choose(run, of, call, true, true);
}

static struct value reject_by(struct run *run, const struct value *of, const struct call *call) {
    return choose(run, of, call, true, false);
}

static struct value unique(struct run *run, const struct value *of, const struct call *call) {
    struct value list = value_list(run, 0);
    const struct list *all = value_iterate(run, of);
    if (!call_check(run, "unique", call, 0, 0, NULL)) return value_none();
    for (size_t i = 0; i < all->count && !run->failed; i++) {
        if (!value_contains(run, &list, &all->at[i])) list_add(run, list.list, all->at[i]);
    }
    return list;
}

struct value run_filter(struct run *run, struct text name, const struct value *of,
                        const struct call *call) {
    static const struct {
        const char *name;
        filter *filter;
    } filters[] = {{"trim", trim},
                   {"length", length},
                   {"count", length},
                   {"tojson", to_json},
                   {"default", or_default},
                   {"d", or_default},
                   {"first", first},
                   {"last", last},
                   {"list", to_list},
                   {"reverse", reverse},
                   {"join", join},
                   {"string", to_text},
                   {"int", to_integer},
                   {"items", to_items},
                   {"indent", indent},
                   {"abs", absolute},
                   {"dictsort", sort_map},
                   {"map", map},
                   {"select", select_all},
                   {"reject", reject},
                   {"selectattr", select_by},
                   {"rejectattr", reject_by},
                   {"unique", unique}};
    static const char *const methods[] = {"upper", "lower", "title", "capitalize", "replace"};
    if (run->depth++ > 900) run_fail(run, "the template calls itself too deeply");
    struct value value = value_none();
    bool found = run->failed;
    for (size_t i = 0; !found && i < sizeof filters / sizeof *filters; i++) {
        if (!text_is(name, filters[i].name)) continue;
        found = true;
        value = filters[i].filter(run, of, call);
    }
    for (size_t i = 0; !found && i < sizeof methods / sizeof *methods; i++) {
        if (!text_is(name, methods[i])) continue;
        found = true;
        const struct value text = to_text(run, of, call);
        value = run_method(run, &text, name, call);
    }
    if (!found) run_fail(run, "the filter '%.*s' is not supported", (int)name.bytes, name.at);
    run->depth--;
    return value;
}
