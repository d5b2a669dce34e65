// The table of settings, and the values of one run.
#include "runtime/config/config.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/suggest.h"

// The rules of settings.def's types.
#define COUNT HRT_INTEGER
#define AUTO_COUNT(least, most) HRT_INTEGER_OR("auto", least, most)
#define COUNT_OR HRT_INTEGER_OR
#define BYTES HRT_BYTES
#define NUMBER HRT_REAL
#define AUTO_NUMBER(least, most) HRT_REAL_OR("auto", least, most)
#define NUMBER_OR_NONE(least, most) HRT_REAL_OR("none", least, most)
#define PAIR HRT_PAIR
#define PIECES HRT_TEXT_OR("none")
#define WORD HRT_CHOICE
#define TEXT_OR_NONE HRT_TEXT_OR("none")
#define TEXTS HRT_TEXTS
#define ANYWHERE NULL
#define WITH(words) words
#define FIRST(words) words

#define ITEM(...) __VA_ARGS__
#define ROW_COMPILER(row)
#define ROW_PROGRAM(row) {ITEM row, true, false},
#define ROW_RUN(row) {ITEM row, false, false},
#define ROW_RESUME(row) {ITEM row, false, true},

const struct hrt_setting_row hrt_config_rows[] = {
#define HEC_SETTING(id, key, reader, type, standard, place, text)                                  \
    ROW_##reader((key, type, offsetof(struct hrt_config, id), standard, place, text))
#include "lang/settings.def"
#undef HEC_SETTING
    {0},
};

enum { ROWS = sizeof hrt_config_rows / sizeof *hrt_config_rows - 1 };
_Static_assert(ROWS <= 64, "there is a bit for each");

// The row of a setting that a run may change.
static const struct hrt_setting_row *find_row(const char *key) {
    for (const struct hrt_setting_row *row = hrt_config_rows; row->key; row++) {
        if (!row->fixed && strcmp(row->key, key) == 0) return row;
    }
    return NULL;
}

static bool parse(struct hrt_config *config, const struct hrt_setting_row *row, const char *value,
                  const char *name, struct hrt_error *error) {
    return hrt_config_parse(&row->rule, name, value, (char *)config + row->offset, error);
}

bool hrt_config_init(struct hrt_config *config, const struct hrt_program *program,
                     struct hrt_error *error) {
    *config = (struct hrt_config){0};
    for (const struct hrt_setting_row *row = hrt_config_rows; row->key; row++) {
        const char *compiled = hrt_program_setting(program, row->key);
        const char *value = compiled && *compiled ? compiled : row->fallback;
        if (*value && !parse(config, row, value, row->key, error)) return false;
    }
    return true;
}

static bool fail_unknown(const struct hrt_program *program, const char *key,
                         struct hrt_error *error) {
    struct hrt_suggestion suggestion = {.typed = key};
    for (const struct hrt_setting_row *row = hrt_config_rows; row->key; row++)
        hrt_base_suggest(&suggestion, row->key);
    for (int i = 0; i < program->settings; i++)
        hrt_base_suggest(&suggestion, program->setting[i].key);
    if (suggestion.best)
        return hrt_fail_usage(error, "unknown setting '%s'; did you mean '%s'?", key,
                              suggestion.best);
    return hrt_fail_usage(error, "unknown setting '%s'; '%s info' lists all", key, program->name);
}

const struct hrt_setting_row *hrt_config_parent(const struct hrt_setting_row *row) {
    const size_t length = (size_t)(strrchr(row->key, '.') - row->key);
    const struct hrt_setting_row *parent = hrt_config_rows;
    while (strncmp(parent->key, row->key, length) != 0 || parent->key[length]) parent++;
    return parent;
}

bool hrt_config_counts(const struct hrt_config *config, const struct hrt_setting_row *row) {
    if (!row->of) return true;
    const struct hrt_setting_row *parent = hrt_config_parent(row);
    int of, own;
    const int value = *(const int *)((const char *)config + parent->offset);
    const char *word = hrt_config_word(parent->rule.words, value, &own), *listed;
    for (int i = 0; (listed = hrt_config_word(row->of, i, &of)); i++) {
        if (of == own && strncmp(listed, word, (size_t)own) == 0) return true;
    }
    return false;
}

static uint64_t bit_of(const struct hrt_setting_row *row) {
    return (uint64_t)1 << (row - hrt_config_rows);
}

bool hrt_config_given(const struct hrt_config *config, const struct hrt_setting_row *row) {
    return config->given & bit_of(row);
}

static bool is_given(const struct hrt_config *config, const char *key) {
    return hrt_config_given(config, find_row(key));
}

// The user's texts replace the program's. Training data of the user's own also drops the validation
// data and the teacher that the program names: they belong to the program's.
static void forget_texts(struct hrt_config *config, const struct hrt_setting_row *row) {
    ((struct hrt_texts *)((char *)config + row->offset))->count = 0;
    if (strcmp(row->key, "data.train") != 0) return;
    if (!is_given(config, "data.val")) config->data_val.count = 0;
    if (!is_given(config, "data.teacher")) config->data_teacher.count = 0;
}

// Steps and epochs both say when a run ends. The user's replace the program's.
static bool settle_end(struct hrt_config *config, struct hrt_error *error) {
    if (!is_given(config, "train.steps")) return true;
    if (!is_given(config, "train.epochs")) config->train_epochs = 0;
    return config->train_epochs == 0 ||
           hrt_fail_usage(error, "train.steps and train.epochs both say when the run ends: give "
                                 "one of them");
}

bool hrt_config_set(struct hrt_config *config, const struct hrt_program *program, const char *key,
                    const char *value, const char *name, struct hrt_error *error) {
    const struct hrt_setting_row *row = find_row(key);
    if (row) {
        if (row->rule.kind == HRT_VALUE_TEXTS && !(config->given & bit_of(row)))
            forget_texts(config, row);
        config->given |= bit_of(row);
        return parse(config, row, value, name, error) && settle_end(config, error);
    }
    const char *fixed = hrt_program_setting(program, key);
    if (!fixed) return fail_unknown(program, key, error);
    return hrt_fail_usage(error,
                          "'%s' is fixed at '%s' when the program is compiled; compile again "
                          "with hecatec --set %s=%s",
                          key, fixed, key, value);
}

static void print_texts(FILE *out, const struct hrt_texts *texts) {
    for (int i = 0; i < texts->count; i++) fprintf(out, "%s%s", i ? " " : "", texts->text[i]);
    if (texts->count == 0) fputs("none", out);
}

// As short as it reads back to the same number.
static void print_real(FILE *out, double value) {
    char text[32];
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value) break;
    }
    fputs(text, out);
}

static void print_word(FILE *out, const char *words, int index) {
    int length;
    const char *word = hrt_config_word(words, index, &length);
    fprintf(out, "%.*s", length, word);
}

static void print_value(FILE *out, const struct hrt_value_rule *rule, const void *at) {
    const double *real = at;
    const int64_t *integer = at;
    const char *const *text = at;
    const bool is_zero = (rule->kind == HRT_VALUE_INTEGER && *integer == 0) ||
                         (rule->kind == HRT_VALUE_REAL && *real == 0) ||
                         (rule->kind == HRT_VALUE_TEXT && !*text);
    if (rule->zero && is_zero) {
        fputs(rule->zero, out);
        return;
    }
    switch (rule->kind) {
    case HRT_VALUE_INTEGER:
        fprintf(out, "%" PRId64, *integer);
        break;
    case HRT_VALUE_REAL:
        print_real(out, *real);
        break;
    case HRT_VALUE_PAIR:
        print_real(out, real[0]);
        fputc(',', out);
        print_real(out, real[1]);
        break;
    case HRT_VALUE_CHOICE:
        print_word(out, rule->words, *(const int *)at);
        break;
    case HRT_VALUE_FLAG:
        fputs(*(const bool *)at ? "yes" : "no", out);
        break;
    case HRT_VALUE_TEXT:
        fputs(*text, out);
        break;
    case HRT_VALUE_TEXTS:
        print_texts(out, at);
        break;
    }
}

char *hrt_config_text(const struct hrt_config *config, const struct hrt_setting_row *row) {
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    if (!out) return NULL;
    print_value(out, &row->rule, (const char *)config + row->offset);
    return fclose(out) == 0 ? text : NULL;
}

void hrt_config_print(FILE *out, const struct hrt_config *config,
                      const struct hrt_program *program) {
    fprintf(out, "settings (--set key=value)\n");
    for (const struct hrt_setting_row *row = hrt_config_rows; row->key; row++) {
        if (row->fixed) continue;
        fprintf(out, "  %s = ", row->key);
        print_value(out, &row->rule, (const char *)config + row->offset);
        fprintf(out, "    # %s\n", row->doc);
    }
    bool heading = false;
    for (int i = 0; i < program->settings; i++) {
        const struct hrt_setting *setting = &program->setting[i];
        if (find_row(setting->key)) continue;
        if (!heading) fprintf(out, "settings fixed when compiled (hecatec --set key=value)\n");
        heading = true;
        fprintf(out, "  %s = %s\n", setting->key, setting->value);
    }
}
