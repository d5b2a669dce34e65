// The commands of a training program. Each returns the exit code, or fills in `error` and returns
// its code.
#ifndef HECATE_RUNTIME_CLI_COMMAND_H
#define HECATE_RUNTIME_CLI_COMMAND_H

#include "runtime/base/error.h"
#include "runtime/cli/options.h"
#include "runtime/data/data.h"
#include "runtime/net/comm.h"
#include "runtime/program.h"
#include "runtime/sample/sample.h"

struct hrt_checkpoint; // store/checkpoint.h

struct hrt_run {
    const struct hrt_program *program;
    struct hrt_placement *placement; // Once ranks have met.
    struct hrt_arguments *arguments;
    struct hrt_comm *comm;
    const struct hrt_checkpoint *from; // The checkpoint that training resumes from; NULL: none.
};

// Prints why the run failed, and empties the text. Where all ranks have found a fault in the command line, or
// know of each other's (error->shared), one prints it, and they end together. A rank that
// fails alone ends the others, which may be waiting for it, and does not return: so this is called while
// all memory is still there that jobs under way use.
void hrt_cli_run_report(const struct hrt_run *run, struct hrt_error *error);

int hrt_cli_command_train(const struct hrt_run *run, struct hrt_error *error);
int hrt_cli_command_eval(const struct hrt_run *run, struct hrt_error *error);
int hrt_cli_command_sample(const struct hrt_run *run, struct hrt_error *error);
int hrt_cli_command_export(const struct hrt_run *run, struct hrt_error *error);
int hrt_cli_command_links(const struct hrt_run *run, struct hrt_error *error);
int hrt_cli_command_info(const struct hrt_run *run, struct hrt_error *error);

// Opens the data that the settings name. Shared by train and eval.
bool hrt_cli_run_open_data(const struct hrt_run *run, struct hrt_data *data,
                           struct hrt_error *error);

// Reads the arguments of samples: the draw, and the tokenizer, from --tokenizer or from the folder of --load. False: a
// model that predicts no next token, or a file that cannot be read. Close it in either case.
bool hrt_cli_run_open_sampler(const struct hrt_run *run, struct hrt_sampler *sampler,
                              struct hrt_error *error);

// By what the run trains, when it does.
enum hrt_training hrt_cli_run_trains(const struct hrt_run *run);

// Creates the state with the checkpoint that training resumes from, parameters from --load, or fresh ones. Shared by
// all but info. On several ranks all call it: they must read the same files, those of `data` (NULL: none) included, and
// all have a state, or none.
struct hrt_state;
bool hrt_cli_run_create_state(const struct hrt_run *run, struct hrt_state *state,
                              const struct hrt_data *data, bool training, struct hrt_error *error);

#endif
