// Conversations as tokens, and how much they count.
#include <stdlib.h>
#include <string.h>

#include "tools/prepare/chat.h"

struct text_ids { // A text on its way to tokens.
    const struct hrt_tokenizer *tokenizer;
    struct hrt_encoder *encoder;
    const char *text;
    size_t bytes;
    struct hrt_ids *ids;
};

// Whether the tokens' bytes are the text's, so that places in the one are places in the other.
static bool is_same(const struct text_ids *it) {
    size_t at = 0;
    for (size_t i = 0; i < it->ids->count; i++) {
        const struct hrt_piece piece = hrt_tokenizer_decode(it->tokenizer, it->ids->at[i], i == 0);
        if (piece.bytes > it->bytes - at || memcmp(piece.text, it->text + at, piece.bytes) != 0)
            return false;
        at += piece.bytes;
    }
    return at == it->bytes;
}

// Where a place of the text is in the bytes of its tokens: as many as the text up to it has alone. Normalizers and
// tokens that take white space along change these.
static bool place_of(const struct text_ids *it, size_t place, size_t *found,
                     struct hrt_error *error) {
    struct hrt_ids ids = {0};
    const bool done = hrt_tokenizer_encode(it->encoder, it->text, place, false, &ids, error);
    *found = 0;
    for (size_t i = 0; done && i < ids.count; i++)
        *found += hrt_tokenizer_decode(it->tokenizer, ids.at[i], i == 0).bytes;
    free(ids.at);
    return done;
}

// Weighs the tokens that have bytes in a span. False: there are none.
static bool mark(const struct text_ids *it, struct learned_span *span, size_t spans,
                 uint16_t *weights, struct hrt_error *error) {
    const bool same = is_same(it);
    for (size_t i = 0; !same && i < spans; i++) {
        if (!place_of(it, span[i].begin, &span[i].begin, error) ||
            !place_of(it, span[i].end, &span[i].end, error))
            return false;
    }
    size_t begin = 0, next = 0;
    bool any = false;
    for (size_t i = 0; i < it->ids->count; i++) {
        const size_t end =
            begin + hrt_tokenizer_decode(it->tokenizer, it->ids->at[i], i == 0).bytes;
        while (next < spans && span[next].end <= begin) next++;
        weights[i] = next < spans && span[next].begin < end ? span[next].weight : 0;
        any |= weights[i] > 0;
        begin = end;
    }
    return any || hrt_fail(error, "the template writes nothing that is learned");
}

bool chat_encode(const struct chat *chat, const struct hrt_tokenizer *tokenizer,
                 struct hrt_encoder *encoder, const json_t *record, struct hrt_ids *ids,
                 uint16_t **weights, struct hrt_error *error) {
    struct conversation conversation = {0};
    struct jinja_rendered whole = {0};
    struct learned_span *span = NULL;
    size_t spans = 0;
    ids->count = 0;
    bool done = conversation_read(&conversation, record, chat_special(chat), error) &&
                chat_render(chat, &conversation, conversation.messages,
                            json_array_size(conversation.messages), false, &whole, error) &&
                chat_spans(chat, &conversation, &whole, &span, &spans, error) &&
                hrt_tokenizer_encode(encoder, whole.text, whole.bytes, false, ids, error);
    uint16_t *grown = done ? realloc(*weights, (ids->room + 1) * sizeof *grown) : NULL;
    if (grown) *weights = grown;
    if (done && !grown) done = hrt_fail(error, "out of memory");
    const struct text_ids it = {tokenizer, encoder, whole.text, whole.bytes, ids};
    done = done && mark(&it, span, spans, *weights, error);
    free(span);
    jinja_rendered_free(&whole);
    if (conversation.messages) conversation_free(&conversation);
    return done;
}
