// Jinja: values, trees and the state of a rendering, shared by the files of this folder.
//
// A function that fails notes the first reason in its state and returns something harmless; callers go on until they
// look at `failed`, at the latest at the end of a loop. Everything lives in an arena and goes with it.
#ifndef HECATE_TOOLS_PREPARE_JINJA_INSIDE_H
#define HECATE_TOOLS_PREPARE_JINJA_INSIDE_H

#include <stdint.h>

#include "tools/prepare/jinja/jinja.h"

// ---- memory

struct arena {
    struct arena_block *block;
    size_t taken, most;
};

// NULL: there is no memory, or `most` would be exceeded.
void *arena_take(struct arena *arena, size_t bytes);
void arena_free(struct arena *arena);

// ---- values

enum value_kind {
    VALUE_UNDEFINED,
    VALUE_NONE,
    VALUE_BOOLEAN,
    VALUE_INTEGER,
    VALUE_REAL,
    VALUE_TEXT,
    VALUE_LIST, // Tuples, too.
    VALUE_MAP,
    VALUE_NAMESPACE,
    VALUE_MACRO,
    VALUE_FUNCTION, // A global function.
    VALUE_LOOP,
};

struct text {
    const char *at; // UTF-8, not terminated.
    size_t bytes;
};

struct value {
    enum value_kind kind;
    union {
        bool boolean;
        int64_t integer;
        double real;
        struct text text; // With VALUE_UNDEFINED the name that has no value.
        struct list *list;
        struct map *map; // A namespace's, too.
        const struct node *macro;
        const struct function *function;
        const struct loop *loop;
    };
};

struct list {
    struct value *at;
    size_t count, room;
};

struct entry {
    struct value key, value;
};

struct map { // In the order of insertion.
    struct entry *at;
    size_t count, room;
};

struct loop {
    const struct list *items;
    size_t index; // From 0.
    int depth;    // Loops in loops, from 1.
};

// ---- trees

enum node_kind {
    // Expressions
    NODE_CONSTANT,  // value
    NODE_NAME,      // text
    NODE_LIST,      // list
    NODE_MAP,       // list: NODE_PAIR
    NODE_PAIR,      // a: key, b: value
    NODE_ATTRIBUTE, // a.text
    NODE_ITEM,      // a[b]
    NODE_SLICE,     // a[b:c:d]
    NODE_CALL,      // a(list); NODE_KEYWORD among them
    NODE_KEYWORD,   // text = a
    NODE_FILTER,    // a | text(list)
    NODE_TEST,      // a is text(list)
    NODE_NOT,
    NODE_NEGATIVE,
    NODE_AND,
    NODE_OR,
    NODE_IF_ELSE, // b if a else c; c may be absent
    NODE_COMPARE, // a, and then each of list: NODE_OPERAND
    NODE_OPERAND, // text: the operator, a
    NODE_BINARY,  // a text b
    // Statements
    NODE_DATA,       // text
    NODE_OUTPUT,     // a
    NODE_IF,         // a: list, else other
    NODE_FOR,        // for targets (NODE_NAME) in a if b: list, else other
    NODE_SET,        // targets = a
    NODE_SET_BLOCK,  // targets, list
    NODE_MACRO,      // text(targets: NODE_KEYWORD, whose a is absent without default): list
    NODE_GENERATION, // list
    NODE_BREAK,
    NODE_CONTINUE,
};

struct node {
    enum node_kind kind;
    int line;
    struct text text;
    struct value value;
    struct node *a, *b, *c, *d;
    struct node *list, *other, *targets; // Lists, linked by `next`.
    struct node *next;
};

struct jinja {
    struct arena arena;
    char *name;
    struct node *body;
    bool generates;
};

// ---- tokens

enum token_kind {
    TOKEN_DATA,
    TOKEN_BEGIN_OUTPUT,
    TOKEN_END_OUTPUT,
    TOKEN_BEGIN_BLOCK,
    TOKEN_END_BLOCK,
    TOKEN_NAME,
    TOKEN_STRING,
    TOKEN_INTEGER,
    TOKEN_REAL,
    TOKEN_SIGN,
    TOKEN_END,
};

struct token {
    enum token_kind kind;
    int line;
    struct text text;
    int64_t integer;
    double real;
};

struct source { // The state of the lexer and the parser.
    struct jinja *jinja;
    struct hrt_error *error;
    bool failed;
    struct token *token; // The last one is TOKEN_END.
    size_t tokens, room;
    size_t next; // The parser's place.
    int depth;
};

// Notes the first reason: "NAME, line LINE: ...".
void source_fail(struct source *source, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
// Cuts a template into tokens.
void jinja_scan(struct source *source, const char *text, size_t bytes);

// Parsing: source.c has the state, expression.c expressions, parse.c statements.
struct node *jinja_node(struct source *source, enum node_kind kind, int line);
const struct token *jinja_peek(const struct source *source);
bool jinja_is(const struct source *source, enum token_kind kind, const char *text);
// Takes the next token if it is that; `text` NULL: any of the kind.
bool jinja_accept(struct source *source, enum token_kind kind, const char *text);
void jinja_expect(struct source *source, enum token_kind kind, const char *text);
// A whole expression; a tuple without parentheses, too, where `tuple` allows it.
struct node *jinja_expression(struct source *source, bool tuple);
// Without an `if` behind it.
struct node *jinja_disjunction(struct source *source);
bool text_is(struct text text, const char *other);

// ---- rendering

struct scope {
    struct map names;
    struct scope *outer;
};

struct buffer {
    char *at;
    size_t bytes, room;
};

enum { RUN_MEMORY = 256 << 20 };
struct call;

struct run {
    const struct jinja *jinja;
    const char *date;
    struct hrt_error *error;
    bool failed;
    int line; // The line that is evaluated.
    int depth;
    int64_t work; // Left.
    struct arena arena;
    struct scope globals;
    struct scope *scope;
    struct buffer *out, whole; // `out` is `whole`, but inside of macros and blocks that are set.
    enum { FLOW_ON, FLOW_BREAK, FLOW_CONTINUE } flow;
    int loops;
    struct jinja_rendered *rendered;
    // Calls a macro: expressions do, and are part of it.
    struct value (*macro)(struct run *run, const struct node *macro, const struct call *call);
};

struct call { // The arguments of a call, a filter or a test.
    struct value *at;
    size_t count;
    struct map keywords;
};

struct function {
    const char *name;
    struct value (*call)(struct run *run, const struct call *call);
};

struct value run_fail(struct run *run, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
// Pays for work on so many bytes or items; false: there was too much, or it has failed already.
bool run_pay(struct run *run, size_t amount);
void *run_take(struct run *run, size_t bytes);

void buffer_add(struct run *run, struct buffer *buffer, const char *at, size_t bytes);
struct value buffer_value(const struct buffer *buffer);

// Values.
struct value value_none(void);
struct value value_boolean(bool boolean);
struct value value_integer(int64_t integer);
struct value value_text(const char *at, size_t bytes);
struct value value_string(const char *text); // Not copied.
struct value value_undefined(struct text name);
struct value value_list(struct run *run, size_t room);
void list_add(struct run *run, struct list *list, struct value value);
void map_set(struct run *run, struct map *map, struct value key, struct value value);
const struct value *map_find(const struct map *map, struct value key);
const struct value *map_name(const struct map *map, struct text name);
bool value_is_true(const struct value *value);
bool value_is_number(const struct value *value);
double value_number(const struct value *value);
bool value_equal(struct run *run, const struct value *a, const struct value *b);
int value_compare(struct run *run, const struct value *a, const struct value *b);
bool value_contains(struct run *run, const struct value *where, const struct value *what);
// The text that Python's str gives. Lists and maps have none: that fails.
struct text value_print(struct run *run, const struct value *value);
struct list *value_iterate(struct run *run, const struct value *value);
struct value value_item(struct run *run, const struct value *of, const struct value *key);
struct value value_attribute(struct run *run, const struct value *of, struct text name);
const char *value_kind_name(const struct value *value);
struct value value_of_json(struct run *run, const json_t *json);
struct value value_dump(struct run *run, const struct value *value, int64_t indent); // JSON.
struct value value_slice(struct run *run, const struct value *of, const struct value bound[3]);

// Texts, in characters.
size_t text_step(const char *at, size_t left); // Bytes of the character at `at`.
size_t text_length(struct text text);
bool text_is_space(const char *at, size_t bytes);
// Without white space (`signs` NULL) or the characters of `signs` at its ends.
struct text text_strip(struct text text, const struct text *signs, bool left, bool right);
// Where `what` begins in `text` from `from` on; SIZE_MAX: nowhere.
size_t text_find(struct text text, struct text what, size_t from);

// Evaluation.
struct value run_evaluate(struct run *run, const struct node *node);
void run_statements(struct run *run, const struct node *list);
struct value run_method(struct run *run, const struct value *of, struct text name,
                        const struct call *call);
bool is_method(const struct value *of, struct text name);
struct value run_filter(struct run *run, struct text name, const struct value *of,
                        const struct call *call);
bool run_test(struct run *run, struct text name, const struct value *of, const struct call *call);
const struct function *find_function(struct text name);
// Argument number `index`, or by name; NULL: it is not given.
const struct value *call_argument(const struct call *call, size_t index, const char *name);
// Refuses more than `most` arguments, or keywords that are not among `names` (which NULL ends).
bool call_check(struct run *run, const char *what, const struct call *call, size_t least,
                size_t most, const char *const *names);

#endif
