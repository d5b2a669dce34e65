// tokenize: each input becomes a file of tokens, with a record of its sources. An existing output of the
// same input, tokenizer and flags, stays: so a run that was stopped goes on with the next input.
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/random.h"
#include "tools/prepare/chat.h"
#include "tools/prepare/prepare.h"

enum { DOCUMENTS = 512, BATCH_BYTES = 8 << 20, PARTS = 2, TRAIN = 0, VALIDATION = 1 };

static const char *const part_name[PARTS] = {"train", "validation"};

struct job {
    const struct options *options;
    struct hrt_tokenizer *tokenizer; // NULL: no input is text.
    struct chat *chat;               // NULL: inputs are no conversations.
    json_t *tokenizer_record;
    struct hrt_encoder **encoder; // [threads]
    int64_t vocabulary;
    int32_t end; // -1: none.
    struct document document[DOCUMENTS];
    struct hrt_error *error;
};

// One input and what becomes of it.
struct task {
    const char *path, *name;
    char out[PARTS][PATH_MAX];
    struct source *source;
    struct output output[PARTS];
    struct pack *pack[PARTS]; // With --pack.
    int parts;
    int64_t documents;
    time_t told;
};

static bool make_folder(const char *path, struct hrt_error *error) {
    if (mkdir(path, 0777) == 0 || errno == EEXIST) return true;
    return hrt_fail(error, "cannot make '%s': %s", path, strerror(errno));
}

static bool make_folders(const struct options *options, struct hrt_error *error) {
    char path[PATH_MAX];
    if (!make_folder(options->out, error)) return false;
    for (int part = 0; part < (options->validation > 0 ? PARTS : 1); part++) {
        if (snprintf(path, sizeof path, "%s/%s", options->out, part_name[part]) >= PATH_MAX)
            return hrt_fail(error, "'%s' is too long a name", options->out);
        if (!make_folder(path, error)) return false;
    }
    return true;
}

// ---- what is there already

// The source, as the output's record has it; the caller's. NULL: it failed.
static json_t *made_of(const struct job *job, const struct task *task) {
    const struct options *o = job->options;
    json_t *source = record_of(task->path, job->error);
    if (!source) return NULL;
    json_t *made = json_pack("{s:o, s:O?, s:i, s:b, s:b, s:i, s:s?, s:f, s:I, s:I}", "source",
                             source, "tokenizer", job->tokenizer_record, "end", (int)job->end,
                             "frame", (int)o->frame, "skip", (int)o->skip, "input", (int)o->kind,
                             "field", o->field, "validation", o->validation, "seed",
                             (json_int_t)o->seed, "vocabulary", (json_int_t)job->vocabulary);
    if (made && ((job->chat && json_object_set_new(made, "chat", chat_record(job->chat)) != 0) ||
                 (o->pack && json_object_set_new(made, "pack", json_integer(o->pack)) != 0) ||
                 (o->pairs && json_object_set_new(made, "pairs", json_true()) != 0))) {
        json_decref(made);
        made = NULL;
    }
    if (!made) hrt_fail(job->error, "out of memory");
    return made;
}

// Whether a record says that a file was made so, and the file is as long as it says.
static bool is_made(const char *path, const json_t *made) {
    struct hrt_error ignored;
    struct stat status;
    if (access(path, R_OK) != 0 || stat(path, &status) != 0) return false;
    json_t *record = record_read(path, &ignored);
    const json_int_t bytes = 1024 + json_integer_value(json_object_get(record, "tokens")) *
                                        json_integer_value(json_object_get(record, "token_bytes"));
    const bool same = record && json_equal(json_object_get(record, "made"), made) &&
                      bytes == (json_int_t)status.st_size;
    json_decref(record);
    return same;
}

// ---- documents

static bool fill_batch(struct job *job, struct task *task, int *count) {
    size_t bytes = 0;
    for (*count = 0; *count < DOCUMENTS && bytes < BATCH_BYTES; ++*count) {
        const int got = source_next(task->source, &job->document[*count], job->error);
        if (got < 0) return false;
        if (got == 0) break;
        bytes += job->document[*count].bytes + 4 * job->document[*count].ids.count;
    }
    return true;
}

// Whether both answers, with the token behind them, are sequences of --pack.
static bool check_pair(const struct options *options, const struct document *document,
                       struct hrt_error *why) {
    const size_t chosen = document->chosen, rejected = document->ids.count - chosen;
    const bool first = chosen > rejected;
    const size_t most = (first ? chosen : rejected) + 1;
    return most <= (size_t)options->pack ||
           hrt_fail(why, "the %s answer has %zu tokens with its prompt, and --pack=%" PRId64,
                    first ? "chosen" : "rejected", most, options->pack);
}

static bool encode(const struct job *job, struct document *document, struct hrt_error *why) {
    struct hrt_encoder *encoder = job->encoder[omp_get_thread_num()];
    document->ids.count = 0;
    if (job->options->pairs)
        return pairs_encode(job->chat, job->tokenizer, encoder, document->record, &document->ids,
                            &document->weights, &document->chosen, why) &&
               check_pair(job->options, document, why);
    if (job->chat)
        return chat_encode(job->chat, job->tokenizer, encoder, document->record, &document->ids,
                           &document->weights, why);
    return hrt_tokenizer_encode(encoder, document->text, document->bytes, job->options->frame,
                                &document->ids, why);
}

// Leaves conversations out that the template refuses, or says which it is.
static bool tell_failed(struct job *job, struct task *task, int count,
                        const struct hrt_error *why) {
    for (int i = 0; i < count; i++) {
        struct document *document = &job->document[i];
        document->left_out = *why[i].text;
        if (!*why[i].text) continue;
        if (job->chat)
            hrt_fail(job->error, "'%s', %s %" PRId64 ": %s", task->path, source_unit(task->source),
                     document->place, why[i].text);
        else
            hrt_fail(job->error, "'%s', document %" PRId64 ": %s", task->path,
                     task->documents + i + 1, why[i].text);
        if (!job->chat || !source_skip(task->source, job->error)) return false;
    }
    return true;
}

static bool encode_batch(struct job *job, struct task *task, int count) {
    struct hrt_error why[DOCUMENTS];
    if (!source_is_text(task->source)) return true;
#pragma omp parallel for schedule(dynamic) num_threads((int)job->options->threads)
    for (int i = 0; i < count; i++) {
        why[i] = (struct hrt_error){0};
        encode(job, &job->document[i], &why[i]);
    }
    return tell_failed(job, task, count, why);
}

// Adds a document to one of the input's files.
static bool write_plain(const struct job *job, const struct task *task,
                        const struct document *document, struct output *output) {
    output->documents++;
    return output_add(output, document->ids.at, document->weights, document->ids.count,
                      job->error) &&
           (job->end < 0 || !source_is_text(task->source) ||
            output_add(output, &job->end, NULL, 1, job->error));
}

// The same, of whole documents in sequences. In an input of tokens one ends wherever the token of --end is.
static bool write_packed(const struct job *job, struct task *task, const struct document *document,
                         int part) {
    struct pack *pack = task->pack[part];
    struct output *output = &task->output[part];
    const struct hrt_ids *ids = &document->ids;
    if (source_is_text(task->source))
        return pack_put(pack, ids->at, document->weights, true, ids->count, job->error) &&
               pack_put(pack, &job->end, NULL, !job->chat, 1, job->error) &&
               pack_close(pack, output, job->error);
    for (size_t i = 0, count; i < ids->count; i += count) {
        for (count = 1; i + count < ids->count && ids->at[i + count - 1] != job->end;) count++;
        if (!pack_put(pack, ids->at + i, document->weights ? document->weights + i : NULL, true,
                      count, job->error))
            return false;
        if (ids->at[i + count - 1] == job->end && !pack_close(pack, output, job->error))
            return false;
    }
    return true;
}

// Adds a sequence of one answer, with its prompt.
static bool write_answer(const struct job *job, const struct document *document, size_t first,
                         size_t count, struct output *output) {
    if (!output_add(output, document->ids.at + first, document->weights + first, count, job->error))
        return false;
    for (int64_t i = (int64_t)count; i < job->options->pack; i++) {
        if (!output_add(output, &job->end, NULL, 1, job->error)) return false;
    }
    return true;
}

static bool write_pair(const struct job *job, const struct document *document,
                       struct output *output) {
    const size_t chosen = document->chosen;
    output->documents++;
    return write_answer(job, document, 0, chosen, output) &&
           write_answer(job, document, chosen, document->ids.count - chosen, output);
}

static bool write_batch(struct job *job, struct task *task, int count) {
    const struct hrt_stream stream =
        hrt_stream_make((uint64_t)job->options->seed, "validation", task->name);
    for (int i = 0; i < count; i++) {
        const struct document *document = &job->document[i];
        if (document->left_out) continue;
        const double drawn = hrt_draw_uniform(stream, (uint64_t)task->documents++);
        const int part = drawn < job->options->validation ? VALIDATION : TRAIN;
        struct output *output = &task->output[part];
        if (!(job->options->pairs  ? write_pair(job, document, output)
              : job->options->pack ? write_packed(job, task, document, part)
                                   : write_plain(job, task, document, output)))
            return false;
    }
    return true;
}

static void tell(struct task *task, bool done) {
    const time_t now = time(NULL);
    if (!done && (now == task->told || !isatty(STDERR_FILENO))) return;
    int64_t tokens = 0, counted = 0, padding = 0;
    double weight = 0;
    for (int part = 0; part < task->parts; part++) {
        tokens += task->output[part].tokens;
        counted += task->output[part].counted;
        weight += task->output[part].weight;
        padding += task->pack[part] ? pack_padding(task->pack[part]) : 0;
    }
    fprintf(stderr, "%s%s: %" PRId64 " %s, %" PRId64 " tokens", isatty(STDERR_FILENO) ? "\r" : "",
            task->path, task->documents, task->documents == 1 ? "document" : "documents", tokens);
    if (task->output[0].weighted) fprintf(stderr, ", %" PRId64 " count in the loss", counted);
    if (weight < (double)counted) fprintf(stderr, " by %.1f", weight);
    if (task->pack[0]) fprintf(stderr, ", %" PRId64 " are padding", padding);
    if (done) fputs("\n", stderr);
    task->told = now;
}

// A share of few documents may be none of them, which would be found out only when a program wants to evaluate.
static void tell_empty(const struct task *task) {
    for (int part = 0; task->parts == PARTS && part < PARTS; part++) {
        if (task->output[part].documents > 0) continue;
        fprintf(stderr, "%s: warning: '%s' has no document%s\n", task->path, task->out[part],
                task->documents == 1 ? ", as the input is one; --input=lines takes each line as one"
                                     : "");
    }
}

static bool copy_all(struct job *job, struct task *task) {
    for (int count = 1; count > 0;) {
        if (!fill_batch(job, task, &count) || !encode_batch(job, task, count) ||
            !write_batch(job, task, count))
            return false;
        tell(task, false);
    }
    for (int part = 0; part < task->parts && task->pack[part]; part++) {
        if (!pack_flush(task->pack[part], &task->output[part], job->error)) return false;
    }
    return true;
}

// ---- inputs

// Whether the input is one that the command takes.
static bool check_source(const struct job *job, const struct task *task) {
    const bool text = source_is_text(task->source);
    if (text && !job->tokenizer)
        return hrt_fail_usage(job->error, "'%s' is text: --tokenizer=FILE is wanted", task->path);
    if (job->chat && !source_has_records(task->source))
        return hrt_fail_usage(
            job->error, "'%s': conversations are JSON lines or a JSON array; --input=jsonl or json",
            task->path);
    return text || !job->options->pack || task->parts == 1 ||
           hrt_fail_usage(job->error,
                          "'%s' holds tokens: with --pack they have no --validation, as documents "
                          "are not known before",
                          task->path);
}

static bool begin_output(const struct job *job, struct task *task, int part) {
    const int64_t pack = job->options->pack;
    const bool weighted = job->chat || pack || source_is_weighted(task->source);
    if (pack && !job->options->pairs &&
        !(task->pack[part] = pack_create(pack, job->end, job->error)))
        return false;
    return output_begin(&task->output[part], task->out[part], job->vocabulary, weighted, pack,
                        job->options->pairs ? 2 : 0, job->error);
}

static bool run_task(struct job *job, struct task *task, json_t *made) {
    int begun = 0;
    task->source = source_open(task->path, job->options->kind, job->options->field,
                               job->options->skip, job->error);
    if (!task->source) return false;
    bool sound = check_source(job, task);
    while (sound && begun < task->parts) {
        sound = begin_output(job, task, begun);
        begun += sound;
    }
    sound = sound && copy_all(job, task);
    if (sound) tell(task, true);
    if (sound && source_bad(task->source))
        fprintf(stderr, "%s: %" PRId64 " bad records are left out\n", task->path,
                source_bad(task->source));
    if (sound) tell_empty(task);
    for (int part = begun - 1; part >= 0; part--)
        sound = output_end(&task->output[part], sound, made, job->error) && sound;
    for (int part = 0; part < PARTS; part++) pack_free(task->pack[part]);
    source_close(task->source);
    return sound;
}

static bool run_input(struct job *job, const char *path) {
    const char *slash = strrchr(path, '/');
    struct task task = {.path = path, .name = slash ? slash + 1 : path};
    task.parts = job->options->validation > 0 ? PARTS : 1;
    bool there = true;
    json_t *made = made_of(job, &task);
    if (!made) return false;
    for (int part = 0; part < task.parts; part++) {
        if (snprintf(task.out[part], PATH_MAX, "%s/%s/%s%s", job->options->out, part_name[part],
                     task.name, ".bin") >= PATH_MAX) {
            json_decref(made);
            return hrt_fail(job->error, "'%s' is too long a name", path);
        }
        there &= is_made(task.out[part], made);
    }
    if (there) fprintf(stderr, "%s: is there already\n", path);
    const bool done = there || run_task(job, &task, made);
    json_decref(made);
    return done;
}

static bool load(struct job *job) {
    const struct options *o = job->options;
    job->end = -1;
    job->vocabulary = o->vocabulary;
    if (o->model && !(job->chat = chat_load(o->model, o->template, o->date, job->error)))
        return false;
    if (!o->tokenizer) {
        if (o->vocabulary && !o->pack) return true;
        if (o->pack)
            return hrt_fail_usage(
                job->error, "--pack: --tokenizer=FILE is wanted, which has the token of --end");
        return hrt_fail_usage(job->error,
                              "--tokenizer=FILE is wanted, or --vocabulary=N of tokens");
    }
    job->tokenizer = hrt_tokenizer_load(o->tokenizer, job->error);
    job->tokenizer_record = job->tokenizer ? record_of(o->tokenizer, job->error) : NULL;
    job->encoder = calloc((size_t)o->threads, sizeof *job->encoder);
    if (!job->tokenizer_record) return false;
    if (!job->encoder) return hrt_fail(job->error, "out of memory");
    for (int64_t i = 0; i < o->threads; i++) {
        job->encoder[i] = hrt_tokenizer_encoder_create(job->tokenizer, job->error);
        if (!job->encoder[i]) return false;
    }
    job->vocabulary = hrt_tokenizer_size(job->tokenizer);
    if (!o->end)
        return hrt_fail_usage(job->error,
                              "which token ends a document? --end=TOKEN, or --end=none");
    if (o->pack && strcmp(o->end, "none") == 0)
        return hrt_fail_usage(job->error, "--pack: --end=TOKEN is wanted, by which a model tells "
                                          "documents of a sequence from each other");
    if (strcmp(o->end, "none") != 0) job->end = hrt_tokenizer_find(job->tokenizer, o->end);
    return job->end >= 0 || strcmp(o->end, "none") == 0 ||
           hrt_fail_usage(job->error, "--end=%s: '%s' has no such added token", o->end,
                          o->tokenizer);
}

// Whether every input has an output of its own, and no file is read and written.
static bool check_names(const struct options *o, struct hrt_error *error) {
    for (int i = 0; i < o->files; i++) {
        for (int j = 0; j < i; j++) {
            const char *a = strrchr(o->file[i], '/'), *b = strrchr(o->file[j], '/');
            if (strcmp(a ? a + 1 : o->file[i], b ? b + 1 : o->file[j]) == 0)
                return hrt_fail_usage(error, "'%s' and '%s' would be one file in --out", o->file[j],
                                      o->file[i]);
        }
    }
    return true;
}

int tokenize(const struct options *options, struct hrt_error *error) {
    struct job job = {.options = options, .error = error};
    bool done = false;
    if (!options->out)
        hrt_fail_usage(error, "--out=FOLDER is wanted");
    else
        done = check_names(options, error) && load(&job) && make_folders(options, error);
    for (int i = 0; done && i < options->files; i++) done = run_input(&job, options->file[i]);
    for (int i = 0; i < DOCUMENTS; i++) {
        free(job.document[i].text);
        free(job.document[i].ids.at);
        free(job.document[i].weights);
        json_decref(job.document[i].record);
    }
    for (int64_t i = 0; job.encoder && i < options->threads; i++)
        hrt_tokenizer_encoder_free(job.encoder[i]);
    free(job.encoder);
    hrt_tokenizer_free(job.tokenizer);
    chat_free(job.chat);
    json_decref(job.tokenizer_record);
    return done ? HRT_EXIT_DONE : (int)error->code;
}

// Conversations: tokenize, with the template and the tokenizer of a model's folder.
int chat(const struct options *options, struct hrt_error *error) {
    char tokenizer[PATH_MAX];
    struct options o = *options;
    bool known =
        o.model ||
        hrt_fail_usage(error, "--model=FOLDER is wanted: with tokenizer.json and a chat template");
    if (known && !o.tokenizer) {
        known = snprintf(tokenizer, PATH_MAX, "%s/tokenizer.json", o.model) < PATH_MAX ||
                hrt_fail_usage(error, "'%s' is too long a name", o.model);
        o.tokenizer = tokenizer;
    }
    if (!known) return (int)error->code;
    if (!o.end) o.end = "none";
    o.field = NULL;
    return tokenize(&o, error);
}

// Pairs of answers: chat, of two conversations a record.
int pairs(const struct options *options, struct hrt_error *error) {
    struct options o = *options;
    o.pairs = true;
    if (!o.pack || !o.end) {
        hrt_fail_usage(error,
                       "--pack=T and --end=TOKEN are wanted: each answer, with its prompt, is "
                       "a sequence of T tokens, whose rest is that token");
        return (int)error->code;
    }
    return chat(&o, error);
}
