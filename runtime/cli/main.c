// hrt_main: from argv to an exit code.
#include <errno.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>

#include "runtime/cli/command.h"
#include "runtime/cli/spin.h"
#include "runtime/params/init.h"
#include "runtime/params/store.h"
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
    const struct hrt_arguments *arguments = run->arguments;
    if (!arguments->load) {
        hrt_init_params(run->program, state->params, (uint64_t)arguments->config.seed);
        return true;
    }
    hrt_init_tables(run->program, state->params);
    if (hrt_store_load(run->program, state->params, arguments->load, error)) return true;
    hrt_state_destroy(state);
    return false;
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

int hrt_main(int argc, char **argv, const struct hrt_program *program) {
    hrt_limit_spinning(argv);
    struct hrt_error error = {0};
    struct hrt_arguments arguments;
    struct hrt_comm comm;
    hrt_comm_open_self(&comm);

    int code = HRT_EXIT_USAGE;
    if (hrt_options_parse(&arguments, argc, argv, program, &error)) {
        const struct hrt_run run = {program, &arguments, &comm};
        code = run_command(&run, &error);
    }
    if (fflush(stdout) != 0 && !*error.text) {
        hrt_fail(&error, "cannot write to standard output: %s", strerror(errno));
        code = HRT_EXIT_FAILED;
    }
    if (*error.text) fprintf(stderr, "%s: error: %s\n", program->name, error.text);
    hrt_comm_close(&comm);
    return code;
}
