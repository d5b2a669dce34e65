// Settings that depend on one another: tokens, microbatch, group.
#include <stdlib.h>
#include <string.h>

#include "lang/check/groups.h"
#include "lang/check/settings.h"
#include "lang/scan.h"

static int64_t count_of(const struct hec_setting_values *values, enum hec_key key) {
    int64_t count = 0; // 0 for a word, such as auto.
    hec_count_read(values->value[key].value, &count);
    return count;
}

static bool is_auto(const struct hec_setting_values *values, enum hec_key key) {
    return !strncmp(values->value[key].value, "auto", 4);
}

static void set(struct hec_checker *checker, struct hec_setting_values *values, enum hec_key key,
                int64_t value) {
    values->value[key].value = hec_arena_format(checker->arena, "%lld", (long long)value);
}

static int64_t greatest_divisor(int64_t a, int64_t b) {
    return b ? greatest_divisor(b, a % b) : a;
}

// The facts that the choice of a microbatch depends on. Each device has `sequences` of a step; 0: any number.
struct choice {
    int64_t sequences;
    int64_t unit; // Microbatches whose iterations are whole groups are its multiples.
};

static bool fits(struct choice choice, int64_t microbatch) {
    return choice.sequences % microbatch == 0 && microbatch % choice.unit == 0;
}

// The largest listed microbatch that fits, or the largest up to 8, or the smallest; 0 when none does; -1 when
// the list is broken, which was reported.
static int64_t largest_fitting(struct hec_checker *checker, struct hec_setting_values *values,
                               struct choice choice) {
    const struct hec_expr *expr = values->expr[HEC_KEY_parallel_microbatch];
    int64_t best = 0;
    if (!expr || expr->kind != HEC_EXPR_CALL || expr->arguments.count == 0) {
        for (int64_t size = 1; size <= 8; size++) best = fits(choice, size) ? size : best;
        return best == 0 && fits(choice, choice.unit) ? choice.unit : best;
    }
    if (!strcmp(values->value[HEC_KEY_parallel_microbatch].value, "auto")) return -1;
    for (int i = 0; i < expr->arguments.count; i++) {
        struct hec_constant value;
        if (!hec_constant_of(checker, NULL, expr->arguments.item[i].value, &value)) continue;
        const double number = value.number.value;
        if (!(number >= 1 && number <= 1 << 20)) continue; // It was complained of.
        const int64_t size = (int64_t)number;
        if (size > best && fits(choice, size)) best = size;
    }
    return best;
}

// Reports that `tokens` is no multiple of `unit`, and which numbers next to it are.
static void wrong_tokens(struct hec_checker *checker, const struct hec_setting_values *values,
                         int64_t tokens, int64_t unit, const char *why) {
    const struct hec_setting *setting = &values->value[HEC_KEY_train_tokens];
    const struct hec_expr *expr = values->expr[HEC_KEY_train_tokens];
    const int64_t below = tokens / unit * unit;
    hec_error(checker, expr ? expr->at : setting->at,
              "`train.tokens` is %lld, no multiple of %lld (%s)", (long long)tokens,
              (long long)unit, why);
    if (below) {
        hec_note(checker, HEC_NOWHERE, "the nearest multiples are %lld and %lld", (long long)below,
                 (long long)(below + unit));
    } else {
        hec_note(checker, HEC_NOWHERE, "the smallest is %lld", (long long)unit);
    }
}

// "128 positions x microbatch 2 x 8 devices", without what is one.
static const char *factors(struct hec_checker *checker, int64_t positions, int64_t microbatch,
                           int64_t devices) {
    const char *text = hec_arena_format(checker->arena, "%lld positions", (long long)positions);
    if (microbatch > 1) {
        text =
            hec_arena_format(checker->arena, "%s x microbatch %lld", text, (long long)microbatch);
    }
    if (devices > 1)
        text = hec_arena_format(checker->arena, "%s x %lld devices", text, (long long)devices);
    return text;
}

// Reports that iterations are not whole groups.
static void wrong_group(struct hec_checker *checker, const struct hec_setting_values *values,
                        int64_t microbatch, int64_t devices, int64_t unit) {
    const struct hec_setting *group = &values->value[HEC_KEY_train_group];
    const struct hec_expr *expr = values->expr[HEC_KEY_train_group];
    hec_error(checker, expr ? expr->at : group->at,
              "`train.group` is %s, but an iteration has %lld sequences (microbatch %lld x %lld "
              "devices), no multiple of it",
              group->value, (long long)(microbatch * devices), (long long)microbatch,
              (long long)devices);
    hec_note(checker, HEC_NOWHERE,
             "a microbatch that is a multiple of %lld fits, or a group that divides %lld",
             (long long)unit, (long long)(microbatch * devices));
}

// Reports that no microbatch may be chosen for the sequences of a device.
static void no_microbatch(struct hec_checker *checker, const struct hec_setting_values *values,
                          struct choice choice) {
    const struct hec_setting *microbatch = &values->value[HEC_KEY_parallel_microbatch];
    const struct hec_setting *group = &values->value[HEC_KEY_train_group];
    const char *why = "";
    const char *objective = values->value[HEC_KEY_train_objective].value;
    if (choice.unit > 1 && strcmp(objective, "dpo") == 0)
        why = hec_arena_format(
            checker->arena,
            " and is a multiple of %lld, as `train.group = %s` and `train.objective = dpo` need",
            (long long)choice.unit, group->value);
    else if (choice.unit > 1)
        why = hec_arena_format(checker->arena,
                               " and is a multiple of %lld, as `train.group = %s` needs",
                               (long long)choice.unit, group->value);
    hec_error(checker, microbatch->at,
              "no microbatch of %s divides the %lld sequences of a device%s", microbatch->value,
              (long long)choice.sequences, why);
}

static void resolve_tokens(struct hec_checker *checker, struct hec_setting_values *values) {
    const int64_t positions = checker->program->positions;
    const int64_t devices =
        count_of(values, HEC_KEY_cluster_nodes) * count_of(values, HEC_KEY_cluster_devices);
    const bool free_tokens = is_auto(values, HEC_KEY_train_tokens);
    const bool free_microbatch = is_auto(values, HEC_KEY_parallel_microbatch);
    int64_t microbatch = free_microbatch ? 0 : count_of(values, HEC_KEY_parallel_microbatch);
    int64_t tokens = free_tokens ? 0 : count_of(values, HEC_KEY_train_tokens);
    if (positions == 0) return; // The model is broken: that is reported.

    if (!free_tokens && tokens % (positions * devices)) {
        const char *why = factors(checker, positions, 1, devices);
        wrong_tokens(checker, values, tokens, positions * devices, why);
        return;
    }
    const bool whole = !strcmp(values->value[HEC_KEY_train_group].value, "iteration");
    const int64_t group = whole ? 1 : count_of(values, HEC_KEY_train_group);
    struct choice choice = {
        .sequences = free_tokens ? 0 : tokens / (positions * devices),
        .unit = group / greatest_divisor(group, devices),
    };
    const bool pairs = !strcmp(values->value[HEC_KEY_train_objective].value, "dpo");
    if (pairs && !free_microbatch && microbatch % 2) {
        hec_error(
            checker, values->value[HEC_KEY_parallel_microbatch].at,
            "`train.objective = dpo` compares two sequences of a device: no microbatch of %lld",
            (long long)microbatch);
        return;
    }
    if (pairs && choice.unit % 2) choice.unit *= 2;
    if (free_microbatch) microbatch = largest_fitting(checker, values, choice);
    if (microbatch < 0) return;
    if (microbatch == 0) {
        no_microbatch(checker, values, choice);
        return;
    }
    if (microbatch % choice.unit) {
        wrong_group(checker, values, microbatch, devices, choice.unit);
        return;
    }
    if (free_tokens) tokens = positions * microbatch * devices;
    if (tokens % (positions * microbatch * devices)) {
        const char *why = factors(checker, positions, microbatch, devices);
        wrong_tokens(checker, values, tokens, positions * microbatch * devices, why);
        return;
    }
    set(checker, values, HEC_KEY_train_tokens, tokens);
    set(checker, values, HEC_KEY_parallel_microbatch, microbatch);
}

// `final` of a constant schedule would be ignored: say so.
static void check_owners(struct hec_checker *checker, const struct hec_setting_values *values) {
    for (int i = 0; i < HEC_KEYS; i++) {
        const struct hec_setting_row *row = &hec_setting_rows[i];
        const struct hec_setting *setting = &values->value[i];
        if (!row->of || !setting->given) continue;
        const int length = (int)(strrchr(row->key, '.') - row->key);
        const char *parent = hec_arena_format(checker->arena, "%.*s", length, row->key);
        const char *choice = values->value[hec_setting_row(parent) - hec_setting_rows].value;
        if (hec_setting_lists(row->of, choice)) continue;
        hec_error(checker, setting->at, "`%s` has no meaning with `%s = %s`", row->key, parent,
                  choice);
    }
}

static int by_key(const void *left, const void *right) {
    const struct hec_setting *a = left, *b = right;
    return strcmp(a->key, b->key);
}

// "train.parameters.embed" is "frozen = true".
static struct hec_setting setting_of_group(struct hec_checker *checker,
                                           const struct hec_group *group) {
    return (struct hec_setting){
        .key = hec_arena_format(checker->arena, "train.parameters.%s", group->pattern),
        .value = hec_group_text(checker, group),
        .given = true,
        .at = group->at,
    };
}

static bool is_flag(const struct hec_setting *setting) {
    return setting->at.file && strcmp(setting->at.file->path, "<command line>") == 0;
}

static bool has_epochs(const struct hec_setting_values *values) {
    return strtod(values->value[HEC_KEY_train_epochs].value, NULL) > 0;
}

// Steps and epochs both say when a run ends. --set replaces the file's.
static void check_end(struct hec_checker *checker, struct hec_setting_values *values) {
    struct hec_setting *steps = &values->value[HEC_KEY_train_steps],
                       *epochs = &values->value[HEC_KEY_train_epochs];
    if (!steps->given || !epochs->given || !has_epochs(values)) return;
    if (is_flag(steps) != is_flag(epochs)) {
        struct hec_setting *old = is_flag(steps) ? epochs : steps;
        old->value = hec_setting_row(old->key)->standard;
        return;
    }
    hec_error(checker, epochs->at,
              "`train.steps` and `train.epochs` both say when the run ends: give one of them");
}

// A learning rate that would rise beyond the end of the run.
static void check_warmup(struct hec_checker *checker, const struct hec_setting_values *values) {
    const int64_t warmup = count_of(values, HEC_KEY_train_schedule_warmup);
    const int64_t steps = count_of(values, HEC_KEY_train_steps);
    const struct hec_setting *setting = &values->value[HEC_KEY_train_schedule_warmup];
    if (warmup <= steps || has_epochs(values)) return;
    hec_warning(checker, setting->at,
                "the learning rate rises for %lld steps, but the run has %lld: it ends at %.3g of "
                "lr",
                (long long)warmup, (long long)steps, (double)steps / (double)warmup);
}

void hec_resolve_settings(struct hec_checker *checker, struct hec_setting_values *values) {
    struct hec_program *program = checker->program;
    check_owners(checker, values);
    resolve_tokens(checker, values);
    check_end(checker, values);
    check_warmup(checker, values);
    const bool steps_given = values->value[HEC_KEY_train_steps].given && !has_epochs(values);
    hec_check_pieces(checker, values, steps_given ? count_of(values, HEC_KEY_train_steps) : 0);
    const size_t most = (size_t)(HEC_KEYS + checker->groups.count);
    struct hec_setting *settings = hec_arena_alloc(checker->arena, most, sizeof *settings);
    int count = 0;
    for (int i = 0; i < HEC_KEYS; i++) {
        if (!hec_is_group_key(hec_setting_rows[i].key)) settings[count++] = values->value[i];
    }
    for (int i = 0; i < checker->groups.count; i++)
        settings[count++] = setting_of_group(checker, &checker->groups.item[i]);
    qsort(settings, (size_t)count, sizeof *settings, by_key);
    program->settings = count;
    program->setting = settings;
}
