// hrt_main: from argv to an exit code.
#include <errno.h>
#include <inttypes.h>
#include <omp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/cli/command.h"
#include "runtime/cli/openmp.h"
#include "runtime/comm/backend.h"
#include "runtime/comm/world.h"
#include "runtime/params/init.h"
#include "runtime/params/owners.h"
#include "runtime/params/rounded.h"
#include "runtime/params/store.h"
#include "runtime/train/ranks.h"
#include "runtime/train/state.h"

bool hrt_run_open_data(const struct hrt_run *run, struct hrt_data *data, struct hrt_error *error) {
    const struct hrt_config *config = &run->arguments->config;
    if (config->data_train.count == 0 && config->data_val.count == 0)
        return hrt_fail_usage(error, "no data: give --data FILE");
    const struct hrt_data_request request = {
        .train = config->data_train.text,
        .trains = config->data_train.count,
        .validation = config->data_val.text,
        .validations = config->data_val.count,
        .format = (enum hrt_data_format)config->data_format,
        .positions = run->program->positions,
        .vocabulary = run->program->vocabulary,
        .mask_rate = config->objective == HRT_MASKED ? config->mask_rate : 0,
    };
    return hrt_data_open(data, &request, error);
}

bool hrt_run_create_state(const struct hrt_run *run, struct hrt_state *state, bool training,
                          struct hrt_error *error) {
    if (!hrt_state_create(state, run->program, training, error)) return false;
    if (!hrt_ranks_join(state, run->comm, error)) {
        hrt_state_destroy(state);
        return false;
    }
    const struct hrt_arguments *arguments = run->arguments;
    bool filled = true;
    if (arguments->load) {
        hrt_init_tables(run->program, state->params);
        filled = hrt_store_load(run->program, state->params, arguments->load, error);
    } else {
        hrt_init_params(run->program, state->params, (uint64_t)arguments->config.seed);
    }
    hrt_round_params(run->program, state->params, state->rounded);
    if (!filled) hrt_state_destroy(state);
    return filled;
}

static int run_command(const struct hrt_run *run, struct hrt_error *error) {
    const struct hrt_arguments *arguments = run->arguments;
    if (arguments->help) {
        hrt_options_help(stdout, run->program, arguments->command);
        return HRT_EXIT_DONE;
    }
    if (arguments->version) {
        printf("%s, compiled by hecatec %s\n", run->program->name, run->program->version);
        return HRT_EXIT_DONE;
    }
    if (arguments->threads) omp_set_num_threads((int)arguments->threads);
    switch (arguments->command) {
    case HRT_TRAIN:
        return hrt_command_train(run, error);
    case HRT_EVAL:
        return hrt_command_eval(run, error);
    case HRT_SAMPLE:
        return hrt_command_sample(run, error);
    case HRT_INFO:
        return hrt_command_info(run, error);
    }
    return HRT_EXIT_USAGE;
}

// Joins the ranks. Only rank 0 is heard: what the others would print goes nowhere.
static bool open_comm(struct hrt_comm *comm, struct hrt_program *program, struct hrt_error *error) {
    const struct hrt_comm_backend *backend = program->backend ? program->backend : &hrt_comm_self;
    if (!backend->open(comm, getenv("HECATE_TOPOLOGY"), error)) return false;
    if (!program->world) return true;
    program->rank = comm->rank;
    if (comm->rank > 0 && !freopen("/dev/null", "w", stdout))
        return hrt_fail(error, "cannot open /dev/null: %s", strerror(errno));
    if (comm->size == program->world) return hrt_owners_create(program, error);
    return hrt_fail_usage(error,
                          "compiled for %" PRId64 " ranks (cluster.nodes x cluster.devices), but "
                          "%d run; start it with mpirun -n %" PRId64,
                          program->world, comm->size, program->world);
}

static bool needs_ranks(const struct hrt_run *run) {
    const struct hrt_arguments *arguments = run->arguments;
    return !arguments->help && !arguments->version && arguments->command != HRT_INFO;
}

void hrt_run_report(const struct hrt_run *run, struct hrt_error *error) {
    if (!*error->text) return; // Another rank has it.
    struct hrt_world world = {0};
    struct hrt_error ignored = {0};
    const bool usage = error->code == HRT_EXIT_USAGE && !error->shared && run->program->world &&
                       hrt_world_find(&world, &ignored);
    if (!usage || world.rank == 0)
        fprintf(stderr, "%s: error: %s\n", run->program->name, error->text);
    if (!usage && !error->shared && run->comm->size > 1)
        hrt_comm_abort(run->comm, (int)error->code);
    *error->text = '\0';
}

// What the program was compiled for and this processor lacks; NULL: nothing.
static const char *lacking(const struct hrt_program *program) {
#ifdef __x86_64__
    __builtin_cpu_init();
    const enum hrt_instructions wanted = program->instructions;
    if (wanted >= HRT_INSTRUCTIONS_AVX2 && !__builtin_cpu_supports("avx2")) return "AVX2";
    if (wanted >= HRT_INSTRUCTIONS_AVX512 && !__builtin_cpu_supports("avx512f")) return "AVX-512";
#endif
    (void)program;
    return NULL;
}

int hrt_main(int argc, char **argv, const struct hrt_program *emitted) {
    hrt_prepare_openmp(argv);
    signal(SIGXFSZ, SIG_IGN);              // A write beyond the limit then fails, and is told.
    struct hrt_program program = *emitted; // With this process's rank.
    struct hrt_error error = {0};
    struct hrt_arguments arguments;
    struct hrt_comm comm;
    const struct hrt_run run = {&program, &arguments, &comm};
    hrt_comm_open_self(&comm);

    int code = HRT_EXIT_USAGE;
    const char *lacks = lacking(&program);
    if (lacks) {
        hrt_fail(&error,
                 "compiled for a processor with %s, which this one lacks; compile it here, or with "
                 "hecatec --march=x86-64-v2 or -v3",
                 lacks);
        code = HRT_EXIT_FAILED;
    } else if (hrt_options_parse(&arguments, argc, argv, &program, &error)) {
        const bool joined = !needs_ranks(&run) || open_comm(&comm, &program, &error);
        code = joined ? run_command(&run, &error) : (int)error.code;
    }
    if (fflush(stdout) != 0 && !error.code) {
        hrt_fail(&error, "cannot write to standard output: %s", strerror(errno));
        code = HRT_EXIT_FAILED;
    }
    hrt_run_report(&run, &error);
    hrt_comm_close(&comm);
    hrt_owners_destroy(&program);
    return code;
}
