// Values of Jinja, which behave as Python's.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/prepare/jinja/inside.h"

struct value value_none(void) {
    return (struct value){.kind = VALUE_NONE};
}

struct value value_boolean(bool boolean) {
    return (struct value){.kind = VALUE_BOOLEAN, .boolean = boolean};
}

struct value value_integer(int64_t integer) {
    return (struct value){.kind = VALUE_INTEGER, .integer = integer};
}

struct value value_text(const char *at, size_t bytes) {
    return (struct value){.kind = VALUE_TEXT, .text = {bytes ? at : "", bytes}};
}

struct value value_string(const char *text) {
    return value_text(text, strlen(text));
}

struct value value_list(struct run *run, size_t room) {
    static struct list none; // Nobody reads it: the rendering has failed.
    struct list *list = run_take(run, sizeof *list);
    struct value *at = room ? run_take(run, room * sizeof *at) : NULL;
    none = (struct list){0};
    if (run->failed) return (struct value){.kind = VALUE_LIST, .list = &none};
    *list = (struct list){.at = at, .room = room};
    return (struct value){.kind = VALUE_LIST, .list = list};
}

struct value buffer_value(const struct buffer *buffer) {
    return value_text(buffer->at, buffer->bytes);
}

void list_add(struct run *run, struct list *list, struct value value) {
    if (run->failed) return;
    if (list->count == list->room) {
        const size_t room = list->room ? 2 * list->room : 8;
        struct value *grown = run_take(run, room * sizeof *grown);
        if (!grown) return;
        if (list->count) memcpy(grown, list->at, list->count * sizeof *grown);
        list->at = grown;
        list->room = room;
    }
    list->at[list->count++] = value;
}

// Keys of other kinds than texts and numbers are not looked for.
static bool is_key(const struct value *a, const struct value *b) {
    if (a->kind == VALUE_TEXT && b->kind == VALUE_TEXT)
        return a->text.bytes == b->text.bytes && memcmp(a->text.at, b->text.at, a->text.bytes) == 0;
    if (a->kind == VALUE_NONE) return b->kind == VALUE_NONE;
    return value_is_number(a) && value_is_number(b) && value_number(a) == value_number(b);
}

const struct value *map_find(const struct map *map, struct value key) {
    for (size_t i = 0; i < map->count; i++) {
        if (is_key(&map->at[i].key, &key)) return &map->at[i].value;
    }
    return NULL;
}

const struct value *map_name(const struct map *map, struct text name) {
    return map_find(map, value_text(name.at, name.bytes));
}

void map_set(struct run *run, struct map *map, struct value key, struct value value) {
    if (!run_pay(run, map->count)) return;
    for (size_t i = 0; i < map->count; i++) {
        if (!is_key(&map->at[i].key, &key)) continue;
        map->at[i].value = value;
        return;
    }
    if (map->count == map->room) {
        const size_t room = map->room ? 2 * map->room : 8;
        struct entry *grown = run_take(run, room * sizeof *grown);
        if (!grown) return;
        if (map->count) memcpy(grown, map->at, map->count * sizeof *grown);
        map->at = grown;
        map->room = room;
    }
    map->at[map->count++] = (struct entry){key, value};
}

bool value_is_number(const struct value *value) {
    return value->kind == VALUE_BOOLEAN || value->kind == VALUE_INTEGER ||
           value->kind == VALUE_REAL;
}

double value_number(const struct value *value) {
    return value->kind == VALUE_REAL      ? value->real
           : value->kind == VALUE_BOOLEAN ? value->boolean
                                          : (double)value->integer;
}

bool value_is_true(const struct value *value) {
    switch (value->kind) {
    case VALUE_UNDEFINED:
    case VALUE_NONE:
        return false;
    case VALUE_TEXT:
        return value->text.bytes > 0;
    case VALUE_LIST:
        return value->list->count > 0;
    case VALUE_MAP:
        return value->map->count > 0;
    case VALUE_BOOLEAN:
    case VALUE_INTEGER:
    case VALUE_REAL:
        return value_number(value) != 0;
    default:
        return true;
    }
}

const char *value_kind_name(const struct value *value) {
    static const char *const names[] = {[VALUE_UNDEFINED] = "an undefined value",
                                        [VALUE_NONE] = "none",
                                        [VALUE_BOOLEAN] = "a boolean",
                                        [VALUE_INTEGER] = "an integer",
                                        [VALUE_REAL] = "a number",
                                        [VALUE_TEXT] = "a text",
                                        [VALUE_LIST] = "a list",
                                        [VALUE_MAP] = "a mapping",
                                        [VALUE_NAMESPACE] = "a namespace",
                                        [VALUE_MACRO] = "a macro",
                                        [VALUE_FUNCTION] = "a function",
                                        [VALUE_LOOP] = "a loop"};
    return names[value->kind];
}

static bool equal_lists(struct run *run, const struct list *a, const struct list *b) {
    bool equal = a->count == b->count;
    for (size_t i = 0; equal && i < a->count; i++) equal = value_equal(run, &a->at[i], &b->at[i]);
    return equal;
}

static bool equal_maps(struct run *run, const struct map *a, const struct map *b) {
    bool equal = a->count == b->count;
    for (size_t i = 0; equal && run_pay(run, b->count) && i < a->count; i++) {
        const struct value *other = map_find(b, a->at[i].key);
        equal = other && value_equal(run, &a->at[i].value, other);
    }
    return equal;
}

bool value_equal(struct run *run, const struct value *a, const struct value *b) {
    bool equal = false;
    if (!run_pay(run, 1)) return false;
    if (run->depth++ > 900) run_fail(run, "values are nested too deeply");
    if (value_is_number(a) && value_is_number(b))
        equal = a->kind == VALUE_REAL || b->kind == VALUE_REAL ? value_number(a) == value_number(b)
                : a->kind == VALUE_INTEGER && b->kind == VALUE_INTEGER
                    ? a->integer == b->integer
                    : value_number(a) == value_number(b);
    else if (a->kind != b->kind || run->failed)
        equal = false;
    else if (a->kind == VALUE_TEXT)
        equal = run_pay(run, a->text.bytes / 16) && is_key(a, b);
    else if (a->kind == VALUE_LIST)
        equal = equal_lists(run, a->list, b->list);
    else if (a->kind == VALUE_MAP)
        equal = equal_maps(run, a->map, b->map);
    else
        equal = a->kind == VALUE_NONE || a->kind == VALUE_UNDEFINED ||
                (const void *)a->map == (const void *)b->map;
    run->depth--;
    return equal;
}

int value_compare(struct run *run, const struct value *a, const struct value *b) {
    if (a->kind == VALUE_INTEGER && b->kind == VALUE_INTEGER)
        return (a->integer > b->integer) - (a->integer < b->integer);
    if (value_is_number(a) && value_is_number(b))
        return (value_number(a) > value_number(b)) - (value_number(a) < value_number(b));
    if (a->kind == VALUE_TEXT &&
        b->kind == VALUE_TEXT) { // Bytes of UTF-8 have the order of code points.
        const size_t least = a->text.bytes < b->text.bytes ? a->text.bytes : b->text.bytes;
        const int order = memcmp(a->text.at, b->text.at, least);
        return order ? order : (a->text.bytes > b->text.bytes) - (a->text.bytes < b->text.bytes);
    }
    run_fail(run, "%s and %s have no order", value_kind_name(a), value_kind_name(b));
    return 0;
}

bool value_contains(struct run *run, const struct value *where, const struct value *what) {
    if (where->kind == VALUE_UNDEFINED) return false;
    if (where->kind == VALUE_TEXT && what->kind == VALUE_TEXT)
        return run_pay(run, where->text.bytes / 16) &&
               text_find(where->text, what->text, 0) != SIZE_MAX;
    if (where->kind == VALUE_MAP)
        return run_pay(run, where->map->count) && map_find(where->map, *what);
    if (where->kind == VALUE_LIST) {
        for (size_t i = 0; !run->failed && i < where->list->count; i++) {
            if (value_equal(run, &where->list->at[i], what)) return true;
        }
        return false;
    }
    run_fail(run, "'in' looks for %s in %s", value_kind_name(what), value_kind_name(where));
    return false;
}

// The shortest digits that read back as the number, as Python writes it.
static struct text print_real(struct run *run, double real) {
    char digits[40];
    if (!isfinite(real)) {
        run_fail(run, "a number that is not finite is printed");
        return (struct text){"", 0};
    }
    for (int precision = 1; precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*e", precision - 1, real);
        if (strtod(digits, NULL) == real) break;
    }
    const int power = atoi(strchr(digits, 'e') + 1);
    const int count = (int)strcspn(digits, "e") - (*digits == '-') - (strchr(digits, '.') != NULL);
    char *out = run_take(run, 64);
    if (!out) return (struct text){"", 0};
    if (power < -4 || power >= 16) {
        const size_t mantissa = strcspn(digits, "e");
        snprintf(out, 64, "%.*se%c%02d", (int)mantissa, digits, power < 0 ? '-' : '+', abs(power));
    } else {
        snprintf(out, 64, "%.*f", count - 1 - power > 1 ? count - 1 - power : 1, real);
    }
    return (struct text){out, strlen(out)};
}

struct text value_print(struct run *run, const struct value *value) {
    char *out;
    switch (value->kind) {
    case VALUE_UNDEFINED:
        return (struct text){"", 0};
    case VALUE_NONE:
        return (struct text){"None", 4};
    case VALUE_BOOLEAN:
        return value->boolean ? (struct text){"True", 4} : (struct text){"False", 5};
    case VALUE_INTEGER:
        out = run_take(run, 24);
        if (out) snprintf(out, 24, "%" PRId64, value->integer);
        return out ? (struct text){out, strlen(out)} : (struct text){"", 0};
    case VALUE_REAL:
        return print_real(run, value->real);
    case VALUE_TEXT:
        return value->text;
    default:
        run_fail(run, "%s becomes a text as Python writes it, which is not supported; tojson is",
                 value_kind_name(value));
        return (struct text){"", 0};
    }
}

static void add_characters(struct run *run, struct list *list, struct text text) {
    for (size_t i = 0; i < text.bytes && !run->failed;) {
        const size_t step = text_step(text.at + i, text.bytes - i);
        list_add(run, list, value_text(text.at + i, step));
        i += step;
    }
}

struct list *value_iterate(struct run *run, const struct value *value) {
    if (value->kind == VALUE_LIST) return value->list;
    struct value list = value_list(run, 0);
    if (value->kind == VALUE_TEXT) {
        if (run_pay(run, value->text.bytes)) add_characters(run, list.list, value->text);
    } else if (value->kind == VALUE_MAP) {
        for (size_t i = 0; run_pay(run, 1) && i < value->map->count; i++)
            list_add(run, list.list, value->map->at[i].key);
    } else if (value->kind != VALUE_UNDEFINED) {
        run_fail(run, "%s has no elements to go through", value_kind_name(value));
    }
    return list.list;
}

struct value value_undefined(struct text name) {
    return (struct value){.kind = VALUE_UNDEFINED, .text = name};
}

static struct value text_item(struct run *run, struct text text, int64_t index) {
    if (!run_pay(run, text.bytes / 16)) return value_none();
    const int64_t length = (int64_t)text_length(text);
    if (index < 0) index += length;
    if (index < 0 || index >= length) return value_undefined((struct text){"a character", 11});
    size_t at = 0;
    for (; index > 0; index--) at += text_step(text.at + at, text.bytes - at);
    return value_text(text.at + at, text_step(text.at + at, text.bytes - at));
}

struct value value_item(struct run *run, const struct value *of, const struct value *key) {
    if (of->kind == VALUE_UNDEFINED)
        return run_fail(run, "'%.*s' is undefined, and has no elements", (int)of->text.bytes,
                        of->text.at);
    if (of->kind == VALUE_MAP) {
        const struct value *found = run_pay(run, of->map->count) ? map_find(of->map, *key) : NULL;
        if (found) return *found;
    }
    const bool number = key->kind == VALUE_INTEGER || key->kind == VALUE_BOOLEAN;
    const int64_t index = key->kind == VALUE_BOOLEAN ? key->boolean : number ? key->integer : 0;
    if (of->kind == VALUE_TEXT && number) return text_item(run, of->text, index);
    if (of->kind == VALUE_LIST && number) {
        const int64_t count = (int64_t)of->list->count, at = index < 0 ? index + count : index;
        return at >= 0 && at < count ? of->list->at[at]
                                     : value_undefined((struct text){"an element", 10});
    }
    return value_undefined(key->kind == VALUE_TEXT ? key->text : (struct text){"an element", 10});
}

// The first index and how many, by Python's rules for bounds.
static void bounds(int64_t length, int64_t step, const struct value bound[2], int64_t *from,
                   int64_t *to) {
    const int64_t least = step > 0 ? 0 : -1, most = step > 0 ? length : length - 1;
    int64_t at[2] = {step > 0 ? 0 : length - 1, step > 0 ? length : -1};
    for (int i = 0; i < 2; i++) {
        if (bound[i].kind != VALUE_INTEGER) continue;
        at[i] = bound[i].integer < 0 ? bound[i].integer + length : bound[i].integer;
        at[i] = at[i] < least ? least : at[i] > most ? most : at[i];
    }
    *from = at[0];
    *to = at[1];
}

struct value value_slice(struct run *run, const struct value *of, const struct value bound[3]) {
    const int64_t step = bound[2].kind == VALUE_INTEGER ? bound[2].integer : 1;
    for (int i = 0; i < 3; i++) {
        if (bound[i].kind != VALUE_NONE && bound[i].kind != VALUE_INTEGER)
            return run_fail(run, "a bound of a slice is %s", value_kind_name(&bound[i]));
    }
    if (of->kind != VALUE_LIST && of->kind != VALUE_TEXT)
        return run_fail(run, "%s has no slices", value_kind_name(of));
    if (step == 0 || step == INT64_MIN) return run_fail(run, "the step of a slice is 0");
    const struct list *items = value_iterate(run, of);
    struct value list = value_list(run, 0);
    struct buffer text = {0};
    int64_t from, to;
    bounds((int64_t)items->count, step, bound, &from, &to);
    for (int64_t at = from; (step > 0 ? at < to : at > to) && run_pay(run, 1); at += step) {
        const struct value item = items->at[at];
        if (of->kind == VALUE_LIST)
            list_add(run, list.list, item);
        else
            buffer_add(run, &text, item.text.at, item.text.bytes);
        if (step > 0 ? step >= to - at : step <= to - at) break;
    }
    return of->kind == VALUE_LIST ? list : buffer_value(&text);
}
