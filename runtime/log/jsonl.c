// JSON lines by jansson.
#include "runtime/log/jsonl.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio_ext.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "files/files.h"
#include "runtime/log/layers.h"
#include "runtime/log/objective.h"

bool hrt_log_jsonl_open(struct hrt_jsonl *log, const char *path, int64_t kept,
                        struct hrt_error *error) {
    *log = (struct hrt_jsonl){.path = path};
    if (!path) return true;
    const char *why;
    log->file = hf_output_behind(path, kept, &why);
    return log->file || hrt_fail(error, "cannot write '%s': %s", path, why);
}

int64_t hrt_log_jsonl_bytes(const struct hrt_jsonl *log) {
    struct stat status;
    if (!log->file || fileno(log->file) < 0 || fstat(fileno(log->file), &status) != 0) return -1;
    return S_ISREG(status.st_mode) ? (int64_t)ftello(log->file) : -1;
}

static json_t *layers_of(const struct hrt_load_counts *loads, int index) {
    const struct hrt_set *set = &loads->program->set[loads->program->load[index].set];
    const int64_t *count = hrt_train_load_counts_of(loads, index);
    json_t *layers = json_array();
    for (int64_t layer = 0; layer < set->layers; layer++) {
        json_t *experts = json_array();
        for (int64_t e = 0; e < set->experts; e++)
            json_array_append_new(experts, json_integer(count[layer * set->experts + e]));
        json_array_append_new(layers, experts);
    }
    return layers;
}

// JSON knows no other numbers.
static json_t *finite_or_null(double number) {
    return isfinite(number) ? json_real(number) : json_null();
}

static double time_of_day(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

// The numbers that differ from run to run.
static json_t *watch_of(const struct hrt_step_report *step) {
    const struct hrt_watch_sums *sums = &step->watched;
    json_t *watch = json_pack("{s:f s:f s:f s:f}", "time", time_of_day(), "left_s", step->left,
                              "flops", step->flops, "memory", sums->memory);
    if (sums->slowest < 0) return watch;
    json_object_set_new(watch, "waited", json_real(sums->waited));
    json_object_set_new(watch, "slowest", json_integer(sums->slowest));
    return watch;
}

static json_t *devices_of(const struct hrt_step_report *step) {
    const struct hrt_watch_sums *sums = &step->watched;
    return json_pack("{s:f s:f s:I s:I}", "before", sums->before, "after", sums->after, "replicas",
                     (json_int_t)sums->replicas, "resharded", (json_int_t)step->resharded);
}

// The worst of all layers.
static json_t *router_of(const struct hrt_routers *routers) {
    return json_pack("{s:f s:f s:I}", "load", routers->load, "entropy", routers->entropy, "dead",
                     (json_int_t)routers->dead);
}

static json_t *named_of(const struct hrt_named_losses *named, const double *value) {
    json_t *losses = json_object();
    for (int i = 0; i < named->count; i++)
        json_object_set_new(losses, named->loss[i].name, finite_or_null(value[i]));
    return losses;
}

// Tokens that were read of each source of a mixture, this step's included, by its pattern.
static json_t *sources_of(const struct hrt_trainer *trainer, int64_t step) {
    const struct hrt_data *data = trainer->data;
    int64_t tokens[HRT_SOURCES_MAX];
    json_t *sources = json_object();
    hrt_data_count(data, (uint64_t)trainer->config->train_seed,
                   (uint64_t)hrt_train_trainer_sequences(trainer, step), tokens);
    for (int i = 0; i < data->sources; i++) {
        const struct hrt_data_source *source = &data->source[i];
        json_object_setn_new(sources, source->name, (size_t)source->name_bytes,
                             json_integer(tokens[i]));
    }
    return sources;
}

// The validation loss of each source, by its pattern.
static json_t *val_sources_of(const struct hrt_data *data,
                              const struct hrt_validation *validation) {
    json_t *losses = json_object();
    for (int i = 0; i < data->val_sources; i++) {
        const struct hrt_data_source *source = &data->val_source[i];
        json_object_setn_new(losses, source->name, (size_t)source->name_bytes,
                             finite_or_null(validation->source_loss[i]));
    }
    return losses;
}

// The means of preferences or rollouts.
static void add_objective(json_t *line, const struct hrt_step_report *step) {
    struct hrt_objective_number number[HRT_OBJECTIVE_NUMBERS];
    const char *section;
    const int count = hrt_log_objective_of(step, number, &section);
    json_t *means = json_object();
    for (int i = 0; i < count; i++)
        json_object_set_new(means, number[i].name, finite_or_null(number[i].value));
    if (count) json_object_set(line, section, means);
    json_decref(means);
}

static json_t *line_of(const struct hrt_step_report *step) {
    json_t *line = json_pack(
        "{s:I s:o s:o s:o s:o s:f s:f s:f}", "step", (json_int_t)step->step, "loss",
        finite_or_null(step->loss), "cross_entropy", finite_or_null(step->cross_entropy), "aux",
        finite_or_null(step->auxiliary), "grad_norm", finite_or_null(step->grad_norm), "lr",
        step->lr, "tokens_per_s", step->tokens_per_s, "ms", 1e3 * step->seconds);
    if (step->skipped) json_object_set_new(line, "skipped", json_true());
    if (step->evaluated)
        json_object_set_new(line, "val_loss", finite_or_null(step->validation.loss));
    const struct hrt_named_losses *named = &step->named;
    if (named->count) json_object_set_new(line, "losses", named_of(named, named->value));
    if (named->count && step->evaluated)
        json_object_set_new(line, "val_losses", named_of(named, step->validation.named));
    add_objective(line, step);
    if (step->moved.bytes > 0)
        json_object_set_new(line, "moved",
                            json_pack("{s:f s:f s:f s:f s:f s:f}", "bytes", step->moved.bytes,
                                      "crossed_bytes", step->moved.crossed, "gradient_bytes",
                                      step->moved.gradients, "ms", 1e3 * step->moved.seconds,
                                      "exposed_ms", 1e3 * step->moved.exposed, "late_ms",
                                      1e3 * step->moved.late));
    json_object_set_new(line, "watch", watch_of(step));
    if (step->watched.before > 0) json_object_set_new(line, "devices", devices_of(step));
    if (step->routers.load > 0) json_object_set_new(line, "router", router_of(&step->routers));
    return line;
}

static json_t *loads_of(const struct hrt_load_counts *loads) {
    json_t *sets = json_object();
    for (int i = 0; i < loads->program->loads; i++) {
        const char *name = loads->program->set[loads->program->load[i].set].name;
        json_object_set_new(sets, name, layers_of(loads, i));
    }
    return sets;
}

// Closes the log without writing what is left.
static bool fail_write(struct hrt_jsonl *log, struct hrt_error *error) {
    hrt_fail(error, "cannot write '%s': %s", log->path, strerror(errno));
    __fpurge(log->file);
    fclose(log->file);
    log->file = NULL;
    return false;
}

void hrt_log_jsonl_begin(struct hrt_jsonl *log, json_t *run) {
    if (log->file)
        log->run = run;
    else
        json_decref(run);
}

bool hrt_log_jsonl_step(struct hrt_jsonl *log, const struct hrt_step_report *step,
                        const struct hrt_log_layers *layers, struct hrt_error *error) {
    if (!log->file) return true;
    const struct hrt_watch *watch = layers->watch;
    json_t *line = line_of(step);
    if (!line) return hrt_fail(error, "out of memory");
    if (layers->routers) json_object_set_new(line, "routers", hrt_log_of_routers(layers->routers));
    if (layers->loads) json_object_set_new(line, "tokens_per_expert", loads_of(layers->loads));
    if (layers->trainer && layers->trainer->data->sources > 1)
        json_object_set_new(line, "sources", sources_of(layers->trainer, step->step));
    if (layers->trainer && layers->trainer->data->val_sources > 1 && step->evaluated)
        json_object_set_new(line, "val_sources",
                            val_sources_of(layers->trainer->data, &step->validation));
    if (watch && watch->layers) json_object_set_new(line, "layers", hrt_log_of_layers(watch));
    if (watch) json_object_set_new(line, "ranks", hrt_log_of_ranks(watch));
    if (log->run) json_object_set_new(line, "run", log->run);
    log->run = NULL;
    const bool dumped = json_dumpf(line, log->file, JSON_COMPACT) == 0;
    json_decref(line);
    if (!dumped || fputc('\n', log->file) == EOF || fflush(log->file) != 0)
        return fail_write(log, error);
    return true;
}

bool hrt_log_jsonl_close(struct hrt_jsonl *log, struct hrt_error *error) {
    if (!log->file) return true;
    json_decref(log->run);
    FILE *file = log->file;
    log->file = NULL;
    return fclose(file) == 0 ||
           hrt_fail(error, "cannot write '%s': %s", log->path, strerror(errno));
}
