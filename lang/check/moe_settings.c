// The settings inside a moe: which there are, their values, and how they go together.
#include "lang/check/moe_settings.h"

#include <string.h>

bool hec_moe_is_none(const struct hec_set *set) {
    return set->value->kind == HEC_EXPR_NAME && !strcmp(set->value->text, "none");
}

struct reader {
    struct hec_site *site;
    HEC_VEC(struct given {
        const char *key;
        const struct hec_set *set;
    })
    given;
};

static const struct hec_set *find(const struct reader *reader, const char *key) {
    for (int i = 0; i < reader->given.count; i++) {
        if (!strcmp(reader->given.item[i].key, key)) return reader->given.item[i].set;
    }
    return NULL;
}

static bool known_key(const char *key) {
    for (int i = 0; i < hec_moe_rows_count; i++) {
        if (!strcmp(hec_moe_rows[i].key, key)) return true;
    }
    return false;
}

// Reports a name that is no setting of section `prefix` ("" or "router.").
static void unknown_setting(struct reader *reader, const struct hec_set *set, const char *prefix) {
    struct hec_checker *checker = reader->site->checker;
    HEC_VEC(const char *) known = {0};
    const size_t length = strlen(prefix);
    for (int i = 0; i < hec_moe_rows_count; i++) {
        const char *key = hec_moe_rows[i].key;
        if (!strncmp(key, prefix, length) && !strchr(key + length, '.'))
            HEC_PUSH(checker->arena, &known, key + length);
    }
    if (!*prefix) {
        HEC_PUSH(checker->arena, &known, "router");
        HEC_PUSH(checker->arena, &known, "balance");
    }
    const char *owner = *prefix ? hec_arena_copy(checker->arena, prefix, length - 1) : "moe";
    hec_unknown_of(checker, set->at, "setting", set->name, owner, known.item, known.count);
    for (int i = 0; i < hec_moe_rows_count; i++) {
        const char *dot = strchr(hec_moe_rows[i].key, '.');
        if (*prefix || !dot || strcmp(dot + 1, set->name)) continue;
        hec_note(checker, HEC_NOWHERE, "it belongs into `%.*s { ... }`",
                 (int)(dot - hec_moe_rows[i].key), hec_moe_rows[i].key);
    }
}

static void collect(struct reader *reader, const struct hec_sets *sets, const char *prefix) {
    struct hec_checker *checker = reader->site->checker;
    for (int i = 0; i < sets->count; i++) {
        const struct hec_set *set = &sets->item[i];
        const bool section = !strcmp(set->name, "router") || !strcmp(set->name, "balance");
        const char *key = hec_arena_format(checker->arena, "%s%s", prefix, set->name);
        if (set->kind == HEC_SET_SECTION && section && !*prefix && !set->label) {
            collect(reader, &set->body, hec_arena_format(checker->arena, "%s.", set->name));
        } else if (section && !*prefix) {
            hec_error(checker, set->at, "`%s` is a section: `%s { ... }`", set->name, set->name);
        } else if (!known_key(key)) {
            unknown_setting(reader, set, prefix);
        } else if (set->kind == HEC_SET_SECTION) {
            hec_error(checker, set->at, "`%s` is no section: `%s = ...`", set->name, set->name);
        } else if (find(reader, key)) {
            hec_error(checker, set->at, "`%s` is set twice", set->name);
            hec_note(checker, find(reader, key)->at, "the first time");
        } else {
            HEC_PUSH(checker->arena, &reader->given, (struct given){key, set});
        }
    }
}

// The index of the choice that setting `key` makes; 0 when it is not given or wrong.
static int choice(struct reader *reader, const char *key, const char *const *choices, int count) {
    struct hec_checker *checker = reader->site->checker;
    const struct hec_set *set = find(reader, key);
    if (!set) return 0;
    const struct hec_expr *value = set->value;
    for (int i = 0; i < count; i++) {
        if (value->kind == HEC_EXPR_NAME && !strcmp(value->text, choices[i])) return i;
    }
    hec_unknown_of(checker, value->at, "value", hec_expr_text(checker->arena, value), set->name,
                   choices, count);
    const char *list = choices[0];
    for (int i = 1; i < count; i++) {
        list = hec_arena_format(checker->arena, "%s, %s", list, choices[i]);
    }
    hec_detail(checker, "it is one of %s", list);
    return 0;
}

static void real(struct reader *reader, const char *key, double *value, double smallest) {
    struct hec_checker *checker = reader->site->checker;
    const struct hec_set *set = find(reader, key);
    if (!set || hec_moe_is_none(set)) return;
    const char *what = hec_arena_format(checker->arena, "`%s`", set->name);
    if (!hec_constant_real(checker, reader->site->env, set->value, what, value)) return;
    if (*value >= smallest) return;
    hec_error(checker, set->value->at, "`%s` must be at least %s", set->name,
              hec_number_text(checker->arena, smallest));
}

static void integer(struct reader *reader, const char *key, int64_t *value, struct hec_span *at) {
    struct hec_checker *checker = reader->site->checker;
    const struct hec_set *set = find(reader, key);
    if (!set) return;
    *at = set->value->at;
    const char *what = hec_arena_format(checker->arena, "`%s`", set->name);
    hec_constant_integer(checker, reader->site->env, set->value, 1, HEC_EXPERTS_MAX, what, value);
}

static void read_balance(struct reader *reader, struct hec_moe *moe,
                         struct hec_moe_settings *settings) {
    static const char *const per[] = {"layer", "sequence", "batch", "all_layers"};
    static const char *const normalizations[] = {"switch", "hf"};
    real(reader, "balance.aux", &moe->aux, 0);
    real(reader, "balance.z", &moe->z, 0);
    real(reader, "balance.bias", &moe->bias_rate, 0);
    moe->aux_per = (enum hec_aux_per)choice(reader, "balance.per", per, 4);
    if (choice(reader, "balance.normalize", normalizations, 2) == 1) {
        moe->aux *= (double)moe->topk;
        if (!find(reader, "balance.per")) moe->aux_per = HEC_AUX_ALL_LAYERS; // transformers' loss.
    }
    const struct hec_set *bias = find(reader, "balance.bias");
    settings->select_bias = bias && !hec_moe_is_none(bias);
    if (bias) settings->select_bias_at = bias->at;
}

static void read_router(struct reader *reader, struct hec_moe *moe,
                        struct hec_moe_settings *settings) {
    static const char *const group_scores[] = {"auto", "best", "two_best"};
    static const char *const weights[] = {"renormalized", "scores", "softmax_of_topk"};
    static const char *const weight_on[] = {"output", "input"};
    static const enum hec_weight weight_of[] = {HEC_WEIGHT_RENORMALIZED, HEC_WEIGHT_SCORES,
                                                HEC_WEIGHT_SOFTMAX_OF_TOPK};
    moe->score = (enum hec_score)choice(reader, "router.score", hec_score_words, HEC_SCORE_COUNT);
    const int group_score = choice(reader, "router.group_score", group_scores, 3);
    const bool two = group_score == 0 ? moe->score != HEC_SCORE_SOFTMAX : group_score == 2;
    moe->group_score = two ? HEC_GROUP_TWO_BEST : HEC_GROUP_BEST;
    moe->weight = weight_of[choice(reader, "router.weight", weights, 3)];
    moe->weight_on_input = choice(reader, "router.weight_on", weight_on, 2) == 1;
    moe->topk = 2;
    moe->groups = moe->topk_groups = 1;
    moe->scale = 1;
    integer(reader, "router.topk", &moe->topk, &moe->topk_at);
    integer(reader, "router.groups", &moe->groups, &settings->groups_at);
    integer(reader, "router.topk_groups", &moe->topk_groups, &settings->topk_groups_at);
    real(reader, "router.scale", &moe->scale, 0);
    real(reader, "router.jitter", &moe->jitter, 0);
    const struct hec_set *bias = find(reader, "router.bias");
    if (!bias) return;
    settings->router_bias_at = bias->at;
    hec_constant_bool(reader->site->checker, reader->site->env, bias->value, "`bias`",
                      &settings->router_bias);
}

struct hec_moe_settings hec_moe_read(struct hec_site *site, struct hec_moe *moe) {
    static const char *const gates[] = {"none", "sigmoid"}, *const drops[] = {"lowest", "position"};
    static const double smallest_capacity = 1e-3;
    struct reader reader = {.site = site};
    struct hec_moe_settings settings = {0};
    collect(&reader, &site->code->sets, "");
    settings.experts = find(&reader, "experts");
    settings.shared = find(&reader, "shared");
    settings.shared_gate = choice(&reader, "shared_gate", gates, 2) == 1;
    if (find(&reader, "shared_gate")) settings.shared_gate_at = find(&reader, "shared_gate")->at;
    const struct hec_set *capacity = find(&reader, "capacity");
    const bool dropless = capacity && capacity->value->kind == HEC_EXPR_NAME &&
                          !strcmp(capacity->value->text, "dropless");
    if (!dropless) real(&reader, "capacity", &moe->capacity, smallest_capacity);
    moe->drop = (enum hec_drop)choice(&reader, "drop", drops, 2);
    if (find(&reader, "drop")) settings.drop_at = find(&reader, "drop")->at;
    read_router(&reader, moe, &settings);
    read_balance(&reader, moe, &settings);
    return settings;
}

static void contradiction(struct hec_site *site, struct hec_span at, const char *text) {
    hec_error(site->checker, at.file ? at : site->code->name_at, "%s", text);
}

void hec_moe_check(struct hec_site *site, const struct hec_moe *moe,
                   const struct hec_moe_settings *settings) {
    struct hec_arena *arena = site->checker->arena;
    const long long experts = moe->experts.size, groups = moe->groups, topk = moe->topk;
    const long long topk_groups = moe->topk_groups;
    if (topk > experts) {
        contradiction(
            site, moe->topk_at,
            hec_arena_format(arena, "topk is %lld, but there are %lld experts", topk, experts));
    }
    if (experts % groups) {
        contradiction(site, settings->groups_at,
                      hec_arena_format(arena, "%lld experts do not divide into %lld groups",
                                       experts, groups));
    } else if (topk_groups > groups) {
        contradiction(site, settings->topk_groups_at,
                      hec_arena_format(arena, "topk_groups is %lld, but there are %lld groups",
                                       topk_groups, groups));
    } else if (topk <= experts && topk > topk_groups * (experts / groups)) {
        contradiction(site, moe->topk_at,
                      hec_arena_format(arena,
                                       "topk is %lld, but topk_groups = %lld leaves %lld experts",
                                       topk, topk_groups, topk_groups * (experts / groups)));
    }
    if (groups > 1 && experts / groups < 2 && moe->group_score == HEC_GROUP_TWO_BEST) {
        contradiction(site, settings->groups_at,
                      "a group's score is that of its two best experts: it needs two");
    }
    if (settings->drop_at.file && moe->capacity == 0) {
        contradiction(site, settings->drop_at, "`drop` without a capacity: nothing is dropped");
    }
    if (settings->shared_gate && !moe->shared_count) {
        contradiction(site, settings->shared_gate_at, "a shared gate without a shared expert");
    }
    if (moe->score != HEC_SCORE_SOFTMAX && moe->weight == HEC_WEIGHT_SOFTMAX_OF_TOPK) {
        contradiction(site, HEC_NOWHERE,
                      "weight = softmax_of_topk takes logits: it goes with score = softmax");
    }
    if (settings->select_bias && moe->weight == HEC_WEIGHT_SOFTMAX_OF_TOPK) {
        contradiction(site, settings->select_bias_at,
                      "not yet: a selection bias with weight = softmax_of_topk");
    }
}

void hec_moe_look(struct hec_checker *checker, const struct hec_moe *moe) {
    const bool alone = moe->topk == 1 && moe->weight != HEC_WEIGHT_SCORES;
    if (!alone || !moe->router_weight->trainable) return;
    hec_warning(checker, moe->topk_at.file ? moe->topk_at : moe->at,
                "the weight of the one expert that a token goes to is always %s: the router has "
                "no gradient but that of balance losses",
                hec_number_text(checker->arena, moe->scale));
    hec_note(checker, HEC_NOWHERE,
             "`weight = scores` weighs the expert by its score, as Switch Transformers do");
}
