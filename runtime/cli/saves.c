// Checkpoints of a run.
#include "runtime/cli/saves.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/cpu/observe.h"
#include "runtime/base/clock.h"
#include "runtime/cli/differences.h"
#include "runtime/cli/facts.h"
#include "runtime/experts/history.h"
#include "runtime/params/copies.h"
#include "runtime/store/checkpoint_folder.h"
#include "runtime/store/checkpoint_values.h"
#include "runtime/train/memory.h"
#include "runtime/train/ranks.h"

// The folder of --resume, with or without a name.
static const char *folder_to_resume(const struct hrt_arguments *arguments) {
    return arguments->resume && *arguments->resume ? arguments->resume
                                                   : arguments->config.checkpoint_dir;
}

static bool is_same_folder(const char *a, const char *b) {
    char left[PATH_MAX], right[PATH_MAX];
    return strcmp(a, b) == 0 ||
           (realpath(a, left) && realpath(b, right) && strcmp(left, right) == 0);
}

// Nobody else's checkpoints are mixed with this run's.
static bool check_folder(const struct hrt_saves *saves, struct hrt_error *error) {
    const struct hrt_arguments *arguments = saves->run->arguments;
    const char *dir = saves->to.dir;
    int64_t *step;
    size_t steps;
    if (arguments->resume && is_same_folder(dir, folder_to_resume(arguments))) return true;
    if (!hrt_store_folder_list(dir, &step, &steps, error)) return false;
    const int64_t newest = steps ? step[0] : 0;
    free(step);
    if (steps == 0) return true;
    return hrt_fail_usage(error,
                          "'%s' has checkpoints of another run, the newest of step %" PRId64
                          ": go on from it with --resume, or take another folder",
                          dir, newest);
}

static bool open_folder(struct hrt_saves *saves, struct hrt_error *error) {
    if (!saves->to.dir || saves->run->comm->rank > 0) return true;
    return hrt_store_folder_open(saves->to.dir, &saves->to.lock, error) &&
           check_folder(saves, error);
}

static bool find(struct hrt_saves *saves, struct hrt_error *error) {
    const struct hrt_run *run = saves->run;
    const struct hrt_arguments *arguments = run->arguments;
    const char *dir = folder_to_resume(arguments);
    if (!arguments->resume) return true;
    if (!hrt_store_checkpoint_find(&saves->from, dir, run->program->name, run->comm, error))
        return false;
    if (saves->from.step > 0) return true; // Printed once it is known to go on.
    if (*arguments->resume) {
        hrt_fail(error, "--resume: '%s' has no checkpoint", dir);
        return hrt_train_ranks_agree(run->comm, false, error);
    }
    printf("'%s' has no checkpoint yet: training begins\n", dir);
    return true;
}

// Owners, before anything depends on them.
static void place_experts(struct hrt_saves *saves) {
    const struct hrt_run *run = saves->run;
    const json_t *experts = json_object_get(saves->from.facts, "experts");
    if (saves->from.step == 0 || !run->program->movement) return;
    saves->recalls = hrt_experts_fssdp_fits(experts, run->placement, run->comm);
    if (saves->recalls)
        hrt_experts_fssdp_recall_owners(experts, run->placement);
    else
        printf("experts are placed anew: the checkpoint is of %s\n",
               hrt_experts_fssdp_is_older(experts) ? "an older version, whose loads are not read"
                                                   : "other ranks, or another policy");
}

bool hrt_cli_saves_recall(const struct hrt_saves *saves, struct hrt_state *state,
                          struct hrt_error *error) {
    char name[HRT_PART_NAME], path[PATH_MAX];
    if (!saves->recalls) return true;
    hrt_experts_fssdp_recall(json_object_get(saves->from.facts, "experts"), state->fssdp);
    hrt_store_file_name(name, HRT_LOADS_FILE, saves->run->comm->rank);
    return hrt_store_part_path(path, saves->from.folder, name, error) &&
           hrt_experts_fssdp_recall_counts(state->fssdp, path, error);
}

void hrt_cli_saves_share(const struct hrt_saves *saves, struct hrt_state *state) {
    if (saves->recalls) hrt_experts_fssdp_share_counts(state->fssdp);
}

// Whether `key`, of so many characters, is `of` or stands above it: train.optimizer of train.optimizer.lr.
static bool is_above(const char *key, size_t length, const char *of) {
    return strncmp(of, key, length) == 0 && (of[length] == '.' || !of[length]);
}

// Whether it is one of hrt_cli_differ_allows.
static bool is_key(const struct hrt_program *program, const char *key, size_t length) {
    bool known = is_above(key, length, "route") || is_above(key, length, "model");
    for (const struct hrt_setting_row *row = hrt_config_rows; row->key; row++)
        known |= is_above(key, length, row->key);
    for (int i = 0; i < program->settings; i++)
        known |= is_above(key, length, program->setting[i].key);
    return known;
}

static bool check_keys(const struct hrt_run *run, struct hrt_error *error) {
    const char *keys = run->arguments->resume_changed;
    size_t length;
    for (const char *at = keys; *at; at += length, at += *at == ',') {
        length = strcspn(at, ",");
        if (!is_key(run->program, at, length))
            return hrt_fail_usage(error,
                                  "--resume-changed=%s: '%.*s' is no setting that `info` lists, "
                                  "nor route or model",
                                  keys, (int)length, at);
    }
    return true;
}

static bool check_arguments(const struct hrt_run *run, struct hrt_error *error) {
    const struct hrt_arguments *arguments = run->arguments;
    if (arguments->resume && !folder_to_resume(arguments))
        return hrt_fail_usage(error, "--resume needs a folder: --checkpoint DIR, or --resume=DIR");
    if (!arguments->resume_changed) return true;
    if (!arguments->resume)
        return hrt_fail_usage(error, "--resume-changed says how to go on: add --resume");
    return check_keys(run, error);
}

// A run that was killed after its last save may have left checkpoints that nobody else would remove. Where newer ones
// are damaged all stay.
static void remove_old(const struct hrt_saves *saves) {
    const struct hrt_checkpoints *to = &saves->to;
    int64_t *step = NULL;
    size_t steps = 0;
    struct hrt_error error;
    if (!to->dir || saves->run->comm->rank > 0 || saves->from.step == 0) return;
    bool removed = hrt_store_folder_list(to->dir, &step, &steps, &error);
    if (removed && steps > 0 && step[0] == saves->from.step)
        removed = hrt_store_folder_prune(to->dir, to->keep, to->keep_every, &error);
    if (!removed) hrt_warn(saves->run->program->name, "%s", error.text);
    free(step);
}

// Reserves memory for copies: of tensors that steps change while a checkpoint is written, and of
// slices that come from a device.
static bool reserve_copies(struct hrt_saves *saves, struct hrt_error *error) {
    const int64_t most = saves->run->arguments->config.checkpoint_memory;
    if (!saves->to.dir) return true;
    const double values = hrt_train_memory_saving(saves->run->program, most);
    saves->to.copies = hrt_params_copies_create(
        (size_t)fmin((double)most, 2 * values)); // Heads of copies are small.
    return saves->to.copies || hrt_fail(error, "no memory for copies: %" PRId64 " bytes", most);
}

bool hrt_cli_saves_open(struct hrt_saves *saves, const struct hrt_run *run,
                        struct hrt_error *error) {
    const struct hrt_config *config = &run->arguments->config;
    *saves = (struct hrt_saves){
        .run = run,
        .to = {.dir = config->checkpoint_dir,
               .keep = config->checkpoint_keep,
               .keep_every = config->checkpoint_keep_every,
               .lock = -1},
        .since = hrt_base_now(),
    };
    if (!hrt_train_ranks_agree(run->comm, check_arguments(run, error), error)) return false;
    if (!hrt_train_ranks_agree(run->comm, open_folder(saves, error), error) || !find(saves, error))
        return false;
    if (!hrt_train_ranks_agree(run->comm, reserve_copies(saves, error), error)) return false;
    saves->saved = saves->from.step;
    return true;
}

void hrt_cli_saves_close(struct hrt_saves *saves) {
    hrt_store_checkpoint_abandon(saves->saving); // The run has failed before it could finish.
    if (saves->run && saves->to.lock >= 0) close(saves->to.lock);
    hrt_store_checkpoint_free(&saves->from);
    hrt_params_copies_destroy(saves->to.copies);
    *saves = (struct hrt_saves){0};
}

// Whether --resume-changed, without keys or by one of them, goes on with a difference.
static bool is_allowed(const struct hrt_arguments *arguments, const json_t *difference) {
    const char *keys = arguments->resume_changed;
    return keys && (!*keys || hrt_cli_differ_allows(keys, json_string_value(difference)));
}

static bool refuse(const struct hrt_saves *saves, const json_t *refused, struct hrt_error *error) {
    char text[640];
    hrt_cli_differences_text(refused, text, sizeof text);
    return hrt_fail(
        error, "'%s' is of another run: %s (--resume-changed %s)", saves->from.folder, text,
        saves->run->arguments->resume_changed ? "has other keys" : "goes on all the same");
}

// Refuses what differs, or warns of each.
static bool settle(const struct hrt_saves *saves, const json_t *differences,
                   struct hrt_error *error) {
    const struct hrt_run *run = saves->run;
    json_t *refused = json_array();
    size_t i;
    json_t *difference;
    if (!refused) return hrt_fail(error, "out of memory");
    json_array_foreach(differences, i, difference) {
        if (!is_allowed(run->arguments, difference)) json_array_append(refused, difference);
    }
    const bool sound = json_array_size(refused) == 0 || refuse(saves, refused, error);
    json_decref(refused);
    if (!sound || run->comm->rank > 0) return sound;
    json_array_foreach(differences, i, difference)
        hrt_warn(run->program->name, "'%s' is of another run: %s", saves->from.folder,
                 json_string_value(difference));
    return true;
}

bool hrt_cli_saves_go_on(const struct hrt_saves *saves, struct hrt_trainer *trainer,
                         struct hrt_error *error) {
    return saves->from.step == 0 || hrt_cli_facts_go_on(saves->from.facts, trainer, error);
}

bool hrt_cli_saves_check(struct hrt_saves *saves, const struct hrt_trainer *trainer,
                         struct hrt_error *error) {
    const struct hrt_run *run = saves->run;
    if (saves->from.step == 0) return true;
    json_t *differences = hrt_cli_facts_differ(saves->from.facts, trainer, run->arguments->route);
    if (!differences) return hrt_fail(error, "out of memory");
    const bool goes_on = settle(saves, differences, error);
    json_decref(differences);
    if (!goes_on) return false;
    printf("resumed: %s\n", saves->from.folder);
    remove_old(saves);
    place_experts(saves);
    return true;
}

bool hrt_cli_saves_due(const struct hrt_saves *saves, int64_t number) {
    const int64_t every = saves->run->arguments->config.checkpoint_every;
    return saves->to.dir && every > 0 && number % every == 0;
}

bool hrt_cli_saves_late(const struct hrt_saves *saves) {
    const double minutes = saves->run->arguments->config.checkpoint_every_minutes;
    return saves->to.dir && saves->run->comm->rank == 0 && minutes > 0 &&
           hrt_base_now() - saves->since >= 60 * minutes;
}

bool hrt_cli_saves_begin(struct hrt_saves *saves, const struct hrt_trainer *trainer,
                         const struct hrt_jsonl *log, int64_t number, struct hrt_error *error) {
    const struct hrt_run *run = saves->run;
    saves->since = hrt_base_now(); // One that fails is not tried again at once.
    json_t *facts = hrt_cli_facts(trainer, run->arguments->route, number);
    const struct hrt_fssdp *fssdp = trainer->state->fssdp;
    struct hrt_whole_file loads = {0};
    if (fssdp) loads = hrt_experts_fssdp_counts(fssdp);
    const bool noted = (facts && (loads.data || !fssdp)) || hrt_fail(error, "out of memory");
    bool begun = hrt_train_ranks_agree(run->comm, noted, error);
    if (!begun) free(loads.data);
    if (begun) {
        hrt_cli_facts_note_log(facts, log);
        hrt_cli_facts_note_records(facts, run->arguments, trainer->route);
        saves->begun = number;
        saves->begun_at = hk_clock();
        saves->profile = trainer->profile;
        begun = hrt_store_checkpoint_begin(&saves->saving, &saves->to, trainer->state, number,
                                           facts, loads, error);
    }
    json_decref(facts);
    return begun;
}

bool hrt_cli_saves_busy(const struct hrt_saves *saves) {
    return saves->saving && !hrt_store_checkpoint_is_written(saves->saving);
}

bool hrt_cli_saves_finish(struct hrt_saves *saves, struct hrt_error *error) {
    struct hrt_saving *saving = saves->saving;
    saves->saving = NULL;
    if (!saving) return true;
    const bool saved = hrt_store_checkpoint_finish(saving, error);
    hrt_profile_saved(saves->profile, saves->begun, saves->begun_at);
    if (!saved) return false;
    saves->saved = saves->begun;
    return true;
}
