// hecate-replay: what would this policy have done on those loads?
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "files/files.h"
#include "tools/replay/options.h"

static int write_drawn(const struct options *options) {
    struct loads loads;
    char why[LOADS_WHY];
    if (!synthesize(&options->synthesis, &loads)) {
        fprintf(stderr, "hecate-replay: out of memory for the drawn loads\n");
        return REPLAY_INTERNAL;
    }
    const bool written = loads_write(&loads, options->synthesize, why);
    loads_free(&loads);
    if (!written) fprintf(stderr, "hecate-replay: %s\n", why);
    return written ? REPLAY_OK : REPLAY_BAD_INPUT;
}

// Whether the loads were recorded on as many devices as the cluster has.
static bool fits(const struct options *options, const struct loads *loads) {
    const struct setting *setting = &options->setting;
    if (loads->devices != (uint32_t)setting->topology.devices) {
        fprintf(stderr,
                "hecate-replay: %s: recorded on %u devices, --nodes and --devices make %d\n",
                options->path, loads->devices, setting->topology.devices);
        return false;
    }
    if (setting->picture_layer >= loads->layers) {
        fprintf(stderr, "hecate-replay: --picture-layer=%u: %s has %u layers\n",
                setting->picture_layer, options->path, loads->layers);
        return false;
    }
    return true;
}

static int report(const struct options *options, const struct loads *loads,
                  const struct series *series) {
    const struct setting *setting = &options->setting;
    const int32_t count = options->policy_count;
    if (options->json) {
        if (!json_report(options->json, loads, setting, series, count)) return REPLAY_BAD_INPUT;
    } else {
        text_report(stdout, loads, setting, series, count);
    }
    if (options->csv && !csv_report(options->csv, series, count)) return REPLAY_BAD_INPUT;
    if (options->picture && !svg_report(options->picture, setting, series, count)) {
        return REPLAY_BAD_INPUT;
    }
    if (fflush(stdout) == 0 && !ferror(stdout)) return REPLAY_OK;
    fprintf(stderr, "hecate-replay: cannot write to standard output: %s\n", strerror(errno));
    return REPLAY_BAD_INPUT;
}

// Whether what is written is neither read nor written twice.
static bool check_files(const struct options *o) {
    const struct {
        enum hf_use use;
        const char *role, *path;
    } used[] = {{HF_READ, "the loads", o->path},
                {HF_WRITTEN, "--synthesize", o->synthesize},
                {HF_WRITTEN, "--json", o->json},
                {HF_WRITTEN, "--csv", o->csv},
                {HF_WRITTEN, "--svg", o->picture}};
    char why[HF_WHY];
    struct hf_files files = {0};
    bool sound = hf_files_add_open(&files, HF_WRITTEN, "standard output", STDOUT_FILENO, why);
    for (size_t i = 0; sound && i < sizeof used / sizeof *used; i++) {
        const bool file = used[i].path && strcmp(used[i].path, "-") != 0;
        if (file && !hf_is_own(used[i].path))
            sound = hf_files_add(&files, used[i].use, used[i].role, used[i].path, why);
    }
    hf_files_free(&files);
    if (!sound) fprintf(stderr, "hecate-replay: %s\n", why);
    return sound;
}

int main(int argc, char **argv) {
    static struct options options;
    hf_hold_standard();
    signal(SIGXFSZ, SIG_IGN); // A write beyond the limit then fails, and is told.
    options_parse(&options, argc, argv);
    if (!check_files(&options)) return REPLAY_BAD_COMMAND;
    if (options.synthesize) return write_drawn(&options);

    struct loads loads;
    char why[LOADS_WHY];
    if (!loads_read(&loads, options.path, why)) {
        fprintf(stderr, "hecate-replay: %s\n", why);
        return REPLAY_BAD_INPUT;
    }
    struct series series[POLICIES_MAX] = {0};
    int result = fits(&options, &loads) ? REPLAY_OK : REPLAY_BAD_COMMAND;
    for (int32_t i = 0; result == REPLAY_OK && i < options.policy_count; i++) {
        if (!replay_run(&loads, &options.setting, options.policies[i], &series[i])) {
            result = REPLAY_INTERNAL;
        }
    }
    if (result == REPLAY_OK) result = report(&options, &loads, series);
    for (int32_t i = 0; i < options.policy_count; i++) series_free(&series[i]);
    loads_free(&loads);
    return result;
}
