// json.c: the report as JSON, numbers in the units their names say.
#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "files/files.h"
#include "tools/replay/replay.h"

static json_t *part_json(const char *name, const struct summary *s) {
    return json_pack(
        "{s:s, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}",
        "part", name, "layer_steps", (json_int_t)s->count, "max_over_mean", s->mean,
        "max_over_mean_p95", s->p95, "max_over_mean_worst", s->worst, "bound", s->bound, "distance",
        s->distance, "cross_share", s->cross, "cross_share_bound", s->cross_bound, "intra_share",
        s->intra, "entries_per_node", s->entries, "replicas", s->replicas, "exposed_chunks",
        s->exposed, "states_moved", s->states, "megabytes_moved", s->megabytes,
        "gradient_megabytes", s->grad_megabytes, "plan_us", s->plan_us, "plan_us_p95",
        s->plan_us_p95);
}

static json_t *series_json(const struct setting *setting, const struct series *series) {
    const int32_t nodes = setting->topology.nodes;
    const uint32_t ends[][2] = {{0, setting->early}, {setting->early, UINT32_MAX}, {0, UINT32_MAX}};
    const char *names[] = {"early", "late", "all"};
    json_t *parts = json_array();
    for (int i = 0; i < 3; i++) {
        const struct summary s = summarize(series, ends[i][0], ends[i][1], nodes);
        if (s.count > 0) json_array_append_new(parts, part_json(names[i], &s));
    }
    return json_pack("{s:s, s:s, s:s, s:o}", "policy", series->policy->name, "collective",
                     hpl_collective_names[series->policy->collective], "movement",
                     series->policy->when == HPL_WHEN_FORECAST ? "hidden" : "critical path",
                     "parts", parts);
}

bool json_report(const char *path, const struct loads *loads, const struct setting *setting,
                 const struct series *series, int32_t count) {
    json_t *all = json_array();
    for (int32_t i = 0; i < count; i++) {
        json_array_append_new(all, series_json(setting, &series[i]));
    }
    json_t *root = json_pack(
        "{s:{s:i, s:i, s:i}, s:{s:i, s:i, s:i, s:I}, s:{s:i, s:i, s:b}, s:o}", "loads",
        "iterations", (int)loads->iterations, "layers", (int)loads->layers, "experts",
        (int)loads->experts, "cluster", "devices", setting->topology.devices, "nodes",
        setting->topology.nodes, "slots", setting->budget.slots, "entries",
        (json_int_t)setting->budget.entries, "forecast", "age", (int)setting->forecast_age,
        "window", (int)setting->window, "calibrated", (int)setting->calibrate, "policies", all);
    const bool to_stdout = strcmp(path, "-") == 0;
    const size_t flags = JSON_INDENT(2) | JSON_REAL_PRECISION(6);
    const char *why = NULL;
    FILE *out = to_stdout ? stdout : hf_output(path, &why);
    bool written = root && out && json_dumpf(root, out, flags) == 0;
    if (to_stdout) putchar('\n');
    if (out && !to_stdout) written = fclose(out) == 0 && written;
    json_decref(root);
    if (!written) fprintf(stderr, "hecate-replay: %s: %s\n", path, why ? why : strerror(errno));
    return written;
}
