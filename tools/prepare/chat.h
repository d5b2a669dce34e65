// Conversations: a model's chat template makes texts of them, and says which tokens count in the loss.
#ifndef HECATE_TOOLS_PREPARE_CHAT_H
#define HECATE_TOOLS_PREPARE_CHAT_H

#include <jansson.h>

#include "runtime/tokenizer/tokenizer.h"
#include "tools/prepare/jinja/jinja.h"

struct chat;

// Reads the template of the model in `folder`: `template` (a file) where it is given, else chat_template.jinja, else
// tokenizer_config.json, which also has the special tokens. `date`: for templates that ask for it; NULL: none.
struct chat *chat_load(const char *folder, const char *template, const char *date,
                       struct hrt_error *error);
void chat_free(struct chat *chat);

// The part of an output's record that tells of it: a reference for the caller.
json_t *chat_record(const struct chat *chat);

// The tokens of a record, over `ids`, and for each how much it counts (runtime/data/weights.h): `weights`, grown with
// them, owned by the caller. Any number of threads, each with its encoder. False: the record is no conversation, or
// the template fails.
bool chat_encode(const struct chat *chat, const struct hrt_tokenizer *tokenizer,
                 struct hrt_encoder *encoder, const json_t *record, struct hrt_ids *ids,
                 uint16_t **weights, struct hrt_error *error);

// The same of a record of a prompt and two answers, `chosen` and `rejected`, texts, messages or lists of them: first
// the tokens of the prompt with the chosen answer, `chosen` of them, then those of the prompt with the other. Where
// both answers are lists that begin alike, that is their prompt, unless the record has one of messages.
bool pairs_encode(const struct chat *chat, const struct hrt_tokenizer *tokenizer,
                  struct hrt_encoder *encoder, const json_t *record, struct hrt_ids *ids,
                  uint16_t **weights, size_t *chosen, struct hrt_error *error);

// ---- parts

struct conversation {
    json_t *messages; // Owned.
    uint16_t *weight; // For each message; owned. 0: it is not learned.
    json_t *context;  // Variables of the template but messages and add_generation_prompt; owned.
};

// {"messages": [...]}, {"conversations": [...]} (from, value), or {"prompt": ..., "completion": ...} as texts or
// messages. Messages of the assistant are learned, with their "weight" (0 to 1, else 1), but for those of a prompt.
bool conversation_read(struct conversation *conversation, const json_t *record,
                       const json_t *special, struct hrt_error *error);
void conversation_free(struct conversation *conversation);

// Renders the first `count` messages.
bool chat_render(const struct chat *chat, const struct conversation *conversation, json_t *messages,
                 size_t count, bool prompt, struct jinja_rendered *out, struct hrt_error *error);
bool chat_marks(const struct chat *chat);
const json_t *chat_special(const struct chat *chat);

struct learned_span { // Bytes of a rendered conversation, and their weight.
    size_t begin, end;
    uint16_t weight;
};

// The bytes of the rendered conversation that are learned, in order, over what `span` holds (owned by the caller).
bool chat_spans(const struct chat *chat, const struct conversation *conversation,
                const struct jinja_rendered *whole, struct learned_span **span, size_t *spans,
                struct hrt_error *error);

#endif
