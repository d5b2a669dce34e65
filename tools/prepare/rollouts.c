// rollouts: answers that an engine has drawn become all files of a step of reinforcement learning, in one order: their
// tokens, weights, entries of each token (docs/preferences.md), and the experts that it went to.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/data/teacher.h"
#include "runtime/data/weights.h"
#include "tools/prepare/prepare.h"
#include "tools/prepare/routes.h"

enum { DRAWN, ADVANTAGE, REFERENCE, ENTRIES_MOST };

struct job {
    const struct options *options;
    struct output output;          // Tokens and weights.
    struct hf_replacement entries; // The file of entries.
    struct routes_file *routes;    // NULL: without.
    int64_t answers, counted;      // Written; tokens of theirs that count.
    int count;                     // Entries of a token; 0: the first record says it.
    int32_t *id;                   // [--pack]
    uint16_t *weight;              // [--pack]
    float (*entry)[ENTRIES_MOST];  // [--pack] Row t is about token t + 1.
    int32_t padding;
    struct hrt_error *error;
};

// An answer with its prompt, as lists of JSON.
struct answer {
    const json_t *record, *own;
    const json_t *prompt, *tokens, *drawn, *reference, *mask, *advantage;
};

// ---- records

static const json_t *member(const json_t *of, const char *name) {
    const json_t *found = json_object_get(of, name);
    if (!found) found = json_object_get(json_object_get(of, "meta_info"), name);
    return json_is_null(found) ? NULL : found;
}

// The first of some names, in the answer or else in its record.
static const json_t *find(const struct answer *answer, const char *const *names) {
    for (; *names; names++) {
        const json_t *found = member(answer->own, *names);
        if (!found) found = member(answer->record, *names);
        if (found) return found;
    }
    return NULL;
}

static bool find_all(struct job *job, struct answer *answer) {
    static const char *const prompts[] = {"prompt_token_ids", "prompt_ids", "input_ids", NULL},
                             *const tokens[] = {"token_ids", "output_ids", "response_ids",
                                                "completion_ids", NULL},
                             *const drawn[] = {"output_token_logprobs", "logprobs",
                                               "response_logprobs", "old_logprobs", NULL},
                             *const reference[] = {"ref_logprobs", "reference_logprobs", NULL},
                             *const masks[] = {"loss_mask", "response_mask", NULL},
                             *const advantages[] = {"advantages", "advantage", NULL};
    answer->prompt = find(answer, prompts);
    answer->tokens = find(answer, tokens);
    answer->drawn = find(answer, drawn);
    answer->reference = find(answer, reference);
    answer->mask = find(answer, masks);
    answer->advantage = find(answer, advantages);
    if (!json_array_size(answer->prompt))
        return hrt_fail(job->error, "no list of ids 'prompt_token_ids' (or prompt_ids, input_ids)");
    if (!json_array_size(answer->tokens))
        return hrt_fail(job->error, "no list of ids 'token_ids' (or output_ids, response_ids, "
                                    "completion_ids)");
    if (!answer->drawn)
        return hrt_fail(job->error, "no list 'logprobs' (or output_token_logprobs, "
                                    "response_logprobs, old_logprobs)");
    if (!answer->advantage) return hrt_fail(job->error, "no 'advantages', nor an 'advantage'");
    return true;
}

// Whether a list has a value for each token of the answer. NULL is no list.
static bool check_list(struct job *job, const struct answer *answer, const json_t *list,
                       const char *what) {
    const size_t own = json_array_size(list), tokens = json_array_size(answer->tokens);
    return !list || (json_is_array(list) && own == tokens) ||
           hrt_fail(job->error, "there are %zu %s, and the answer has %zu tokens", own, what,
                    tokens);
}

static bool check_lengths(struct job *job, const struct answer *answer) {
    const size_t all = json_array_size(answer->prompt) + json_array_size(answer->tokens);
    const int count = answer->reference ? ENTRIES_MOST : REFERENCE;
    if (all > (size_t)job->options->pack)
        return hrt_fail(job->error, "there are %zu tokens, and a sequence has %" PRId64 " (--pack)",
                        all, job->options->pack);
    if (job->count && job->count != count)
        return hrt_fail(job->error,
                        "%s has log-probabilities of a reference ('ref_logprobs'), and "
                        "this is not so of records before",
                        answer->reference ? "it" : "none of its tokens");
    job->count = count;
    return check_list(job, answer, answer->drawn, "log-probabilities") &&
           check_list(job, answer, answer->reference, "log-probabilities of the reference") &&
           check_list(job, answer, answer->mask, "numbers of the mask") &&
           (!json_is_array(answer->advantage) ||
            check_list(job, answer, answer->advantage, "advantages"));
}

// ---- numbers

static bool read_id(struct job *job, const json_t *list, size_t index, const char *what,
                    int32_t *id) {
    const json_t *value = json_array_get(list, index);
    const json_int_t number = json_integer_value(value);
    if (!json_is_integer(value) || number < 0 || number >= job->options->vocabulary)
        return hrt_fail(job->error, "%s %zu is no id below %" PRId64 " (--vocabulary)", what, index,
                        job->options->vocabulary);
    *id = (int32_t)number;
    return true;
}

static bool read_number(struct job *job, const json_t *value, size_t index, const char *what,
                        float *number) {
    *number = (float)json_number_value(value);
    return (json_is_number(value) && isfinite(*number)) ||
           hrt_fail(job->error, "%s of token %zu of the answer is no finite number", what, index);
}

// A number, or, as SGLang gives it, [log-probability, id, text], whose id has to be the token's.
static bool read_drawn(struct job *job, const json_t *list, size_t index, int32_t id,
                       float *number) {
    const json_t *value = json_array_get(list, index);
    if (json_is_array(value)) {
        if (json_integer_value(json_array_get(value, 1)) != id)
            return hrt_fail(job->error,
                            "the log-probability of token %zu of the answer is of id %lld, and the "
                            "token is %d",
                            index, (long long)json_integer_value(json_array_get(value, 1)), id);
        value = json_array_get(value, 0);
    }
    return read_number(job, value, index, "the log-probability", number);
}

// Token `index` of the answer, which is token `at` of the sequence.
static bool read_token(struct job *job, const struct answer *answer, size_t index, size_t at) {
    const json_t *advantage = json_is_array(answer->advantage)
                                  ? json_array_get(answer->advantage, index)
                                  : answer->advantage;
    float *entry = job->entry[at - 1], mask = 1;
    if (!read_id(job, answer->tokens, index, "token", &job->id[at]) ||
        !read_drawn(job, answer->drawn, index, job->id[at], &entry[DRAWN]) ||
        !read_number(job, advantage, index, "the advantage", &entry[ADVANTAGE]) ||
        (answer->reference && !read_number(job, json_array_get(answer->reference, index), index,
                                           "the reference's log-probability", &entry[REFERENCE])) ||
        (answer->mask &&
         !read_number(job, json_array_get(answer->mask, index), index, "the mask", &mask)))
        return false;
    if (mask != 0 && mask != 1)
        return hrt_fail(job->error, "the mask of token %zu of the answer is %g: 0 or 1 is wanted",
                        index, (double)mask);
    job->weight[at] = mask == 1 ? HRT_DATA_WEIGHT_ONE : 0;
    return true;
}

// ---- a sequence

static bool write_entries(struct job *job) {
    const int64_t pack = job->options->pack;
    const bool wide = job->options->vocabulary > UINT16_MAX + 1;
    for (int64_t t = 0; t < pack; t++) {
        const int32_t next = t + 1 < pack ? job->id[t + 1] : 0;
        for (int k = 0; k < job->count; k++) {
            const uint16_t narrow = (uint16_t)next;
            if (fwrite(wide ? (const void *)&next : &narrow, wide ? 4 : 2, 1, job->entries.file) !=
                1)
                return hrt_fail(job->error, "cannot write '%s.rollout'", job->options->out);
        }
        if (fwrite(job->entry[t], sizeof(float), (size_t)job->count, job->entries.file) !=
            (size_t)job->count)
            return hrt_fail(job->error, "cannot write '%s.rollout'", job->options->out);
    }
    return true;
}

static bool add_answer(struct job *job, const json_t *record, const json_t *own) {
    struct answer answer = {.record = record, .own = own};
    const size_t pack = (size_t)job->options->pack;
    if (!find_all(job, &answer) || !check_lengths(job, &answer)) return false;
    const size_t prompt = json_array_size(answer.prompt), tokens = json_array_size(answer.tokens);
    memset(job->weight, 0, pack * sizeof *job->weight);
    memset(job->entry, 0, pack * sizeof *job->entry);
    for (size_t i = 0; i < prompt; i++) {
        if (!read_id(job, answer.prompt, i, "token of the prompt", &job->id[i])) return false;
    }
    for (size_t i = 0; i < tokens; i++) {
        if (!read_token(job, &answer, i, prompt + i)) return false;
    }
    for (size_t i = prompt + tokens; i < pack; i++) job->id[i] = job->padding;
    for (size_t i = 0; i < pack; i++) job->counted += job->weight[i] > 0;
    job->output.documents++;
    job->answers++;
    return (!job->routes ||
            routes_put(job->routes, record, own, (int64_t)(prompt + tokens), job->error)) &&
           output_add(&job->output, job->id, job->weight, pack, job->error) && write_entries(job);
}

static bool add_record(struct job *job, const json_t *record) {
    const json_t *choices = json_object_get(record, "choices");
    if (json_array_size(choices) == 0) return add_answer(job, record, record);
    for (size_t i = 0; i < json_array_size(choices); i++) {
        if (!add_answer(job, record, json_array_get(choices, i))) return false;
    }
    return true;
}

static bool read_input(struct job *job, const char *path) {
    struct document document = {0};
    struct hrt_error *error = job->error, why = {0};
    struct source *source = source_open(path, job->options->kind, NULL, false, error);
    if (!source) return false;
    bool sound = source_has_records(source) ||
                 hrt_fail_usage(error, "'%s': rollouts are JSON lines or a JSON array", path);
    for (int got = 1; sound && (got = source_next(source, &document, error)) != 0;) {
        job->error = &why;
        sound = got > 0 && (add_record(job, document.record) ||
                            hrt_fail(error, "'%s', %s %" PRId64 ": %s", path, source_unit(source),
                                     document.place, why.text));
        job->error = error;
    }
    json_decref(document.record);
    source_close(source);
    return sound;
}

// ---- the command

static bool check_options(struct job *job) {
    const struct options *o = job->options;
    const bool routes = o->layers || o->experts || o->topk;
    char *end = NULL;
    if (!o->out || !o->pack || !o->vocabulary)
        return hrt_fail_usage(job->error, "rollouts: --out=FILE, --pack=T and --vocabulary=N are "
                                          "wanted, as the model has them");
    if (routes && (!o->layers || !o->experts || !o->topk))
        return hrt_fail_usage(job->error, "rollouts: --layers=N, --experts=N and --topk=N go "
                                          "together, for the routes");
    const long id = o->end ? strtol(o->end, &end, 10) : 0;
    job->padding = (int32_t)id;
    return (!o->end || (end != o->end && !*end && id >= 0 && id < o->vocabulary)) ||
           hrt_fail_usage(job->error, "rollouts: --end=%s: an id below %" PRId64 " is wanted",
                          o->end, o->vocabulary);
}

static bool begin_entries(struct job *job, char *path, size_t bytes) {
    const unsigned char room[HRT_TEACHER_HEADER] = {0};
    const char *why;
    if (snprintf(path, bytes, "%s.rollout", job->options->out) >= (int)bytes)
        return hrt_fail(job->error, "'%s' is too long a name", job->options->out);
    if (!hf_replace_begin(&job->entries, path, &why))
        return hrt_fail(job->error, "cannot write '%s': %s", path, why);
    return fwrite(room, sizeof room, 1, job->entries.file) == 1 ||
           hrt_fail(job->error, "cannot write '%s'", path);
}

static bool end_entries(struct job *job, const char *path, bool sound) {
    const bool wide = job->options->vocabulary > UINT16_MAX + 1;
    const struct hrt_teacher_file file = {.entries = job->count,
                                          .tokens = job->output.tokens,
                                          .vocabulary = job->options->vocabulary,
                                          .checksum = job->output.crc,
                                          .id_bytes = wide ? 4 : 2,
                                          .log_bytes = 4};
    unsigned char header[HRT_TEACHER_HEADER];
    const char *why;
    hrt_data_teacher_header(&file, header);
    const bool written = sound && fseeko(job->entries.file, 0, SEEK_SET) == 0 &&
                         fwrite(header, sizeof header, 1, job->entries.file) == 1;
    return hf_replace_end(&job->entries, written, &why) || !sound ||
           hrt_fail(job->error, "cannot write '%s': %s", path, why);
}

static json_t *made_of(const struct options *o, struct hrt_error *error) {
    json_t *inputs = json_array();
    for (int i = 0; i < o->files; i++) {
        json_t *input = record_of(o->file[i], error);
        if (!input) {
            json_decref(inputs);
            return NULL;
        }
        json_array_append_new(inputs, input);
    }
    return json_pack("{s:o}", "rollouts", inputs);
}

static bool take_room(struct job *job) {
    const size_t pack = (size_t)job->options->pack;
    job->id = malloc(pack * sizeof *job->id);
    job->weight = malloc(pack * sizeof *job->weight);
    job->entry = malloc(pack * sizeof *job->entry);
    return (job->id && job->weight && job->entry) || hrt_fail(job->error, "out of memory");
}

static bool read_all(struct job *job) {
    for (int i = 0; i < job->options->files; i++) {
        if (!read_input(job, job->options->file[i])) return false;
    }
    return job->answers > 0 || hrt_fail(job->error, "the inputs have no answer");
}

// All files take their names when they are whole; the tokens, which others go with, last.
static bool convert(struct job *job, json_t *made) {
    const struct options *o = job->options;
    char path[PATH_MAX], ids[PATH_MAX];
    if (!output_begin(&job->output, o->out, o->vocabulary, true, o->pack, 0, job->error))
        return false;
    bool sound = begin_entries(job, path, sizeof path);
    if (sound && o->layers) {
        snprintf(ids, sizeof ids, "%s.ids", o->out);
        job->routes = routes_begin(o, ids, job->error);
        sound = job->routes;
    }
    sound = sound && read_all(job);
    if (job->routes) sound = routes_end(job->routes, sound, job->error) && sound;
    if (job->entries.file) sound = end_entries(job, path, sound) && sound;
    sound = output_end(&job->output, sound, made, job->error) && sound;
    if (sound)
        fprintf(stderr, "%s: %" PRId64 " answers, %" PRId64 " tokens count, %d entries each%s\n",
                o->out, job->answers, job->counted, job->count, o->layers ? ", with routes" : "");
    return sound;
}

int rollouts(const struct options *options, struct hrt_error *error) {
    struct job job = {.options = options, .error = error};
    json_t *made = NULL;
    bool done = check_options(&job) && take_room(&job) && (made = made_of(options, error));
    done = done && convert(&job, made);
    json_decref(made);
    free(job.id);
    free(job.weight);
    free(job.entry);
    return done ? HRT_EXIT_DONE : (int)error->code;
}
