// The parts of a loaded tokenizer. Private to this folder.
#ifndef HECATE_RUNTIME_TOKENIZER_PARTS_H
#define HECATE_RUNTIME_TOKENIZER_PARTS_H

#include <jansson.h>

#include "runtime/tokenizer/pattern.h"
#include "runtime/tokenizer/table.h"
#include "runtime/tokenizer/tokenizer.h"

// U+2581, which stands for a space where tokens are characters.
#define HRT_SPACE_MARK "\xe2\x96\x81"
enum { HRT_SPACE_MARK_BYTES = 3 };

enum hrt_rule_kind {
    HRT_RULE_COMPOSE, // Normalizer: Unicode's forms of composition, `form`.
    HRT_RULE_PREPEND, // Normalizer: `to` in front of a piece that is not empty.
    HRT_RULE_REPLACE, // Normalizer: `from` becomes `to`.
    HRT_RULE_SPLIT, // Pre-tokenizer: matches of `pattern` are pieces, and so is the text between them.
    HRT_RULE_PREFIX_SPACE, // Pre-tokenizer: a space in front of a piece that begins with none.
    HRT_RULE_METASPACE,    // Pre-tokenizer: spaces become `to`, one of which is put in front.
};

enum hrt_scheme { HRT_ALWAYS, HRT_FIRST, HRT_NEVER };

struct hrt_rule {
    enum hrt_rule_kind kind;
    int form;        // UTF8PROC_COMPOSE ...
    char *from, *to; // Owned; not empty where the rule has one.
    enum hrt_scheme scheme;
    struct hrt_pattern *pattern; // Owned.
};

struct hrt_rules {
    struct hrt_rule *at; // Owned.
    int count;
};

// A token that is found in texts as it is written.
struct hrt_added {
    char *written; // Owned.
    size_t bytes;
    int32_t id;
    bool single_word, lstrip, rstrip;
};

// Sorted by their bytes, so that the longest at a place is found by narrowing a range.
struct hrt_added_set {
    struct hrt_added *at; // Owned.
    int count;
    bool begins[256]; // Whether a token begins with this byte.
};

struct hrt_text {
    char *at; // Owned.
    size_t bytes, room;
};

struct hrt_vocabulary {
    int32_t size;             // One more than the largest id.
    struct hrt_text *written; // [size] As the file has them; none: nobody's id.
    bool *special;            // [size]
};

struct hrt_model {
    struct hrt_names names;   // The keys of symbols and words: bytes, or characters.
    struct hrt_merges merges; // Pairs of symbols.
    int32_t byte[256];        // The symbol of a byte; -1: none.
    int32_t single[256];      // The symbol of a byte, or of a character of ASCII; -1: none.
    int32_t unknown;          // -1: none.
    bool byte_level;          // Symbols are bytes; else characters.
    bool byte_fallback;       // For characters: unknown ones become bytes.
    bool fuse_unknown;        // For characters: unknown ones in a row become one.
    bool whole_words;         // A word of the vocabulary is its token, for any merges.
    bool
        cuts; // Words end between two characters that no merge joins: those of classes without a bit here.
    uint64_t joins[256][4]; // [back class][front class]
};

struct hrt_tokenizer {
    struct hrt_vocabulary vocabulary;
    struct hrt_model model;
    struct hrt_rules normalizer, splitter;
    struct hrt_added_set raw, normalized; // Found in the text; in the normalized text.
    struct hrt_pattern *word, *space;     // One character of each. Owned.
    struct hrt_ids before, behind;        // Around a framed text.
    // For decoding.
    struct hrt_text *decoded; // [size]
    bool drop_first_space;
};

// Classes of characters: the first byte of one at the front of a symbol, the last byte of one at its back; the space
// mark has one of its own, which is no byte of UTF-8.
static inline unsigned hrt_front_class(const char *text, size_t bytes) {
    const bool mark =
        bytes >= HRT_SPACE_MARK_BYTES && memcmp(text, HRT_SPACE_MARK, HRT_SPACE_MARK_BYTES) == 0;
    return mark ? 0xff : (unsigned char)text[0];
}

static inline unsigned hrt_back_class(const char *text, size_t bytes) {
    const size_t last = bytes < HRT_SPACE_MARK_BYTES ? 0 : bytes - HRT_SPACE_MARK_BYTES;
    return hrt_front_class(text + last, bytes - last) == 0xff ? 0xff
                                                              : (unsigned char)text[bytes - 1];
}

// Readers of the file's parts, in the order in which they need each other; `path` names it in errors.
bool hrt_tokenizer_load_rules(struct hrt_tokenizer *tokenizer, const json_t *root, const char *path,
                              struct hrt_error *error);
bool hrt_tokenizer_load_vocabulary(struct hrt_tokenizer *tokenizer, const json_t *root,
                                   const char *path, struct hrt_error *error);
bool hrt_tokenizer_load_model(struct hrt_tokenizer *tokenizer, const json_t *root, const char *path,
                              struct hrt_error *error);
bool hrt_tokenizer_load_decoder(struct hrt_tokenizer *tokenizer, const json_t *root,
                                const char *path, struct hrt_error *error);

// Whether all memory could be had; else `error`.
static inline bool hrt_enough(bool enough, struct hrt_error *error) {
    return enough || hrt_fail(error, "out of memory");
}

// `text` becomes bytes of it, with a NUL behind. False: no memory.
bool hrt_tokenizer_text_set(struct hrt_text *text, const char *at, size_t bytes);
bool hrt_tokenizer_text_append(struct hrt_text *text, const char *at, size_t bytes);
// Appends `at` with all `from` replaced by `to`.
bool hrt_tokenizer_text_replace(struct hrt_text *text, const char *at, size_t bytes,
                                const char *from, const char *to);

// Bytes of UTF-8 at `at`, of which there are `left`: those of a character (`sound`), or of what a reader takes for
// one broken character.
size_t hrt_tokenizer_utf8_length(const char *at, size_t left, bool *sound);
// The text, or `repaired`, where invalid UTF-8 is U+FFFD. False: no memory.
bool hrt_tokenizer_utf8_repair(const char **text, size_t *bytes, struct hrt_text *repaired);

// Applies the normalizer to a piece: `text`, or the text in `scratch` [2]. False: no memory.
bool hrt_tokenizer_normalize(const struct hrt_rules *normalizer, const char **text, size_t *bytes,
                             struct hrt_text scratch[2]);

#endif
