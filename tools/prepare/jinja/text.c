// Texts in UTF-8, by characters, as Python counts them.
#define _GNU_SOURCE // memmem
#include <string.h>

#include "tools/prepare/jinja/inside.h"

size_t text_step(const char *at, size_t left) {
    const unsigned char first = (unsigned char)*at;
    const size_t want = first < 0xC0 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    size_t step = 1;
    while (step < want && step < left && ((unsigned char)at[step] & 0xC0) == 0x80) step++;
    return step;
}

size_t text_length(struct text text) {
    size_t length = 0;
    for (size_t i = 0; i < text.bytes; length++) i += text_step(text.at + i, text.bytes - i);
    return length;
}

bool text_is_space(const char *at, size_t bytes) {
    static const char *const wide[] = {"\xc2\x85", "\u00a0", "\u1680", "\u2000", "\u2001",
                                       "\u2002",   "\u2003", "\u2004", "\u2005", "\u2006",
                                       "\u2007",   "\u2008", "\u2009", "\u200a", "\u2028",
                                       "\u2029",   "\u202f", "\u205f", "\u3000"};
    if (bytes == 1)
        return *at == ' ' || (*at >= '\t' && *at <= '\r') || (*at >= '\x1c' && *at <= '\x1f');
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++) {
        if (strlen(wide[i]) == bytes && memcmp(wide[i], at, bytes) == 0) return true;
    }
    return false;
}

static bool is_among(const char *at, size_t bytes, const struct text *signs) {
    if (!signs) return text_is_space(at, bytes);
    for (size_t i = 0; i < signs->bytes;) {
        const size_t step = text_step(signs->at + i, signs->bytes - i);
        if (step == bytes && memcmp(signs->at + i, at, bytes) == 0) return true;
        i += step;
    }
    return false;
}

struct text text_strip(struct text text, const struct text *signs, bool left, bool right) {
    while (left && text.bytes > 0) {
        const size_t step = text_step(text.at, text.bytes);
        if (!is_among(text.at, step, signs)) break;
        text.at += step;
        text.bytes -= step;
    }
    while (right && text.bytes > 0) {
        size_t begin = text.bytes - 1;
        while (begin > 0 && ((unsigned char)text.at[begin] & 0xC0) == 0x80) begin--;
        if (!is_among(text.at + begin, text.bytes - begin, signs)) break;
        text.bytes = begin;
    }
    return text;
}

size_t text_find(struct text text, struct text what, size_t from) {
    if (from > text.bytes || what.bytes > text.bytes - from) return SIZE_MAX;
    if (what.bytes == 0) return from;
    const char *found = memmem(text.at + from, text.bytes - from, what.at, what.bytes);
    return found ? (size_t)(found - text.at) : SIZE_MAX;
}

bool text_is(struct text text, const char *other) {
    return text.bytes == strlen(other) && memcmp(text.at, other, text.bytes) == 0;
}
