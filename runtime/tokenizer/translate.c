// One walk over the pattern. Parts that both libraries read alike are copied.
#include "runtime/tokenizer/translate.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NESTED_MOST = 16 };

struct translation {
    const char *text, *at;
    bool begins; // A group, or the pattern, begins here.
    struct hrt_error *error;
};

// Complains of what stands `back` bytes before the place.
static bool refuse(const struct translation *t, const char *what, int back) {
    const char *at = t->at - back;
    return hrt_fail(t->error, "%s, %zu bytes into '%.200s'", what, (size_t)(at - t->text), t->text);
}

static bool is_digit(char letter) {
    return letter >= '0' && letter <= '9';
}

// ---- escapes

// \uHHHH.
static bool translate_code(struct translation *t, FILE *out) {
    static const char hexadecimal[] = "0123456789abcdefABCDEF";
    if (strspn(t->at, hexadecimal) < 4) return refuse(t, "'\\u' without four digits", 2);
    fprintf(out, "\\x{%.4s}", t->at);
    t->at += 4;
    return true;
}

static bool translate_property(struct translation *t, FILE *out, char letter) {
    const size_t length = strcspn(t->at, "}");
    if (*t->at != '{' || !t->at[length]) return refuse(t, "'\\p' without a name in braces", 2);
    fprintf(out, "\\%c%.*s}", letter, (int)length, t->at);
    t->at += length + 1;
    return true;
}

// Behind a backslash. \s is Unicode's White_Space, which PCRE2's own \s is not.
static bool translate_escape(struct translation *t, FILE *out) {
    const char letter = *t->at;
    char what[64];
    if (!letter) return refuse(t, "a backslash at the end of the pattern", 1);
    t->at++;
    switch (letter) {
    case 's':
    case 'S':
        fputs(letter == 's' ? "\\p{White_Space}" : "\\P{White_Space}", out);
        return true;
    case 'v': // One character there, any end of a line here.
        fputs("\\x0b", out);
        return true;
    case 'Q': // Letters there, quotation marks here.
    case 'E':
        fputc(letter, out);
        return true;
    case 'u':
        return translate_code(t, out);
    case 'p':
    case 'P':
        return translate_property(t, out, letter);
    default:
        break;
    }
    if (strchr("wWbBhHRXKNOCMcoyY", letter)) {
        snprintf(what, sizeof what,
                 "'\\%c', which libraries of regular expressions read differently", letter);
        return refuse(t, what, 2);
    }
    fprintf(out, "\\%c", letter);
    return true;
}

// ---- classes

// Classes in a class, of which a character is in all of `count` parts. A part: single characters and ranges, and
// classes beside them.
struct class {
    char *body, *nested; // The part being read. Nested ones: "|[...]|..."
    size_t body_bytes, nested_bytes;
    FILE *bodies, *nests;
    char *ahead; // Parts before, as lookaheads.
    size_t ahead_bytes;
    FILE *before;
    bool negated, plain;
};

static bool open_part(struct class *class) {
    class->bodies = open_memstream(&class->body, &class->body_bytes);
    class->nests = open_memstream(&class->nested, &class->nested_bytes);
    return class->bodies && class->nests;
}

// Writes the part that has been read, as something that matches one character.
static bool close_part(struct translation *t, struct class *class, FILE *out) {
    bool sound = class->bodies && class->nests;
    if (class->bodies) sound = fclose(class->bodies) == 0 && sound;
    if (class->nests) sound = fclose(class->nests) == 0 && sound;
    if (!sound)
        hrt_fail(t->error, "out of memory");
    else if (!*class->body && !*class->nested)
        sound = refuse(t, "a class of nothing", 1);
    else if (!*class->nested)
        fprintf(out, "[%s%s]", class->plain && class->negated ? "^" : "", class->body);
    else
        fprintf(out, "(?:%s%s%s%s)", *class->body ? "[" : "", class->body, *class->body ? "]" : "",
                class->nested + !*class->body);
    free(class->body);
    free(class->nested);
    class->body = class->nested = NULL;
    class->bodies = class->nests = NULL;
    return sound;
}

// [:name:].
static bool translate_posix(struct translation *t, FILE *out) {
    static const char *const known[][2] = {{"alpha", "\\p{Alphabetic}"},
                                           {"digit", "\\p{Nd}"},
                                           {"lower", "\\p{Lowercase}"},
                                           {"upper", "\\p{Uppercase}"},
                                           {"space", "\\p{White_Space}"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const size_t length = strlen(known[i][0]);
        if (strncmp(t->at + 2, known[i][0], length) != 0 ||
            strncmp(t->at + 2 + length, ":]", 2) != 0)
            continue;
        fputs(known[i][1], out);
        t->at += length + 4;
        return true;
    }
    return refuse(t, "a class in colons, which libraries of regular expressions read differently",
                  0);
}

static bool translate_class(struct translation *t, FILE *out, int depth);

// One character, range or class of a class.
static bool translate_member(struct translation *t, struct class *class, bool first, int depth) {
    if (t->at[0] == '[' && t->at[1] == ':') return translate_posix(t, class->bodies);
    if (*t->at == '[') {
        t->at++;
        class->plain = false;
        fputc('|', class->nests);
        return translate_class(t, class->nests, depth + 1);
    }
    const char letter = *t->at++;
    if (letter == '\\') return translate_escape(t, class->bodies);
    if (letter == '^' || (letter == ']' && first)) fputc('\\', class->bodies);
    fputc(letter, class->bodies);
    return true;
}

// Up to the bracket that closes the class.
static bool translate_members(struct translation *t, struct class *class, int depth) {
    for (bool first = true; *t->at != ']' || first; first = false) {
        if (!*t->at) return refuse(t, "a class without its ']'", 0);
        if (t->at[0] == '&' && t->at[1] == '&') {
            t->at += 2;
            class->plain = false;
            fputs("(?=", class->before);
            const bool sound = close_part(t, class, class->before);
            fputc(')', class->before);
            if (!sound || !open_part(class)) return sound && hrt_fail(t->error, "out of memory");
        } else if (!translate_member(t, class, first, depth)) {
            return false;
        }
    }
    t->at++;
    return true;
}

// Behind the opening bracket.
static bool translate_class(struct translation *t, FILE *out, int depth) {
    struct class class = {.plain = true, .negated = *t->at == '^'};
    if (depth > NESTED_MOST) return refuse(t, "too many classes in each other", 1);
    t->at += class.negated;
    class.before = open_memstream(&class.ahead, &class.ahead_bytes);
    bool sound = class.before && open_part(&class);
    if (!sound) hrt_fail(t->error, "out of memory");
    sound = sound && translate_members(t, &class, depth);
    // The last part; a refused one is written nowhere.
    char *last = NULL;
    size_t last_bytes = 0;
    FILE *end = open_memstream(&last, &last_bytes);
    struct hrt_error ignored;
    struct translation quiet = *t;
    if (!sound) quiet.error = &ignored;
    sound = end && close_part(&quiet, &class, end) && sound;
    if (end) fclose(end);
    if (class.before) fclose(class.before);
    if (sound && class.plain)
        fputs(last, out);
    else if (sound && class.negated)
        fprintf(out, "(?:(?!%s%s)(?s:.))", class.ahead, last);
    else if (sound)
        fprintf(out, "(?:%s%s)", class.ahead, last);
    free(class.ahead);
    free(last);
    return sound;
}

// ---- groups and repetitions

// Behind "(?": options, i, x and Ruby's m, in which a dot is any character.
static bool translate_options(struct translation *t, FILE *out, bool begins) {
    const size_t length = strspn(t->at, "imx-");
    const char *end = t->at + length;
    if (length == 0 || (*end != ':' && *end != ')'))
        return refuse(t, "a group of a kind that libraries of regular expressions read differently",
                      2);
    if (*end == ')' && !begins)
        return refuse(t,
                      "options inside of a group, which libraries of regular expressions read "
                      "differently",
                      2);
    for (; t->at < end; t->at++) fputc(*t->at == 'm' ? 's' : *t->at, out);
    fputc(*t->at++, out);
    return true;
}

// Behind "(".
static bool translate_group(struct translation *t, FILE *out, bool begins) {
    fputc('(', out);
    if (*t->at == '*') return refuse(t, "'(*'", 1);
    if (*t->at != '?') return true;
    fputc(*t->at++, out);
    if (*t->at == '#') {
        const size_t length = strcspn(t->at, ")");
        fprintf(out, "%.*s", (int)length, t->at);
        t->at += length;
        return true;
    }
    if (!*t->at || !strchr(":=!><", *t->at)) return translate_options(t, out, begins);
    const bool named = t->at[0] == '<' && t->at[1] != '=' && t->at[1] != '!';
    const size_t length = named ? strcspn(t->at, ">") : *t->at == '<' ? 1 : 0;
    if (!t->at[length]) return refuse(t, "a group without a name", 2);
    fprintf(out, "%.*s", (int)length + 1, t->at);
    t->at += length + 1;
    return true;
}

// At "{": a repetition, or a letter.
static bool translate_repetition(struct translation *t, FILE *out) {
    const size_t least = strspn(t->at + 1, "0123456789");
    const char *comma = t->at + 1 + least, *end = comma;
    if (*comma == ',') end += 1 + strspn(comma + 1, "0123456789");
    const bool any = least > 0 || end > comma + 1;
    if (*end != '}' || !any) {
        fputs(is_digit(t->at[1]) || t->at[1] == ',' ? "\\{" : "{", out);
        t->at++;
        return true;
    }
    if (end[1] == '+')
        return refuse(t, "'}+', which libraries of regular expressions read differently",
                      (int)(t->at - end));
    if (end[1] == '?' && *comma != ',')
        return refuse(t, "'}?', which libraries of regular expressions read differently",
                      (int)(t->at - end));
    fprintf(out, "{%s%.*s}", least ? "" : "0", (int)(end - t->at - 1), t->at + 1);
    t->at = end + 1;
    return true;
}

static bool translate_all(struct translation *t, FILE *out) {
    bool begins = true;
    while (*t->at) {
        const char letter = *t->at;
        bool sound = true;
        const bool was = begins;
        begins = false;
        if (letter == '{') {
            sound = translate_repetition(t, out);
            if (!sound) return false;
            continue;
        }
        t->at++;
        if (letter == '\\') {
            sound = translate_escape(t, out);
        } else if (letter == '[') {
            sound = translate_class(t, out, 0);
        } else if (letter == '(') {
            sound = translate_group(t, out, was);
            begins = true;
        } else if (letter == '^' || letter == '$') { // At every line.
            fprintf(out, "(?m:%c)", letter);
        } else {
            fputc(letter, out);
        }
        if (!sound) return false;
    }
    return true;
}

char *hrt_tokenizer_pattern_translate(const char *text, struct hrt_error *error) {
    struct translation translation = {.text = text, .at = text, .error = error};
    char *translated = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&translated, &bytes);
    bool sound = out || hrt_fail(error, "out of memory");
    sound = sound && translate_all(&translation, out);
    if (out && fclose(out) != 0 && sound) sound = hrt_fail(error, "out of memory");
    if (sound) return translated;
    free(translated);
    return NULL;
}
