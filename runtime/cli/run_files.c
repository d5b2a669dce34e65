// Which files a run reads and writes.
#include "runtime/cli/run_files.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files/files.h"
#include "runtime/base/world.h"

struct listing {
    struct hf_files files;
    struct hrt_error *error;
};

static bool add(struct listing *list, enum hf_use use, const char *role, const char *path) {
    char why[HF_WHY];
    if (!path || !*path) return true;
    return hf_files_add(&list->files, use, role, path, why) ||
           hrt_fail_usage(list->error, "%s", why);
}

// Paths and patterns.
static bool add_texts(struct listing *list, const char *role, const struct hrt_texts *texts) {
    bool sound = true;
    for (int i = 0; sound && i < texts->count; i++) {
        glob_t found;
        sound = add(list, HF_READ, role, texts->text[i]);
        if (!strpbrk(texts->text[i], "*?[") || glob(texts->text[i], 0, NULL, &found) != 0) continue;
        for (size_t k = 0; sound && k < found.gl_pathc; k++)
            sound = add(list, HF_READ, role, found.gl_pathv[k]);
        globfree(&found);
    }
    return sound;
}

// The file in "ids:FILE" and "trace:FILE".
static const char *route_file(const char *route) {
    if (!route || (strncmp(route, "ids:", 4) != 0 && strncmp(route, "trace:", 6) != 0)) return NULL;
    return strchr(route, ':') + 1;
}

static bool add_inputs(struct listing *list, const struct hrt_arguments *a) {
    return add(list, HF_READ, "the program", "/proc/self/exe") &&
           add(list, HF_READ, "HECATE_BLOCKING", getenv("HECATE_BLOCKING")) &&
           add(list, HF_READ, "HECATE_TOPOLOGY", hrt_base_topology_path()) &&
           add(list, HF_READ, "HECATE_SECRET_FILE", getenv("HECATE_SECRET_FILE")) &&
           add(list, HF_READ_FIRST, "--load", a->load) &&
           add(list, HF_READ, "--pretend", a->pretend) &&
           add(list, HF_READ, "--tokenizer", a->tokenizer) &&
           add(list, HF_READ, "--route", route_file(a->route)) &&
           add_texts(list, "--data", &a->config.data_train) &&
           add_texts(list, "--val", &a->config.data_val) &&
           add_texts(list, "--teacher", &a->config.data_teacher);
}

// Adds a file that may also be one of the process's own descriptors (/dev/stdout).
static bool add_stream(struct listing *list, const char *role, const char *path) {
    return !path || hf_is_own(path) || add(list, HF_WRITTEN, role, path);
}

// Every rank but the first has a trace of its own.
static bool add_traces(struct listing *list, const char *path, int64_t ranks) {
    bool sound = add_stream(list, "--trace", path);
    for (int64_t rank = 1; sound && path && rank < ranks; rank++) {
        char own[PATH_MAX];
        snprintf(own, sizeof own, "%s.%d", path, (int)rank);
        sound = add(list, HF_WRITTEN, "--trace", own);
    }
    return sound;
}

static bool add_outputs(struct listing *list, const struct hrt_arguments *a, int64_t ranks) {
    return add(list, HF_REPLACED, "--save", a->save) &&
           add(list, HF_REPLACED, "--save-best", a->save_best) &&
           add(list, HF_REPLACED, "--logits", a->logits) &&
           add(list, HF_REPLACED, "--losses", a->losses) &&
           add(list, HF_REPLACED, "--write-teacher", a->write_teacher) &&
           add_stream(list, "--log", a->config.log_jsonl) &&
           add(list, HF_WRITTEN, "--record-ids", a->record_ids) &&
           add(list, HF_WRITTEN, "--record-loads", a->record_loads) &&
           add_traces(list, a->trace, ranks);
}

// By which ranks find each other: made and removed before anything else is read.
static bool add_rendezvous(struct listing *list, const struct hrt_run *run) {
    const char *path = run->program->world > 1 ? getenv("HECATE_RENDEZVOUS") : NULL;
    return add(list, HF_WRITTEN, "HECATE_RENDEZVOUS", path);
}

static bool add_standard_output(struct listing *list) {
    char why[HF_WHY];
    return hf_files_add_open(&list->files, HF_WRITTEN, "standard output", STDOUT_FILENO, why) ||
           hrt_fail_usage(list->error, "%s", why);
}

bool hrt_cli_run_check_files(const struct hrt_run *run, struct hrt_error *error) {
    const struct hrt_arguments *a = run->arguments;
    struct listing list = {.error = error};
    const bool writes = (a->command == HRT_TRAIN && !a->check_grad) || a->command == HRT_LINKS ||
                        a->command == HRT_EVAL;
    const bool sound = (!writes || add_standard_output(&list)) && add_inputs(&list, a) &&
                       (!writes || add_outputs(&list, a, run->program->world)) &&
                       add_rendezvous(&list, run);
    hf_files_free(&list.files);
    return sound;
}
