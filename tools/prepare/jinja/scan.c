// From the text of a template to tokens: data, and the words between {{ }} and {% %}. White space goes as with
// trim_blocks (the newline behind a block or comment) and lstrip_blocks (blanks before one, from the line's start on).
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "tools/prepare/jinja/inside.h"

struct scan {
    struct source *source;
    const char *at, *end;
    int line;
    bool fresh; // The last token ended with a newline, or there was none.
};

static struct token *add(struct scan *scan, enum token_kind kind) {
    struct source *source = scan->source;
    static struct token none;
    if (source->tokens == source->room) {
        const size_t room = source->room ? 2 * source->room : 256;
        struct token *grown = realloc(source->token, room * sizeof *grown);
        if (!grown) {
            source_fail(source, scan->line, "out of memory");
            return &none;
        }
        source->token = grown;
        source->room = room;
    }
    struct token *token = &source->token[source->tokens++];
    *token = (struct token){.kind = kind, .line = scan->line};
    return token;
}

// Goes on behind `bytes`, and counts lines.
static void pass(struct scan *scan, size_t bytes) {
    for (const char *end = scan->at + bytes; scan->at < end; scan->at++)
        scan->line += *scan->at == '\n';
}

static void pass_space(struct scan *scan) {
    while (scan->at < scan->end) {
        const size_t step = text_step(scan->at, (size_t)(scan->end - scan->at));
        if (!text_is_space(scan->at, step)) return;
        pass(scan, step);
    }
}

static bool begins(const struct scan *scan, const char *word) {
    const size_t bytes = strlen(word);
    return (size_t)(scan->end - scan->at) >= bytes && memcmp(scan->at, word, bytes) == 0;
}

// Behind the end of a block or a comment: the newline goes, with a minus all white space.
static void end_block(struct scan *scan, char sign, bool trims) {
    const char *from = scan->at;
    if (sign == '-')
        pass_space(scan);
    else if (trims && sign != '+' && begins(scan, "\n"))
        pass(scan, 1);
    scan->fresh = scan->at > from && scan->at[-1] == '\n';
}

// The text before a brace, without the white space that goes; `sign` stands behind the brace.
static struct text cut_before(const struct scan *scan, struct text text, char sign, bool output) {
    if (sign == '-') return text_strip(text, NULL, false, true);
    if (sign == '+' || output) return text;
    size_t start = text.bytes;
    while (start > 0 && text.at[start - 1] != '\n') start--;
    if (start == 0 && !scan->fresh) return text;
    const struct text blank = {text.at + start, text.bytes - start};
    if (text_strip(blank, NULL, true, false).bytes == 0) text.bytes = start;
    return text;
}

static void add_data(struct scan *scan, struct text text) {
    if (text.bytes == 0) return;
    add(scan, TOKEN_DATA)->text = text;
}

// ---- inside of braces

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

// Appends a code point as UTF-8; -1: it is none.
static int put_point(char *out, uint32_t point) {
    if (point < 0x80) return out[0] = (char)point, 1;
    if (point < 0x800) {
        out[0] = (char)(0xC0 | point >> 6);
        return out[1] = (char)(0x80 | (point & 63)), 2;
    }
    if (point > 0x10FFFF || (point >= 0xD800 && point < 0xE000)) return -1;
    if (point < 0x10000) {
        out[0] = (char)(0xE0 | point >> 12);
        out[1] = (char)(0x80 | (point >> 6 & 63));
        return out[2] = (char)(0x80 | (point & 63)), 3;
    }
    out[0] = (char)(0xF0 | point >> 18);
    out[1] = (char)(0x80 | (point >> 12 & 63));
    out[2] = (char)(0x80 | (point >> 6 & 63));
    return out[3] = (char)(0x80 | (point & 63)), 4;
}

// \xHH, \uHHHH, \UHHHHHHHH, from behind the backslash. The bytes that it takes; 0: it is none.
static size_t read_hex(const char *at, const char *end, uint32_t *point) {
    const int digits = *at == 'x' ? 2 : *at == 'u' ? 4 : 8;
    *point = 0;
    if (end - at <= digits) return 0;
    for (int i = 1; i <= digits; i++) {
        const char c = at[i];
        const int digit = is_digit(c)            ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : -1;
        if (digit < 0) return 0;
        *point = *point << 4 | (uint32_t)digit;
    }
    return (size_t)digits + 1;
}

// The character behind a backslash, as Python has it. The bytes that it takes of the text; `*put` of `out`.
static size_t unescape(struct scan *scan, const char *at, const char *end, char *out, int *put) {
    static const char from[] = "\\'\"abfnrtv", to[] = "\\'\"\a\b\f\n\r\t\v";
    const char *known = strchr(from, *at);
    uint32_t point = 0;
    *put = 1;
    if (*at && known) return *out = to[known - from], 1;
    if (*at == '\n') return *put = 0, 1;
    if (*at == 'x' || *at == 'u' || *at == 'U') {
        const size_t taken = read_hex(at, end, &point);
        *put = taken ? put_point(out, point) : -1;
        if (*put < 0) source_fail(scan->source, scan->line, "a bad \\%c in a string", *at);
        return taken;
    }
    if (*at >= '0' && *at <= '7') {
        size_t taken = 0;
        for (; taken < 3 && at + taken < end && at[taken] >= '0' && at[taken] <= '7'; taken++)
            point = point * 8 + (uint32_t)(at[taken] - '0');
        return *put = put_point(out, point), taken;
    }
    out[0] = '\\'; // An unknown one stays as it is.
    return 0;
}

static void scan_string(struct scan *scan) {
    struct token *token = add(scan, TOKEN_STRING);
    const size_t index = scan->source->tokens - 1;
    const char quote = *scan->at, *end = scan->at + 1;
    while (end < scan->end && *end != quote) end += end + 1 < scan->end && *end == '\\' ? 2 : 1;
    char *out = arena_take(&scan->source->jinja->arena, (size_t)(end - scan->at) + 4);
    if (end >= scan->end || !out) {
        source_fail(scan->source, token->line,
                    end >= scan->end ? "a string does not end" : "out of memory");
        scan->at = scan->end;
        return;
    }
    size_t bytes = 0;
    for (const char *at = scan->at + 1; at < end && !scan->source->failed;) {
        int put = 1;
        if (*at == '\\') {
            at += 1 + unescape(scan, at + 1, end, out + bytes, &put);
            bytes += put > 0 ? (size_t)put : 0;
        } else {
            out[bytes++] = *at++;
        }
    }
    scan->source->token[index].text = (struct text){out, bytes};
    pass(scan, (size_t)(end + 1 - scan->at));
}

static void scan_number(struct scan *scan) {
    char digits[64];
    size_t count = 0;
    bool real = false;
    const char *at = scan->at;
    for (; at < scan->end && count < sizeof digits - 1; at++) {
        const char next = at + 1 < scan->end ? at[1] : '\0';
        const bool power =
            (*at == 'e' || *at == 'E') && (is_digit(next) || next == '-' || next == '+');
        if (*at == '_' && is_digit(next)) continue;
        if (!is_digit(*at) && !(*at == '.' && is_digit(next) && !real) && !power &&
            !((*at == '-' || *at == '+') && (at[-1] == 'e' || at[-1] == 'E')))
            break;
        real |= *at == '.' || power;
        digits[count++] = *at;
    }
    digits[count] = '\0';
    struct token *token = add(scan, real ? TOKEN_REAL : TOKEN_INTEGER);
    char *end = NULL;
    token->text = (struct text){scan->at, (size_t)(at - scan->at)};
    token->real = strtod(digits, &end);
    token->integer = strtoimax(digits, NULL, 10);
    if (count == sizeof digits - 1 || *end || (!real && count > 18) ||
        (at < scan->end && is_letter(*at)))
        source_fail(scan->source, scan->line, "the number '%.20s' is not supported", digits);
    scan->at = at;
}

static void scan_sign(struct scan *scan) {
    static const char *const signs[] = {"==", "!=", "<=", ">=", "**", "//", "+", "-", "*",
                                        "/",  "%",  "~",  "<",  ">",  "=",  "(", ")", "[",
                                        "]",  "{",  "}",  ",",  ".",  ":",  "|", ";"};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        if (!begins(scan, signs[i])) continue;
        struct token *token = add(scan, TOKEN_SIGN);
        token->text = (struct text){scan->at, strlen(signs[i])};
        scan->at += token->text.bytes;
        return;
    }
    source_fail(scan->source, scan->line, "the character '%.*s' is not supported here",
                (int)text_step(scan->at, (size_t)(scan->end - scan->at)), scan->at);
}

// The end of braces, with a sign before it: its bytes. 0: it is not here.
static size_t ends(const struct scan *scan, const char *brace, bool output) {
    const bool sign = *scan->at == '-' || (*scan->at == '+' && !output);
    const size_t left = (size_t)(scan->end - scan->at);
    if (left >= 2 && memcmp(scan->at, brace, 2) == 0) return 2;
    return sign && left >= 3 && memcmp(scan->at + 1, brace, 2) == 0 ? 3 : 0;
}

// The words between braces, and the end of those.
static void scan_code(struct scan *scan, bool output) {
    int depth = 0;
    const int line = scan->line;
    while (!scan->source->failed) {
        pass_space(scan);
        if (scan->at == scan->end) {
            source_fail(scan->source, line, output ? "{{ has no }}" : "{%% has no %%}");
            return;
        }
        const size_t end = depth == 0 ? ends(scan, output ? "}}" : "%}", output) : 0;
        if (end) {
            const char sign = end == 3 ? *scan->at : '\0';
            add(scan, output ? TOKEN_END_OUTPUT : TOKEN_END_BLOCK);
            pass(scan, end);
            end_block(scan, sign, !output);
            return;
        }
        const char c = *scan->at;
        depth += c == '(' || c == '[' || c == '{' ? 1 : c == ')' || c == ']' || c == '}' ? -1 : 0;
        if (is_letter(c)) {
            const char *begin = scan->at;
            while (scan->at < scan->end && (is_letter(*scan->at) || is_digit(*scan->at)))
                scan->at++;
            add(scan, TOKEN_NAME)->text = (struct text){begin, (size_t)(scan->at - begin)};
        } else if (is_digit(c)) {
            scan_number(scan);
        } else if (c == '"' || c == '\'') {
            scan_string(scan);
        } else {
            scan_sign(scan);
        }
    }
}

static void pass_comment(struct scan *scan) {
    const char *begin = scan->at;
    const int line = scan->line;
    while (scan->at < scan->end && !begins(scan, "#}")) pass(scan, 1);
    if (scan->at == scan->end) {
        source_fail(scan->source, line, "{# has no #}");
        return;
    }
    const char sign = scan->at > begin ? scan->at[-1] : '\0';
    pass(scan, 2);
    end_block(scan, sign, true);
}

// Data up to the next brace, and the piece that the brace begins.
static void scan_piece(struct scan *scan) {
    const char *begin = scan->at, *at = begin;
    while (at + 1 < scan->end && !(*at == '{' && (at[1] == '{' || at[1] == '%' || at[1] == '#')))
        at++;
    if (at + 1 >= scan->end) {
        add_data(scan, (struct text){begin, (size_t)(scan->end - begin)});
        scan->at = scan->end;
        return;
    }
    const char kind = at[1];
    const char sign = at + 2 < scan->end && (at[2] == '-' || at[2] == '+') ? at[2] : '\0';
    add_data(scan, cut_before(scan, (struct text){begin, (size_t)(at - begin)}, sign, kind == '{'));
    pass(scan, (size_t)(at - begin) + 2);
    pass(scan, sign != '\0');
    if (kind == '#') {
        pass_comment(scan);
        return;
    }
    add(scan, kind == '{' ? TOKEN_BEGIN_OUTPUT : TOKEN_BEGIN_BLOCK);
    scan_code(scan, kind == '{');
}

void jinja_scan(struct source *source, const char *text, size_t bytes) {
    char *copy = arena_take(&source->jinja->arena, bytes + 1);
    struct scan scan = {.source = source, .at = copy, .line = 1, .fresh = true};
    size_t count = 0;
    if (!copy) {
        source_fail(source, 1, "out of memory");
        return;
    }
    for (size_t i = 0; i < bytes; i++) { // All ends of lines are newlines, and the last one goes.
        if (text[i] != '\r')
            copy[count++] = text[i];
        else if (i + 1 == bytes || text[i + 1] != '\n')
            copy[count++] = '\n';
    }
    scan.end = copy + count - (count > 0 && copy[count - 1] == '\n');
    while (scan.at < scan.end && !source->failed) scan_piece(&scan);
    add(&scan, TOKEN_END);
}
