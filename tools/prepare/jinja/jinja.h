// Templates of chats: the part of Jinja that models' chat_template is written in, rendered as transformers does
// (trim_blocks, lstrip_blocks, loop controls, generation blocks). Anything else is refused by name, with its line.
//
//     struct jinja *jinja = jinja_parse("chat_template.jinja", text, bytes, &error);
//     jinja_render(jinja, context, date, &rendered, &error);
//
// A template does not change once it is parsed: any number of threads render it. Templates are not trusted: nesting,
// work, memory and the length of the text are bounded. docs/data.md says what is known.
//
// Source: the documentation of Jinja 3.1, "Template Designer Documentation"; transformers' chat templates.
#ifndef HECATE_TOOLS_PREPARE_JINJA_JINJA_H
#define HECATE_TOOLS_PREPARE_JINJA_JINJA_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "runtime/base/error.h"

struct jinja;

struct jinja_span { // Bytes of a text.
    size_t begin, end;
};

// A rendered text. Zero-initialized it is empty; jinja_rendered_free frees it.
struct jinja_rendered {
    char *text;
    size_t bytes;
    struct jinja_span *span; // Generation blocks, in order.
    size_t spans;
};

// Parses a template of at most 1 MiB. `name`, for messages, is copied. NULL: `error` has the line and the reason.
struct jinja *jinja_parse(const char *name, const char *text, size_t bytes,
                          struct hrt_error *error);
void jinja_free(struct jinja *jinja);

// Whether it marks the assistant's text by generation blocks.
bool jinja_has_generation(const struct jinja *jinja);

// Renders over what `rendered` holds. `context`: an object, whose members are the variables. `date`: of
// strftime_now, YYYY-MM-DD; NULL: a template that asks for it is refused, so texts do not depend on the day. False:
// the template has failed (`error` has its line and reason), and `rendered` is empty.
bool jinja_render(const struct jinja *jinja, const json_t *context, const char *date,
                  struct jinja_rendered *rendered, struct hrt_error *error);
void jinja_rendered_free(struct jinja_rendered *rendered);

#endif
