// Which bytes of a rendered conversation the assistant has written. A template with generation blocks says it. For any
// other we compare renderings: message i begins where the messages before it end, with the prompt for an answer, and
// ends where the first i messages do. Many templates write an answer in another way once more messages follow (without
// its reasoning, say). Then the message is changed: the text that stays before and behind it shows where it is.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/data/weights.h"
#include "tools/prepare/chat.h"

struct search {
    const struct chat *chat;
    const struct conversation *conversation;
    const struct jinja_rendered *whole;
    struct hrt_error *error;
};

static size_t common_begin(const struct jinja_rendered *a, const struct jinja_rendered *b) {
    size_t same = 0;
    while (same < a->bytes && same < b->bytes && a->text[same] == b->text[same]) same++;
    return same;
}

static size_t common_end(const struct jinja_rendered *a, const struct jinja_rendered *b) {
    size_t same = 0;
    while (same < a->bytes && same < b->bytes &&
           a->text[a->bytes - 1 - same] == b->text[b->bytes - 1 - same])
        same++;
    return same;
}

// Where a message is changed: at an end of its content, or in the arguments of its last call, as some templates leave
// the content of calls out.
enum part { BEGIN, END, CALL };

// A text with a letter at an end of it. NULL: no memory.
static json_t *with_letter(const json_t *text, char letter, bool begin) {
    const size_t bytes = json_is_string(text) ? json_string_length(text) : 0;
    char *changed = malloc(bytes + 1);
    if (!changed) return NULL;
    if (bytes) memcpy(changed + begin, json_string_value(text), bytes);
    changed[begin ? 0 : bytes] = letter;
    json_t *made = json_stringn(changed, bytes + 1);
    free(changed);
    return made;
}

// Changes the arguments of the last call: a text, or an object that gets one more. False: there is none.
static bool change_call(json_t *message, char letter) {
    const char key[] = {letter, '\0'};
    const json_t *calls = json_object_get(message, "tool_calls");
    json_t *call = json_array_get(calls, json_array_size(calls) - 1);
    json_t *function = json_object_get(call, "function");
    json_t *holder = function ? function : call, *arguments = json_object_get(holder, "arguments");
    if (json_is_string(arguments))
        return json_object_set_new(holder, "arguments", with_letter(arguments, letter, false)) == 0;
    return json_is_object(arguments) && json_object_set_new(arguments, key, json_string("")) == 0;
}

// The messages, of which one is changed. NULL: it has no such part, or there is no memory.
static json_t *change(const struct search *search, size_t index, enum part part, char letter) {
    json_t *messages = json_copy(search->conversation->messages);
    json_t *message = json_deep_copy(json_array_get(search->conversation->messages, index));
    bool done = messages && message;
    if (done && part == CALL)
        done = change_call(message, letter);
    else if (done)
        done = json_object_set_new(
                   message, "content",
                   with_letter(json_object_get(message, "content"), letter, part == BEGIN)) == 0;
    done = done && json_array_set(messages, index, message) == 0;
    json_decref(message);
    if (done) return messages;
    json_decref(messages);
    return NULL;
}

// Renders `count` messages twice, with different letters in a part of message `index`. `*same`: the bytes that the
// two share before (BEGIN) or behind it. False: they are the same, or there are none.
static bool shared(const struct search *search, size_t index, size_t count, enum part part,
                   size_t *same) {
    struct jinja_rendered out[2] = {0};
    bool done = true;
    for (int i = 0; done && i < 2; i++) {
        json_t *messages = change(search, index, part, i ? 'y' : 'x');
        done = messages && chat_render(search->chat, search->conversation, messages, count, false,
                                       &out[i], search->error);
        json_decref(messages);
    }
    if (done) *same = part == BEGIN ? common_begin(&out[0], &out[1]) : common_end(&out[0], &out[1]);
    done = done && *same < out[0].bytes;
    for (int i = 0; i < 2; i++) jinja_rendered_free(&out[i]);
    return done;
}

static bool fail_place(const struct search *search, size_t index) {
    return hrt_fail(search->error,
                    "message %zu is not found in the text that the template makes; generation "
                    "blocks in the template would show it",
                    index + 1);
}

// Whether the first `count` messages are the beginning of the whole, which then is `*end` bytes long.
static bool is_begin(const struct search *search, size_t count, bool prompt, size_t *end) {
    struct jinja_rendered out = {0};
    struct hrt_error
        ignored; // Templates refuse conversations that end here: then it is found otherwise.
    const bool done = chat_render(search->chat, search->conversation,
                                  search->conversation->messages, count, prompt, &out, &ignored);
    *end = out.bytes;
    const bool same = done && common_begin(&out, search->whole) == out.bytes;
    jinja_rendered_free(&out);
    return same;
}

// The prompt for an answer behind the first `count` messages, which may be empty.
static char *prompt_of(const struct search *search, size_t count) {
    struct jinja_rendered with = {0}, without = {0};
    struct hrt_error ignored;
    json_t *messages = search->conversation->messages;
    char *prompt = NULL;
    if (chat_render(search->chat, search->conversation, messages, count, true, &with, &ignored) &&
        chat_render(search->chat, search->conversation, messages, count, false, &without,
                    &ignored) &&
        common_begin(&with, &without) == without.bytes)
        prompt = strdup(with.text + without.bytes);
    jinja_rendered_free(&with);
    jinja_rendered_free(&without);
    return prompt ? prompt : strdup("");
}

// Where message `index` begins, if what stands before it is written otherwise when it ends there: behind the first
// prompt that follows the message before, or else with its content.
static bool search_begin(const struct search *search, size_t index, size_t *begin) {
    const size_t count = json_array_size(search->conversation->messages);
    size_t behind;
    if (!shared(search, index, count, BEGIN, begin)) return fail_place(search, index);
    if (index == 0 || !shared(search, index - 1, count, END, &behind)) return true;
    const size_t from = search->whole->bytes - behind;
    char *prompt = prompt_of(search, index);
    const size_t length = prompt ? strlen(prompt) : 0;
    const char *found = length ? strstr(search->whole->text + from, prompt) : NULL;
    const size_t at = found ? (size_t)(found - search->whole->text) + length : *begin;
    if (at < *begin) *begin = at;
    free(prompt);
    return true;
}

// Where message `index` begins, if the messages before it are the beginning of the whole, but not with the prompt: a
// template may prompt for more than it writes of an answer. As much of the prompt counts as stands there.
static bool follows(const struct search *search, size_t index, size_t *begin) {
    struct jinja_rendered out = {0};
    struct hrt_error ignored;
    size_t before, content;
    if (index == 0 || !is_begin(search, index, false, &before)) return false;
    const bool done = chat_render(search->chat, search->conversation,
                                  search->conversation->messages, index, true, &out, &ignored);
    *begin = done ? common_begin(&out, search->whole) : 0;
    jinja_rendered_free(&out);
    if (*begin < before) return false;
    if (shared(search, index, json_array_size(search->conversation->messages), BEGIN, &content) &&
        content < *begin)
        *begin = content;
    return true;
}

static bool find_begin(const struct search *search, size_t index, size_t *begin) {
    return (index > 0 && is_begin(search, index, true, begin)) || follows(search, index, begin) ||
           search_begin(search, index, begin);
}

static bool find_end(const struct search *search, size_t index, size_t *end) {
    const size_t count = json_array_size(search->conversation->messages);
    struct jinja_rendered out = {0};
    size_t behind_whole, behind;
    if (is_begin(search, index + 1, false, end)) return true;
    bool found = false;
    for (enum part part = END; !found && part <= CALL; part++)
        found = shared(search, index, count, part, &behind_whole) &&
                shared(search, index, index + 1, part, &behind);
    if (!found) return fail_place(search, index);
    if (!chat_render(search->chat, search->conversation, search->conversation->messages, index + 1,
                     false, &out, search->error))
        return false;
    // The last message has an end of its own: as much of it counts as stands behind the content in the whole, too.
    const char *tail = search->whole->text + search->whole->bytes - behind_whole;
    const char *last = out.text + out.bytes - behind;
    size_t same = 0;
    while (same < behind_whole && same < behind && tail[same] == last[same]) same++;
    *end = search->whole->bytes - behind_whole + same;
    jinja_rendered_free(&out);
    return true;
}

static bool is_answer(const struct conversation *conversation, size_t index) {
    const json_t *message = json_array_get(conversation->messages, index);
    return strcmp(json_string_value(json_object_get(message, "role")), "assistant") == 0;
}

// The template's own blocks: all, or, where some messages count less, one for each message of the assistant.
static bool take_marked(const struct search *search, struct learned_span *span, size_t *spans) {
    const struct conversation *conversation = search->conversation;
    const struct jinja_rendered *whole = search->whole;
    const size_t messages = json_array_size(conversation->messages);
    size_t answers = 0, full = 0, block = 0;
    for (size_t i = 0; i < messages; i++) {
        answers += is_answer(conversation, i);
        full += conversation->weight[i] == HRT_DATA_WEIGHT_ONE;
    }
    if (full < answers && whole->spans != answers)
        return hrt_fail(search->error,
                        "the template marks %zu parts, of %zu messages of the assistant that are "
                        "not all learned alike",
                        whole->spans, answers);
    for (size_t i = 0; full < answers && i < messages; i++) {
        if (!is_answer(conversation, i)) continue;
        const struct jinja_span *own = &whole->span[block++];
        if (conversation->weight[i])
            span[(*spans)++] = (struct learned_span){own->begin, own->end, conversation->weight[i]};
    }
    for (; full == answers && block < whole->spans; block++)
        span[(*spans)++] = (struct learned_span){whole->span[block].begin, whole->span[block].end,
                                                 HRT_DATA_WEIGHT_ONE};
    return true;
}

bool chat_spans(const struct chat *chat, const struct conversation *conversation,
                const struct jinja_rendered *whole, struct learned_span **span, size_t *spans,
                struct hrt_error *error) {
    const struct search search = {chat, conversation, whole, error};
    const size_t count = json_array_size(conversation->messages);
    struct learned_span *grown = realloc(*span, (count + whole->spans) * sizeof *grown);
    if (!grown) return hrt_fail(error, "out of memory");
    *span = grown;
    *spans = 0;
    if (chat_marks(chat) && !take_marked(&search, grown, spans)) return false;
    for (size_t i = 0; !chat_marks(chat) && i < count; i++) {
        struct learned_span found = {.weight = conversation->weight[i]};
        if (!found.weight) continue;
        if (!find_begin(&search, i, &found.begin) || !find_end(&search, i, &found.end))
            return false;
        if (found.begin < found.end) grown[(*spans)++] = found;
    }
    return true;
}
