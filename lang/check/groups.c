// Groups of parameters: their declarations, the parameters that they match, and their effect on these.
#include "lang/check/groups.h"

#include <stdlib.h>
#include <string.h>

#include "lang/check/pattern.h"
#include "lang/check/settings.h"
#include "lang/parse.h"

static const char group_key[] = "train.parameters";

// In the order of enum hec_group_value.
static const char *const value_names[] = {"frozen", "lr_scale", "decay", "optimizer"};

bool hec_is_group_key(const char *key) {
    const size_t length = sizeof group_key - 1;
    return !strncmp(key, group_key, length) && (!key[length] || strchr(".=", key[length]));
}

// ---- reading

static struct hec_group *find_group(struct hec_checker *checker, const char *pattern) {
    for (int i = 0; i < checker->groups.count; i++) {
        if (!strcmp(checker->groups.item[i].pattern, pattern)) return &checker->groups.item[i];
    }
    return NULL;
}

static bool is_pattern(const char *text) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    for (; *text; text++) {
        if (!strchr(letters, *text) && !strchr("_.*", *text)) return false;
    }
    return true;
}

bool hec_check_pattern(struct hec_checker *checker, const char *pattern, struct hec_span at) {
    if (*pattern && strlen(pattern) <= HEC_PATTERN_MAX && is_pattern(pattern)) return true;
    return hec_error(checker, at,
                     "a pattern of parameters is a path, at most %d characters, in which `*` "
                     "stands for any characters",
                     HEC_PATTERN_MAX);
}

// NULL after reporting that there can be no group of this pattern.
static struct hec_group *add_group(struct hec_checker *checker, const char *pattern,
                                   struct hec_span at) {
    if (!hec_check_pattern(checker, pattern, at)) return NULL;
    HEC_PUSH(checker->arena, &checker->groups, (struct hec_group){.pattern = pattern, .at = at});
    return &checker->groups.item[checker->groups.count - 1];
}

static int value_of(const char *name) {
    for (int i = 0; i < HEC_GROUP_VALUES; i++) {
        if (!strcmp(value_names[i], name)) return i;
    }
    return -1;
}

// One `name = expr` of a group. `again`: it may replace what was given.
static void read_value(struct hec_checker *checker, struct hec_group *group, const char *name,
                       const struct hec_expr *expr, struct hec_span at, bool again) {
    const int which = value_of(name);
    if (which < 0) {
        hec_unknown_of(checker, at, "setting", name, group_key, value_names, HEC_GROUP_VALUES);
        return;
    }
    const char *key = hec_arena_format(checker->arena, "%s.%s", group_key, name);
    if (group->text[which] && !again) {
        hec_error(checker, at, "`%s` is set twice", key);
        hec_note(checker, group->given[which], "the first time");
        return;
    }
    const struct hec_setting_row *row = hec_setting_row(key);
    struct hec_setting_values values = {0};
    hec_read_setting(checker, &values, row, expr, at);
    const char *text = values.value[row - hec_setting_rows].value;
    if (text) {
        group->text[which] = text;
        group->given[which] = at;
    }
}

static void read_group(struct hec_checker *checker, const struct hec_set *section) {
    if (!section->label) {
        hec_error(checker, section->at,
                  "name the parameters: `parameters \"layers.*.router\" { ... }`");
        return;
    }
    const struct hec_group *before = find_group(checker, section->label);
    if (before) {
        hec_error(checker, section->label_at, "a second group of `%s`", section->label);
        hec_note(checker, before->at, "the first one");
        return;
    }
    struct hec_group *group = add_group(checker, section->label, section->label_at);
    if (!group) return;
    for (int i = 0; i < section->body.count; i++) {
        const struct hec_set *set = &section->body.item[i];
        if (set->kind == HEC_SET_SECTION)
            hec_error(checker, set->at, "`%s` is no section: `%s = ...`", set->name, set->name);
        else
            read_value(checker, group, set->name, set->value, set->at, false);
    }
    if (section->body.count == 0)
        hec_error(checker, group->at,
                  "this group says nothing: it takes frozen, lr_scale, decay, optimizer");
}

// "--set train.parameters.PATTERN.frozen=true"
static void read_flag(struct hec_checker *checker, const char *text) {
    const struct hec_source *source = hec_flag_source(checker, "--set", text);
    const uint32_t skip = 6; // "--set "
    const char *equals = strchr(text, '=');
    const uint32_t length = (uint32_t)(equals ? (size_t)(equals - text) : strlen(text));
    const struct hec_span at = {source, 1, skip + 1, length};
    const char *key = hec_intern(&checker->names, text, length);
    const char *rest = key + (sizeof group_key - 1), *last = strrchr(rest, '.');
    if (!equals || !last || last == rest) {
        hec_error(checker, at, "settings of parameters are set by --set %s.PATTERN.SETTING=VALUE",
                  group_key);
        return;
    }
    const struct hec_expr *expr = hec_parse_expression(source, skip + length + 1, checker->arena,
                                                       &checker->names, checker->diag);
    const char *pattern = hec_intern(&checker->names, rest + 1, (size_t)(last - rest - 1));
    struct hec_group *group = find_group(checker, pattern);
    if (!group) group = add_group(checker, pattern, at);
    if (group && expr) read_value(checker, group, last + 1, expr, at, true);
}

// Frozen parameters learn at no rate.
static void check_group(struct hec_checker *checker, const struct hec_group *group) {
    const char *frozen = group->text[HEC_GROUP_FROZEN];
    for (int i = HEC_GROUP_FROZEN + 1; i < HEC_GROUP_VALUES; i++) {
        if (!frozen || strcmp(frozen, "true") != 0 || !group->text[i]) continue;
        hec_error(checker, group->given[i], "`%s` has no meaning for parameters that are frozen",
                  value_names[i]);
    }
}

void hec_read_groups(struct hec_checker *checker) {
    for (int i = 0; i < checker->sections.count; i++) {
        const struct hec_set *section = checker->sections.item[i];
        if (strcmp(section->name, "train") != 0) continue;
        for (int j = 0; j < section->body.count; j++) {
            const struct hec_set *set = &section->body.item[j];
            if (set->kind == HEC_SET_SECTION && !strcmp(set->name, "parameters"))
                read_group(checker, set);
        }
    }
    for (int i = 0; i < checker->options->sets_count; i++) {
        if (hec_is_group_key(checker->options->sets[i]))
            read_flag(checker, checker->options->sets[i]);
    }
    for (int i = 0; i < checker->groups.count; i++) check_group(checker, &checker->groups.item[i]);
}

const char *hec_group_text(struct hec_checker *checker, const struct hec_group *group) {
    const char *text = "";
    for (int i = 0; i < HEC_GROUP_VALUES; i++) {
        if (group->text[i])
            text = hec_arena_format(checker->arena, "%s%s%s = %s", text, *text ? ", " : "",
                                    value_names[i], group->text[i]);
    }
    return text;
}

// ---- matching

static const char *sign(struct hec_checker *checker, const char *pattern, const char *path,
                        const char *text) {
    struct hec_states states;
    hec_pattern_begin(pattern, &states);
    hec_pattern_read(pattern, &states, path);
    text = hec_arena_format(checker->arena, "%s /", text);
    for (int j = 0; pattern[j]; j++) {
        if (states.at[j]) text = hec_arena_format(checker->arena, "%s %d", text, j);
    }
    return text;
}

const char *hec_groups_sign(struct hec_checker *checker, const char *path, const char *text) {
    for (int i = 0; i < checker->groups.count; i++) {
        const struct hec_group *group = &checker->groups.item[i];
        if (group->text[HEC_GROUP_FROZEN] || group->text[HEC_GROUP_OPTIMIZER])
            text = sign(checker, group->pattern, path, text);
    }
    for (int i = 0; i < checker->adapt.patterns.count; i++)
        text = sign(checker, checker->adapt.patterns.item[i], path, text);
    return text;
}

bool hec_group_takes(struct hec_checker *checker, const char *pattern, struct hec_span at,
                     const struct hec_param *param, int64_t layer) {
    const int64_t experts = param->expert_of ? param->expert_of->experts.size : 1;
    const int64_t index = param->index_first + layer * param->index_stride;
    if (!hec_pattern_may_match(pattern, param->path, index)) return false;
    const bool first = hec_pattern_matches(pattern, param->path, index, 0);
    for (int64_t e = 1; e < experts; e++) {
        if (hec_pattern_matches(pattern, param->path, index, e) == first) continue;
        hec_error(checker, at,
                  "`%s` matches some experts of `%s` and not the others: they are treated alike",
                  pattern, param->path);
        return true;
    }
    return first;
}

bool hec_group_is_matrix(const struct hec_param *param) {
    return param->shape.rank - (param->expert_of != NULL) >= 2;
}

// Whether Muon moves it, by a value of train.parameters.optimizer.
static bool is_muons(const struct hec_param *param, const char *optimizer) {
    const bool by_role = !(param->role & (HEC_ROLE_EMBEDDING | HEC_ROLE_HEAD));
    return hec_group_is_matrix(param) &&
           (strcmp(optimizer, "role") ? !strcmp(optimizer, "muon") : by_role);
}

static void apply(const struct hec_group *group, struct hec_param *param) {
    const char *const *text = group->text;
    if (text[HEC_GROUP_FROZEN]) param->frozen = !strcmp(text[HEC_GROUP_FROZEN], "true");
    if (text[HEC_GROUP_OPTIMIZER]) param->muon = is_muons(param, text[HEC_GROUP_OPTIMIZER]);
}

static void apply_rates(const struct hec_group *group, struct hec_rates *rates) {
    const char *const *text = group->text;
    if (text[HEC_GROUP_LR_SCALE]) rates->lr_scale = strtod(text[HEC_GROUP_LR_SCALE], NULL);
    if (!text[HEC_GROUP_DECAY]) return;
    const double decay = strtod(text[HEC_GROUP_DECAY], NULL);
    rates->decay = decay > 0;
    rates->decay_rate = decay;
}

static bool are_equal(const struct hec_rates *a, const struct hec_rates *b) {
    return a->lr_scale == b->lr_scale && a->decay == b->decay && a->decay_rate == b->decay_rate;
}

// Whether a group is for any layer of a parameter, whose rates it changes. `layer_rates` become the parameter's where
// layers differ.
static bool match_layers(struct hec_checker *checker, const struct hec_group *group,
                         struct hec_param *param) {
    const int64_t layers = param->layers ? param->layers : 1;
    struct hec_rates *rates = hec_arena_alloc(checker->arena, (size_t)layers, sizeof *rates);
    const uint32_t errors_before = checker->diag->errors;
    bool matched = false, differ = false;
    for (int64_t layer = 0; layer < layers && checker->diag->errors == errors_before; layer++) {
        rates[layer] = param->layer_rates ? param->layer_rates[layer] : param->rates;
        if (hec_group_takes(checker, group->pattern, group->at, param, layer)) {
            if (param->trainable) apply_rates(group, &rates[layer]);
            matched = true;
        }
        differ |= !are_equal(&rates[layer], &rates[0]);
    }
    param->rates = rates[0];
    param->layer_rates = differ ? rates : NULL;
    return matched;
}

// "layers.{}.w1" as a pattern would say it.
static const char *as_pattern(struct hec_checker *checker, const char *path) {
    const char *text = "";
    while (*path) {
        const size_t plain = strcspn(path, "{");
        text = hec_arena_format(checker->arena, "%s%.*s%s", text, (int)plain, path,
                                path[plain] ? "*" : "");
        path += plain;
        path += strcspn(path, "}");
        path += *path == '}';
    }
    return text;
}

void hec_group_unmatched(struct hec_checker *checker, const char *pattern, struct hec_span at) {
    HEC_VEC(const char *) paths = {0};
    for (int i = 0; i < checker->params.count; i++) {
        const struct hec_param *param = checker->params.item[i];
        if (param->trainable) HEC_PUSH(checker->arena, &paths, as_pattern(checker, param->path));
    }
    const char *meant = hec_closest(pattern, paths.item, paths.count);
    hec_error(checker, at, "no parameter that is trained has a path like `%s`", pattern);
    if (meant) hec_note(checker, HEC_NOWHERE, "there is `%s`", meant);
}

// A group of optimizer = muon needs a matrix among its parameters; vectors beside matrices give no message.
static void check_matrices(struct hec_checker *checker, const struct hec_group *group,
                           const struct hec_param *vector) {
    const char *text = group->text[HEC_GROUP_OPTIMIZER];
    if (!vector || !text || strcmp(text, "muon") != 0) return;
    hec_error(checker, group->given[HEC_GROUP_OPTIMIZER],
              "Muon moves matrices: `%s` has one dim, as all that `%s` matches", vector->path,
              group->pattern);
}

void hec_apply_groups(struct hec_checker *checker) {
    const struct hec_group *freezes = NULL;
    for (int i = 0; i < checker->params.count; i++) {
        struct hec_param *param = checker->params.item[i];
        param->muon = is_muons(param, "role");
    }
    for (int g = 0; g < checker->groups.count; g++) {
        const struct hec_group *group = &checker->groups.item[g];
        const uint32_t errors_before = checker->diag->errors;
        const struct hec_param *vector = NULL;
        bool matched = false, matrices = false;
        for (int i = 0; i < checker->params.count; i++) {
            struct hec_param *param = checker->params.item[i];
            const char *freeze = group->text[HEC_GROUP_FROZEN];
            const bool balances = param->balances && freeze; // Its other values do not apply.
            if (!(param->trainable || balances) || checker->diag->errors != errors_before ||
                !match_layers(checker, group, param))
                continue;
            matched = true;
            if (balances) {
                param->frozen = !strcmp(freeze, "true");
                continue;
            }
            matrices |= hec_group_is_matrix(param);
            if (!hec_group_is_matrix(param)) vector = param;
            apply(group, param);
            if (param->frozen) freezes = group;
        }
        if (!matched) hec_group_unmatched(checker, group->pattern, group->at);
        if (!matrices) check_matrices(checker, group, vector);
    }
    bool trained = false;
    for (int i = 0; i < checker->params.count; i++) {
        struct hec_param *param = checker->params.item[i];
        param->trainable &= !param->frozen;
        param->muon &= param->trainable;
        trained |= param->trainable;
    }
    if (freezes && !trained)
        hec_error(checker, freezes->at, "every parameter is frozen: nothing would be trained");
}

void hec_look_at_groups(struct hec_checker *checker) {
    if (strcmp(hec_program_text(checker->program, HEC_KEY_train_optimizer), "adamw") != 0) return;
    for (int i = 0; i < checker->groups.count; i++) {
        const struct hec_group *group = &checker->groups.item[i];
        const char *text = group->text[HEC_GROUP_OPTIMIZER];
        if (text && strcmp(text, "muon") == 0)
            hec_warning(checker, group->given[HEC_GROUP_OPTIMIZER],
                        "`optimizer = muon` has no effect with `train.optimizer = adamw`");
    }
}
