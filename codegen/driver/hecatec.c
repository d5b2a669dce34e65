// hecatec: compiles a .moe model into a training program. The one part that sees all stages.
#include <stdio.h>
#include <string.h>

#include "codegen/base/output.h"
#include "codegen/base/status.h"
#include "codegen/base/version.h"
#include "codegen/driver/compile.h"
#include "codegen/import/from_hf.h"
#include "codegen/stages/crash.h"
#include "codegen/stages/stages.h"
#include "codegen/targets/targets.h"
#include "codegen/tune/tune.h"
#include "files/files.h"
#include "lang/builtins.h"
#include "lang/settings.h"
#include "passes/pipeline.h"

// Options that ask for information instead of a compilation. Returns whether there was one.
static bool inform(const struct hec_options *o) {
    const bool settings = o->explain && strcmp(o->explain, "settings") == 0;
    if (o->help) hec_options_help(stdout);
    if (o->version) printf("hecatec %s\n", HECATE_VERSION);
    if (o->print_targets) hec_targets_print(stdout);
    if (o->print_stages) hec_stages_print(stdout);
    if (o->print_passes) hec_passes_print(stdout);
    if (o->print_builtins) hec_builtins_print(stdout);
    if (settings) hec_settings_print(stdout);
    return o->help || o->version || o->print_targets || o->print_stages || o->print_passes ||
           o->print_builtins || settings;
}

static int run(struct hec_arena *arena, int argc, char **argv) {
    struct hec_options options;
    if (!hec_options_parse(arena, argc, argv, &options)) return HEC_EXIT_COMMAND_LINE;
    if (inform(&options)) {
        if (fflush(stdout) == 0) return HEC_EXIT_DONE;
        perror("hecatec: error: cannot write to standard output");
        return HEC_EXIT_INPUT;
    }
    if (options.target && !hec_target_check(options.target)) return HEC_EXIT_COMMAND_LINE;
    if (options.tune) return hec_tune_run(arena, &options);
    if (options.calibrate) return hec_calibrate_run(arena, &options);
    if (options.from_hf) return hec_from_hf(arena, &options);
    if (!options.input) {
        fprintf(stderr, "hecatec: error: no input file\nusage: hecatec [options] file.moe\n");
        return HEC_EXIT_COMMAND_LINE;
    }
    if (options.verbose) fprintf(stderr, "hecatec %s\n", HECATE_VERSION);
    return hec_compile(arena, &options);
}

int main(int argc, char **argv) {
    hf_hold_standard();
    hec_crash_guard(argc, argv);
    hec_output_guard();
    struct hec_arena arena = {0};
    const int status = run(&arena, argc, argv);
    hec_arena_free(&arena);
    return status;
}
