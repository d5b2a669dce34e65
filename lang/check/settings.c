// Sections and --set: which setting is meant, and whether it is given once.
#include "lang/check/settings.h"

#include <string.h>

#include "lang/check/groups.h"
#include "lang/parse.h"

static bool is_prefix(const char *key, const char *prefix) {
    const size_t length = strlen(prefix);
    return !strncmp(key, prefix, length) && key[length] == '.';
}

static bool is_section(const char *path) {
    const struct hec_setting_row *row = hec_setting_row(path);
    if (row && row->type != HEC_SETTING_LABEL) return false; // `optimizer` has sub-settings.
    for (int i = 0; i < HEC_KEYS; i++) {
        if (is_prefix(hec_setting_rows[i].key, path)) return true;
    }
    return false;
}

// Names that may stand directly in section `path`; "" is the file.
static void unknown_in(struct hec_checker *checker, struct hec_span at, const char *path,
                       const char *name) {
    HEC_VEC(const char *) known = {0};
    const size_t length = *path ? strlen(path) + 1 : 0;
    for (int i = 0; i < HEC_KEYS; i++) {
        const char *key = hec_setting_rows[i].key;
        if (*path && !is_prefix(key, path)) continue;
        const char *word = hec_intern(&checker->names, key + length, strcspn(key + length, "."));
        HEC_PUSH(checker->arena, &known, word);
    }
    hec_unknown_of(checker, at, *path ? "setting" : "section", name, *path ? path : NULL,
                   known.item, known.count);
}

// The full key that ends with `.name`, if exactly one does: a setting in the wrong section.
static void note_elsewhere(struct hec_checker *checker, const char *name) {
    const char *found = NULL;
    for (int i = 0; i < HEC_KEYS; i++) {
        const char *key = hec_setting_rows[i].key;
        const char *last = strrchr(key, '.');
        if (strcmp(last + 1, name)) continue;
        if (found) return;
        found = key;
    }
    if (found) hec_note(checker, HEC_NOWHERE, "there is a setting `%s`", found);
}

// Resets the setting, and those below it, to their defaults.
static void forget(struct hec_setting_values *values, const struct hec_setting_row *outer) {
    for (int i = 0; i < HEC_KEYS; i++) {
        const struct hec_setting_row *row = &hec_setting_rows[i];
        if (row != outer && !is_prefix(row->key, outer->key)) continue;
        values->value[i] = (struct hec_setting){.key = row->key, .value = row->standard};
        values->expr[i] = NULL;
    }
}

// Whether the setting has its value already: a file's own value wins over an imported one. Two values at one place are
// reported.
static bool given_before(struct hec_checker *checker, struct hec_setting_values *values,
                         const struct hec_setting_row *row, struct hec_span at) {
    const struct hec_setting *before = &values->value[row - hec_setting_rows];
    if (!before->given || hec_imports(checker, before->at.file, at.file)) return before->given;
    if (hec_imports(checker, at.file, before->at.file)) {
        forget(values, row);
        return false;
    }
    hec_error(checker, at, "`%s` is set twice", row->key);
    hec_note(checker, before->at, "the first time");
    return true;
}

static void read_section(struct hec_checker *checker, struct hec_setting_values *values,
                         const struct hec_set *section, const char *outer);

static void read_set(struct hec_checker *checker, struct hec_setting_values *values,
                     const struct hec_set *set, const char *path) {
    const char *key = hec_arena_format(checker->arena, "%s.%s", path, set->name);
    const struct hec_setting_row *row = hec_setting_row(key);
    if (set->kind == HEC_SET_SECTION) {
        read_section(checker, values, set, path);
    } else if (!row) {
        if (is_section(key)) {
            hec_error(checker, set->at, "`%s` is a section: `%s { ... }`", set->name, set->name);
            return;
        }
        unknown_in(checker, set->at, path, set->name);
        note_elsewhere(checker, set->name);
    } else if (row->type == HEC_SETTING_LABEL) {
        hec_error(checker, set->at, "`%s` is a section: `%s NAME { ... }`", set->name, set->name);
    } else if (!given_before(checker, values, row, set->at)) {
        hec_read_setting(checker, values, row, set->value, set->at);
    }
}

// The path below which the section's settings stand; NULL after reporting that there is none.
static const char *section_path(struct hec_checker *checker, struct hec_setting_values *values,
                                const struct hec_set *section, const char *outer) {
    const char *path =
        *outer ? hec_arena_format(checker->arena, "%s.%s", outer, section->name) : section->name;
    const struct hec_setting_row *row = hec_setting_row(path);
    if (row && row->type == HEC_SETTING_LABEL) {
        struct hec_setting *value = &values->value[row - hec_setting_rows];
        if (!section->label) {
            hec_error(checker, section->at, "name the %s: `%s h100 { ... }`", section->name,
                      section->name);
        } else if (value->given && hec_imports(checker, value->at.file, section->at.file)) {
            return NULL; // All of it is another one's.
        } else if (!given_before(checker, values, row, section->at)) {
            value->value = section->label;
            value->given = true;
            value->at = section->at;
        }
        return path;
    }
    if (section->label) {
        const char *labelled = hec_arena_format(checker->arena, "%s.%s", path, section->label);
        if (is_section(labelled)) return labelled;
        if (is_section(path)) {
            unknown_in(checker, section->label_at, path, section->label);
            return NULL;
        }
    }
    if (is_section(path)) return path;
    if (row) {
        hec_error(checker, section->at, "`%s` is no section: `%s = ...`", section->name,
                  section->name);
    } else {
        unknown_in(checker, section->at, outer, section->name);
    }
    return NULL;
}

static void read_section(struct hec_checker *checker, struct hec_setting_values *values,
                         const struct hec_set *section, const char *outer) {
    if (!strcmp(outer, "train") && !strcmp(section->name, "parameters"))
        return; // groups.c has them.
    const char *path = section_path(checker, values, section, outer);
    if (!path) return;
    for (int i = 0; i < section->body.count; i++) {
        read_set(checker, values, &section->body.item[i], path);
    }
}

static struct hec_expr *raw_text(struct hec_checker *checker, const char *text,
                                 struct hec_span at) {
    struct hec_expr *expr = HEC_NEW(checker->arena, struct hec_expr);
    expr->kind = HEC_EXPR_STRING;
    expr->text = hec_arena_copy(checker->arena, text, strlen(text));
    expr->at = at;
    return expr;
}

// Settings inside the parentheses of a value go with that value.
static void forget_inner(struct hec_setting_values *values, const struct hec_setting_row *outer) {
    for (int i = 0; i < HEC_KEYS; i++) {
        const struct hec_setting_row *row = &hec_setting_rows[i];
        if (outer->type != HEC_SETTING_CHOICE || !is_prefix(row->key, outer->key)) continue;
        values->value[i] = (struct hec_setting){.key = row->key, .value = row->standard};
        values->expr[i] = NULL;
    }
}

// Says what of `before` has gone with it, though the new value `outer` has it, too, and has not been given it again.
static void report_forgotten(struct hec_checker *checker, const struct hec_setting_values *values,
                             const struct hec_setting_values *before,
                             const struct hec_setting_row *outer, struct hec_span at) {
    const char *choice = values->value[outer - hec_setting_rows].value, *list = "";
    const size_t length = strlen(outer->key) + 1;
    for (int i = 0; i < HEC_KEYS; i++) {
        const struct hec_setting_row *row = &hec_setting_rows[i];
        const struct hec_setting *own = &before->value[i];
        if (!is_prefix(row->key, outer->key) || !own->given || values->value[i].given ||
            !strcmp(own->value, row->standard) || (row->of && !hec_setting_lists(row->of, choice)))
            continue;
        const char *format = row->type == HEC_SETTING_PAIR ? "%s%s%s = [%s]" : "%s%s%s = %s";
        list = hec_arena_format(checker->arena, format, list, *list ? ", " : "", row->key + length,
                                own->value);
    }
    if (!*list) return;
    hec_warning(checker, at, "`%s` is given anew without %s: defaults take the place", outer->key,
                list);
    hec_note(checker, HEC_NOWHERE, "`--set '%s=%s(%s)'` keeps them", outer->key, choice, list);
}

// "--set train.steps=10". Text needs no quotes there.
static void read_flag(struct hec_checker *checker, struct hec_setting_values *values,
                      const char *text) {
    if (hec_is_group_key(text)) return; // groups.c has it.
    const struct hec_source *source = hec_flag_source(checker, "--set", text);
    const uint32_t skip = 6; // "--set "
    const char *equals = strchr(text, '=');
    const uint32_t length = (uint32_t)(equals ? (size_t)(equals - text) : strlen(text));
    const struct hec_span at = {source, 1, skip + 1, length};
    if (!equals || length == 0) {
        hec_error(checker, at, "--set takes SETTING=VALUE");
        return;
    }
    const char *key = hec_intern(&checker->names, text, length);
    const struct hec_setting_row *row = hec_setting_row(key);
    if (!row) {
        const char *keys[96];
        for (int i = 0; i < HEC_KEYS; i++) keys[i] = hec_setting_rows[i].key;
        hec_unknown(checker, at, "setting", key, keys, HEC_KEYS);
        note_elsewhere(checker, key);
        return;
    }
    const struct hec_span value_at = {source, 1, skip + length + 2, (uint32_t)strlen(equals + 1)};
    const bool text_type = row->type == HEC_SETTING_TEXT || row->type == HEC_SETTING_LABEL;
    const struct hec_expr *expr =
        text_type && equals[1] != '"'
            ? raw_text(checker, equals + 1, value_at)
            : hec_parse_expression(source, skip + length + 1, checker->arena, &checker->names,
                                   checker->diag);
    if (!expr) return;
    const struct hec_setting_values before = *values;
    forget_inner(values, row);
    hec_read_setting(checker, values, row, expr, at);
    if (row->type == HEC_SETTING_CHOICE) report_forgotten(checker, values, &before, row, at);
}

void hec_read_settings(struct hec_checker *checker, struct hec_setting_values *values) {
    for (int i = 0; i < HEC_KEYS; i++) {
        values->value[i] = (struct hec_setting){.key = hec_setting_rows[i].key,
                                                .value = hec_setting_rows[i].standard};
    }
    for (int i = 0; i < checker->sections.count; i++) {
        read_section(checker, values, checker->sections.item[i], "");
    }
    for (int i = 0; i < checker->options->sets_count; i++) {
        read_flag(checker, values, checker->options->sets[i]);
    }
}
