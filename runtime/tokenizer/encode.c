// From a text to ids: added tokens, normalizer, pieces, words.
#include <stdlib.h>

#include "runtime/tokenizer/merge.h"

enum { TEXT_MOST = INT32_MAX / 4 };

struct hrt_encoder {
    const struct hrt_tokenizer *tokenizer;
    struct hrt_matcher *matcher;
    struct hrt_words *words;
    struct hrt_text repaired, normalized[2];
    struct hrt_text *piece; // [splitter.count]: the result of a rule on a piece.
    struct hrt_ids *ids;    // Where they go.
    struct hrt_error *error;
};

// A part of a text that is no added token.
struct span {
    const char *text;
    size_t bytes;
    bool first; // Whether it begins where the text does.
};

struct hrt_encoder *hrt_tokenizer_encoder_create(const struct hrt_tokenizer *tokenizer,
                                                 struct hrt_error *error) {
    struct hrt_encoder *encoder = calloc(1, sizeof *encoder);
    if (encoder) {
        encoder->tokenizer = tokenizer;
        encoder->matcher = hrt_tokenizer_matcher_create();
        encoder->words = hrt_tokenizer_words_create();
        encoder->piece = calloc((size_t)tokenizer->splitter.count + 1, sizeof *encoder->piece);
        if (encoder->matcher && encoder->words && encoder->piece) return encoder;
    }
    hrt_tokenizer_encoder_free(encoder);
    hrt_fail(error, "out of memory");
    return NULL;
}

void hrt_tokenizer_encoder_free(struct hrt_encoder *encoder) {
    if (!encoder) return;
    for (int i = 0; encoder->piece && i < encoder->tokenizer->splitter.count; i++)
        free(encoder->piece[i].at);
    free(encoder->piece);
    free(encoder->repaired.at);
    for (int i = 0; i < 2; i++) free(encoder->normalized[i].at);
    hrt_tokenizer_matcher_free(encoder->matcher);
    hrt_tokenizer_words_free(encoder->words);
    free(encoder);
}

// ---- pieces and words

// Applies a rule that changes pieces to one.
static bool change(const struct hrt_rule *rule, struct span *span, struct hrt_text *out) {
    out->bytes = 0;
    bool done = true;
    if (rule->kind == HRT_RULE_PREFIX_SPACE) {
        if (span->text[0] == ' ') return true;
        done = hrt_tokenizer_text_append(out, " ", 1) &&
               hrt_tokenizer_text_append(out, span->text, span->bytes);
    } else {
        const size_t mark = strlen(rule->to);
        const bool begins = span->text[0] == ' ' ||
                            (span->bytes >= mark && memcmp(span->text, rule->to, mark) == 0);
        if (!begins && (rule->scheme == HRT_ALWAYS || (rule->scheme == HRT_FIRST && span->first)))
            done = hrt_tokenizer_text_append(out, rule->to, mark);
        done = done && hrt_tokenizer_text_replace(out, span->text, span->bytes, " ", rule->to);
    }
    span->text = out->at;
    span->bytes = out->bytes;
    return done;
}

// Applies the rules from number `rule` on to a piece, and encodes what comes out.
static bool encode_piece(struct hrt_encoder *encoder, int rule, struct span span) {
    const struct hrt_rules *splitter = &encoder->tokenizer->splitter;
    if (span.bytes == 0) return true;
    while (rule < splitter->count && splitter->at[rule].kind != HRT_RULE_SPLIT) {
        if (!hrt_enough(change(&splitter->at[rule], &span, &encoder->piece[rule]), encoder->error))
            return false;
        rule++;
    }
    if (rule == splitter->count)
        return hrt_enough(hrt_tokenizer_words_encode(encoder->words, &encoder->tokenizer->model,
                                                     span.text, span.bytes, encoder->ids),
                          encoder->error);
    struct hrt_split split = {
        .pattern = splitter->at[rule].pattern, .text = span.text, .bytes = span.bytes};
    size_t at[2];
    int found;
    while ((found = hrt_tokenizer_split_next(&split, encoder->matcher, at, encoder->error)) == 1) {
        const struct span part = {span.text + at[0], at[1] - at[0], span.first && at[0] == 0};
        if (!encode_piece(encoder, rule + 1, part)) return false;
    }
    return found == 0;
}

// ---- added tokens

// The longest added token that is written at the begin of the text; NULL: none.
static const struct hrt_added *longest(const struct hrt_added_set *set, const char *text,
                                       size_t bytes) {
    const struct hrt_added *found = NULL;
    int low = 0, high = set->count;
    for (size_t depth = 0; depth < bytes && low < high; depth++) {
        const unsigned char byte = (unsigned char)text[depth];
        int least = low, most = high; // The first that has at least this byte,
        while (least < most) {
            const int middle = (least + most) / 2;
            if ((unsigned char)set->at[middle].written[depth] < byte)
                least = middle + 1;
            else
                most = middle;
        }
        low = least;
        most = high; // and the first that has more.
        while (least < most) {
            const int middle = (least + most) / 2;
            if ((unsigned char)set->at[middle].written[depth] <= byte)
                least = middle + 1;
            else
                most = middle;
        }
        high = least;
        if (low < high && set->at[low].bytes == depth + 1) found = &set->at[low++];
    }
    return found;
}

// Whether the character in front of `at`, or at it, is one of a pattern.
static bool is_one(struct hrt_encoder *encoder, const struct hrt_pattern *pattern, const char *text,
                   size_t bytes, size_t at, bool front, size_t *length) {
    size_t begin = at, match[2];
    bool sound;
    if (front ? at == 0 : at == bytes) return false;
    if (front) {
        do begin--;
        while (begin > 0 && (text[begin] & 0xc0) == 0x80);
    }
    *length = front ? at - begin : hrt_tokenizer_utf8_length(text + at, bytes - at, &sound);
    return hrt_tokenizer_pattern_find(pattern, encoder->matcher, text + begin, *length, 0, match,
                                      encoder->error) == 1;
}

// Finds the next added token at or behind `from`, with the spaces that it takes: at[0] .. at[1].
static const struct hrt_added *next_added(struct hrt_encoder *encoder,
                                          const struct hrt_added_set *set, const char *text,
                                          size_t bytes, size_t from, size_t at[2]) {
    const struct hrt_tokenizer *tokenizer = encoder->tokenizer;
    size_t length;
    for (size_t i = from; set->count > 0 && i < bytes; i++) {
        if (!set->begins[(unsigned char)text[i]]) continue;
        const struct hrt_added *added = longest(set, text + i, bytes - i);
        if (!added) continue;
        at[0] = i;
        at[1] = i + added->bytes;
        if (added->single_word &&
            (is_one(encoder, tokenizer->word, text, bytes, at[0], true, &length) ||
             is_one(encoder, tokenizer->word, text, bytes, at[1], false, &length))) {
            i = at[1] - 1;
            continue;
        }
        while (added->lstrip && at[0] > from &&
               is_one(encoder, tokenizer->space, text, bytes, at[0], true, &length))
            at[0] -= length;
        while (added->rstrip &&
               is_one(encoder, tokenizer->space, text, bytes, at[1], false, &length))
            at[1] += length;
        return added;
    }
    return NULL;
}

static bool append(struct hrt_ids *ids, const int32_t *id, size_t count) {
    if (count == 0) return true;
    if (!hrt_tokenizer_grow(&ids->at, &ids->room, ids->count + count, sizeof *ids->at))
        return false;
    memcpy(ids->at + ids->count, id, count * sizeof *id);
    ids->count += count;
    return true;
}

// Encodes what lies between added tokens by `between`, and those tokens themselves.
static bool encode_around(struct hrt_encoder *encoder, const struct hrt_added_set *set,
                          struct span span,
                          bool (*between)(struct hrt_encoder *encoder, struct span span)) {
    for (size_t from = 0, at[2]; from < span.bytes; from = at[1]) {
        const struct hrt_added *added = next_added(encoder, set, span.text, span.bytes, from, at);
        if (!added) at[0] = at[1] = span.bytes;
        const struct span part = {span.text + from, at[0] - from, span.first && from == 0};
        if (part.bytes > 0 && !between(encoder, part)) return false;
        if (added && !hrt_enough(append(encoder->ids, &added->id, 1), encoder->error)) return false;
    }
    return true;
}

static bool encode_normalized(struct hrt_encoder *encoder, struct span span) {
    return encode_piece(encoder, 0, span);
}

static bool encode_raw(struct hrt_encoder *encoder, struct span span) {
    if (!hrt_enough(hrt_tokenizer_normalize(&encoder->tokenizer->normalizer, &span.text,
                                            &span.bytes, encoder->normalized),
                    encoder->error))
        return false;
    return encode_around(encoder, &encoder->tokenizer->normalized, span, encode_normalized);
}

bool hrt_tokenizer_encode(struct hrt_encoder *encoder, const char *text, size_t bytes, bool frame,
                          struct hrt_ids *ids, struct hrt_error *error) {
    const struct hrt_tokenizer *tokenizer = encoder->tokenizer;
    if (bytes > TEXT_MOST) return hrt_fail(error, "a text of 512 MiB or more");
    encoder->ids = ids;
    encoder->error = error;
    if (!hrt_enough(hrt_tokenizer_utf8_repair(&text, &bytes, &encoder->repaired), error))
        return false;
    if (frame && !hrt_enough(append(ids, tokenizer->before.at, tokenizer->before.count), error))
        return false;
    const struct span all = {text, bytes, true};
    if (!encode_around(encoder, &tokenizer->raw, all, encode_raw)) return false;
    return !frame || hrt_enough(append(ids, tokenizer->behind.at, tokenizer->behind.count), error);
}
