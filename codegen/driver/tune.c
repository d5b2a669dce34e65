// --tune: hands over to hecate-tune, which is installed beside this executable.
#include "codegen/driver/tune.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "codegen/driver/cc.h"
#include "codegen/driver/status.h"

int hec_tune_run(struct hec_arena *arena, const struct hec_options *options) {
    const char *prefix = hec_prefix(arena);
    const bool cuda = options->target && strncmp(options->target, "cuda", 4) == 0;
    const char *name = cuda ? "hecate-tune-cuda" : "hecate-tune";
    const char *tuner = hec_arena_format(arena, "%s/bin/%s", prefix ? prefix : "", name);
    const char *standard = cuda ? "hecate.products" : "hecate.blocking";
    const char *file = options->tune_file ? options->tune_file : standard;
    if (!*file) {
        fprintf(stderr, "hecatec: error: --tune= needs the name of a file\n");
        return HEC_EXIT_COMMAND_LINE;
    }
    if (options->input) {
        fprintf(stderr,
                "hecatec: error: --tune measures this machine and compiles nothing, got '%s'\n",
                options->input);
        return HEC_EXIT_COMMAND_LINE;
    }
    if (options->verbose || options->dry_run) fprintf(stderr, "%s %s\n", tuner, file);
    if (options->dry_run) return HEC_EXIT_DONE;
    fflush(NULL);
    execl(tuner, name, file, (char *)NULL);
    fprintf(stderr, "hecatec: error: cannot run '%s': %s\n", tuner, strerror(errno));
    return HEC_EXIT_CC;
}
