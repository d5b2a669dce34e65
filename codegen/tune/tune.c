// --tune and --calibrate: hand over to tools that are installed beside this executable.
#include "codegen/tune/tune.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "codegen/base/prefix.h"
#include "codegen/base/status.h"
#include "codegen/targets/targets.h"
#include "ir/target/target.h"

struct tool {
    const char *flag, *name, *file, *standard;
};

// Becomes the tool.
static int hand_over(struct hec_arena *arena, const struct hec_options *options,
                     const struct tool *tool) {
    const char *prefix = hec_prefix(arena);
    const char *path = hec_arena_format(arena, "%s/bin/%s", prefix ? prefix : "", tool->name);
    const char *file = tool->file ? tool->file : tool->standard;
    if (!*file) {
        hec_fail("%s= needs the name of a file", tool->flag);
        return HEC_EXIT_COMMAND_LINE;
    }
    if (options->input) {
        hec_fail("%s measures this machine and compiles nothing, got '%s'", tool->flag,
                 options->input);
        return HEC_EXIT_COMMAND_LINE;
    }
    if (options->verbose || options->dry_run) fprintf(stderr, "%s %s\n", path, file);
    if (options->dry_run) return HEC_EXIT_DONE;
    fflush(NULL);
    execl(path, tool->name, file, (char *)NULL);
    hec_fail("cannot run '%s': %s", path, strerror(errno));
    return HEC_EXIT_CC;
}

static const struct hec_back_end *back_end_of(const struct hec_options *options) {
    const char *target = options->target ? options->target : "cpu";
    return hec_back_end_named(hec_target_find(HEC_STR(target))->name);
}

static int refuse(const struct hec_options *options, const char *flag) {
    hec_fail("%s: not yet: --target=%s", flag, options->target);
    return HEC_EXIT_COMMAND_LINE;
}

int hec_tune_run(struct hec_arena *arena, const struct hec_options *options) {
    const struct hec_back_end *of = back_end_of(options);
    const struct tool tool = {"--tune", of->tuner, options->tune_file, of->tuned_file};
    return of->tuner ? hand_over(arena, options, &tool) : refuse(options, "--tune");
}

int hec_calibrate_run(struct hec_arena *arena, const struct hec_options *options) {
    const struct hec_back_end *of = back_end_of(options);
    const struct tool tool = {"--calibrate", of->calibrator, options->calibrate_file,
                              "hecate.device"};
    return of->calibrator ? hand_over(arena, options, &tool) : refuse(options, "--calibrate");
}
