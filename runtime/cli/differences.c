// Comparing what two runs say of themselves.
#include "runtime/cli/differences.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

static void differ(json_t *list, const char *what, const char *there, const char *here) {
    json_array_append_new(list,
                          json_sprintf("%s was %.80s there and is %.80s here", what, there, here));
}

static const char *text_or(const json_t *text, const char *other) {
    const char *value = json_string_value(text);
    return value ? value : other;
}

void hrt_cli_differ_settings(json_t *list, const json_t *there, const json_t *here, bool whole) {
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)here, key, value) {
        const json_t *before = json_object_get(there, key);
        if (!before && !whole) continue;
        const char *was = text_or(before, "nothing");
        if (strcmp(was, json_string_value(value)) != 0)
            differ(list, key, was, json_string_value(value));
    }
    json_object_foreach((json_t *)there, key, value) {
        if (!json_object_get(here, key)) differ(list, key, text_or(value, "something"), "nothing");
    }
}

void hrt_cli_differ_files(json_t *list, const char *kind, const json_t *there, const json_t *here) {
    const size_t before = json_array_size(there), now = json_array_size(here);
    for (size_t i = 0; i < before || i < now; i++) {
        char what[48];
        snprintf(what, sizeof what, "%s file %zu", kind, i + 1);
        const char *was = text_or(json_array_get(there, i), "missing");
        const char *is = text_or(json_array_get(here, i), "missing");
        if (strcmp(was, is) != 0) differ(list, what, was, is);
    }
}

// ---- parts of a model

// A word of a part, key=value.
struct word {
    const char *key, *value;
    int key_length, value_length;
};

// The word at *text, which moves behind it. False: there is none.
static bool next_word(const char **text, struct word *word) {
    const char *at = *text + strspn(*text, " ");
    const size_t length = strcspn(at, " "), key = strcspn(at, "= ");
    if (length == 0) return false;
    const size_t before = key < length ? key + 1 : length;
    *word = (struct word){at, at + before, (int)key, (int)(length - before)};
    *text = at + length;
    return true;
}

static bool find_word(const char *text, const struct word *like, struct word *found) {
    while (next_word(&text, found)) {
        if (found->key_length == like->key_length &&
            memcmp(found->key, like->key, (size_t)like->key_length) == 0)
            return true;
    }
    return false;
}

static bool same_value(const struct word *a, const struct word *b) {
    return a->value_length == b->value_length &&
           memcmp(a->value, b->value, (size_t)a->value_length) == 0;
}

static bool is_body(const struct word *word) {
    return word->key_length == 4 && memcmp(word->key, "body", 4) == 0;
}

// Where operations are others, so are the numbers that they have.
static bool has_other_body(const char *there, const char *here) {
    const struct word body = {"body", "", 4, 0};
    struct word was, is;
    return find_word(there, &body, &was) && find_word(here, &body, &is) && !same_value(&was, &is);
}

static void differ_word(json_t *list, const char *part, const struct word *word, const char *was,
                        int was_length, const char *is, int is_length) {
    char what[160], before[81], now[81];
    snprintf(what, sizeof what, "%.100s: %.*s", part, word->key_length, word->key);
    snprintf(before, sizeof before, "%.*s", was_length, was);
    snprintf(now, sizeof now, "%.*s", is_length, is);
    differ(list, what, before, now);
}

static void differ_part(json_t *list, const char *name, const char *there, const char *here) {
    struct word word, other;
    if (has_other_body(there, here)) {
        json_array_append_new(list, json_sprintf("%.100s computes something else", name));
        return;
    }
    for (const char *at = here; next_word(&at, &word);) {
        if (!find_word(there, &word, &other))
            differ_word(list, name, &word, "nothing", 7, word.value, word.value_length);
        else if (!same_value(&word, &other) && !is_body(&word))
            differ_word(list, name, &word, other.value, other.value_length, word.value,
                        word.value_length);
    }
    for (const char *at = there; next_word(&at, &word);) {
        if (!find_word(here, &word, &other))
            differ_word(list, name, &word, word.value, word.value_length, "nothing", 7);
    }
}

void hrt_cli_differ_parts(json_t *list, const json_t *there, const json_t *here) {
    const char *name;
    json_t *value;
    const bool was_known = json_object_size(there) > 0, is_known = json_object_size(here) > 0;
    if (was_known != is_known) { // Compiled by passes without the one that says it.
        differ(list, "the model's computation", was_known ? "known" : "not known",
               is_known ? "known" : "not known");
        return;
    }
    json_object_foreach((json_t *)here, name, value) {
        const char *before = json_string_value(json_object_get(there, name));
        if (before)
            differ_part(list, name, before, json_string_value(value));
        else
            json_array_append_new(list, json_sprintf("%.100s was not there", name));
    }
    json_object_foreach((json_t *)there, name, value) {
        if (!json_object_get(here, name))
            json_array_append_new(list, json_sprintf("%.100s is not here", name));
    }
}

// ---- which of them are allowed

// The key of a difference, in what it begins with.
static const char *key_of(const char *difference, size_t *length) {
    static const char *const begin[][2] = {
        {"training file", "data.train"}, {"teacher's file", "data.teacher"}, {"--route ", "route"}};
    for (size_t i = 0; i < sizeof begin / sizeof *begin; i++) {
        if (strncmp(difference, begin[i][0], strlen(begin[i][0])) != 0) continue;
        *length = strlen(begin[i][1]);
        return begin[i][1];
    }
    *length = strcspn(difference, " ");
    if (strncmp(difference + *length, " was ", 5) == 0 && memchr(difference, '.', *length))
        return difference;
    *length = strlen("model");
    return "model";
}

bool hrt_cli_differ_allows(const char *keys, const char *difference) {
    size_t length, own;
    const char *key = key_of(difference, &length);
    for (const char *at = keys; *at; at += own, at += *at == ',') {
        own = strcspn(at, ",");
        if (own > 0 && own <= length && memcmp(at, key, own) == 0 &&
            (own == length || key[own] == '.'))
            return true;
    }
    return false;
}

// ---- all of them

void hrt_cli_differences_text(const json_t *list, char *text, size_t room) {
    const size_t count = json_array_size(list);
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        const char *sentence = text_or(json_array_get(list, i), "?");
        const size_t more = strlen(sentence) + 2;
        if (i > 0 && used + more + sizeof "; and 1000000 more" > room) {
            snprintf(text + used, room - used, "; and %zu more", count - i);
            return;
        }
        snprintf(text + used, room - used, "%s%s", i ? "; " : "", sentence);
        used = strlen(text);
    }
}
