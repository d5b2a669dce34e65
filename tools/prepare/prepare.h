// hecate-data: shared by its commands. Functions that fail say why in `error`.
#ifndef HECATE_TOOLS_PREPARE_PREPARE_H
#define HECATE_TOOLS_PREPARE_PREPARE_H

#include <jansson.h>
#include <stdio.h>

#include "files/files.h"
#include "runtime/tokenizer/tokenizer.h"

enum kind { KIND_AUTO, KIND_TEXT, KIND_LINES, KIND_JSONL, KIND_LLMC, KIND_MEGATRON, KIND_JSON };

struct options {
    const char *tokenizer; // --tokenizer; NULL: none.
    const char *out;       // --out: a folder of tokenize, a file of mix.
    const char *field;     // --field: of JSON records.
    const char *end;       // --end: the token behind every document; NULL: not said.
    const char *model;     // --model: a folder with a tokenizer and a chat template, of chat.
    const char *template;  // --template: a file with another one; NULL: the model's.
    const char *date;      // --date: for templates that ask for it; NULL: not given.
    enum kind kind;        // --input
    double validation;     // --validation: share of the documents.
    bool skip;             // --bad=skip: bad records are left out.
    bool frame;            // --frame: tokens that the tokenizer puts around a text
    int64_t seed, threads; // --seed, --threads
    int64_t tokens, block; // --tokens, --block: of mix.
    int64_t show;          // --show: tokens that inspect prints.
    int64_t vocabulary;    // --vocabulary: the bound of ids; 0: not given.
    bool pairs;            // The command is pairs.
    int64_t pack;          // --pack: tokens of a sequence of whole documents; 0: none.
    int64_t layers, dense, experts, topk; // --layers, --dense, --experts, --topk: of routes.
    char **file;                          // The rest of the command line.
    int files;
};

// The commands. They return the exit code.
int tokenize(const struct options *options, struct hrt_error *error);
int chat(const struct options *options, struct hrt_error *error);
int pairs(const struct options *options, struct hrt_error *error);
int routes(const struct options *options, struct hrt_error *error);
int rollouts(const struct options *options, struct hrt_error *error);
int inspect(const struct options *options, struct hrt_error *error);
int check(const struct options *options, struct hrt_error *error);
int mix(const struct options *options, struct hrt_error *error);

// ---- inputs

struct document {
    char *text; // Owned; of inputs that hold text.
    size_t bytes, room;
    struct hrt_ids ids; // For inputs that hold tokens, or once it is encoded.
    json_t
        *record; // Owned; the whole record, of inputs that are opened without a field. NULL: none.
    uint16_t *
        weights; // Owned; how much ids count (runtime/data/weights.h), where inputs say. NULL: unknown.
    size_t chosen; // How many ids of a pair are those of the chosen answer with its prompt.
    int64_t place; // The number of the line or the record, from 1.
    bool left_out; // It could not be encoded.
};

struct source; // An input, and how far it has been read.

// Opens an input. KIND_AUTO goes by its name: .jsonl, .json (an array), .bin (llm.c), .idx (Megatron), each also with
// .gz, .zst, .xz or .bz2 behind it; anything else is text. Texts of any name may be compressed. `field`: of JSON
// records; NULL: the whole record is wanted. `skips`: bad records of JSON are counted, told on standard error and left
// out, instead of failing.
struct source *source_open(const char *path, enum kind kind, const char *field, bool skips,
                           struct hrt_error *error);
void source_close(struct source *source);
// Whether its documents hold text, which a tokenizer is needed for.
bool source_is_text(const struct source *source);
// Whether they are tokens with weights, which documents then have.
bool source_is_weighted(const struct source *source);
// Whether they are records of JSON.
bool source_has_records(const struct source *source);
// Records that were left out so far.
int64_t source_bad(const struct source *source);
// Tells of a record that is left out, the first ones by name. False: it is not to be left out.
bool source_skip(struct source *source, const struct hrt_error *error);
// The unit of a document's place: "line" or "record".
const char *source_unit(const struct source *source);
// The next document, over what `document` holds. 1, 0: there is none, -1: it failed.
int source_next(struct source *source, struct document *document, struct hrt_error *error);

// Megatron's X.idx with X.bin: documents of tokens. NULL, `error`: the fault of one of them.
struct megatron;
struct megatron *megatron_open(const char *index, const char *bin, struct hrt_error *error);
void megatron_close(struct megatron *megatron);
int64_t megatron_documents(const struct megatron *megatron);
bool megatron_read(const struct megatron *megatron, int64_t document, struct hrt_ids *ids,
                   struct hrt_error *error);

// ---- outputs

// A file of tokens on its way: llm.c's .bin, and beside it its record, PATH.json, and, where tokens do not all count in
// the loss, PATH.weights (runtime/data/weights.h).
struct output {
    struct hf_replacement replacement, weights;
    bool weighted, halves; // `halves`: some weight was neither 0 nor 1.
    unsigned char bits;    // Weights of the last tokens, which do not fill a byte yet.
    int64_t counted;       // Tokens of a weight above 0.
    double weight;         // The sum of their weights.
    char *path;            // Owned.
    int token_bytes;
    int64_t vocabulary, tokens, documents;
    int32_t largest, packed; // `packed`: tokens of a sequence of whole documents; 0: it has none.
    int32_t group;           // Sequences that belong together: 2 of pairs; 0: each is alone.
    uint32_t crc;            // CRC-32 of the tokens.
};

// Ids of the file are below `vocabulary`, which decides how wide they are. `weighted`: with a weight for each.
// `packed` and `group`: as of struct output; packed files have weights.
bool output_begin(struct output *output, const char *path, int64_t vocabulary, bool weighted,
                  int64_t packed, int group, struct hrt_error *error);
// Adds tokens, all of which or none are in one document. `weights` [count], of a weighted file; NULL: 0.
bool output_add(struct output *output, const int32_t *id, const uint16_t *weights, size_t count,
                struct hrt_error *error);
// Finishes the file and writes the record, to which `made` (owned by the caller) is added as "made"; or drops both,
// when the data to write failed.
bool output_end(struct output *output, bool sound, json_t *made, struct hrt_error *error);

// Documents on their way to sequences of `positions` tokens, 2 to 2^24, which have whole ones (pack.c). `end`: the
// token that ends documents, which padding is made of. NULL: out of memory.
struct pack;
struct pack *pack_create(int64_t positions, int32_t end, struct hrt_error *error);
void pack_free(struct pack *pack);
// Adds tokens to the open document. `weights` [count]; NULL: 1 each, or 0, as `otherwise` says.
bool pack_put(struct pack *pack, const int32_t *id, const uint16_t *weights, bool otherwise,
              size_t count, struct hrt_error *error);
// Ends the open document, if it has a token; one that does not end in `end` gets one, which does not count. Now and
// then sequences are written.
bool pack_close(struct pack *pack, struct output *output, struct hrt_error *error);
// The same, and all sequences are written.
bool pack_flush(struct pack *pack, struct output *output, struct hrt_error *error);
// Tokens of padding that were written.
int64_t pack_padding(const struct pack *pack);

// ---- records

// {"path", "bytes", "crc32"} of a file, which is read whole. NULL: it failed.
json_t *record_of(const char *path, struct hrt_error *error);
// The record of a file of tokens. NULL: there is none, or it is damaged (`error`).
json_t *record_read(const char *path, struct hrt_error *error);
// Adds to the CRC-32 of a file of tokens.
uint32_t record_crc(uint32_t crc, const void *at, size_t bytes);

#endif
