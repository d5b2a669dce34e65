// Buffers of text, UTF-8, and normalizers.
#define _GNU_SOURCE // memmem
#include <stdlib.h>
#include <utf8proc.h>

#include "runtime/tokenizer/parts.h"

bool hrt_tokenizer_text_append(struct hrt_text *text, const char *at, size_t bytes) {
    if (!hrt_tokenizer_grow(&text->at, &text->room, text->bytes + bytes + 1, 1)) return false;
    memcpy(text->at + text->bytes, at, bytes);
    text->bytes += bytes;
    text->at[text->bytes] = '\0';
    return true;
}

bool hrt_tokenizer_text_set(struct hrt_text *text, const char *at, size_t bytes) {
    text->bytes = 0;
    return hrt_tokenizer_text_append(text, at, bytes);
}

bool hrt_tokenizer_text_replace(struct hrt_text *text, const char *at, size_t bytes,
                                const char *from, const char *to) {
    const size_t length = strlen(from), other = strlen(to);
    const char *const end = at + bytes;
    for (const char *found;; at = found + length) {
        found = memmem(at, (size_t)(end - at), from, length);
        if (!hrt_tokenizer_text_append(text, at, (size_t)((found ? found : end) - at)))
            return false;
        if (!found) return true;
        if (!hrt_tokenizer_text_append(text, to, other)) return false;
    }
}

size_t hrt_tokenizer_utf8_length(const char *at, size_t left, bool *sound) {
    const unsigned char *byte = (const unsigned char *)at, first = byte[0];
    *sound = first < 0x80;
    if (first < 0xc2 || first > 0xf4) return 1;
    const size_t wanted = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    // The limits of the second byte keep long forms, surrogates and codes beyond Unicode out.
    const unsigned char least = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    const unsigned char most = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    if (left < 2 || byte[1] < least || byte[1] > most) return 1;
    size_t length = 2;
    while (length < wanted && length < left && (byte[length] & 0xc0) == 0x80) length++;
    *sound = length == wanted;
    return length;
}

// Bytes of sound UTF-8 from the begin of the text on.
static size_t sound_bytes(const char *text, size_t bytes) {
    size_t at = 0;
    bool sound = true;
    while (at < bytes) {
        uint64_t word;
        if (at + 8 <= bytes && (memcpy(&word, text + at, 8), !(word & 0x8080808080808080u))) {
            at += 8;
            continue;
        }
        const size_t length = hrt_tokenizer_utf8_length(text + at, bytes - at, &sound);
        if (!sound) return at;
        at += length;
    }
    return bytes;
}

bool hrt_tokenizer_utf8_repair(const char **text, size_t *bytes, struct hrt_text *repaired) {
    size_t good = sound_bytes(*text, *bytes);
    if (good == *bytes) return true;
    repaired->bytes = 0;
    for (size_t at = 0; at < *bytes;) {
        bool sound;
        good = sound_bytes(*text + at, *bytes - at);
        if (!hrt_tokenizer_text_append(repaired, *text + at, good)) return false;
        at += good;
        if (at == *bytes) break;
        at += hrt_tokenizer_utf8_length(*text + at, *bytes - at, &sound);
        if (!hrt_tokenizer_text_append(repaired, "\xef\xbf\xbd", 3)) return false;
    }
    *text = repaired->at;
    *bytes = repaired->bytes;
    return true;
}

// Whether a text is as each form of composition leaves it: NFC leaves all below U+0300, the others ASCII.
static bool is_composed(int form, const char *text, size_t bytes) {
    const unsigned char least = form == UTF8PROC_COMPOSE ? 0xcc : 0x80;
    unsigned char most = 0;
    for (size_t i = 0; i < bytes; i++) {
        const unsigned char byte = (unsigned char)text[i];
        most = byte > most ? byte : most;
    }
    return most < least;
}

static bool compose(int form, const char *text, size_t bytes, struct hrt_text *out) {
    utf8proc_uint8_t *composed = NULL;
    const utf8proc_ssize_t length =
        utf8proc_map((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)bytes, &composed,
                     (utf8proc_option_t)(UTF8PROC_STABLE | form));
    const bool done =
        length >= 0 && hrt_tokenizer_text_set(out, (const char *)composed, (size_t)length);
    free(composed);
    return done;
}

bool hrt_tokenizer_normalize(const struct hrt_rules *normalizer, const char **text, size_t *bytes,
                             struct hrt_text scratch[2]) {
    for (int i = 0; i<normalizer->count && * bytes> 0; i++) {
        const struct hrt_rule *rule = &normalizer->at[i];
        struct hrt_text *out = &scratch[i % 2];
        out->bytes = 0;
        bool done = true;
        if (rule->kind == HRT_RULE_COMPOSE) {
            if (is_composed(rule->form, *text, *bytes))
                done = hrt_tokenizer_text_set(out, *text, *bytes);
            else
                done = compose(rule->form, *text, *bytes, out);
        } else if (rule->kind == HRT_RULE_PREPEND) {
            done = hrt_tokenizer_text_set(out, rule->to, strlen(rule->to)) &&
                   hrt_tokenizer_text_append(out, *text, *bytes);
        } else {
            done = hrt_tokenizer_text_replace(out, *text, *bytes, rule->from, rule->to);
        }
        if (!done) return false;
        *text = out->at;
        *bytes = out->bytes;
    }
    return true;
}
