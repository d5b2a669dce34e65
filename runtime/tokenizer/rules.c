// The normalizer and the pre_tokenizer of a tokenizer.json.
#include <stdlib.h>
#include <utf8proc.h>

#include "runtime/tokenizer/json.h"
#include "runtime/tokenizer/parts.h"

enum { RULES_MOST = 32, NESTED_MOST = 8 };

// GPT-2's pattern for cutting texts into words, ByteLevel's default.
static const char gpt2[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|"
                           "\\s+(?!\\S)|\\s+";

static struct hrt_rule *add(struct hrt_rules *rules, enum hrt_rule_kind kind,
                            const struct hrt_place *place, struct hrt_error *error) {
    if (rules->count == RULES_MOST) {
        hrt_tokenizer_place_fail(place, error, "more than %d rules", RULES_MOST);
        return NULL;
    }
    if (!rules->at) rules->at = calloc(RULES_MOST, sizeof *rules->at);
    if (!hrt_enough(rules->at, error)) return NULL;
    rules->at[rules->count] = (struct hrt_rule){.kind = kind};
    return &rules->at[rules->count++];
}

static bool copy(char **to, const char *from, struct hrt_error *error) {
    *to = from ? strdup(from) : NULL;
    return !from || hrt_enough(*to, error);
}

static bool add_split(struct hrt_rules *rules, const char *pattern, enum hrt_behavior behavior,
                      bool invert, const struct hrt_place *place, struct hrt_error *error) {
    struct hrt_rule *rule = add(rules, HRT_RULE_SPLIT, place, error);
    struct hrt_error why = {0};
    if (!rule) return false;
    rule->pattern = hrt_tokenizer_pattern_create(pattern, &why);
    if (!rule->pattern) return hrt_tokenizer_place_fail(place, error, "%s", why.text);
    hrt_tokenizer_pattern_behave(rule->pattern, behavior, invert);
    return true;
}

// A text as a pattern that matches only it. The caller frees it; NULL: no memory.
static char *quoted(const char *text) {
    char *quoted = malloc(2 * strlen(text) + 1), *to = quoted;
    for (; quoted && *text; text++) {
        if (strchr("\\^$.[]|()?*+{}-#&~", *text)) *to++ = '\\';
        *to++ = *text;
    }
    if (quoted) *to = '\0';
    return quoted;
}

// ---- normalizers

static bool read_replace(struct hrt_rules *rules, const json_t *json, const struct hrt_place *place,
                         struct hrt_error *error) {
    const char *from =
        json_string_value(json_object_get(json_object_get(json, "pattern"), "String"));
    const char *to = hrt_tokenizer_json_text(json, "content", place, error);
    if (!to) return false;
    if (!from || !*from)
        return hrt_tokenizer_place_fail(place, error,
                                        "of patterns to replace only {\"String\": ...} is known");
    struct hrt_rule *rule = add(rules, HRT_RULE_REPLACE, place, error);
    return rule && copy(&rule->from, from, error) && copy(&rule->to, to, error);
}

static bool read_normalizer(struct hrt_rules *rules, const json_t *json,
                            const struct hrt_place *place, int nested, struct hrt_error *error) {
    static const struct {
        const char *type;
        int form;
    } forms[] = {{"NFC", UTF8PROC_COMPOSE},
                 {"NFD", UTF8PROC_DECOMPOSE},
                 {"NFKC", UTF8PROC_COMPOSE | UTF8PROC_COMPAT},
                 {"NFKD", UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT}};
    if (!json || json_is_null(json)) return true;
    const char *type = hrt_tokenizer_json_text(json, "type", place, error);
    if (!type) return false;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (strcmp(type, forms[i].type) != 0) continue;
        struct hrt_rule *rule = add(rules, HRT_RULE_COMPOSE, place, error);
        if (rule) rule->form = forms[i].form;
        return rule;
    }
    if (strcmp(type, "Replace") == 0) return read_replace(rules, json, place, error);
    if (strcmp(type, "Prepend") == 0) {
        const char *text = hrt_tokenizer_json_text(json, "prepend", place, error);
        struct hrt_rule *rule = text ? add(rules, HRT_RULE_PREPEND, place, error) : NULL;
        return rule && copy(&rule->to, text, error);
    }
    if (strcmp(type, "Sequence") == 0 && nested < NESTED_MOST) {
        const struct hrt_place list = hrt_tokenizer_place_of(place, "normalizers");
        const json_t *inner;
        size_t i;
        json_array_foreach(json_object_get(json, "normalizers"), i, inner) {
            const struct hrt_place at = hrt_tokenizer_place_at(&list, i);
            if (!read_normalizer(rules, inner, &at, nested + 1, error)) return false;
        }
        return true;
    }
    return hrt_tokenizer_place_fail(place, error, "no normalizer '%.60s' is known", type);
}

// ---- pre-tokenizers

static bool read_behavior(const json_t *json, enum hrt_behavior *behavior,
                          const struct hrt_place *place, struct hrt_error *error) {
    static const char *const names[] = {"Isolated", "Removed", "MergedWithPrevious",
                                        "MergedWithNext", "Contiguous"};
    const char *name = hrt_tokenizer_json_text(json, "behavior", place, error);
    for (size_t i = 0; name && i < sizeof names / sizeof *names; i++) {
        *behavior = (enum hrt_behavior)i;
        if (strcmp(name, names[i]) == 0) return true;
    }
    return name && hrt_tokenizer_place_fail(place, error, "no behavior '%.60s' is known", name);
}

static bool read_split(struct hrt_rules *rules, const json_t *json, const struct hrt_place *place,
                       struct hrt_error *error) {
    const json_t *pattern = json_object_get(json, "pattern");
    const char *text = json_string_value(json_object_get(pattern, "String"));
    const char *regex = json_string_value(json_object_get(pattern, "Regex"));
    enum hrt_behavior behavior;
    if (!text == !regex)
        return hrt_tokenizer_place_fail(place, error,
                                        "a pattern is {\"Regex\": ...} or {\"String\": ...}");
    if (!read_behavior(json, &behavior, place, error)) return false;
    char *owned = text ? quoted(text) : NULL;
    if (text && !hrt_enough(owned, error)) return false;
    const bool done = add_split(rules, text ? owned : regex, behavior,
                                hrt_tokenizer_json_flag(json, "invert", false), place, error);
    free(owned);
    return done;
}

static bool read_byte_level(struct hrt_tokenizer *tokenizer, const json_t *json,
                            const struct hrt_place *place, struct hrt_error *error) {
    tokenizer->model.byte_level = true;
    if (hrt_tokenizer_json_flag(json, "add_prefix_space", true) &&
        !add(&tokenizer->splitter, HRT_RULE_PREFIX_SPACE, place, error))
        return false;
    return !hrt_tokenizer_json_flag(json, "use_regex", true) ||
           add_split(&tokenizer->splitter, gpt2, HRT_ISOLATED, false, place, error);
}

static bool read_metaspace(struct hrt_rules *rules, const json_t *json,
                           const struct hrt_place *place, struct hrt_error *error) {
    static const char *const schemes[] = {"always", "first", "never"};
    const char *mark = hrt_tokenizer_json_text(json, "replacement", place, error);
    if (!mark) return false;
    const char *scheme = json_string_value(json_object_get(json, "prepend_scheme"));
    if (!scheme)
        scheme = hrt_tokenizer_json_flag(json, "add_prefix_space", true) ? "always" : "never";
    int found = 0;
    while (found < 3 && strcmp(scheme, schemes[found]) != 0) found++;
    if (found == 3)
        return hrt_tokenizer_place_fail(place, error, "no prepend_scheme '%.60s' is known", scheme);
    struct hrt_rule *rule = add(rules, HRT_RULE_METASPACE, place, error);
    if (!rule || !copy(&rule->to, mark, error)) return false;
    rule->scheme = (enum hrt_scheme)found;
    if (!hrt_tokenizer_json_flag(json, "split", true)) return true;
    char *pattern = quoted(mark);
    const bool done = hrt_enough(pattern, error) &&
                      add_split(rules, pattern, HRT_MERGED_WITH_NEXT, false, place, error);
    free(pattern);
    return done;
}

static bool read_splitter(struct hrt_tokenizer *tokenizer, const json_t *json,
                          const struct hrt_place *place, int nested, struct hrt_error *error) {
    struct hrt_rules *rules = &tokenizer->splitter;
    if (!json || json_is_null(json)) return true;
    const char *type = hrt_tokenizer_json_text(json, "type", place, error);
    enum hrt_behavior behavior;
    if (!type) return false;
    if (strcmp(type, "Sequence") == 0 && nested < NESTED_MOST) {
        const struct hrt_place list = hrt_tokenizer_place_of(place, "pretokenizers");
        const json_t *inner;
        size_t i;
        json_array_foreach(json_object_get(json, "pretokenizers"), i, inner) {
            const struct hrt_place at = hrt_tokenizer_place_at(&list, i);
            if (!read_splitter(tokenizer, inner, &at, nested + 1, error)) return false;
        }
        return true;
    }
    if (tokenizer->model.byte_level)
        return hrt_tokenizer_place_fail(place, error, "nothing is known to come behind ByteLevel");
    if (strcmp(type, "Split") == 0) return read_split(rules, json, place, error);
    if (strcmp(type, "ByteLevel") == 0) return read_byte_level(tokenizer, json, place, error);
    if (strcmp(type, "Metaspace") == 0) return read_metaspace(rules, json, place, error);
    if (strcmp(type, "Digits") == 0)
        return add_split(
            rules, hrt_tokenizer_json_flag(json, "individual_digits", false) ? "\\p{N}" : "\\p{N}+",
            HRT_ISOLATED, false, place, error);
    if (strcmp(type, "Punctuation") == 0)
        return read_behavior(json, &behavior, place, error) &&
               add_split(rules, "[\\p{P}$+<=>^`|~]", behavior, false, place, error);
    return hrt_tokenizer_place_fail(place, error, "no pre-tokenizer '%.60s' is known", type);
}

bool hrt_tokenizer_load_rules(struct hrt_tokenizer *tokenizer, const json_t *root, const char *path,
                              struct hrt_error *error) {
    const struct hrt_place top = {.path = path},
                           normalizer = hrt_tokenizer_place_of(&top, "normalizer"),
                           splitter = hrt_tokenizer_place_of(&top, "pre_tokenizer");
    return read_normalizer(&tokenizer->normalizer, json_object_get(root, "normalizer"), &normalizer,
                           0, error) &&
           read_splitter(tokenizer, json_object_get(root, "pre_tokenizer"), &splitter, 0, error);
}
