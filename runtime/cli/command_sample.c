// sample: continue a prompt with saved parameters.
#include "runtime/cli/command.h"
#include "runtime/train/sample.h"
#include "runtime/train/state.h"

bool hrt_run_check_sample(const struct hrt_run *run, struct hrt_error *error) {
    if (run->arguments->config.objective == HRT_NEXT_TOKEN) return true;
    return hrt_fail_usage(error, "this model learns to fill in masked tokens (train.objective); "
                                 "it cannot continue a text");
}

int hrt_command_sample(const struct hrt_run *run, struct hrt_error *error) {
    const struct hrt_arguments *arguments = run->arguments;
    struct hrt_state state;
    if (!hrt_run_check_sample(run, error)) return (int)error->code;
    if (!arguments->load) {
        hrt_fail_usage(error, "sample needs trained parameters: --load FILE");
        return (int)error->code;
    }
    if (!hrt_run_create_state(run, &state, NULL, false, error)) return (int)error->code;
    const struct hrt_sample_rule rule = {arguments->temperature, arguments->topk,
                                         (uint64_t)arguments->config.seed};
    const bool done = hrt_sample(&state, arguments->prompt, arguments->tokens, rule, stdout, error);
    if (!done) hrt_run_report(run, error);
    hrt_state_destroy(&state);
    return done ? HRT_EXIT_DONE : (int)error->code;
}
