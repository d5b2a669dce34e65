// The table of settings, and the values of one run.
#include "runtime/config/config.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/suggest.h"

static const char *const formats[] = {"bytes", "llmc", NULL};           // enum hrt_data_format
static const char *const objectives[] = {"next_token", "masked", NULL}; // enum hrt_objective
static const char *const optimizers[] = {"adamw", "muon", NULL};        // enum hrt_optimizer_kind
static const char *const lr_schedules[] = {"cosine", "linear", "constant", "wsd",
                                           NULL}; // enum hrt_lr_schedule

#define AT(field) offsetof(struct hrt_config, field)

const struct hrt_setting_row hrt_setting_rows[] = {
    {"checkpoint.dir", HRT_TEXT_OR("none"), AT(checkpoint_dir), NULL, "folder of checkpoints"},
    {"checkpoint.every", HRT_INTEGER(0, 1e12), AT(checkpoint_every), "0",
     "steps between checkpoints; 0: none but the last"},
    {"checkpoint.every_minutes", HRT_REAL(0, 1e6), AT(checkpoint_every_minutes), "0",
     "minutes between checkpoints; 0: none"},
    {"checkpoint.keep", HRT_INTEGER(1, 1e9), AT(checkpoint_keep), "3", "checkpoints kept"},
    {"checkpoint.keep_every", HRT_INTEGER(0, 1e12), AT(checkpoint_keep_every), "0",
     "checkpoints of multiples of it are kept for good; 0: none"},
    {"checkpoint.memory", HRT_BYTES(0, 1e15), AT(checkpoint_memory), "268435456",
     "bytes of values that a rank copies while a checkpoint is written; what needs more waits"},
    {"data.format", HRT_CHOICE(formats), AT(data_format), "bytes", "bytes, or llmc: llm.c's .bin"},
    {"data.held_out", HRT_REAL_OR("auto", 1e-6, 0.9), AT(held_out), "auto",
     "share of each training file, its end, that is not trained on; auto: 0.05, none with "
     "data.val"},
    {"data.teacher", HRT_TEXTS, AT(data_teacher), NULL,
     "what a teacher says of the tokens of all files, for `distill`"},
    {"data.train", HRT_TEXTS, AT(data_train), NULL, "training files: path or pattern"},
    {"data.val", HRT_TEXTS, AT(data_val), NULL, "validation files; else what is held out"},
    {"log.every", HRT_INTEGER(1, 1e9), AT(log_every), "10", "steps between lines"},
    {"log.jsonl", HRT_TEXT_OR("none"), AT(log_jsonl), NULL, "file for one JSON object per step"},
    {"log.loads", HRT_INTEGER(0, 1e9), AT(log_loads), "0",
     "steps between loads and plans of layers in log.jsonl; 0: none"},
    {"train.eval_every", HRT_INTEGER(0, 1e9), AT(eval_every), "0",
     "steps between evaluations; 0: at the end alone"},
    {"train.eval_steps", HRT_INTEGER(0, 1e9), AT(eval_steps), "10",
     "steps' worth of tokens per evaluation; 0: none is evaluated"},
    {"train.group", HRT_INTEGER_OR("iteration", 1, 1 << 20), AT(group), "1",
     "sequences that statistics cover, or one iteration of all ranks"},
    {"train.objective", HRT_CHOICE(objectives), AT(objective), "next_token",
     "next_token, or masked: tokens that are hidden"},
    {"train.objective.rate", HRT_REAL(1e-6, 1), AT(mask_rate), "0.15",
     "share of tokens that a masked objective hides"},
    {"train.optimizer", HRT_CHOICE(optimizers), AT(optimizer), "adamw",
     "adamw, or muon for matrices"},
    {"train.optimizer.betas", HRT_PAIR(0, 0.999999), AT(betas), "0.9,0.95",
     "decay of the running means"},
    {"train.optimizer.clip", HRT_REAL_OR("none", 0, 1e30), AT(clip), "1", "largest gradient norm"},
    {"train.optimizer.decay", HRT_REAL(0, 1e3), AT(decay), "0.1", "weight decay"},
    {"train.optimizer.eps", HRT_REAL(1e-30, 1), AT(eps), "1e-8",
     "added to the root of the variance"},
    {"train.optimizer.lr", HRT_REAL(0, 1e3), AT(lr), "3e-4", "learning rate"},
    {"train.optimizer.momentum", HRT_REAL(0, 0.999999), AT(momentum), "0.95", "of muon"},
    {"train.optimizer.norm_eps", HRT_REAL(1e-30, 1), AT(norm_eps), "1e-7",
     "of muon: added to the norm of what becomes orthogonal"},
    {"train.schedule", HRT_CHOICE(lr_schedules), AT(lr_schedule), "constant",
     "cosine, linear, constant, or wsd"},
    {"train.schedule.decay", HRT_REAL(0, 1), AT(falls), "0.1",
     "share of the steps in which wsd falls"},
    {"train.schedule.final", HRT_REAL(0, 1), AT(final), "0.1",
     "learning rate of the last step, share of lr"},
    {"train.schedule.warmup", HRT_INTEGER(0, 1e12), AT(warmup), "0", "steps from 0 to lr"},
    {"train.seed", HRT_INTEGER(0, 9e15), AT(seed), "1", "of every random number"},
    {"train.skip_max", HRT_INTEGER(0, 1e9), AT(skip_max), "0",
     "steps in a row that are skipped where a number is not finite; then the run ends"},
    {"train.steps", HRT_INTEGER(1, 1e12), AT(steps), "1000", "optimizer steps"},
    {"train.tokens", HRT_INTEGER_OR("auto", 1, 1e15), AT(tokens), "auto",
     "tokens of one step; auto: one microbatch"},
    {0},
};

// Compiled in: attention was written for the objective, and picks are counted by the group.
static bool is_fixed(const struct hrt_setting_row *row) {
    return row->offset == AT(objective) || row->offset == AT(group);
}

// The row of a setting that a run may change.
static const struct hrt_setting_row *find_row(const char *key) {
    for (const struct hrt_setting_row *row = hrt_setting_rows; row->key; row++) {
        if (!is_fixed(row) && strcmp(row->key, key) == 0) return row;
    }
    return NULL;
}

static bool parse(struct hrt_config *config, const struct hrt_setting_row *row, const char *value,
                  const char *name, struct hrt_error *error) {
    return hrt_value_parse(&row->rule, name, value, (char *)config + row->offset, error);
}

bool hrt_config_init(struct hrt_config *config, const struct hrt_program *program,
                     struct hrt_error *error) {
    *config = (struct hrt_config){0};
    for (const struct hrt_setting_row *row = hrt_setting_rows; row->key; row++) {
        const char *compiled = hrt_program_setting(program, row->key);
        const char *value = compiled && *compiled ? compiled : row->fallback;
        if (value && !parse(config, row, value, row->key, error)) return false;
    }
    return true;
}

static bool fail_unknown(const struct hrt_program *program, const char *key,
                         struct hrt_error *error) {
    struct hrt_suggestion suggestion = {.typed = key};
    for (const struct hrt_setting_row *row = hrt_setting_rows; row->key; row++)
        hrt_suggest(&suggestion, row->key);
    for (int i = 0; i < program->settings; i++) hrt_suggest(&suggestion, program->setting[i].key);
    if (suggestion.best)
        return hrt_fail_usage(error, "unknown setting '%s'; did you mean '%s'?", key,
                              suggestion.best);
    return hrt_fail_usage(error, "unknown setting '%s'; '%s info' lists all", key, program->name);
}

static uint64_t bit_of(const struct hrt_setting_row *row) {
    return (uint64_t)1 << (row - hrt_setting_rows);
}

// The user's texts replace the program's. Training data of the user's own also drops the validation
// data and the teacher that the program names: they belong to the program's.
static void forget_texts(struct hrt_config *config, const struct hrt_setting_row *row) {
    ((struct hrt_texts *)((char *)config + row->offset))->count = 0;
    if (strcmp(row->key, "data.train") != 0) return;
    if (!(config->given & bit_of(find_row("data.val")))) config->data_val.count = 0;
    if (!(config->given & bit_of(find_row("data.teacher")))) config->data_teacher.count = 0;
}

bool hrt_config_set(struct hrt_config *config, const struct hrt_program *program, const char *key,
                    const char *value, const char *name, struct hrt_error *error) {
    const struct hrt_setting_row *row = find_row(key);
    if (row) {
        if (row->rule.kind == HRT_VALUE_TEXTS && !(config->given & bit_of(row)))
            forget_texts(config, row);
        config->given |= bit_of(row);
        return parse(config, row, value, name, error);
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
        fputs(rule->choice[*(const int *)at], out);
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
    for (const struct hrt_setting_row *row = hrt_setting_rows; row->key; row++) {
        if (is_fixed(row)) continue;
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
