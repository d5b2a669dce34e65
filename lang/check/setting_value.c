// The value of one setting: its type, unit, range, and the settings inside its parentheses.
#include <math.h>
#include <string.h>

#include "lang/check/settings.h"

struct value_of {
    struct hec_checker *checker;
    struct hec_setting_values *values;
    const struct hec_setting_row *row;
    const struct hec_expr *expr;
};

static const char *const measure_text[] = {
    [HEC_PLAIN] = "a number without a unit",  [HEC_BYTES] = "bytes, as in 80GB",
    [HEC_SECONDS] = "a time, as in 2us",      [HEC_BYTES_PER_SECOND] = "a bandwidth, as in 50GB/s",
    [HEC_FLOPS] = "a speed, as in 989TFLOPS",
};

static const char *base_unit[] = {
    [HEC_PLAIN] = "",      [HEC_BYTES] = "B", [HEC_SECONDS] = "s", [HEC_BYTES_PER_SECOND] = "B/s",
    [HEC_FLOPS] = "FLOPS",
};

static bool is_name(const struct hec_expr *expr, const char *name) {
    return expr->kind == HEC_EXPR_NAME && !strcmp(expr->text, name);
}

static const char *expr_text(const struct value_of *of) {
    return hec_expr_text(of->checker->arena, of->expr);
}

static const double exact = 0x1p53; // Whole numbers up to it are told apart.

static bool in_range(const struct value_of *of, double value) {
    const struct hec_setting_row *row = of->row;
    struct hec_arena *arena = of->checker->arena;
    if (value < row->smallest)
        return hec_error(of->checker, of->expr->at, "`%s` must be at least %s, not %s", row->key,
                         hec_number_text(arena, row->smallest), hec_number_text(arena, value));
    const double largest = row->largest > 0                 ? row->largest
                           : row->type == HEC_SETTING_COUNT ? exact
                                                            : value;
    if (value > largest)
        return hec_error(of->checker, of->expr->at, "`%s` must be at most %s, not %s", row->key,
                         hec_number_text(arena, largest), hec_number_text(arena, value));
    return true;
}

static const char *read_number(const struct value_of *of) {
    struct hec_checker *checker = of->checker;
    const struct hec_setting_row *row = of->row;
    struct hec_constant constant;
    if (!hec_constant_of(checker, NULL, of->expr, &constant)) return NULL;
    const struct hec_number number = constant.number;
    const bool count = row->type == HEC_SETTING_COUNT;
    if (constant.kind != HEC_CONSTANT_NUMBER) {
        hec_error(checker, of->expr->at, "`%s` is a number, not `%s`", row->key, expr_text(of));
        return NULL;
    }
    const bool fits = number.measure == row->measure || (count && number.measure == HEC_PLAIN);
    if (!fits) {
        hec_error(checker, of->expr->at, "`%s` is %s, not `%s`", row->key,
                  measure_text[row->measure], expr_text(of));
        return NULL;
    }
    if (count && number.value != floor(number.value)) {
        hec_error(checker, of->expr->at, "`%s` is a whole number, not %s", row->key,
                  hec_number_text(checker->arena, number.value));
        return NULL;
    }
    if (!in_range(of, number.value)) return NULL;
    const bool keeps = row->flags & HEC_SETTING_UNIT && number.measure == HEC_BYTES;
    const char *unit = keeps ? base_unit[HEC_BYTES] : "";
    return hec_arena_format(checker->arena, "%s%s", hec_number_text(checker->arena, number.value),
                            unit);
}

static const char *read_switch(const struct value_of *of) {
    bool value = false;
    const char *what = hec_arena_format(of->checker->arena, "`%s`", of->row->key);
    if (!hec_constant_bool(of->checker, NULL, of->expr, what, &value)) return NULL;
    return value ? "true" : "false";
}

static void unknown_choice(const struct value_of *of, const char *text) {
    struct hec_checker *checker = of->checker;
    HEC_VEC(const char *) choices = {0};
    const char *list = "";
    for (const char *at = of->row->values; *at;) {
        const size_t length = strcspn(at, "|");
        const char *word = hec_intern(&checker->names, at, length);
        list = hec_arena_format(checker->arena, "%s%s%s", list, *list ? ", " : "", word);
        HEC_PUSH(checker->arena, &choices, word);
        at += length + (at[length] == '|');
    }
    hec_unknown_of(checker, of->expr->at, "value", text, of->row->key, choices.item, choices.count);
    hec_detail(checker, "it is one of %s", list);
}

static const char *read_text(const struct value_of *of) {
    const bool text = of->expr->kind == HEC_EXPR_STRING;
    if (text && of->row->values && !hec_setting_lists(of->row->values, of->expr->text)) {
        unknown_choice(of, of->expr->text);
        return NULL;
    }
    if (text) return of->expr->text;
    hec_error(of->checker, of->expr->at, "`%s` is a text in quotes, not `%s`", of->row->key,
              expr_text(of));
    return NULL;
}

static const char *read_pair(const struct value_of *of) {
    struct hec_checker *checker = of->checker;
    const struct hec_arguments *items = &of->expr->arguments;
    if (of->expr->kind != HEC_EXPR_LIST || items->count != 2) {
        hec_error(checker, of->expr->at, "`%s` is a list of two numbers, not `%s`", of->row->key,
                  expr_text(of));
        return NULL;
    }
    const char *text[2] = {0};
    for (int i = 0; i < 2; i++) {
        struct value_of item = *of;
        item.expr = items->item[i].value;
        text[i] = read_number(&item);
    }
    if (!text[0] || !text[1]) return NULL;
    return hec_arena_format(checker->arena, "%s,%s", text[0], text[1]);
}

// The sub-setting that an argument means: by name, or by its place.
static const struct hec_setting_row *find_inner(const struct value_of *of,
                                                const struct hec_argument *argument, int position) {
    const size_t length = strlen(of->row->key);
    for (int i = 0; i < HEC_KEYS; i++) {
        const struct hec_setting_row *row = &hec_setting_rows[i];
        if (strncmp(row->key, of->row->key, length) || row->key[length] != '.') continue;
        if (row->of && !hec_setting_lists(row->of, of->expr->text)) continue;
        if (argument->name ? !strcmp(row->key + length + 1, argument->name)
                           : row->position == position)
            return row;
    }
    return NULL;
}

static void unknown_inner(const struct value_of *of, const struct hec_argument *argument) {
    struct hec_checker *checker = of->checker;
    const size_t length = strlen(of->row->key);
    HEC_VEC(const char *) known = {0};
    for (int i = 0; i < HEC_KEYS; i++) {
        const struct hec_setting_row *row = &hec_setting_rows[i];
        if (strncmp(row->key, of->row->key, length) || row->key[length] != '.') continue;
        if (row->of && !hec_setting_lists(row->of, of->expr->text)) continue;
        HEC_PUSH(checker->arena, &known, row->key + length + 1);
    }
    if (!argument->name) {
        hec_error(checker, argument->at, "`%s` takes no further number", of->expr->text);
    } else {
        hec_unknown_of(checker, argument->at, "setting", argument->name, of->expr->text, known.item,
                       known.count);
    }
}

// Whether a setting's value may differ by block: `recompute = elementwise(sparse = all)`.
static bool is_by_block(const struct hec_setting_row *row) {
    return !strcmp(row->key, "parallel.recompute");
}

// A block's or mixture's own value, appended to those of others in `texts`. Returns these after reporting a fault.
static const char *add_block(const struct value_of *of, int index, const char *texts) {
    struct hec_checker *checker = of->checker;
    const struct hec_argument *argument = &of->expr->arguments.item[index];
    const struct hec_entry *entry = hec_find_entry(checker, argument->name);
    if (!entry || (entry->kind != HEC_ITEM_BLOCK && entry->kind != HEC_ITEM_MOE)) {
        hec_error(checker, argument->at, "`%s` is no block or moe of this model", argument->name);
        return texts;
    }
    for (int i = 0; i < index; i++) {
        const char *before = of->expr->arguments.item[i].name;
        if (!before || strcmp(before, argument->name) != 0) continue;
        hec_error(checker, argument->at, "`%s` is set twice", argument->name);
        return texts;
    }
    struct value_of own = *of;
    own.expr = argument->value;
    if (own.expr->kind != HEC_EXPR_NAME || !hec_setting_lists(of->row->values, own.expr->text)) {
        unknown_choice(&own, expr_text(&own));
        return texts;
    }
    return hec_arena_format(checker->arena, "%s%s%s = %s", texts, *texts ? ", " : "",
                            argument->name, own.expr->text);
}

static const char *read_choice(const struct value_of *of) {
    const struct hec_expr *expr = of->expr;
    const char *blocks = "";
    const bool call = expr->kind == HEC_EXPR_CALL && !expr->label;
    if ((!call && expr->kind != HEC_EXPR_NAME) || !hec_setting_lists(of->row->values, expr->text)) {
        unknown_choice(of, call ? expr->text : expr_text(of));
        return NULL;
    }
    for (int i = 0, position = 0; i < expr->arguments.count; i++) {
        const struct hec_argument *argument = &expr->arguments.item[i];
        if (!argument->name) position++;
        const struct hec_setting_row *inner = find_inner(of, argument, position);
        if (inner) {
            hec_read_setting(of->checker, of->values, inner, argument->value, argument->at);
        } else if (is_by_block(of->row) && argument->name) {
            blocks = add_block(of, i, blocks);
        } else {
            unknown_inner(of, argument);
        }
    }
    return *blocks ? hec_arena_format(of->checker->arena, "%s(%s)", expr->text, blocks)
                   : expr->text;
}

static const char *read_value(const struct value_of *of) {
    switch (of->row->type) {
    case HEC_SETTING_COUNT:
    case HEC_SETTING_REAL:
        return read_number(of);
    case HEC_SETTING_SWITCH:
        return read_switch(of);
    case HEC_SETTING_PAIR:
        return read_pair(of);
    case HEC_SETTING_PIECES:
        return hec_read_pieces(of->checker, of->row, of->expr);
    case HEC_SETTING_CHOICE:
        return read_choice(of);
    case HEC_SETTING_TEXT:
    case HEC_SETTING_LABEL:
        return read_text(of);
    }
    return NULL;
}

// `auto(1, 2, 4)`: each must be a value of the setting.
static const char *read_auto(const struct value_of *of) {
    struct hec_checker *checker = of->checker;
    const char *text = "auto";
    for (int i = 0; i < of->expr->arguments.count; i++) {
        struct value_of item = *of;
        item.expr = of->expr->arguments.item[i].value;
        const char *value = read_value(&item);
        if (!value) return NULL;
        text = hec_arena_format(checker->arena, "%s%s%s", text, i ? ", " : "(", value);
    }
    return of->expr->arguments.count ? hec_arena_format(checker->arena, "%s)", text) : text;
}

void hec_read_setting(struct hec_checker *checker, struct hec_setting_values *values,
                      const struct hec_setting_row *row, const struct hec_expr *expr,
                      struct hec_span at) {
    const struct value_of of = {checker, values, row, expr};
    const bool number = row->type == HEC_SETTING_COUNT || row->type == HEC_SETTING_REAL;
    const bool automatic =
        is_name(expr, "auto") || (expr->kind == HEC_EXPR_CALL && !strcmp(expr->text, "auto"));
    const char *text = NULL;
    if (automatic && !(row->flags & HEC_SETTING_AUTO)) {
        hec_error(checker, expr->at, "`%s` cannot be auto", row->key);
        hec_detail(checker, "its default is %s", *row->standard ? row->standard : "empty");
    } else if (automatic) {
        text = read_auto(&of);
    } else if (is_name(expr, "none") && (row->flags & HEC_SETTING_NONE)) {
        text = number ? "0" : row->type == HEC_SETTING_TEXT ? "" : "none";
    } else if (number && expr->kind == HEC_EXPR_NAME &&
               hec_setting_lists(row->values, expr->text)) {
        text = expr->text;
    } else {
        text = read_value(&of);
    }
    const int index = (int)(row - hec_setting_rows);
    values->expr[index] = expr;
    values->value[index].given = true;
    values->value[index].at = at;
    if (text) values->value[index].value = text;
}
