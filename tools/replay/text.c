// text.c: the table for people.
#include "tools/replay/replay.h"

static void line(FILE *out, const struct hpl_policy *policy, const char *part,
                 const struct summary *s) {
    if (s->count == 0) return;
    fprintf(out,
            "%-10s %-5s %6lld %7.4f %7.4f %7.4f %7.4f %6.2f%% %6.2f%% %6.2f%% %6.2f%% %7.2f %8.2f "
            "%7.2f %6.2f %8.1f %8.1f %-8s %8.1f\n",
            policy->name, part, (long long)s->count, s->mean, s->p95, s->worst, s->bound,
            100 * s->distance, 100 * s->cross, 100 * s->cross_bound, 100 * s->intra, s->entries,
            s->replicas, s->exposed, s->states, s->megabytes, s->grad_megabytes,
            policy->when == HPL_WHEN_FORECAST ? "hidden" : "critical", s->plan_us);
}

// Why the table has no line: no microbatch has a forecast.
static void explain_empty(FILE *out, const struct loads *loads, const struct setting *setting) {
    if (setting->forecast_age == 0) {
        fprintf(out, "no lines: the forecast is the microbatch before, and an iteration of these "
                     "loads has one; "
                     "--forecast-age=1 takes the stored iteration before\n");
    } else {
        fprintf(out,
                "no lines: a forecast of %u stored iterations before needs more than the %u of "
                "these loads\n",
                setting->forecast_age, loads->iterations);
    }
}

void text_report(FILE *out, const struct loads *loads, const struct setting *setting,
                 const struct series *series, int32_t count) {
    const int32_t nodes = setting->topology.nodes;
    fprintf(out,
            "%u iterations, %u layers, %u experts; %d devices in %d nodes; %d slots, %d entries\n",
            loads->iterations, loads->layers, loads->experts, setting->topology.devices, nodes,
            setting->budget.slots, setting->budget.entries);
    fprintf(
        out, "%-10s %-5s %6s %7s %7s %7s %7s %7s %7s %7s %7s %7s %8s %7s %6s %8s %8s %-8s %8s\n",
        "policy", "part", "steps", "max/avg", "p95", "worst", "bound", "beyond", "cross", "bound",
        "intra", "entries", "replicas", "exposed", "states", "MB", "grad MB", "moved", "plan us");
    bool empty = true;
    for (int32_t i = 0; i < count; i++) {
        const uint32_t early = setting->early;
        const struct summary parts[] = {
            summarize(&series[i], 0, early, nodes),
            summarize(&series[i], early, UINT32_MAX, nodes),
        };
        line(out, series[i].policy, "early", &parts[0]);
        line(out, series[i].policy, "late", &parts[1]);
        empty = empty && parts[0].count + parts[1].count == 0;
    }
    if (empty) explain_empty(out, loads, setting);
}
