// routes: the experts that an engine of rollouts has chosen become a file for --route=ids:FILE.
#include "tools/prepare/routes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/route/ids_file.h"
#include "tools/prepare/prepare.h"

struct routes_file {
    const struct options *options;
    const char *path;
    struct hrt_ids_layer *layer; // [--layers]
    struct hrt_ids_file file;
    int32_t **ids;     // [--layers], a sequence: [--pack][--topk] each.
    int64_t sequences; // Written.
    int64_t padding;   // Tokens without routes.
    struct hrt_error *error;
};

// ---- a sequence

// Whether the top-k choices of a token are experts, all different.
static bool check_token(const struct routes_file *job, const int32_t *id, int64_t token,
                        int64_t layer) {
    const struct options *o = job->options;
    const char *help = o->dense ? "" : "; if the first layers have no router, --dense=N says so";
    for (int64_t k = 0; k < o->topk; k++) {
        if (id[k] < 0 || id[k] >= o->experts)
            return hrt_fail(job->error,
                            "token %" PRId64 ", layer %" PRId64 ": %" PRId32 " is none of %" PRId64
                            " experts%s",
                            token, layer, id[k], o->experts, help);
        for (int64_t j = 0; j < k; j++) {
            if (id[j] == id[k])
                return hrt_fail(job->error,
                                "token %" PRId64 ", layer %" PRId64 ": expert %" PRId32
                                " is there twice%s",
                                token, layer, id[k], help);
        }
    }
    return true;
}

// Tokens behind the routes go to one expert after the other, so that they burden none.
static void pad(struct routes_file *job, int64_t tokens) {
    const struct options *o = job->options;
    for (int64_t layer = 0; layer < o->layers; layer++) {
        for (int64_t i = tokens * o->topk; i < o->pack * o->topk; i++)
            job->ids[layer][i] = (int32_t)(i % o->experts);
    }
    job->padding += o->pack - tokens;
}

static bool write_sequence(struct routes_file *job, const int32_t *id, int64_t tokens) {
    const struct options *o = job->options;
    if (tokens < 1 || tokens > o->pack)
        return hrt_fail(job->error,
                        "there are routes of %" PRId64 " tokens, and a sequence has %" PRId64
                        " (--pack)",
                        tokens, o->pack);
    for (int64_t t = 0; t < tokens; t++) {
        id += o->dense * o->topk;
        for (int64_t layer = 0; layer < o->layers; layer++, id += o->topk) {
            if (!check_token(job, id, t, o->dense + layer)) return false;
            memcpy(job->ids[layer] + t * o->topk, id, (size_t)o->topk * sizeof *id);
        }
    }
    pad(job, tokens);
    if (job->sequences == UINT32_MAX)
        return hrt_fail(job->error, "a file has at most %" PRIu32 " sequences", UINT32_MAX);
    return hrt_route_ids_file_write(&job->file, job->sequences++, (const int32_t *const *)job->ids,
                                    job->error);
}

// ---- records of JSON

// Adds what a record has under a name, or in its meta_info. False: it failed; `*found`: it has it.
static bool add_member(struct routes_file *job, const json_t *record, const char *name, bool *found,
                       struct routes *routes) {
    const struct options *o = job->options;
    struct hrt_error why = {0};
    const json_t *value = json_object_get(record, name);
    if (!value || json_is_null(value))
        value = json_object_get(json_object_get(record, "meta_info"), name);
    *found = value && !json_is_null(value);
    return !*found || routes_add(routes, value, o->dense + o->layers, o->topk, &why) ||
           hrt_fail(job->error, "'%s': %s", name, why.text);
}

// Whether there are routes for as many tokens as the engine counts, but perhaps for the last, which nothing followed.
static bool check_count(struct routes_file *job, const json_t *counts, int64_t tokens) {
    const json_t *prompt = json_object_get(counts, "prompt_tokens"),
                 *answer = json_object_get(counts, "completion_tokens");
    if (!json_is_integer(prompt) || !json_is_integer(answer)) return true;
    const json_int_t all = json_integer_value(prompt) + json_integer_value(answer);
    return tokens == all || tokens == all - 1 ||
           hrt_fail(job->error,
                    "there are routes of %" PRId64 " tokens, and the engine counts %" PRId64,
                    tokens, (int64_t)all);
}

// A sequence: the prompt's routes, if they stand alone, and those of one answer. `tokens`: how many the sequence has;
// 0: that is not known.
static bool add_answer(struct routes_file *job, const json_t *record, const json_t *answer,
                       int64_t tokens) {
    struct routes routes = {0};
    bool with_prompt = false, found = false;
    bool sound = add_member(job, record, "prompt_routed_experts", &with_prompt, &routes) &&
                 add_member(job, answer, "routed_experts", &found, &routes) &&
                 (found || hrt_fail(job->error, "there is no 'routed_experts'")) &&
                 check_count(job, json_object_get(answer, "meta_info"), routes.tokens);
    if (sound && tokens && routes.tokens != tokens && routes.tokens != tokens - 1)
        sound = hrt_fail(job->error,
                         "there are routes of %" PRId64 " tokens, and the prompt and its answer "
                         "have %" PRId64,
                         routes.tokens, tokens);
    sound = sound && write_sequence(job, routes.id, routes.tokens);
    routes_free(&routes);
    return sound;
}

static bool add_record(struct routes_file *job, const json_t *record) {
    const json_t *choices = json_object_get(record, "choices");
    if (json_array_size(choices) == 0) return add_answer(job, record, record, 0);
    for (size_t i = 0; i < json_array_size(choices); i++) {
        if (!add_answer(job, record, json_array_get(choices, i), 0)) return false;
    }
    return true;
}

static bool read_records(struct routes_file *job, const char *path) {
    struct document document = {0};
    struct hrt_error *error = job->error, why = {0};
    struct source *source = source_open(path, job->options->kind, NULL, false, error);
    if (!source) return false;
    bool sound =
        source_has_records(source) ||
        hrt_fail_usage(error, "'%s': routes are JSON lines, a JSON array or NumPy's .npy", path);
    for (int got = 1; sound && (got = source_next(source, &document, error)) != 0;) {
        if (got < 0) {
            sound = false;
            break;
        }
        job->error = &why;
        sound = add_record(job, document.record) ||
                hrt_fail(error, "'%s', %s %" PRId64 ": %s", path, source_unit(source),
                         document.place, why.text);
    }
    job->error = error;
    json_decref(document.record);
    source_close(source);
    return sound;
}

// ---- arrays

static bool is_array(const char *path) {
    const size_t length = strlen(path);
    return length > 4 && strcmp(path + length - 4, ".npy") == 0;
}

// The bytes of a file, the caller's. NULL: it failed.
static unsigned char *read_whole(const char *path, size_t *count, struct hrt_error *error) {
    const char *why;
    FILE *file = hf_input(path, false, &why);
    unsigned char *bytes = NULL;
    if (!file) {
        hrt_fail(error, "cannot open '%s': %s", path, why);
        return NULL;
    }
    for (size_t room = 1 << 16, got = 1; got > 0 && !ferror(file); *count += got) {
        if (!bytes || *count == room) {
            room *= bytes ? 2 : 1;
            unsigned char *grown = realloc(bytes, room);
            if (!grown) {
                free(bytes);
                fclose(file);
                hrt_fail(error, "'%s': out of memory", path);
                return NULL;
            }
            bytes = grown;
        }
        got = fread(bytes + *count, 1, room - *count, file);
    }
    const bool failed = ferror(file);
    if (failed) hrt_fail(error, "cannot read '%s': %s", path, strerror(errno));
    fclose(file);
    if (!failed) return bytes;
    free(bytes);
    return NULL;
}

static bool read_array(struct routes_file *job, const char *path) {
    const struct options *o = job->options;
    struct hrt_error *error = job->error, why = {0};
    struct routes routes = {0};
    size_t count = 0;
    unsigned char *bytes = read_whole(path, &count, error);
    if (!bytes) return false;
    bool sound = routes_of_npy(bytes, count, o->dense + o->layers, o->topk, &routes, &why) ||
                 hrt_fail(error, "'%s': %s", path, why.text);
    free(bytes);
    const int64_t each = routes.tokens * routes.layers * routes.topk;
    job->error = &why;
    for (int64_t n = 0; sound && n < routes.sequences; n++)
        sound = write_sequence(job, routes.id + n * each, routes.tokens) ||
                hrt_fail(error, "'%s', sequence %" PRId64 ": %s", path, n, why.text);
    job->error = error;
    routes_free(&routes);
    return sound;
}

// ---- the command

static bool check_options(const struct options *o, struct hrt_error *error) {
    if (!o->out || !o->pack || !o->layers || !o->experts || !o->topk)
        return hrt_fail_usage(error, "routes: --out=FILE, --pack=T, --layers=N, --experts=N and "
                                     "--topk=N are wanted, as the model has them");
    return o->topk <= o->experts ||
           hrt_fail_usage(error, "--topk=%" PRId64 ": a token has that many of %" PRId64 " experts",
                          o->topk, o->experts);
}

static bool begin(struct routes_file *job) {
    const struct options *o = job->options;
    job->layer = calloc((size_t)o->layers, sizeof *job->layer);
    job->ids = calloc((size_t)o->layers, sizeof *job->ids);
    bool taken = job->layer && job->ids;
    for (int64_t i = 0; taken && i < o->layers; i++) {
        job->layer[i] = (struct hrt_ids_layer){o->experts, o->topk};
        job->ids[i] = malloc((size_t)(o->pack * o->topk) * sizeof **job->ids);
        taken = job->ids[i];
    }
    return (taken || hrt_fail(job->error, "out of memory")) &&
           hrt_route_ids_file_shape(&job->file, job->path, o->pack, (int)o->layers, job->layer,
                                    job->error) &&
           hrt_route_ids_file_create(&job->file, true, job->error);
}

// An unfinished file has 0 sequences in its head, and programs refuse it.
static bool convert(struct routes_file *job) {
    const struct options *o = job->options;
    for (int i = 0; i < o->files; i++) {
        if (!(is_array(o->file[i]) ? read_array(job, o->file[i]) : read_records(job, o->file[i])))
            return false;
    }
    if (job->sequences == 0) return hrt_fail(job->error, "the inputs have no sequence");
    if (!hrt_route_ids_file_finish(&job->file, job->sequences, job->error) ||
        !hrt_route_ids_file_close(&job->file, job->error))
        return false;
    fprintf(stderr, "%s: %" PRId64 " sequences of %" PRId64 " tokens, %" PRId64 " without routes\n",
            o->out, job->sequences, o->pack, job->padding);
    return true;
}

static void free_file(struct routes_file *job) {
    struct hrt_error ignored;
    hrt_route_ids_file_close(&job->file, &ignored); // It has failed before, or is closed.
    for (int64_t i = 0; job->ids && i < job->options->layers; i++) free(job->ids[i]);
    free(job->ids);
    free(job->layer);
}

struct routes_file *routes_begin(const struct options *options, const char *path,
                                 struct hrt_error *error) {
    struct routes_file *file = malloc(sizeof *file);
    if (!file) {
        hrt_fail(error, "out of memory");
        return NULL;
    }
    *file =
        (struct routes_file){.options = options, .path = path, .error = error, .file = {.fd = -1}};
    if (begin(file)) return file;
    free_file(file);
    free(file);
    return NULL;
}

bool routes_put(struct routes_file *file, const json_t *record, const json_t *answer,
                int64_t tokens, struct hrt_error *error) {
    file->error = error;
    return add_answer(file, record, answer, tokens);
}

bool routes_end(struct routes_file *file, bool sound, struct hrt_error *error) {
    const bool done = !sound || (hrt_route_ids_file_finish(&file->file, file->sequences, error) &&
                                 hrt_route_ids_file_close(&file->file, error));
    free_file(file);
    free(file);
    return done;
}

int routes(const struct options *options, struct hrt_error *error) {
    struct routes_file job = {
        .options = options, .path = options->out, .error = error, .file = {.fd = -1}};
    const bool done = check_options(options, error) && begin(&job) && convert(&job);
    free_file(&job);
    return done ? HRT_EXIT_DONE : (int)error->code;
}
