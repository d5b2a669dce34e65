// --explain=plan: how experts move, on one screen: what was chosen, why, at what cost, what else was
// tried, and what would change it.
#include <stdlib.h>
#include <string.h>

#include "ir/accessors.h"
#include "ir/core/setting.h"
#include "passes/cost/recorded.h"
#include "passes/explain.h"
#include "passes/pipeline.h"

struct report {
    FILE *out;
    MlirOperation module;
    struct hec_search search;
    struct hpl_movement movement; // What the module says; a plan file may have set it.
    struct hec_candidate chosen;
    bool predicted; // The chosen one is among those that were simulated.
};

static const char *plural(int64_t count) {
    return count == 1 ? "" : "s";
}

// ---- the head

static void print_head(const struct report *r) {
    const struct hec_costs *costs = &r->search.costs;
    const struct hec_machine *m = &costs->machine;
    const MlirStringRef name = hec_any_sym_name(r->module);
    fprintf(r->out, "%.*s on %" PRId64 " node%s x %" PRId64 " device%s: ", (int)name.length,
            name.data, m->nodes, plural(m->nodes), m->devices, plural(m->devices));
    for (int i = 0; i < costs->count; i++) {
        const struct hec_set_cost *c = &costs->set[i];
        fprintf(r->out, "%s%" PRId64 " layer%s of %d experts (@%s)", i ? ", " : "", c->layers,
                plural(c->layers), c->experts, c->name);
    }
    fputs("\n\n", r->out);
    fputs("Every expert has one owner. Before a layer's experts compute, the most loaded ones get "
          "replicas\n"
          "on other devices: their chunks (all parameters of one expert) travel while attention "
          "computes,\n"
          "rows (a token for one of its experts) are split over all holders, and gradients of "
          "replicas\n"
          "return to the owner behind attention's backward. The result is the same whatever is "
          "chosen\n"
          "here; time and memory are not.\n\n",
          r->out);
}

// ---- the choices

static void print_choice(const struct report *r, const char *what, const char *value,
                         const char *why) {
    fprintf(r->out, "  %-30s %-8s %s\n", what, value, why);
}

static const char *overlap_reason(const struct report *r, char *text, size_t size) {
    const struct hec_search *s = &r->search;
    const bool rematerialize = r->movement.rematerialize;
    const int64_t there = rematerialize ? s->fit_forward : s->fit_early;
    const int64_t back = rematerialize ? s->fit_rematerialized : s->fit_late;
    const int64_t fit = there < back ? there : back;
    snprintf(text, size, "%s; computation hides %" PRId64 " forward, %" PRId64 " backward%s",
             s->fixed_overlap ? "given" : "searched", there, back,
             r->movement.overlap > fit ? "; the rest waits" : "");
    return text;
}

static const char *slots_reason(const struct report *r, char *text, size_t size) {
    const struct hec_search *s = &r->search;
    const struct hec_text taken = hec_text_bytes((double)r->chosen.replica_bytes);
    const int64_t room = s->slot_bytes ? s->slot_bytes : s->room_bytes;
    const char *how = !s->uses_slots ? "the policy decides" : s->fixed_slots ? "given" : "searched";
    if (room < 0) {
        snprintf(text, size, "%s; %s, on a device whose %s are %s too few for the rest", how,
                 taken.text, hec_text_bytes(s->costs.machine.memory).text,
                 hec_text_bytes((double)-room).text);
    } else {
        snprintf(text, size, "%s; %s of the %s that a device has left for them", how, taken.text,
                 hec_text_bytes((double)room).text);
    }
    return text;
}

static const char *rematerialize_reason(const struct report *r) {
    if (hpl_gathers_all(r->search.policy)) return "the policy cannot keep all experts";
    if (r->search.policy->when == HPL_WHEN_PERIODIC) return "the policy's placement stays";
    if (r->search.fixed_rematerialize) return "given";
    return r->movement.rematerialize ? "gathered again for backward: less memory, hardly slower"
                                     : "kept until backward: gathering again would be waited for";
}

static const char *calibrate_reason(const struct report *r) {
    if (!r->search.policy->calibrates) return "the policy does not";
    if (r->search.fixed_calibrate) return "given";
    return r->movement.calibrate == HPL_CALIBRATES_NEVER
               ? "the forecast is good enough: it would not be faster"
               : "when the router's counts show that it pays";
}

static void print_choices(const struct report *r) {
    char number[32], text[160];
    const struct hec_search *s = &r->search;
    const MlirStringRef experts = hec_setting_text(r->module, HEC_KEY_parallel_experts);
    fprintf(r->out, "Chosen%*s because\n", 35, "");
    snprintf(text, sizeof text, "parallel.experts = %.*s; %s", (int)experts.length, experts.data,
             r->movement.even                        ? "rows split evenly over holders"
             : s->policy->split == HPL_SPLIT_PLANNED ? "rows split as it plans"
                                                     : "rows split by exact quotas");
    print_choice(r, "policy", r->movement.policy, text);
    snprintf(number, sizeof number, "t = %" PRId64, r->movement.overlap);
    const bool network = s->costs.machine.nodes > 1;
    if (s->uses_overlap)
        print_choice(r, network ? "chunks that may enter a node" : "experts that may get replicas",
                     number, overlap_reason(r, text, sizeof text));
    snprintf(number, sizeof number, s->uses_slots ? "m = %" PRId64 : "free", r->movement.slots);
    print_choice(r, "replicas of a device and layer", number, slots_reason(r, text, sizeof text));
    print_choice(r, "re-materialize", r->movement.rematerialize ? "yes" : "no",
                 rematerialize_reason(r));
    print_choice(r, "calibrate behind the router", hec_calibrate_name(r->movement.calibrate),
                 calibrate_reason(r));
    snprintf(text, sizeof text,
             s->base.reshard_every ? "they may change every %" PRId64 " iterations" : "for good",
             s->base.reshard_every);
    if (s->policy->calibrates)
        print_choice(r, "first owners",
                     s->sharded  ? "by load"
                     : s->spread ? "in turn"
                                 : "even",
                     text);
    snprintf(number, sizeof number, "%" PRId64, r->movement.window);
    if (s->policy->when == HPL_WHEN_PERIODIC) {
        snprintf(number, sizeof number, "%" PRId64, s->base.reshard_every);
        print_choice(r, "iterations of a placement", number, "then experts move with their states");
    } else if (s->policy->when == HPL_WHEN_FORECAST) {
        print_choice(r, "iterations that forecast", number,
                     s->recorded ? "the first one by recorded loads"
                                 : "the first one has no replicas");
    }
    if (hec_module_has_plan(r->module)) {
        const MlirStringRef plan = hec_module_plan(r->module);
        fprintf(r->out, "  All of it is read from %.*s.\n", (int)plan.length, plan.data);
    }
}

// ---- what it costs

static void print_cost(const struct report *r, const char *what, double chosen, double ep,
                       double balanced, const char *format) {
    char column[3][32];
    const double value[3] = {chosen, ep, balanced};
    for (int i = 0; i < 3; i++) {
        if (format) {
            snprintf(column[i], sizeof column[i], format, value[i]);
        } else {
            snprintf(column[i], sizeof column[i], "%s", hec_text_us(value[i]).text);
        }
    }
    fprintf(r->out, "  %-42s %12s %12s %12s\n", what, column[0], column[1], column[2]);
}

static void print_costs(const struct report *r) {
    const struct hec_phases *c = &r->chosen.phases, *ep = &r->search.expert_parallel;
    const struct hec_phases *even = &r->search.balanced;
    const bool rematerialize = r->movement.rematerialize;
    fprintf(r->out, "\n%-44s %12s %12s %12s\n", "Predicted for a layer, busiest device",
            "this plan", "ep", "ep, balanced");
    print_cost(r, "largest load over the mean", c->imbalance, ep->imbalance, even->imbalance,
               "%.2f");
    print_cost(r, "rows that change node, %", 100 * c->cross, 100 * ep->cross, 100 * even->cross,
               "%.1f");
    print_cost(r, "experts, forward and backward", c->experts_us, ep->experts_us, even->experts_us,
               NULL);
    print_cost(r, "rows there and back, forward and backward", c->rows_us, ep->rows_us,
               even->rows_us, NULL);
    print_cost(r, "chunks: waited for",
               c->calibrate_us + (rematerialize ? c->exposed_rematerialized_us : c->exposed_us), 0,
               0, NULL);
    print_cost(r, "whole iteration, all layers", r->chosen.iteration_us,
               r->search.expert_parallel_us, r->search.balanced_us, NULL);
    fputs("  (ep: every expert stays with its owner; balanced: if the router loaded all experts "
          "alike)\n",
          r->out);
}

static void print_transfer(const struct report *r, const char *what, double us, double window) {
    fprintf(r->out, "  %-42s %12s %12s %12s\n", what, hec_text_us(us).text,
            hec_text_us(window).text, hec_text_us(us > window ? us - window : 0).text);
}

// Of the busiest device or node, set by set.
static void print_movement(const struct report *r) {
    const struct hec_costs *costs = &r->search.costs;
    const bool exact = r->search.policy->when == HPL_WHEN_EXACT;
    fprintf(r->out, "\n%-44s %12s %12s %12s\n", "Movement of a layer", "takes", "hidden by",
            "waited for");
    for (int i = 0; i < costs->count; i++) {
        const struct hec_set_cost *cost = &costs->set[i];
        struct hec_phases p;
        char what[96];
        if (!hec_search_phases(&r->search, i, &r->movement, &p)) return;
        const bool rematerialize = r->movement.rematerialize;
        const bool early = !rematerialize && !exact && cost->layers > 1;
        snprintf(what, sizeof what, "parameters, %s a chunk, %.0f replicas",
                 hec_text_bytes((double)cost->chunk_bytes).text, p.replicas);
        print_transfer(r, what, p.gather_us,
                       early   ? hec_early_window_us(cost)
                       : exact ? cost->exact_window_us
                               : cost->window_us);
        if (early) print_transfer(r, "  of the first layer", p.gather_us, cost->window_us);
        snprintf(what, sizeof what, "gradients, %s a chunk%s",
                 hec_text_bytes((double)cost->grad_bytes).text,
                 rematerialize ? "; parameters again" : "");
        print_transfer(r, what, p.reduce_us + (rematerialize ? p.gather_us : 0),
                       rematerialize ? cost->rematerialize_window_us : hec_late_window_us(cost));
        if (!rematerialize && cost->layers > 1)
            print_transfer(r, "  of the first layer", p.reduce_us, cost->reduce_window_us);
    }
}

// ---- what else

static void print_candidate(const struct report *r, const char *what,
                            const struct hec_candidate *c) {
    fprintf(r->out, "  %-10s t = %-4" PRId64 "m = %-3" PRId64 " %-16s %-12s %10s %10s %5.0f %%%s\n",
            what, c->movement.overlap, c->movement.slots,
            c->movement.rematerialize ? "re-materialized" : "kept",
            c->movement.calibrate == HPL_CALIBRATES_NEVER ? "" : "calibrated",
            hec_text_us(c->iteration_us).text, hec_text_bytes((double)c->replica_bytes).text,
            100 * c->exposed, c->fits ? "" : "  does not fit");
}

static void print_compared(const struct report *r) {
    const struct hec_search *s = &r->search;
    fprintf(r->out, "\nCompared (%2d candidates) %44s %10s %7s\n", s->count, "iteration", "memory",
            "waits");
    if (s->most < HEC_CANDIDATES_MAX)
        fprintf(r->out, "  at most %d: each takes long with so many experts and devices\n",
                s->most);
    if (r->predicted) print_candidate(r, "chosen", &r->chosen);
    if (s->second >= 0) print_candidate(r, "runner-up", &s->candidate[s->second]);
}

// The choices of which candidates differ.
enum differs { DIFFERS_OVERLAP, DIFFERS_SLOTS, DIFFERS_REMATERIALIZE, DIFFERS_CALIBRATE, DIFFERS };

// Which one choice two candidates differ in; DIFFERS: in none, or in several.
static enum differs differs_in(const struct hec_candidate *a, const struct hec_candidate *b) {
    const bool differ[DIFFERS] = {
        a->movement.overlap != b->movement.overlap,
        a->movement.slots != b->movement.slots,
        a->movement.rematerialize != b->movement.rematerialize,
        a->movement.calibrate != b->movement.calibrate,
    };
    enum differs in = DIFFERS;
    int count = 0;
    for (int i = 0; i < DIFFERS; i++) {
        if (differ[i]) in = (enum differs)i, count++;
    }
    return count == 1 ? in : DIFFERS;
}

static const char *choice_text(const struct hec_candidate *c, enum differs of, char text[32]) {
    switch (of) {
    case DIFFERS_OVERLAP:
        snprintf(text, 32, "t = %" PRId64, c->movement.overlap);
        return text;
    case DIFFERS_SLOTS:
        snprintf(text, 32, "m = %" PRId64, c->movement.slots);
        return text;
    case DIFFERS_REMATERIALIZE:
        return c->movement.rematerialize ? "re-materialized" : "kept";
    default:
        return c->movement.calibrate == HPL_CALIBRATES_NEVER ? "as forecast" : "calibrated";
    }
}

static bool is_nearer(const struct hec_candidate *a, const struct hec_candidate *b) {
    return a->fits != b->fits ? a->fits : a->iteration_us < b->iteration_us;
}

// For each choice the best candidate that differs in it alone: what the choice gives, and by how much that would have to be faster.
static void print_gains(const struct report *r) {
    const struct hec_search *s = &r->search;
    const struct hec_candidate *chosen = &r->chosen;
    fprintf(r->out, "\nWhat each choice gives %19s %17s %12s\n", "nearest other", "takes longer",
            "memory");
    for (int of = 0; of < DIFFERS; of++) {
        const struct hec_candidate *near = NULL;
        char text[2][32];
        for (int i = 0; i < s->count; i++) {
            const struct hec_candidate *c = &s->candidate[i];
            if (differs_in(c, chosen) == (enum differs)of && (!near || is_nearer(c, near)))
                near = c;
        }
        if (!near) continue;
        const double more = (double)(near->replica_bytes - chosen->replica_bytes);
        char bytes[40];
        snprintf(bytes, sizeof bytes, "%c%s", more < 0 ? '-' : '+',
                 hec_text_bytes(more < 0 ? -more : more).text);
        fprintf(r->out, "  %-26s %-16s %+12.1f %% %12s%s\n",
                choice_text(chosen, (enum differs)of, text[0]),
                choice_text(near, (enum differs)of, text[1]),
                100 * (near->iteration_us / chosen->iteration_us - 1), bytes,
                near->fits ? "" : "  does not fit");
    }
}

static void print_changes(const struct report *r) {
    const struct hec_search *s = &r->search;
    fputs("\nWhat would change it\n", r->out);
    if (s->recorded) {
        fprintf(r->out, "  other loads: these are %" PRId64 " recorded microbatches of %s\n",
                s->recorded_times, s->recorded);
    } else {
        fprintf(
            r->out,
            "  real loads: assumed are Zipf %.1f, drifting; record some with --record-loads=FILE,\n"
            "    then compile with --profile=FILE\n",
            hec_assumed_skew);
    }
    fputs("  the cluster:\n", r->out);
    hec_explain_machine(&s->costs.machine, r->out);
    fputs("  settings: parallel.placement.overlap (t), .memory (m, or bytes), .rematerialize,"
          " .calibrate,\n    .dispatch, .forecast, .reshard;"
          " --emit-plan=FILE and --plan=FILE keep all of it as it is\n",
          r->out);
}

// ---- all of it

// The candidate with the module's choices.
static void find_chosen(struct report *r) {
    for (int i = 0; i < r->search.count && !r->predicted; i++) {
        const struct hec_candidate *c = &r->search.candidate[i];
        if (c->movement.overlap != r->movement.overlap || c->movement.slots != r->movement.slots ||
            c->movement.calibrate != r->movement.calibrate ||
            c->movement.rematerialize != r->movement.rematerialize)
            continue;
        r->search.chosen = i;
        r->chosen = *c;
        r->predicted = true;
    }
}

bool hec_explain_plan(MlirOperation module, FILE *out) {
    struct hec_arena arena = {0};
    struct report *r = HEC_NEW(&arena, struct report);
    *r = (struct report){.out = out, .module = module};
    if (!hec_moves_experts(module) || !hec_movement_read(module, &r->movement)) {
        const MlirStringRef experts = hec_setting_text(module, HEC_KEY_parallel_experts);
        if (hec_has_ranks(module))
            fprintf(out, "No experts move: parallel.experts = %.*s.\n", (int)experts.length,
                    experts.data);
        else
            fputs("No experts move: one process has all.\n", out);
        hec_arena_free(&arena);
        return true;
    }
    const bool sound = hec_search(module, &arena, &r->search);
    if (sound) {
        find_chosen(r);
        print_head(r);
        print_choices(r);
        if (r->predicted) print_costs(r);
        if (r->predicted) print_movement(r);
        print_compared(r);
        if (r->predicted) print_gains(r);
        print_changes(r);
    }
    hec_recorded_free(&r->search);
    hec_arena_free(&arena);
    return sound;
}
