// Shared by the commands: opens data, creates a state with parameters, and reports why a run failed.
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#include "runtime/base/world.h"
#include "runtime/cli/command.h"
#include "runtime/cli/same.h"
#include "runtime/params/init.h"
#include "runtime/params/merge.h"
#include "runtime/params/placement.h"
#include "runtime/params/state.h"
#include "runtime/store/checkpoint.h"
#include "runtime/store/checkpoint_folder.h"
#include "runtime/store/hf_folder.h"
#include "runtime/store/hf_load.h"
#include "runtime/store/weights.h"
#include "runtime/train/create.h"
#include "runtime/train/ranks.h"

// Teacher entries that the objective needs of each target.
static int64_t said_of(const struct hrt_config *config) {
    if (config->train_objective == HRT_OBJECTIVE_dpo) return 1;
    if (config->train_objective != HRT_OBJECTIVE_policy) return 0;
    return config->train_objective_kl > 0 ? 3 : 2;
}

// Losses against a teacher need one to be trained; an evaluation may go without.
static bool check_teacher(const struct hrt_run *run, struct hrt_error *error) {
    const struct hrt_arguments *arguments = run->arguments;
    const struct hrt_program *program = run->program;
    const bool given = arguments->config.data_teacher.count > 0;
    const bool policy = said_of(&arguments->config) > 0;
    if (given && !program->teacher_offset)
        return hrt_fail_usage(error, "%s has no loss `distill`, which a teacher is for",
                              program->name);
    if (policy && !given && !arguments->write_teacher && !arguments->check_grad)
        return hrt_fail_usage(
            error,
            arguments->config.train_objective == HRT_OBJECTIVE_dpo
                ? "train.objective = dpo is against a reference: eval --load BASE --val FILE "
                  "--write-teacher FILE.reference writes it for each file; then give "
                  "--teacher FILE.reference"
                : "train.objective = policy learns from rollouts: give their entries by "
                  "--teacher FILE (docs/preferences.md has the format)");
    if (given || arguments->command != HRT_TRAIN || arguments->check_grad) return true;
    for (int i = 0; i < program->losses; i++) {
        if (program->loss[i].teacher)
            return hrt_fail_usage(error, "the loss %s is against a teacher: give --teacher FILE",
                                  program->loss[i].name);
    }
    return true;
}

// Tokens of weight 0 are no targets, so a loss that looks further ahead would not know them as inputs either.
static bool check_weights(const struct hrt_run *run, const struct hrt_data *data,
                          struct hrt_error *error) {
    for (int i = 0; data->weighted && i < run->program->losses; i++) {
        if (run->program->loss[i].teacher || run->program->loss[i].ahead > 1)
            return hrt_fail(error,
                            "the loss %s with data that has weights is not yet supported, as it is "
                            "against a teacher or tokens further ahead",
                            run->program->loss[i].name);
    }
    return true;
}

bool hrt_cli_run_open_data(const struct hrt_run *run, struct hrt_data *data,
                           struct hrt_error *error) {
    const struct hrt_config *config = &run->arguments->config;
    if (config->data_train.count == 0 && config->data_val.count == 0)
        return hrt_fail_usage(error, "no data: give --data FILE");
    if (!check_teacher(run, error)) return false;
    const struct hrt_data_request request = {
        .train = config->data_train.text,
        .trains = config->data_train.count,
        .validation = config->data_val.text,
        .validations = config->data_val.count,
        .held_out = config->data_held_out,
        .teacher = config->data_teacher.text,
        .teachers = config->data_teacher.count,
        .format = (enum hrt_data_format)config->data_format,
        .order = (enum hrt_data_order)config->data_order,
        .positions = run->program->positions,
        .vocabulary = run->program->vocabulary,
        .pairs = config->train_objective == HRT_OBJECTIVE_dpo,
        .said = said_of(config),
        .mask_rate =
            config->train_objective == HRT_OBJECTIVE_masked ? config->train_objective_rate : 0,
    };
    if (!hrt_data_open(data, &request, error)) return false;
    if (check_weights(run, data, error)) return true;
    hrt_data_close(data);
    return false;
}

// Loaded parameters that are not finite, or of a model of another name, are warned of, or refused.
static bool settle_doubts(const struct hrt_run *run, const struct hrt_store_doubts *doubts,
                          struct hrt_error *error) {
    const char *const doubt[] = {run->comm->rank == 0 ? doubts->model : "", doubts->values};
    for (int i = 0; i < 2; i++) {
        if (!*doubt[i]) continue;
        if (run->arguments->strict) return hrt_fail(error, "%s (--strict)", doubt[i]);
        hrt_warn(run->program->name, "%s", doubt[i]);
    }
    if (run->comm->rank == 0 && *doubts->left) hrt_warn(run->program->name, "%s", doubts->left);
    return true;
}

static bool is_folder(const char *path) {
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

// Refuses a folder of several checkpoints, and the file that names the newest of them.
static bool check_step(const char *from, struct hrt_error *error) {
    char dir[PATH_MAX];
    const int64_t newest = hrt_store_folder_newest(from, dir);
    return newest == 0 ||
           hrt_fail(error,
                    "'%s' has checkpoints of several steps: give one of them, such as the newest, "
                    "%s/step-%" PRId64,
                    dir, dir, newest);
}

// Parameters of --load: a file, the folder of a checkpoint, or one of Hugging Face's.
static bool load_params(const struct hrt_run *run, const struct hrt_buffer *params,
                        struct hrt_error *error) {
    const char *from = run->arguments->load;
    struct hrt_store_doubts doubts;
    hrt_params_init_tables(params);
    hrt_params_init_adapters(params, (uint64_t)run->arguments->config.train_seed);
    bool loaded;
    if (!check_step(from, error)) return false;
    if (!is_folder(from))
        loaded = hrt_store_restore(params, from, &doubts, error);
    else if (hrt_store_hf_is_folder(from))
        loaded = hrt_store_hf_load(params, from, &doubts, error);
    else
        loaded = hrt_store_checkpoint_load_parameters(from, params, &doubts, error);
    return loaded && settle_doubts(run, &doubts, error);
}

// Adapters of --adapter, over those that there are.
static bool load_adapters(const struct hrt_run *run, const struct hrt_buffer *params,
                          struct hrt_error *error) {
    const char *from = run->arguments->adapter;
    struct hrt_store_doubts doubts;
    if (!hrt_params_has_adapters(run->program))
        return hrt_fail_usage(error,
                              "--adapter: this program has no adapters (adapt { of = ... })");
    return hrt_store_hf_load_adapters(params, from, &doubts, error) &&
           settle_doubts(run, &doubts, error);
}

// Sets the first values of the parameters, or loads them; a checkpoint has the optimizer's states, too.
static bool fill_state(const struct hrt_run *run, struct hrt_state *state,
                       struct hrt_error *error) {
    const struct hrt_arguments *arguments = run->arguments;
    const struct hrt_buffer params = hrt_params_state_buffer(state, HRT_PARAMETERS);
    if (run->from) {
        hrt_params_init_tables(&params);
        return hrt_store_checkpoint_load(run->from, state, error);
    }
    if (!arguments->load) hrt_params_init(&params, (uint64_t)arguments->config.train_seed);
    return (!arguments->load || load_params(run, &params, error)) &&
           (!arguments->adapter || load_adapters(run, &params, error));
}

enum hrt_training hrt_cli_run_trains(const struct hrt_run *run) {
    return run->arguments->config.train_optimizer == HRT_OPTIMIZER_muon ? HRT_BY_MUON
                                                                        : HRT_BY_ADAMW;
}

// Teacher entries of a token: as many as the files have, or as --check-grad draws.
static int64_t entries_of(const struct hrt_run *run, const struct hrt_data *data) {
    enum { DRAWN = 3 };
    if (run->arguments->check_grad) return DRAWN;
    return data ? data->teachers.entries : 0;
}

// A rank that fails keeps the memory that it has taken: all ranks free theirs together.
static bool create_state(const struct hrt_run *run, struct hrt_state *state,
                         const struct hrt_data *data, bool training, struct hrt_error *error) {
    const enum hrt_training trains = training ? hrt_cli_run_trains(run) : HRT_NO_TRAINING;
    if (!hrt_train_state_create(state, run->placement, run->comm, trains, error)) return false;
    const bool taught = data && data->fractions
                            ? hrt_params_state_weigh(state, error)
                            : hrt_params_state_teach(state, entries_of(run, data), error);
    if (!hrt_train_ranks_agree(run->comm, taught, error))
        return false; // Joining takes all of them.
    if (!hrt_train_ranks_join(state, error)) return false;
    const bool filled = fill_state(run, state, error);
    hrt_params_state_round(state);
    return filled;
}

bool hrt_cli_run_create_state(const struct hrt_run *run, struct hrt_state *state,
                              const struct hrt_data *data, bool training, struct hrt_error *error) {
    if (!hrt_cli_same_files(run, data, error)) return false;
    const bool created = create_state(run, state, data, training, error);
    const bool known = !created && error->shared; // To all.
    if (!known && hrt_train_ranks_agree(run->comm, created, error)) return true;
    hrt_train_state_destroy(state);
    return false;
}

void hrt_cli_run_report(const struct hrt_run *run, struct hrt_error *error) {
    if (!*error->text) return; // Another rank has it.
    struct hrt_world world = {0};
    struct hrt_error ignored = {0};
    const bool usage = error->code == HRT_EXIT_USAGE && !error->shared && run->program->world &&
                       hrt_base_world_find(&world, &ignored);
    if (!usage || world.rank == 0)
        fprintf(stderr, "%s: error: %s\n", run->program->name, error->text);
    if (!usage && !error->shared && run->comm->size > 1)
        hrt_net_comm_abort(run->comm, (int)error->code);
    *error->text = '\0';
}
