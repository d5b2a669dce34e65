// Pairs of a chosen and a rejected answer to one prompt: two conversations of chat.h each.
#include <stdlib.h>
#include <string.h>

#include "runtime/data/weights.h"
#include "tools/prepare/chat.h"

enum { CHOSEN, REJECTED, ANSWERS };

static const char *const answer_name[ANSWERS] = {"chosen", "rejected"};

// The prompt: a text, or messages.
static json_t *prompt_of(const json_t *record) {
    static const char *const names[] = {"prompt",   "question",      "instruction",
                                        "messages", "conversations", "conversation"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        json_t *found = json_object_get(record, names[i]);
        if (json_is_string(found) || json_is_array(found)) return found;
    }
    return NULL;
}

// Messages that both answers begin with.
static size_t common_of(json_t *const answer[ANSWERS]) {
    const size_t most = json_array_size(answer[CHOSEN]);
    size_t count = 0;
    while (count < most && json_equal(json_array_get(answer[CHOSEN], count),
                                      json_array_get(answer[REJECTED], count)))
        count++;
    return count;
}

// Messages `first` .. `end` - 1 of a list; a reference for the caller.
static json_t *slice_of(const json_t *list, size_t first, size_t end) {
    json_t *slice = json_array();
    for (size_t i = first; slice && i < end; i++) json_array_append(slice, json_array_get(list, i));
    return slice;
}

// A record of the prompt and one answer: of the first `common` messages of a list, if there are such, and the rest.
static json_t *conversation_of(const json_t *record, json_t *prompt, json_t *answer,
                               size_t common) {
    static const char *const parts[] = {"messages", "conversations", "conversation", "chosen",
                                        "rejected"};
    json_t *made = json_copy((json_t *)(uintptr_t)record);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) json_object_del(made, parts[i]);
    json_object_set_new(made, "prompt", common ? slice_of(answer, 0, common) : json_incref(prompt));
    json_object_set_new(made, "completion",
                        json_is_array(answer)    ? slice_of(answer, common, json_array_size(answer))
                        : json_is_object(answer) ? json_pack("[O]", answer)
                                                 : json_incref(answer));
    return made;
}

// Adds the tokens of one answer with its prompt.
static bool add_answer(const struct chat *chat, const struct hrt_tokenizer *tokenizer,
                       struct hrt_encoder *encoder, const json_t *record, const char *name,
                       struct hrt_ids *ids, uint16_t **weights, struct hrt_error *error) {
    struct hrt_ids own = {0};
    struct hrt_error why = {0};
    bool whole = true;
    uint16_t *own_weights = NULL;
    if (!chat_encode(chat, tokenizer, encoder, record, &own, &own_weights, &why)) {
        free(own.at);
        free(own_weights);
        return hrt_fail(error, "the %s answer: %s", name, why.text);
    }
    for (size_t i = 0; i < own.count; i++) whole &= own_weights[i] % HRT_DATA_WEIGHT_ONE == 0;
    const size_t room = ids->count + own.count + 1;
    int32_t *grown = realloc(ids->at, room * sizeof *grown);
    if (grown) ids->at = grown, ids->room = room;
    uint16_t *grown_weights = realloc(*weights, room * sizeof *grown_weights);
    if (grown_weights) *weights = grown_weights;
    const bool taken = grown && grown_weights;
    if (taken) {
        memcpy(grown + ids->count, own.at, own.count * sizeof *own.at);
        memcpy(grown_weights + ids->count, own_weights, own.count * sizeof *own_weights);
        ids->count += own.count;
    }
    free(own.at);
    free(own_weights);
    if (!whole) return hrt_fail(error, "the %s answer: weights of pairs are 0 or 1", name);
    return taken || hrt_fail(error, "out of memory");
}

bool pairs_encode(const struct chat *chat, const struct hrt_tokenizer *tokenizer,
                  struct hrt_encoder *encoder, const json_t *record, struct hrt_ids *ids,
                  uint16_t **weights, size_t *chosen, struct hrt_error *error) {
    json_t *prompt = prompt_of(record), *answer[ANSWERS];
    for (int i = 0; i < ANSWERS; i++) {
        answer[i] = json_object_get(record, answer_name[i]);
        if (!json_is_string(answer[i]) && !json_is_array(answer[i]) && !json_is_object(answer[i]))
            return hrt_fail(error, "no pair: '%s' is neither a text, nor messages", answer_name[i]);
    }
    const size_t common = prompt && json_is_array(prompt) ? 0 : common_of(answer);
    if (!prompt && !common)
        return hrt_fail(error, "no pair: there is no prompt, and the answers do not begin alike");
    ids->count = 0;
    for (int i = 0; i < ANSWERS; i++) {
        json_t *made = conversation_of(record, prompt, answer[i], common);
        const bool added =
            made ? add_answer(chat, tokenizer, encoder, made, answer_name[i], ids, weights, error)
                 : hrt_fail(error, "out of memory");
        json_decref(made);
        if (!added) return false;
        if (i == CHOSEN) *chosen = ids->count;
    }
    return true;
}
