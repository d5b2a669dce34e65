// inspect: describes files of tokens. check: compares them with their records.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/data/file.h"
#include "runtime/data/weights.h"
#include "tools/prepare/prepare.h"

// The result of a walk over all tokens of a file.
struct found {
    int64_t tokens, documents; // Documents, where the format has them.
    int64_t counted;           // Tokens that count in the loss; -1: the file has no weights.
    double weight;             // The sum of the weights.
    int32_t largest;
};

static bool walk(const char *path, const struct options *o, struct found *found,
                 struct document *first, struct hrt_error *error) {
    struct document document = {0};
    struct source *source = source_open(path, o->kind, o->field, false, error);
    int got = -1;
    if (!source) return false;
    const bool weighted = source_is_weighted(source);
    found->counted = weighted ? 0 : -1;
    if (source_is_text(source))
        hrt_fail(error, "'%s' is text, not tokens", path);
    else
        while ((got = source_next(source, &document, error)) == 1) {
            for (size_t i = 0; i < document.ids.count; i++) {
                const int32_t id = document.ids.at[i];
                if (id > found->largest) found->largest = id;
                if (weighted) found->counted += document.weights[i] > 0;
                if (weighted) found->weight += (double)hrt_data_half_value(document.weights[i]);
                if (o->vocabulary && id >= o->vocabulary) {
                    got = -1;
                    hrt_fail(error,
                             "'%s': token %" PRId64 " is %d, outside the vocabulary of %" PRId64,
                             path, found->tokens + (int64_t)i, id, o->vocabulary);
                    break;
                }
            }
            if (got < 0) break;
            found->tokens += (int64_t)document.ids.count;
            if (found->documents++ == 0 && first) {
                *first = document;
                document = (struct document){0};
            }
        }
    free(document.text);
    free(document.ids.at);
    free(document.weights);
    source_close(source);
    return got == 0;
}

static void print_first(const struct hrt_tokenizer *tokenizer, const struct document *first,
                        int64_t count) {
    for (int64_t i = 0; i < count && i < (int64_t)first->ids.count; i++) {
        const int32_t id = first->ids.at[i];
        if (!tokenizer) {
            printf("%s%d", i ? " " : "", id);
            continue;
        }
        const struct hrt_piece piece = hrt_tokenizer_decode(tokenizer, id, i == 0);
        fwrite(piece.text, 1, piece.bytes, stdout);
    }
    if (count) puts("");
}

int inspect(const struct options *o, struct hrt_error *error) {
    struct hrt_tokenizer *tokenizer = NULL;
    bool done = true;
    if (o->tokenizer) {
        tokenizer = hrt_tokenizer_load(o->tokenizer, error);
        done = tokenizer;
    }
    for (int i = 0; done && i < o->files; i++) {
        struct found found = {0};
        struct document first = {0};
        done = walk(o->file[i], o, &found, &first, error);
        if (done) {
            printf("%s: %" PRId64 " tokens, the largest id is %d", o->file[i], found.tokens,
                   found.largest);
            if (found.counted >= 0) printf(", %" PRId64 " count in the loss", found.counted);
            if (found.weight < (double)found.counted) printf(" by %.1f", found.weight);
            puts("");
            print_first(tokenizer, &first, o->show);
        }
        free(first.text);
        free(first.ids.at);
        free(first.weights);
    }
    hrt_tokenizer_free(tokenizer);
    return done ? HRT_EXIT_DONE : (int)error->code;
}

// CRC-32 of a file's tokens, as they lie in it.
static bool crc_of(const char *path, uint32_t *crc, struct hrt_error *error) {
    char block[1 << 16];
    const char *why;
    FILE *file = hf_input(path, false, &why);
    if (!file) return hrt_fail(error, "cannot open '%s': %s", path, why);
    *crc = 0;
    bool sound = fread(block, 1024, 1, file) == 1; // The header.
    for (size_t got; sound && (got = fread(block, 1, sizeof block, file)) > 0;)
        *crc = record_crc(*crc, block, got);
    sound = sound && !ferror(file);
    fclose(file);
    return sound || hrt_fail(error, "cannot read '%s'", path);
}

static bool check_file(const char *path, const struct options *o, struct hrt_error *error) {
    struct found found = {0};
    uint32_t crc;
    const size_t length = strlen(path);
    const bool index = length > 4 && strcmp(path + length - 4, ".idx") == 0;
    if (!walk(path, o, &found, NULL, error)) return false;
    if (index || o->kind == KIND_MEGATRON) return true; // It has no record.
    json_t *record = record_read(path, error);
    if (!record) return false;
    bool sound = crc_of(path, &crc, error);
    if (sound && (json_integer_value(json_object_get(record, "tokens")) != found.tokens ||
                  json_integer_value(json_object_get(record, "crc32")) != (json_int_t)crc))
        sound = hrt_fail(error, "'%s' is not the file that its record '%s.json' is of", path, path);
    const json_t *counted = json_object_get(record, "counted");
    if (sound && counted && json_integer_value(counted) != found.counted)
        sound = hrt_fail(error, "'%s.weights' is not that of its record: %" PRId64 " tokens count",
                         path, found.counted);
    json_decref(record);
    return sound;
}

int check(const struct options *o, struct hrt_error *error) {
    for (int i = 0; i < o->files; i++) {
        if (!check_file(o->file[i], o, error)) return (int)error->code;
        printf("%s: sound\n", o->file[i]);
    }
    return HRT_EXIT_DONE;
}
