// sample: continue a prompt with saved parameters.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files/files.h"
#include "runtime/cli/command.h"
#include "runtime/train/sample.h"
#include "runtime/train/state.h"

bool hrt_run_check_sample(const struct hrt_run *run, struct hrt_error *error) {
    if (run->arguments->config.objective == HRT_NEXT_TOKEN) return true;
    return hrt_fail_usage(error, "this model learns to fill in masked tokens (train.objective); "
                                 "it cannot continue a text");
}

struct hrt_sample_rule hrt_run_sample_rule(const struct hrt_run *run) {
    const struct hrt_arguments *arguments = run->arguments;
    return (struct hrt_sample_rule){
        .temperature = arguments->temperature,
        .topk = arguments->topk,
        .topp = arguments->topp,
        .minp = arguments->minp,
        .seed = (uint64_t)arguments->config.seed,
    };
}

// Where in the file of prompts it went wrong.
static void name_line(struct hrt_error *error, const char *path, int64_t number) {
    const struct hrt_error bare = *error;
    snprintf(error->text, sizeof error->text, "%.200s:%" PRId64 ": %.700s", path, number,
             bare.text);
}

// Each line of the file is a prompt, with what --prompt would draw; an empty line between two.
static bool sample_lines(const struct hrt_run *run, struct hrt_state *state, FILE *file,
                         struct hrt_error *error) {
    char *line = NULL;
    size_t room = 0;
    bool done = true;
    int64_t prompts = 0, number = 0;
    for (ssize_t length; done && (length = getline(&line, &room, file)) >= 0;) {
        number++;
        if (length > 0 && line[length - 1] == '\n') line[--length] = '\0';
        if (length > 0 && line[length - 1] == '\r') line[--length] = '\0';
        if (length == 0) continue;
        if (prompts++ > 0) putchar('\n');
        done = (strlen(line) == (size_t)length || hrt_fail_usage(error, "the prompt has a NUL")) &&
               hrt_sample(state, line, run->arguments->tokens, hrt_run_sample_rule(run), stdout,
                          error);
        if (!done) name_line(error, run->arguments->prompts, number);
    }
    if (done && ferror(file))
        done = hrt_fail(error, "cannot read '%s': %s", run->arguments->prompts, strerror(errno));
    if (done && prompts == 0)
        done = hrt_fail(error, "'%s' has no prompt: one a line", run->arguments->prompts);
    free(line);
    return done;
}

static bool sample(const struct hrt_run *run, struct hrt_state *state, struct hrt_error *error) {
    const struct hrt_arguments *arguments = run->arguments;
    const char *why;
    if (!arguments->prompts)
        return hrt_sample(state, arguments->prompt, arguments->tokens, hrt_run_sample_rule(run),
                          stdout, error);
    FILE *file = hf_input(arguments->prompts, false, &why);
    if (!file) return hrt_fail(error, "cannot open '%s': %s", arguments->prompts, why);
    const bool done = sample_lines(run, state, file, error);
    fclose(file);
    return done;
}

int hrt_command_sample(const struct hrt_run *run, struct hrt_error *error) {
    const struct hrt_arguments *arguments = run->arguments;
    struct hrt_state state;
    if (!hrt_run_check_sample(run, error)) return (int)error->code;
    if (!arguments->load) {
        hrt_fail_usage(error, "sample needs trained parameters: --load FILE");
        return (int)error->code;
    }
    if (arguments->prompt && arguments->prompts) {
        hrt_fail_usage(error, "--prompt and --prompts: which of them?");
        return (int)error->code;
    }
    if (!hrt_run_create_state(run, &state, NULL, false, error)) return (int)error->code;
    const bool done = sample(run, &state, error);
    if (!done) hrt_run_report(run, error);
    hrt_state_destroy(&state);
    return done ? HRT_EXIT_DONE : (int)error->code;
}
