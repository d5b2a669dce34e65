// sample: continue a prompt with saved parameters.
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files/files.h"
#include "runtime/cli/command.h"
#include "runtime/params/state.h"
#include "runtime/store/hf_folder.h"
#include "runtime/train/create.h"
#include "runtime/train/ranks.h"

// tokenizer.json of the folder that parameters come from; NULL: there is none.
static const char *find_tokenizer(const struct hrt_arguments *arguments, char path[PATH_MAX]) {
    if (!arguments->load || !hrt_store_hf_is_folder(arguments->load)) return NULL;
    if (snprintf(path, PATH_MAX, "%s/tokenizer.json", arguments->load) >= PATH_MAX) return NULL;
    return access(path, F_OK) == 0 ? path : NULL;
}

bool hrt_cli_run_open_sampler(const struct hrt_run *run, struct hrt_sampler *sampler,
                              struct hrt_error *error) {
    const struct hrt_arguments *arguments = run->arguments;
    const struct hrt_draw_rule rule = {
        .temperature = arguments->temperature,
        .topk = arguments->topk,
        .topp = arguments->topp,
        .minp = arguments->minp,
        .seed = (uint64_t)arguments->config.train_seed,
    };
    char found[PATH_MAX];
    const char *tokenizer = arguments->tokenizer;
    if (!tokenizer)
        tokenizer = find_tokenizer(arguments, found);
    else if (strcmp(tokenizer, "none") == 0)
        tokenizer = NULL;
    *sampler = (struct hrt_sampler){0};
    if (arguments->config.train_objective == HRT_OBJECTIVE_masked)
        return hrt_fail_usage(error,
                              "this model learns to fill in masked tokens (train.objective); "
                              "it cannot continue a text");
    return hrt_sample_sampler_open(sampler, rule, run->program->vocabulary, tokenizer,
                                   arguments->stop, error);
}

// Where in the file of prompts it went wrong.
static void name_line(struct hrt_error *error, const char *path, int64_t number) {
    const struct hrt_error bare = *error;
    snprintf(error->text, sizeof error->text, "%.200s:%" PRId64 ": %.700s", path, number,
             bare.text);
}

// --samples of a prompt, an empty line between two. Sample number n of a run has draws of its own, those before it had
// others: so equal prompts have different samples.
static bool sample_prompt(const struct hrt_run *run, struct hrt_sampler *sampler,
                          struct hrt_state *state, const char *prompt, int64_t before,
                          struct hrt_error *error) {
    const struct hrt_arguments *arguments = run->arguments;
    bool done = true;
    for (int64_t i = 0; done && i < arguments->samples; i++) {
        sampler->rule.sample = (uint64_t)(before + i);
        if (before + i > 0) putchar('\n');
        done = hrt_sample(sampler, state, prompt, arguments->tokens, stdout, error);
    }
    return done;
}

// Each line of the file is a prompt.
static bool sample_lines(const struct hrt_run *run, struct hrt_sampler *sampler,
                         struct hrt_state *state, FILE *file, struct hrt_error *error) {
    char *line = NULL;
    size_t room = 0;
    bool done = true;
    int64_t prompts = 0, number = 0;
    for (ssize_t length; done && (length = getline(&line, &room, file)) >= 0;) {
        number++;
        if (length > 0 && line[length - 1] == '\n') line[--length] = '\0';
        if (length > 0 && line[length - 1] == '\r') line[--length] = '\0';
        if (length == 0) continue;
        done = (strlen(line) == (size_t)length || hrt_fail_usage(error, "the prompt has a NUL")) &&
               sample_prompt(run, sampler, state, line, prompts++ * run->arguments->samples, error);
        if (!done) name_line(error, run->arguments->prompts, number);
    }
    if (done && ferror(file))
        done = hrt_fail(error, "cannot read '%s': %s", run->arguments->prompts, strerror(errno));
    if (done && prompts == 0)
        done = hrt_fail(error, "'%s' has no prompt: one a line", run->arguments->prompts);
    free(line);
    return done;
}

static bool sample(const struct hrt_run *run, struct hrt_sampler *sampler, struct hrt_state *state,
                   struct hrt_error *error) {
    const struct hrt_arguments *arguments = run->arguments;
    const char *why;
    if (!arguments->prompts) return sample_prompt(run, sampler, state, arguments->prompt, 0, error);
    FILE *file = hf_input(arguments->prompts, false, &why);
    if (!file) return hrt_fail(error, "cannot open '%s': %s", arguments->prompts, why);
    const bool done = sample_lines(run, sampler, state, file, error);
    fclose(file);
    return done;
}

static bool check_usage(const struct hrt_arguments *arguments, struct hrt_error *error) {
    if (!arguments->load)
        return hrt_fail_usage(error, "sample needs trained parameters: --load FILE");
    return !arguments->prompt || !arguments->prompts ||
           hrt_fail_usage(error, "--prompt and --prompts: which of them?");
}

// Programs that could keep keys and values, had they not been told to recompute them.
static void warn_of_time(const struct hrt_run *run) {
    const char *again = hrt_program_setting(run->program, "parallel.recompute");
    if (run->program->seek || run->program->device || run->comm->size > 1 || !again ||
        !strstr(again, "all"))
        return;
    hrt_warn(run->program->name,
             "each token takes the whole window, as parallel.recompute = %s keeps no keys and "
             "values; to sample, compile with --set parallel.recompute=elementwise",
             again);
}

int hrt_cli_command_sample(const struct hrt_run *run, struct hrt_error *error) {
    struct hrt_state state = {.program = run->program};
    struct hrt_sampler sampler;
    const bool opened =
        hrt_cli_run_open_sampler(run, &sampler, error) && check_usage(run->arguments, error);
    if (opened) warn_of_time(run);
    const bool done = hrt_train_ranks_agree(run->comm, opened, error) &&
                      hrt_cli_run_create_state(run, &state, NULL, false, error) &&
                      sample(run, &sampler, &state, error);
    if (!done) hrt_cli_run_report(run, error);
    hrt_train_state_destroy(&state);
    hrt_sample_sampler_close(&sampler);
    return done ? HRT_EXIT_DONE : (int)error->code;
}
