// --simulate: the time of a step on the whole cluster, and where it goes.
#include <string.h>

#include "ir/core/setting.h"
#include "passes/cost/explain.h"
#include "passes/cost/memory.h"
#include "passes/cost/recorded.h"
#include "passes/timeline/estimate.h"
#include "passes/timeline/report.h"
#include "passes/timeline/report_json.h"
#include "passes/timeline/trace.h"

enum { STEPS_SHOWN = 16 };

struct report {
    FILE *out;
    MlirOperation module;
    const struct hec_setup *setup;
    const struct hec_estimate *estimate;
    const struct hec_step_time *step;
    int64_t steps;
    const double *carried;
};

static void print_head(const struct report *r) {
    const struct hec_machine *m = &r->setup->costs.machine;
    fprintf(r->out, "%" PRId64 " step%s on %" PRId64 " node%s of %" PRId64 " device%s (%s)",
            r->steps, r->steps == 1 ? "" : "s", m->nodes, m->nodes == 1 ? "" : "s", m->devices,
            m->devices == 1 ? "" : "s", m->device);
    const MlirStringRef experts = hec_setting_text(r->module, HEC_KEY_parallel_experts);
    if (hec_has_ranks(r->module))
        fprintf(r->out, ", experts = %.*s", (int)experts.length, experts.data);
    if (r->setup->costs.count)
        fprintf(r->out, ", loads: %s", r->setup->recorded ? r->setup->recorded : "assumed");
    fputs("\n", r->out);
}

static void print_spent(const struct report *r) {
    const struct hec_step_time *s = &r->estimate->median;
    const struct hec_speed speed =
        hec_speed_of(r->module, &r->setup->costs.machine, r->estimate->us);
    fprintf(r->out, "\nA step takes %s\n", hec_speed_text(&speed).text);
    fputs("The time of the median one goes to\n", r->out);
    fprintf(r->out, "  %-32s %12s %7s   %s\n", "", "mean device", "", "the one that waits least");
    for (int k = 0; k < HEC_SPENT; k++) {
        if (s->spent[k] == 0 && s->slowest[k] == 0) continue;
        char what[64];
        snprintf(what, sizeof what, "%s%s", k >= HEC_SPENT_COUNTS ? "waiting: " : "",
                 hec_spent_names[k]);
        fprintf(r->out, "  %-32s %12s %6.1f%%   %s\n", what, hec_text_us(s->spent[k]).text,
                100 * s->spent[k] / s->us, hec_text_us(s->slowest[k]).text);
    }
}

static void print_steps(const struct report *r) {
    const bool experts = r->setup->costs.count > 0;
    fprintf(r->out, "\n  step       time%s\n",
            experts ? "  imbalance  replicas  chunks waited for, a layer" : "");
    for (int64_t i = 0; i < r->steps; i++) {
        const struct hec_step_time *s = &r->step[i];
        if (i >= STEPS_SHOWN / 2 && i < r->steps - STEPS_SHOWN / 2) {
            if (i == STEPS_SHOWN / 2) fprintf(r->out, "  ...\n");
            continue;
        }
        fprintf(r->out, "  %4" PRId64 " %10s", i, hec_text_us(s->us).text);
        if (experts)
            fprintf(r->out, " %10.3f %9.1f  %s", s->imbalance, s->replicas,
                    hec_text_us(s->exposed).text);
        if (s->moved > 0) fprintf(r->out, "; then %.0f chunks get new owners", s->moved);
        fputs("\n", r->out);
    }
}

// The time of changes between steps, and their part of a mean step.
static void print_owners(const struct report *r, const struct hec_owners *o) {
    if (o->every == 0) return;
    fprintf(r->out,
            "\nNew owners every %" PRId64
            " iterations: %.0f chunks with their states take %s behind a step, %s of a mean one\n",
            o->every, o->chunks, hec_text_us(o->us).text, hec_text_us(o->us_of_a_step).text);
    if (o->changes == 0)
        fprintf(r->out, "  None came in %" PRId64 " step%s: a change was simulated by itself%s\n",
                r->steps, r->steps == 1 ? "" : "s",
                o->loads_are_short ? ", by loads that end before an interval has passed" : "");
}

// Bytes of the busiest port of a kind in a step.
static double most(const double *carried, int64_t count, int64_t steps) {
    double bytes = 0;
    for (int64_t i = 0; i < count; i++) bytes = carried[i] > bytes ? carried[i] : bytes;
    return bytes / (double)steps;
}

static void print_links(const struct report *r, double us) {
    const struct hec_machine *m = &r->setup->costs.machine;
    const int64_t devices = m->nodes * m->devices;
    const double *node = r->carried + 2 * devices;
    const double own = most(r->carried, 2 * devices, r->steps);
    if (devices == 1) return;
    fputs("\nThe busiest link carries in a step\n", r->out);
    fprintf(r->out, "  %-32s %12s %6.1f%% of what it could\n", "of a device",
            hec_text_bytes(own).text, 100 * own / (1e-6 * us * m->intra_bandwidth));
    if (m->nodes < 2) return;
    const double across = most(node, 2 * m->nodes, r->steps);
    fprintf(r->out, "  %-32s %12s %6.1f%%\n", "of a node", hec_text_bytes(across).text,
            100 * across / (1e-6 * us * m->inter_bandwidth));
}

static void print_memory(const struct report *r) {
    struct hec_memory m;
    if (!hec_memory_of(r->module, &m)) return;
    fprintf(r->out, "\nMemory of a device: %s", hec_text_bytes((double)m.all).text);
    if (m.device) fprintf(r->out, " of %s", hec_text_bytes((double)m.device).text);
    for (int i = 0, printed = 0; i < HEC_MEMORY_ITEMS; i++) {
        if (!m.item[i]) continue;
        fprintf(r->out, "%s%s %s", printed++ ? ", " : "; ", hec_memory_names[i].text,
                hec_text_bytes((double)m.item[i]).text);
    }
    fputs("\n", r->out);
}

static void print_report(const struct report *r) {
    const struct hec_machine *m = &r->setup->costs.machine;
    print_head(r);
    if (r->setup->policy) hec_explain_programs(r->setup->policy, r->out);
    hec_explain_machine(m, r->out);
    fprintf(r->out, "  counted    operations %s, no calls; links as max-min fair fluids\n",
            m->measured_device ? "by their sizes" : "by a roofline");
    print_spent(r);
    print_steps(r);
    print_owners(r, &r->estimate->owners);
    print_links(r, r->estimate->median.us);
    print_memory(r);
}

static bool simulate(MlirOperation module, int64_t steps, bool json, struct hec_arena *arena,
                     const struct hec_setup *setup, FILE *out, FILE *trace) {
    struct hec_trace writer = {.out = trace};
    const struct hec_watcher watcher = hec_trace_begin(&writer, &setup->costs.machine);
    const struct hec_estimate_request request = {
        .module = module, .setup = setup, .watcher = trace ? &watcher : NULL, .steps = steps};
    struct hec_estimate e;
    const bool sound = hec_estimate(&request, arena, &e);
    hec_trace_end(&writer);
    if (!sound) return false;
    if (json) {
        hec_timeline_json(module, &e, out);
    } else {
        print_report(&(struct report){out, module, setup, &e, e.result.step, e.request.steps,
                                      e.result.carried});
    }
    return true;
}

bool hec_simulate_report(MlirOperation module, int64_t steps, bool json, FILE *out, FILE *trace) {
    struct hec_arena arena = {0};
    struct hec_setup *setup = HEC_NEW(&arena, struct hec_setup);
    const bool sound = hec_setup_read(module, &arena, setup) &&
                       simulate(module, steps, json, &arena, setup, out, trace);
    hec_recorded_free(setup);
    hec_arena_free(&arena);
    return sound;
}
