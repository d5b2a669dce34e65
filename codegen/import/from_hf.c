// --from-hf=DIR.
#include "codegen/import/from_hf.h"

#include <stdio.h>

#include "codegen/base/output.h"
#include "codegen/base/status.h"
#include "codegen/import/hf_model.h"

static int write_text(struct hec_arena *arena, const struct hec_options *options,
                      const struct hec_hf_model *model) {
    struct hec_writer out = {.arena = arena};
    hec_line(&out, "# Made by hecatec --from-hf of a config.json: model_type %s.", model->family);
    hec_blank(&out);
    hec_hf_write_model(model, &out);
    const char *path = options->output ? options->output : "-";
    return hec_output_write(arena, path, out.text, out.length) ? HEC_EXIT_DONE : HEC_EXIT_INPUT;
}

int hec_from_hf(struct hec_arena *arena, const struct hec_options *options) {
    struct hec_hf_config config;
    struct hec_hf_model model;
    const char *path = hec_arena_format(arena, "%s/config.json", options->from_hf);
    if (options->input) {
        hec_fail("--from-hf writes a model and compiles none, got '%s'", options->input);
        return HEC_EXIT_COMMAND_LINE;
    }
    if (!hec_output_note(false, "--from-hf", path) || !hec_output_note(true, "-o", options->output))
        return HEC_EXIT_COMMAND_LINE;
    const bool read = hec_hf_open(&config, arena, path) && hec_hf_read_model(&config, &model);
    if (read && model.predictor) {
        const char *mark =
            hec_arena_format(arena, "model.layers.%lld.eh_proj.weight", (long long)model.layers);
        model.predictor_there = hec_hf_has_tensor(arena, options->from_hf, mark, true);
    }
    const int status = read ? write_text(arena, options, &model) : HEC_EXIT_INPUT;
    hec_hf_close(&config);
    return status;
}
