// --explain=comm: the transfers of each layer, how long they take, and how long devices wait for them. A step
// is simulated, as everywhere.
#include <string.h>

#include "passes/cost/explain.h"
#include "passes/cost/recorded.h"
#include "passes/pipeline.h"
#include "passes/timeline/timeline.h"

enum { KINDS = 24 };

// Transfers of one name.
struct kind {
    const char *what;
    bool layered;        // One for each layer.
    int64_t parts;       // Each device's is one.
    double us, *arrived; // All of these together; [devices] bytes
};

struct report {
    FILE *out;
    struct hec_arena arena;
    struct hec_setup setup;
    struct hec_script script;
    struct kind kind[KINDS];
    int kinds;
};

static void note_part(void *context, const struct hec_lanes *lanes, const struct hec_part *part) {
    struct report *r = context;
    const struct hec_machine *m = &r->setup.costs.machine;
    const char *what = hec_transfer_what(lanes, part->transfer);
    int k = 0;
    while (k < r->kinds && strcmp(r->kind[k].what, what) != 0) k++;
    if (k == KINDS) return;
    if (k == r->kinds)
        r->kind[r->kinds++] = (struct kind){
            .what = what,
            .layered = hec_transfer_layer(lanes, part->transfer) >= 0,
            .arrived = hec_arena_alloc(&r->arena, (size_t)(m->nodes * m->devices), sizeof(double))};
    r->kind[k].parts++;
    r->kind[k].us += part->end - part->begin;
    r->kind[k].arrived[part->device] += part->bytes;
}

// Numbers for one layer and iteration, or for one step.
static void print_kind(const struct report *r, const struct kind *k) {
    const struct hec_machine *m = &r->setup.costs.machine;
    const int64_t devices = m->nodes * m->devices;
    const double layers = (double)hec_layers_of(&r->setup.costs);
    const double of = k->layered ? layers * (double)r->script.iterations : 1;
    double most = 0;
    for (int64_t d = 0; d < devices; d++) most = k->arrived[d] > most ? k->arrived[d] : most;
    fprintf(r->out, "  %-28s %10.1f %14s %14s\n", k->what, (double)k->parts / (double)devices / of,
            hec_text_bytes(most / of).text, hec_text_us(k->us / (double)devices / of).text);
}

static void print_kinds(const struct report *r, bool layered) {
    fprintf(r->out, "  %-28s %10s %14s %14s\n", "", "transfers", "busiest device", "take");
    for (int k = 0; k < r->kinds; k++) {
        if (r->kind[k].layered == layered) print_kind(r, &r->kind[k]);
    }
}

static void print_waits(const struct report *r, const struct hec_step_time *s) {
    fputs("\nA mean device waits in a step for\n", r->out);
    for (int k = HEC_SPENT_COUNTS; k < HEC_SPENT; k++) {
        if (s->spent[k] > 0)
            fprintf(r->out, "  %-28s %10s %13.1f%%\n", hec_spent_names[k],
                    hec_text_us(s->spent[k]).text, 100 * s->spent[k] / s->us);
    }
}

static void print_head(const struct report *r) {
    const struct hec_costs *c = &r->setup.costs;
    const struct hpl_policy *policy = r->setup.policy;
    fprintf(r->out, "Between %" PRId64 " devices of %" PRId64 " node%s, for %s.\n",
            c->machine.nodes * c->machine.devices, c->machine.nodes,
            c->machine.nodes == 1 ? "" : "s",
            r->setup.recorded ? r->setup.recorded : "assumed loads (see --explain=plan)");
    if (policy->collective != HPL_COLLECTIVE_SPARSE)
        fprintf(r->out, "Chunks travel by %s, as %s's authors have it.\n",
                hpl_collective_names[policy->collective], policy->name);
    hec_explain_programs(policy, r->out);
    if (r->script.way < 1)
        fputs("Gradients travel in bf16, sums are fp32 (parallel.gradients).\n", r->out);
    for (int i = 0; i < c->count; i++)
        fprintf(r->out, "%s@%s, %" PRId64 " layer%s of %d experts", i ? "; " : "\n", c->set[i].name,
                c->set[i].layers, c->set[i].layers == 1 ? "" : "s", c->set[i].experts);
    fputs(": each layer and iteration\n", r->out);
}

static bool report(MlirOperation module, struct report *r) {
    struct hec_step_time step;
    const struct hec_watcher watcher = {.part = note_part, .context = r};
    if (!hec_setup_read(module, &r->arena, &r->setup) ||
        !hec_script_of(module, &r->setup.costs, 0, &r->arena, &r->script))
        return false;
    const struct hec_timeline_request request = {
        .setup = &r->setup,
        .script = &r->script,
        .movement = &r->setup.movement,
        .watcher = &watcher,
        .steps = 1,
        .begins = hec_setup_begin(&r->setup, r->script.iterations),
    };
    const char *why = hec_timeline(&request, &(struct hec_timeline_result){.step = &step});
    if (why) return hec_ir_error(module, "%s", why);
    print_head(r);
    print_kinds(r, true);
    fputs("\nIn each step\n", r->out);
    print_kinds(r, false);
    print_waits(r, &step);
    return true;
}

bool hec_explain_comm(MlirOperation module, FILE *out) {
    if (!hec_moves_experts(module)) {
        fputs("No experts move in this program; --explain=comm is about those that do.\n", out);
        return true;
    }
    struct report r = {.out = out};
    const bool sound = report(module, &r);
    hec_recorded_free(&r.setup);
    hec_arena_free(&r.arena);
    return sound;
}
