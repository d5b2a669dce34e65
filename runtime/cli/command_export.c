// export: saved parameters as a folder of Hugging Face's.
#include <stdio.h>

#include "runtime/cli/command.h"
#include "runtime/params/merge.h"
#include "runtime/params/state.h"
#include "runtime/store/hf_export.h"
#include "runtime/store/hf_folder.h"
#include "runtime/train/create.h"
#include "runtime/train/ranks.h"

// Whether adapters are written, and nothing else.
static bool writes_adapters(const struct hrt_run *run) {
    return hrt_params_has_adapters(run->program) && !run->arguments->merge;
}

static bool check_arguments(const struct hrt_run *run, struct hrt_error *error) {
    const struct hrt_arguments *arguments = run->arguments;
    if (!arguments->load)
        return hrt_fail_usage(error, "export needs trained parameters: --load FILE");
    if (!arguments->to) return hrt_fail_usage(error, "export needs the folder to make: --to DIR");
    if (arguments->merge && !hrt_params_has_adapters(run->program))
        return hrt_fail_usage(error, "--merge: this program has no adapters (adapt { of = ... })");
    if (arguments->like || writes_adapters(run) || hrt_store_hf_is_folder(arguments->load))
        return true;
    return hrt_fail_usage(error, "export needs a folder with config.json: --like DIR");
}

static bool write_folder(const struct hrt_run *run, struct hrt_state *state,
                         struct hrt_error *error) {
    const struct hrt_arguments *arguments = run->arguments;
    const struct hrt_hf_export export = {
        .adapters = writes_adapters(run),
        .merge = arguments->merge,
        .like = arguments->like || writes_adapters(run) ? arguments->like : arguments->load,
        .to = arguments->to,
        .shard_bytes = arguments->shard_bytes,
    };
    const struct hrt_buffer params = hrt_params_state_buffer(state, HRT_PARAMETERS);
    const bool merged = !arguments->merge || hrt_params_merge(&params, error);
    const bool written = hrt_train_ranks_agree(run->comm, merged, error) &&
                         hrt_store_hf_write(&export, &params, run->comm, error);
    if (written) printf("exported: %s\n", export.to);
    return written;
}

int hrt_cli_command_export(const struct hrt_run *run, struct hrt_error *error) {
    struct hrt_state state;
    if (!check_arguments(run, error)) return (int)error->code;
    if (!hrt_cli_run_create_state(run, &state, NULL, false, error)) return (int)error->code;
    const bool done = write_folder(run, &state, error);
    if (!done) hrt_cli_run_report(run, error);
    hrt_train_state_destroy(&state);
    return done ? HRT_EXIT_DONE : (int)error->code;
}
