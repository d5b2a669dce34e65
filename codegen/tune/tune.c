// --tune and --calibrate: hand over to tools that are installed beside this executable.
#include "codegen/tune/tune.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "codegen/base/prefix.h"
#include "codegen/base/status.h"

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
        fprintf(stderr, "hecatec: error: %s= needs the name of a file\n", tool->flag);
        return HEC_EXIT_COMMAND_LINE;
    }
    if (options->input) {
        fprintf(stderr, "hecatec: error: %s measures this machine and compiles nothing, got '%s'\n",
                tool->flag, options->input);
        return HEC_EXIT_COMMAND_LINE;
    }
    if (options->verbose || options->dry_run) fprintf(stderr, "%s %s\n", path, file);
    if (options->dry_run) return HEC_EXIT_DONE;
    fflush(NULL);
    execl(path, tool->name, file, (char *)NULL);
    fprintf(stderr, "hecatec: error: cannot run '%s': %s\n", path, strerror(errno));
    return HEC_EXIT_CC;
}

static bool is_cuda(const struct hec_options *options) {
    return options->target && strncmp(options->target, "cuda", 4) == 0;
}

int hec_tune_run(struct hec_arena *arena, const struct hec_options *options) {
    const bool cuda = is_cuda(options);
    const struct tool tool = {"--tune", cuda ? "hecate-tune-cuda" : "hecate-tune",
                              options->tune_file, cuda ? "hecate.products" : "hecate.blocking"};
    return hand_over(arena, options, &tool);
}

int hec_calibrate_run(struct hec_arena *arena, const struct hec_options *options) {
    if (is_cuda(options)) {
        fprintf(stderr, "hecatec: error: --calibrate: not yet: --target=%s\n", options->target);
        return HEC_EXIT_COMMAND_LINE;
    }
    const struct tool tool = {"--calibrate", "hecate-calibrate", options->calibrate_file,
                              "hecate.device"};
    return hand_over(arena, options, &tool);
}
