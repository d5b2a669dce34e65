// Records of conversations, in the forms that people have them.
#include <stdlib.h>
#include <string.h>

#include "runtime/data/weights.h"
#include "tools/prepare/chat.h"

// Roles of {"from": ..., "value": ...}.
static const char *role_of(const char *from) {
    static const char *const roles[][2] = {{"human", "user"},
                                           {"gpt", "assistant"},
                                           {"model", "assistant"},
                                           {"bing", "assistant"},
                                           {"chatgpt", "assistant"}};
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        if (strcmp(from, roles[i][0]) == 0) return roles[i][1];
    }
    return from;
}

static bool check_message(const json_t *message, size_t number, struct hrt_error *error) {
    if (!json_is_object(message)) return hrt_fail(error, "message %zu is no object", number);
    if (!json_is_string(json_object_get(message, "role")))
        return hrt_fail(error, "message %zu has no role", number);
    if (!json_object_get(message, "content") && !json_object_get(message, "tool_calls"))
        return hrt_fail(error, "message %zu has no content", number);
    return true;
}

// Appends messages as they are; those of ShareGPT's form as others have them.
static bool add_messages(struct conversation *conversation, const json_t *messages,
                         struct hrt_error *error) {
    for (size_t i = 0; i < json_array_size(messages); i++) {
        json_t *message = json_array_get(messages, i);
        const char *from = json_string_value(json_object_get(message, "from"));
        json_t *value = json_object_get(message, "value");
        json_t *made = from && value
                           ? json_pack("{s:s, s:O}", "role", role_of(from), "content", value)
                           : json_incref(message);
        if (!made || json_array_append_new(conversation->messages, made) != 0)
            return hrt_fail(error, "out of memory");
        if (!check_message(made, json_array_size(conversation->messages), error)) return false;
    }
    return true;
}

// Appends a text as one message of the role, or messages.
static bool add_part(struct conversation *conversation, const char *role, json_t *part,
                     struct hrt_error *error) {
    if (json_is_array(part)) return add_messages(conversation, part, error);
    json_t *message = json_pack("{s:s, s:O}", "role", role, "content", part);
    return (message && json_array_append_new(conversation->messages, message) == 0) ||
           hrt_fail(error, "out of memory");
}

// The record's field of one of the names, if it is a text or, but for `texts`, a list.
static json_t *find(const json_t *record, const char *const *names) {
    for (; *names; names++) {
        json_t *found = json_object_get(record, *names);
        if (json_is_array(found) || json_is_string(found)) return found;
    }
    return NULL;
}

static bool read_messages(struct conversation *conversation, const json_t *record, size_t *asked,
                          struct hrt_error *error) {
    static const char *const lists[] = {"messages", "conversations", "conversation", NULL},
                             *const prompts[] = {"prompt", "question", "instruction", NULL},
                             *const answers[] = {"completion", "answer", "response", "output",
                                                 NULL};
    json_t *messages = find(record, lists), *prompt = find(record, prompts),
           *answer = find(record, answers);
    json_t *system = json_object_get(record, "system");
    if (json_is_array(messages)) return add_messages(conversation, messages, error);
    if (!prompt || !answer)
        return hrt_fail(error, "no conversation: neither messages, nor prompt and completion");
    if (json_is_string(system) && !add_part(conversation, "system", system, error)) return false;
    if (!add_part(conversation, "user", prompt, error)) return false;
    *asked = json_array_size(conversation->messages);
    return add_part(conversation, "assistant", answer, error);
}

// How much messages are learned; those of the prompt, the first `asked`, are not.
static bool weigh_messages(struct conversation *conversation, size_t asked,
                           struct hrt_error *error) {
    const size_t count = json_array_size(conversation->messages);
    bool any = false;
    if (count == 0) return hrt_fail(error, "a conversation without messages");
    conversation->weight = calloc(count, sizeof *conversation->weight);
    if (!conversation->weight) return hrt_fail(error, "out of memory");
    for (size_t i = asked; i < count; i++) {
        const json_t *message = json_array_get(conversation->messages, i);
        const json_t *weight = json_object_get(message, "weight");
        const double number = weight ? json_number_value(weight) : 1;
        if (weight && !(json_is_number(weight) && number >= 0 && number <= 1))
            return hrt_fail(error, "message %zu: its weight is no number from 0 to 1", i + 1);
        if (strcmp(json_string_value(json_object_get(message, "role")), "assistant") == 0)
            conversation->weight[i] = hrt_data_half_of(number);
        any |= conversation->weight[i] > 0;
    }
    return any || hrt_fail(error, "no message of the assistant that is learned");
}

static bool add_context(struct conversation *conversation, const json_t *record,
                        const json_t *special, struct hrt_error *error) {
    static const char *const kept[] = {"tools", "documents"};
    json_t *context = json_copy((json_t *)(uintptr_t)special);
    json_t *arguments = json_object_get(record, "chat_template_kwargs");
    conversation->context = context;
    bool done = context != NULL;
    for (size_t i = 0; done && i < sizeof kept / sizeof *kept; i++) {
        json_t *value = json_object_get(record, kept[i]);
        done = json_object_set_new(context, kept[i], value ? json_incref(value) : json_null()) == 0;
    }
    if (done && json_is_object(arguments)) done = json_object_update(context, arguments) == 0;
    return done || hrt_fail(error, "out of memory");
}

bool conversation_read(struct conversation *conversation, const json_t *record,
                       const json_t *special, struct hrt_error *error) {
    size_t asked = 0;
    *conversation = (struct conversation){.messages = json_array()};
    if (!conversation->messages) return hrt_fail(error, "out of memory");
    if (read_messages(conversation, record, &asked, error) &&
        weigh_messages(conversation, asked, error) &&
        add_context(conversation, record, special, error))
        return true;
    conversation_free(conversation);
    return false;
}

void conversation_free(struct conversation *conversation) {
    json_decref(conversation->messages);
    json_decref(conversation->context);
    free(conversation->weight);
    *conversation = (struct conversation){0};
}
