// Methods of texts and mappings, as Python's, and the global functions that templates of chats have.
#define _GNU_SOURCE // strptime
#include <ctype.h>
#include <string.h>
#include <time.h>

#include "tools/prepare/jinja/inside.h"

const struct value *call_argument(const struct call *call, size_t index, const char *name) {
    if (index < call->count) return &call->at[index];
    return name ? map_name(&call->keywords, (struct text){name, strlen(name)}) : NULL;
}

bool call_check(struct run *run, const char *what, const struct call *call, size_t least,
                size_t most, const char *const *names) {
    if (call->count < least || call->count > most) {
        run_fail(run, "%s takes %zu to %zu arguments, and has %zu", what, least, most, call->count);
        return false;
    }
    for (size_t i = 0; i < call->keywords.count; i++) {
        const struct text name = call->keywords.at[i].key.text;
        bool known = false;
        for (const char *const *at = names; at && *at; at++) known |= text_is(name, *at);
        if (known) continue;
        run_fail(run, "the argument '%.*s' of %s is not supported", (int)name.bytes, name.at, what);
        return false;
    }
    return !run->failed;
}

// Argument `index` as a text; NULL: it is not given. One that is no text fails.
static const struct text *text_argument(struct run *run, const struct call *call, size_t index) {
    const struct value *value = call_argument(call, index, NULL);
    if (!value || value->kind == VALUE_NONE) return NULL;
    if (value->kind != VALUE_TEXT) {
        run_fail(run, "an argument is %s, and a text is wanted", value_kind_name(value));
        return NULL;
    }
    return &value->text;
}

// ---- texts

static struct value strip(struct run *run, struct text of, const struct call *call, bool left,
                          bool right) {
    const struct text *signs = text_argument(run, call, 0);
    if (!run_pay(run, signs ? signs->bytes / 4 * of.bytes / 16 : 0)) return value_none();
    const struct text text = text_strip(of, signs, left, right);
    return value_text(text.at, text.bytes);
}

static struct value strip_both(struct run *run, struct text of, const struct call *call) {
    return strip(run, of, call, true, true);
}

static struct value strip_left(struct run *run, struct text of, const struct call *call) {
    return strip(run, of, call, true, false);
}

static struct value strip_right(struct run *run, struct text of, const struct call *call) {
    return strip(run, of, call, false, true);
}

static bool has_at(struct text of, struct text what, bool end) {
    return what.bytes <= of.bytes &&
           memcmp(of.at + (end ? of.bytes - what.bytes : 0), what.at, what.bytes) == 0;
}

// startswith, endswith: a text, or any of a tuple.
static struct value has_end(struct run *run, struct text of, const struct call *call, bool end) {
    const struct value *what = &call->at[0];
    bool found = false;
    if (call->count != 1) return run_fail(run, "startswith and endswith take one argument here");
    if (what->kind == VALUE_TEXT) return value_boolean(has_at(of, what->text, end));
    if (what->kind != VALUE_LIST)
        return run_fail(run, "startswith or endswith of %s", value_kind_name(what));
    for (size_t i = 0; i < what->list->count && !found && run_pay(run, 1); i++) {
        const struct value *one = &what->list->at[i];
        if (one->kind != VALUE_TEXT)
            return run_fail(run, "startswith or endswith of %s", value_kind_name(one));
        found = has_at(of, one->text, end);
    }
    return value_boolean(found);
}

static struct value starts_with(struct run *run, struct text of, const struct call *call) {
    return has_end(run, of, call, false);
}

static struct value ends_with(struct run *run, struct text of, const struct call *call) {
    return has_end(run, of, call, true);
}

// Words, between which is white space.
static struct value split_words(struct run *run, struct text of, int64_t most) {
    struct value list = value_list(run, 0);
    struct text left = text_strip(of, NULL, true, false);
    while (left.bytes > 0 && run_pay(run, 1)) {
        size_t end = 0;
        while (end < left.bytes) {
            const size_t step = text_step(left.at + end, left.bytes - end);
            if (text_is_space(left.at + end, step)) break;
            end += step;
        }
        if (most-- == 0) { // The rest is one, with its white space.
            list_add(run, list.list, value_text(left.at, left.bytes));
            break;
        }
        list_add(run, list.list, value_text(left.at, end));
        left = text_strip((struct text){left.at + end, left.bytes - end}, NULL, true, false);
    }
    return list;
}

static struct value split(struct run *run, struct text of, const struct call *call) {
    static const char *const names[] = {"maxsplit", NULL};
    const struct text *by = text_argument(run, call, 0);
    const struct value *limit = call_argument(call, 1, "maxsplit");
    const int64_t most = limit && limit->kind == VALUE_INTEGER ? limit->integer : -1;
    if (!call_check(run, "split", call, 0, 2, names) || !run_pay(run, of.bytes / 16))
        return value_none();
    if (!by) return split_words(run, of, most);
    if (by->bytes == 0) return run_fail(run, "split by an empty text");
    struct value list = value_list(run, 0);
    size_t from = 0;
    for (int64_t cuts = 0; run_pay(run, 1); cuts++) {
        const size_t found = most >= 0 && cuts >= most ? SIZE_MAX : text_find(of, *by, from);
        list_add(run, list.list,
                 value_text(of.at + from, (found == SIZE_MAX ? of.bytes : found) - from));
        if (found == SIZE_MAX) break;
        from = found + by->bytes;
    }
    return list;
}

static struct value split_lines(struct run *run, struct text of, const struct call *call) {
    struct value list = value_list(run, 0);
    if (!call_check(run, "splitlines", call, 0, 0, NULL)) return value_none();
    for (size_t from = 0; from < of.bytes && run_pay(run, 1);) {
        size_t end = from;
        while (end < of.bytes && !strchr("\n\r\v\f\x1c\x1d\x1e", of.at[end])) end++;
        list_add(run, list.list, value_text(of.at + from, end - from));
        from = end + 1 + (end + 1 < of.bytes && of.at[end] == '\r' && of.at[end + 1] == '\n');
    }
    return list;
}

static struct value replace(struct run *run, struct text of, const struct call *call) {
    const struct value *limit = call_argument(call, 2, "count");
    int64_t left =
        limit && limit->kind == VALUE_INTEGER && limit->integer >= 0 ? limit->integer : INT64_MAX;
    struct buffer out = {0};
    size_t from = 0;
    if (!call_check(run, "replace", call, 2, 3, (const char *const[]){"count", NULL}))
        return value_none();
    const struct text *what = text_argument(run, call, 0), *by = text_argument(run, call, 1);
    if (!what || !by || what->bytes == 0)
        return run_fail(run, "replace wants a text that is not empty, and another");
    for (; left > 0 && run_pay(run, 1); left--) {
        const size_t found = text_find(of, *what, from);
        if (found == SIZE_MAX) break;
        buffer_add(run, &out, of.at + from, found - from);
        buffer_add(run, &out, by->at, by->bytes);
        from = found + what->bytes;
    }
    buffer_add(run, &out, of.at + from, of.bytes - from);
    return run_pay(run, of.bytes / 16) ? buffer_value(&out) : value_none();
}

// Letters beyond ASCII have rules of their own, so texts with them are refused where any might change.
static struct value change_case(struct run *run, struct text of, const char *what, char first,
                                char rest) {
    char *out = run_take(run, of.bytes);
    bool begins = true;
    for (size_t i = 0; out && i < of.bytes; i++) {
        const unsigned char c = (unsigned char)of.at[i];
        if (c >= 0x80) return run_fail(run, "%s of a text beyond ASCII is not supported", what);
        const char how = begins ? first : rest;
        out[i] = (char)(how == 'u' ? toupper(c) : tolower(c));
        begins = strcmp(what, "title") == 0 && !isalpha(c);
    }
    return out ? value_text(out, of.bytes) : value_none();
}

static struct value upper(struct run *run, struct text of, const struct call *call) {
    (void)call;
    return change_case(run, of, "upper", 'u', 'u');
}

static struct value lower(struct run *run, struct text of, const struct call *call) {
    (void)call;
    return change_case(run, of, "lower", 'l', 'l');
}

static struct value title(struct run *run, struct text of, const struct call *call) {
    (void)call;
    return change_case(run, of, "title", 'u', 'l');
}

static struct value capitalize(struct run *run, struct text of, const struct call *call) {
    (void)call;
    return change_case(run, of, "capitalize", 'u', 'l');
}

static struct value find(struct run *run, struct text of, const struct call *call) {
    const struct text *what = text_argument(run, call, 0);
    if (!call_check(run, "find", call, 1, 1, NULL) || !what || !run_pay(run, of.bytes / 8))
        return value_none();
    const size_t found = text_find(of, *what, 0);
    return value_integer(found == SIZE_MAX ? -1
                                           : (int64_t)text_length((struct text){of.at, found}));
}

static struct value count(struct run *run, struct text of, const struct call *call) {
    const struct text *what = text_argument(run, call, 0);
    int64_t times = 0;
    if (!call_check(run, "count", call, 1, 1, NULL) || !what || what->bytes == 0)
        return run_fail(run, "count wants a text that is not empty");
    for (size_t at = text_find(of, *what, 0); at != SIZE_MAX && run_pay(run, 1); times++)
        at = text_find(of, *what, at + what->bytes);
    return value_integer(times);
}

static struct value join(struct run *run, struct text of, const struct call *call) {
    struct buffer out = {0};
    if (!call_check(run, "join", call, 1, 1, NULL)) return value_none();
    const struct list *list = value_iterate(run, &call->at[0]);
    for (size_t i = 0; i < list->count && !run->failed; i++) {
        if (list->at[i].kind != VALUE_TEXT)
            return run_fail(run, "join of %s", value_kind_name(&list->at[i]));
        if (i) buffer_add(run, &out, of.at, of.bytes);
        buffer_add(run, &out, list->at[i].text.at, list->at[i].text.bytes);
    }
    return buffer_value(&out);
}

static struct value remove_end(struct run *run, struct text of, const struct call *call, bool end) {
    const struct text *what = text_argument(run, call, 0);
    if (!what) return run_fail(run, "removeprefix and removesuffix want a text");
    if (!has_at(of, *what, end)) return value_text(of.at, of.bytes);
    return value_text(of.at + (end ? 0 : what->bytes), of.bytes - what->bytes);
}

static struct value remove_prefix(struct run *run, struct text of, const struct call *call) {
    return remove_end(run, of, call, false);
}

static struct value remove_suffix(struct run *run, struct text of, const struct call *call) {
    return remove_end(run, of, call, true);
}

static const struct text_method {
    const char *name;
    struct value (*call)(struct run *run, struct text of, const struct call *call);
} text_methods[] = {{"strip", strip_both},
                    {"lstrip", strip_left},
                    {"rstrip", strip_right},
                    {"startswith", starts_with},
                    {"endswith", ends_with},
                    {"split", split},
                    {"splitlines", split_lines},
                    {"replace", replace},
                    {"upper", upper},
                    {"lower", lower},
                    {"title", title},
                    {"capitalize", capitalize},
                    {"find", find},
                    {"count", count},
                    {"join", join},
                    {"removeprefix", remove_prefix},
                    {"removesuffix", remove_suffix}};

// ---- mappings

static struct value get(struct run *run, const struct map *of, const struct call *call) {
    if (!call_check(run, "get", call, 1, 2, (const char *const[]){"default", NULL}) ||
        !run_pay(run, of->count))
        return value_none();
    const struct value *found = map_find(of, call->at[0]),
                       *other = call_argument(call, 1, "default");
    return found ? *found : other ? *other : value_none();
}

static struct value list_map(struct run *run, const struct map *of, bool keys, bool values) {
    struct value list = value_list(run, of->count);
    for (size_t i = 0; i < of->count && run_pay(run, 1); i++) {
        if (keys && values) {
            struct value pair = value_list(run, 2);
            list_add(run, pair.list, of->at[i].key);
            list_add(run, pair.list, of->at[i].value);
            list_add(run, list.list, pair);
        } else {
            list_add(run, list.list, keys ? of->at[i].key : of->at[i].value);
        }
    }
    return list;
}

static struct value items(struct run *run, const struct map *of, const struct call *call) {
    (void)call;
    return list_map(run, of, true, true);
}

static struct value keys(struct run *run, const struct map *of, const struct call *call) {
    (void)call;
    return list_map(run, of, true, false);
}

static struct value values(struct run *run, const struct map *of, const struct call *call) {
    (void)call;
    return list_map(run, of, false, true);
}

static const struct map_method {
    const char *name;
    struct value (*call)(struct run *run, const struct map *of, const struct call *call);
} map_methods[] = {{"get", get}, {"items", items}, {"keys", keys}, {"values", values}};

// Python finds these before the elements of a mapping; called, they are refused.
static const char *const other_map_methods[] = {"clear",   "copy",       "fromkeys", "pop",
                                                "popitem", "setdefault", "update"};

bool is_method(const struct value *of, struct text name) {
    bool found = false;
    if (of->kind == VALUE_TEXT) {
        for (size_t i = 0; i < sizeof text_methods / sizeof *text_methods; i++)
            found |= text_is(name, text_methods[i].name);
    } else if (of->kind == VALUE_MAP) {
        for (size_t i = 0; i < sizeof map_methods / sizeof *map_methods; i++)
            found |= text_is(name, map_methods[i].name);
        for (size_t i = 0; i < sizeof other_map_methods / sizeof *other_map_methods; i++)
            found |= text_is(name, other_map_methods[i]);
    }
    return found;
}

struct value run_method(struct run *run, const struct value *of, struct text name,
                        const struct call *call) {
    for (size_t i = 0; of->kind == VALUE_TEXT && i < sizeof text_methods / sizeof *text_methods;
         i++) {
        if (text_is(name, text_methods[i].name)) return text_methods[i].call(run, of->text, call);
    }
    for (size_t i = 0; of->kind == VALUE_MAP && i < sizeof map_methods / sizeof *map_methods; i++) {
        if (text_is(name, map_methods[i].name)) return map_methods[i].call(run, of->map, call);
    }
    return run_fail(run, "the method '%.*s' of %s is not supported", (int)name.bytes, name.at,
                    value_kind_name(of));
}

// ---- attributes

static struct value loop_attribute(struct run *run, const struct loop *loop, struct text name) {
    const int64_t count = (int64_t)loop->items->count, index = (int64_t)loop->index;
    if (text_is(name, "index")) return value_integer(index + 1);
    if (text_is(name, "index0")) return value_integer(index);
    if (text_is(name, "revindex")) return value_integer(count - index);
    if (text_is(name, "revindex0")) return value_integer(count - index - 1);
    if (text_is(name, "length")) return value_integer(count);
    if (text_is(name, "first")) return value_boolean(index == 0);
    if (text_is(name, "last")) return value_boolean(index == count - 1);
    if (text_is(name, "depth")) return value_integer(loop->depth);
    if (text_is(name, "depth0")) return value_integer(loop->depth - 1);
    if (text_is(name, "previtem"))
        return index > 0 ? loop->items->at[index - 1] : value_undefined(name);
    if (text_is(name, "nextitem"))
        return index + 1 < count ? loop->items->at[index + 1] : value_undefined(name);
    return run_fail(run, "loop.%.*s is not supported", (int)name.bytes, name.at);
}

struct value value_attribute(struct run *run, const struct value *of, struct text name) {
    if (of->kind == VALUE_UNDEFINED)
        return run_fail(run, "'%.*s' is undefined, and has no '%.*s'", (int)of->text.bytes,
                        of->text.at, (int)name.bytes, name.at);
    if (of->kind == VALUE_LOOP) return loop_attribute(run, of->loop, name);
    if (is_method(of, name))
        return run_fail(run, "the method '%.*s' is not called, which is not supported",
                        (int)name.bytes, name.at);
    if (of->kind == VALUE_MAP || of->kind == VALUE_NAMESPACE) {
        const struct value *found = run_pay(run, of->map->count) ? map_name(of->map, name) : NULL;
        if (found) return *found;
    }
    return value_undefined(name);
}

// ---- global functions

static struct value raise(struct run *run, const struct call *call) {
    const struct text text = call->count ? value_print(run, &call->at[0]) : (struct text){"", 0};
    return run_fail(run, "the template refuses the conversation: %.*s", (int)text.bytes, text.at);
}

static struct value namespace_of(struct run *run, const struct call *call) {
    struct map *map = run_take(run, sizeof *map);
    if (!map) return value_none();
    *map = (struct map){0};
    if (call->count > 1 || (call->count == 1 && call->at[0].kind != VALUE_MAP))
        return run_fail(run, "namespace takes a mapping, or arguments with names");
    for (size_t i = 0; call->count && i < call->at[0].map->count; i++)
        map_set(run, map, call->at[0].map->at[i].key, call->at[0].map->at[i].value);
    for (size_t i = 0; i < call->keywords.count; i++)
        map_set(run, map, call->keywords.at[i].key, call->keywords.at[i].value);
    return (struct value){.kind = VALUE_NAMESPACE, .map = map};
}

static struct value dictionary(struct run *run, const struct call *call) {
    struct value map = namespace_of(run, call);
    if (!run->failed) map.kind = VALUE_MAP;
    return map;
}

static struct value range(struct run *run, const struct call *call) {
    enum { MOST = 100000 };
    int64_t bound[3] = {0, 0, 1};
    if (!call_check(run, "range", call, 1, 3, NULL)) return value_none();
    for (size_t i = 0; i < call->count; i++) {
        if (call->at[i].kind != VALUE_INTEGER)
            return run_fail(run, "range of %s", value_kind_name(&call->at[i]));
        bound[call->count == 1 ? 1 : i] = call->at[i].integer;
    }
    struct value list = value_list(run, 0);
    if (bound[2] == 0) return run_fail(run, "range with a step of 0");
    for (int64_t at = bound[0];
         (bound[2] > 0 ? at < bound[1] : at > bound[1]) && run_pay(run, 1);) {
        if (list.list->count == MOST) return run_fail(run, "range of more than %d numbers", MOST);
        list_add(run, list.list, value_integer(at));
        if (__builtin_add_overflow(at, bound[2], &at)) break;
    }
    return list;
}

static struct value strftime_now(struct run *run, const struct call *call) {
    char format[128], *out = run_take(run, 256);
    struct tm day = {0};
    if (!out || !call_check(run, "strftime_now", call, 1, 1, NULL)) return value_none();
    const struct text *wanted = text_argument(run, call, 0);
    if (!wanted || wanted->bytes == 0 || wanted->bytes >= sizeof format)
        return run_fail(run, "strftime_now wants a short format");
    if (!run->date)
        return run_fail(run, "the template asks for the day: --date=YYYY-MM-DD is wanted");
    memcpy(format, wanted->at, wanted->bytes);
    format[wanted->bytes] = '\0';
    const char *end = strptime(run->date, "%Y-%m-%d", &day);
    if (!end || *end) return run_fail(run, "the day '%.40s' is not YYYY-MM-DD", run->date);
    return value_text(out, strftime(out, 256, format, &day));
}

const struct function *find_function(struct text name) {
    static const struct function functions[] = {{"raise_exception", raise},
                                                {"namespace", namespace_of},
                                                {"dict", dictionary},
                                                {"range", range},
                                                {"strftime_now", strftime_now}};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        if (text_is(name, functions[i].name)) return &functions[i];
    }
    return NULL;
}
