// Parsing of values.
#include "runtime/config/value.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct factor {
    const char *unit;
    double factor;
} factors[] = {
    {"", 1},        {"k", 1e3},     {"M", 1e6},     {"G", 1e9},     {"T", 1e12},
    {"Ki", 0x1p10}, {"Mi", 0x1p20}, {"Gi", 0x1p30}, {"Ti", 0x1p40},
};

static bool is_unit(const char *text, const char *unit, bool bytes) {
    const size_t length = strlen(unit);
    return strncmp(text, unit, length) == 0 &&
           (!text[length] || (bytes && strcmp(text + length, "B") == 0));
}

// As hecatec reads a count: 1e6 and 1.5Ki are whole, below 2^53 none is taken for another.
static bool read_integer(const char *text, bool bytes, int64_t *out) {
    char *end;
    if (text[strspn(text, "+-.0123456789")] && strpbrk(text, "xXnN"))
        return false; // Hexadecimal; nan, inf.
    const double number = strtod(text, &end);
    if (end == text) return false;
    for (size_t i = 0; i < sizeof factors / sizeof *factors; i++) {
        if (!is_unit(end, factors[i].unit, bytes)) continue;
        const double whole = number * factors[i].factor;
        if (whole != floor(whole) || fabs(whole) >= 0x1p53) return false;
        *out = (int64_t)whole;
        return true;
    }
    return false;
}

static bool read_real(const char *text, double *out, const char **end) {
    char *stop;
    errno = 0;
    *out = strtod(text, &stop);
    *end = stop;
    return stop != text && errno == 0 && isfinite(*out);
}

static bool in_range(const struct hrt_value_rule *rule, double number) {
    if (rule->least == 0 && rule->most == 0) return true;
    return number >= rule->least && (rule->most == 0 || number <= rule->most);
}

static bool fail_range(const struct hrt_value_rule *rule, const char *name, const char *text,
                       struct hrt_error *error) {
    if (rule->most == 0)
        return hrt_fail_usage(error, "%s is %s; it must be at least %g", name, text, rule->least);
    return hrt_fail_usage(error, "%s is %s; it must be from %g to %g", name, text, rule->least,
                          rule->most);
}

static bool parse_integer(const struct hrt_value_rule *rule, const char *name, const char *text,
                          int64_t *out, struct hrt_error *error) {
    int64_t number;
    if (!read_integer(text, rule->bytes, &number))
        return hrt_fail_usage(error, "%s needs an integer, not '%s'", name, text);
    if (!in_range(rule, (double)number)) return fail_range(rule, name, text, error);
    *out = number;
    return true;
}

static bool parse_real(const struct hrt_value_rule *rule, const char *name, const char *text,
                       double *out, struct hrt_error *error) {
    double number;
    const char *end;
    if (!read_real(text, &number, &end) || *end)
        return hrt_fail_usage(error, "%s needs a number, not '%s'", name, text);
    if (!in_range(rule, number)) return fail_range(rule, name, text, error);
    *out = number;
    return true;
}

static bool parse_pair(const struct hrt_value_rule *rule, const char *name, const char *text,
                       double out[2], struct hrt_error *error) {
    double pair[2];
    const char *end = text + strspn(text, "[ ");
    bool read = read_real(end, &pair[0], &end);
    end += strspn(end, ", ");
    read = read && read_real(end, &pair[1], &end);
    if (!read || end[strspn(end, "] ")])
        return hrt_fail_usage(error, "%s needs two numbers, as in 0.9,0.95, not '%s'", name, text);
    if (!in_range(rule, pair[0]) || !in_range(rule, pair[1]))
        return fail_range(rule, name, text, error);
    out[0] = pair[0];
    out[1] = pair[1];
    return true;
}

const char *hrt_config_word(const char *words, int index, int *length) {
    for (;; index--) {
        *length = (int)strcspn(words, "|");
        if (index == 0) return words;
        if (!words[*length]) return NULL;
        words += *length + 1;
    }
}

static bool parse_choice(const struct hrt_value_rule *rule, const char *name, const char *text,
                         int *out, struct hrt_error *error) {
    char known[256] = "";
    int length;
    for (int i = 0;; i++) {
        const char *word = hrt_config_word(rule->words, i, &length);
        if (!word) break;
        if (strlen(text) == (size_t)length && strncmp(word, text, (size_t)length) == 0) {
            *out = i;
            return true;
        }
        const size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%.*s", i ? ", " : "", length, word);
    }
    return hrt_fail_usage(error, "%s cannot be '%s'; it may be: %s", name, text, known);
}

static bool parse_texts(const char *name, const char *text, struct hrt_texts *out,
                        struct hrt_error *error) {
    if (out->count == HRT_TEXTS_MAX)
        return hrt_fail_usage(error, "%s is given more than %d times; use a pattern", name,
                              HRT_TEXTS_MAX);
    out->text[out->count++] = text;
    return true;
}

static void set_zero(enum hrt_value_kind kind, void *out) {
    if (kind == HRT_VALUE_INTEGER) *(int64_t *)out = 0;
    if (kind == HRT_VALUE_REAL) *(double *)out = 0;
    if (kind == HRT_VALUE_TEXT) *(const char **)out = NULL;
}

bool hrt_config_parse(const struct hrt_value_rule *rule, const char *name, const char *text,
                      void *out, struct hrt_error *error) {
    if (rule->zero && strcmp(rule->zero, text) == 0) {
        set_zero(rule->kind, out);
        return true;
    }
    switch (rule->kind) {
    case HRT_VALUE_INTEGER:
        return parse_integer(rule, name, text, out, error);
    case HRT_VALUE_REAL:
        return parse_real(rule, name, text, out, error);
    case HRT_VALUE_PAIR:
        return parse_pair(rule, name, text, out, error);
    case HRT_VALUE_CHOICE:
        return parse_choice(rule, name, text, out, error);
    case HRT_VALUE_FLAG:
        break;
    case HRT_VALUE_TEXT:
    case HRT_VALUE_TEXTS:
        if (!*text) return hrt_fail_usage(error, "%s is empty", name);
        if (rule->kind == HRT_VALUE_TEXTS) return parse_texts(name, text, out, error);
        *(const char **)out = text;
        return true;
    }
    *(bool *)out = true;
    return true;
}
