// --explain=plan: how experts move, on one screen: the choices, their reasons, their cost, the other
// candidates, and facts that would change the choice.
//
// Times are those of simulations: --simulate gives the step's; other choices take longer by the difference that the
// search has found (hecate.searched), which nothing here searches anew.
#include <string.h>

#include "ir/accessors.h"
#include "ir/core/setting.h"
#include "passes/cost/explain.h"
#include "passes/cost/memory.h"
#include "passes/cost/recorded.h"
#include "passes/pipeline.h"
#include "passes/timeline/estimate.h"
#include "passes/timeline/search.h"

struct report {
    FILE *out;
    MlirOperation module;
    struct hec_search search; // The candidates that it compared.
    const struct hec_setup *setup;
    const struct hpl_movement *movement; // The module's; a plan file may have set it.
    struct hec_estimate estimate;
    double ep; // How many times as long a step takes where experts stay; 0: unknown.
};

static const char *plural(int64_t count) {
    return count == 1 ? "" : "s";
}

// ---- the head

static void print_head(const struct report *r) {
    const struct hec_costs *costs = &r->setup->costs;
    const struct hec_machine *m = &costs->machine;
    const MlirStringRef name = hec_any_sym_name(r->module);
    fprintf(r->out, "%.*s on %" PRId64 " node%s x %" PRId64 " device%s: ", (int)name.length,
            name.data, m->nodes, plural(m->nodes), m->devices, plural(m->devices));
    for (int i = 0; i < costs->count; i++) {
        const struct hec_set_cost *c = &costs->set[i];
        fprintf(r->out, "%s%" PRId64 " layer%s of %d experts (@%s)", i ? ", " : "", c->layers,
                plural(c->layers), c->experts, c->name);
    }
    fputs("\n\n"
          "Every expert has one owner. Before a layer's experts compute, the most loaded\n"
          "ones get replicas on other devices: their chunks (all parameters of one expert)\n"
          "travel while attention computes, rows (a token for one of its experts) are split\n"
          "over all holders, and gradients of replicas return to the owner behind\n"
          "attention's backward. The result is the same whatever is chosen here; time and\n"
          "memory are not.\n",
          r->out);
}

// ---- what a step takes

// The parts of a mean device's time, in two columns.
static void print_spent(const struct report *r, const struct hec_step_time *s) {
    int column = 0;
    for (int k = 0; k < HEC_SPENT; k++) {
        if (s->spent[k] <= 0) continue;
        const char *waits = k >= HEC_SPENT_COUNTS ? "waiting: " : "";
        fprintf(r->out, "  %s%-*s %9s %5.1f %%%s", waits, k >= HEC_SPENT_COUNTS ? 10 : 19,
                hec_spent_names[k], hec_text_us(s->spent[k]).text, 100 * s->spent[k] / s->us,
                column ? "\n" : "");
        column = !column;
    }
    if (column) fputc('\n', r->out);
}

static void print_step(const struct report *r) {
    const struct hec_step_time *s = &r->estimate.median;
    const struct hec_speed speed =
        hec_speed_of(r->module, &r->setup->costs.machine, r->estimate.us);
    fprintf(r->out, "\nA step takes %s\n", hec_speed_text(&speed).text);
    fprintf(r->out, "As --simulate says, on %s loads; the time of a mean device:\n",
            r->setup->recorded ? "recorded" : "assumed");
    print_spent(r, s);
    fprintf(r->out,
            "In a layer the most loaded device computes %.2f times the mean of experts' rows;\n"
            "%.1f %% of the rows change node, and %.0f replicas are made.\n",
            s->imbalance, 100 * s->cross, s->replicas);
    if (r->ep > 0)
        fprintf(r->out,
                "If all experts stayed with their owners, a step would take %.2f times as long%s\n",
                r->ep, r->ep < 1 ? ":\n--set parallel.experts=ep is faster." : ".");
    hec_explain_programs(r->setup->policy, r->out);
}

// ---- the choices

enum { REASON_COLUMN = 40, COLUMNS = 80 };

// The reason in as many lines as it takes.
static void print_choice(const struct report *r, const char *what, const char *value,
                         const char *why) {
    int column = fprintf(r->out, "  %-28s %-8s", what, value);
    while (*why) {
        const int length = (int)strcspn(why, " ");
        if (column + 1 + length > COLUMNS) {
            fprintf(r->out, "\n%*s", REASON_COLUMN - 1, "");
            column = REASON_COLUMN - 1;
        }
        column += fprintf(r->out, " %.*s", length, why);
        why += length + (why[length] == ' ');
    }
    fputc('\n', r->out);
}

// The chosen candidate; NULL: a plan was read, or nothing was compared.
static const struct hec_candidate *chosen_of(const struct report *r) {
    return r->search.count ? &r->search.candidate[r->search.chosen] : NULL;
}

// The candidate that differs from the chosen one in this choice alone; NULL: there is none.
static const struct hec_candidate *other_of(const struct report *r, enum hec_differs of) {
    for (int i = r->search.count - 1; i > 0; i--) { // Behind the runner-up.
        const struct hec_candidate *c = &r->search.candidate[i];
        if (hec_differs_in(c, chosen_of(r)) == of) return c;
    }
    return NULL;
}

static double longer(const struct report *r, const struct hec_candidate *other) {
    return 100 * (other->us / chosen_of(r)->us - 1);
}

static const char *overlap_reason(const struct report *r, char *text, size_t size) {
    const struct hpl_movement *m = r->movement;
    const int64_t there = m->rematerialize ? m->gather_hidden_first : m->gather_hidden;
    const int64_t back = m->rematerialize ? m->reduce_hidden_first : m->reduce_hidden;
    snprintf(text, size, "computation hides %" PRId64 " forward, %" PRId64 " backward%s%s%s", there,
             back, m->overlap > (there < back ? there : back) ? "; the rest is waited for" : "",
             m->import_discount ? ", and has to save half its bytes in rows" : "",
             r->search.fixed_overlap ? "; given" : "");
    return text;
}

// Bytes that are left for replicas.
static int64_t room_of(const struct report *r) {
    struct hec_memory memory;
    hec_memory_of(r->module, &memory);
    return (int64_t)r->setup->costs.machine.memory -
           (memory.all - memory.item[HEC_MEMORY_REPLICAS]);
}

static const char *slots_reason(const struct report *r, char *text, size_t size) {
    const struct hec_search *s = &r->search;
    const struct hec_text taken =
        hec_text_bytes((double)hec_replica_bytes(&r->setup->costs, r->setup->policy, r->movement));
    const int64_t room = s->slot_bytes ? s->slot_bytes : room_of(r);
    const char *how = !s->uses_slots ? "the policy decides" : s->fixed_slots ? "given" : "searched";
    if (room < 0) {
        snprintf(text, size, "%s; %s, on a device whose %s are %s too few for the rest", how,
                 taken.text, hec_text_bytes(r->setup->costs.machine.memory).text,
                 hec_text_bytes((double)-room).text);
    } else {
        snprintf(text, size, "%s; %s of %s that are left", how, taken.text,
                 hec_text_bytes((double)room).text);
    }
    return text;
}

// Replicas and time of the candidate that does otherwise: `what`.
static const char *price_of(const struct report *r, const struct hec_candidate *other,
                            const char *what, char *text, size_t size) {
    const struct hec_text bytes = hec_text_bytes((double)other->replica_bytes);
    if (!other->fits) {
        snprintf(text, size, "%s: %s, which do not fit", what, bytes.text);
    } else {
        snprintf(text, size, "%s: %s, %+.1f %% time", what, bytes.text, longer(r, other));
    }
    return text;
}

static const char *rematerialize_reason(const struct report *r, char *text, size_t size) {
    const bool again = r->movement->rematerialize;
    if (hpl_gathers_all(r->setup->policy)) return "the policy cannot keep all experts";
    if (r->setup->policy->when == HPL_WHEN_PERIODIC) return "the policy's placement stays";
    if (r->search.fixed_rematerialize) return "given";
    const struct hec_candidate *other =
        chosen_of(r) ? other_of(r, HEC_DIFFERS_REMATERIALIZE) : NULL;
    if (!other) return again ? "gathered again for backward" : "kept until backward";
    const char *what = again ? "kept until backward" : "gathered again";
    return price_of(r, other, what, text, size);
}

static const char *lifetime_reason(const struct report *r, char *text, size_t size) {
    const bool step = r->movement->lifetime == HPL_LIFETIME_STEP;
    if (!hpl_may_last(r->setup->policy)) return "the policy plans on the counts of each";
    if (r->movement->iterations < 2) return "a step has one";
    if (r->search.fixed_lifetime) return "given";
    const struct hec_candidate *other = chosen_of(r) ? other_of(r, HEC_DIFFERS_LIFETIME) : NULL;
    if (!other) return step ? "they serve all of its iterations" : "gradients leave at once";
    const char *what = step ? "for an iteration" : "for a step";
    return price_of(r, other, what, text, size);
}

static const char *calibrate_reason(const struct report *r, char *text, size_t size) {
    const bool never = r->movement->calibrate == HPL_CALIBRATES_NEVER;
    if (!r->setup->policy->calibrates) return "the policy does not";
    if (r->search.fixed_calibrate) return "given";
    const struct hec_candidate *other = chosen_of(r) ? other_of(r, HEC_DIFFERS_CALIBRATE) : NULL;
    if (!other)
        return never ? "as forecast" : "replicas are added where the router's counts say it pays";
    const double more = longer(r, other);
    snprintf(text, size, "%s it %+.1f %% time%s", never ? "with" : "without", more,
             !never && more < 0 ? ", but real loads are harder to forecast" : "");
    return text;
}

static const char *owners_of(const struct report *r) {
    bool table = false;
    HEC_EACH (op, hec_ops_in(hec_module_body(r->module)))
        table |= hec_op_is(op, HEC_OP_set) && hec_set_has_owner(op);
    return !table ? "even" : r->setup->recorded ? "by load" : "table";
}

static void print_rhythm(const struct report *r) {
    char number[32], text[160];
    const struct hpl_movement *m = r->movement;
    snprintf(text, sizeof text,
             m->reshard_every ? "they may change every %" PRId64 " iterations" : "for good",
             m->reshard_every);
    if (r->setup->policy->calibrates) print_choice(r, "first owners", owners_of(r), text);
    if (r->setup->policy->when == HPL_WHEN_PERIODIC) {
        snprintf(number, sizeof number, "%" PRId64, m->reshard_every);
        print_choice(r, "iterations of a placement", number, "then experts move with their states");
    } else if (m->known) {
        print_choice(r, "plans are made from", "routes",
                     "they are given before each step (--route)");
    } else if (r->setup->policy->when == HPL_WHEN_FORECAST) {
        snprintf(number, sizeof number, "%" PRId64, m->window);
        print_choice(r, "iterations that forecast", number,
                     r->setup->recorded ? "the first one by recorded loads"
                                        : "the first one has no replicas");
    }
}

static void print_choices(const struct report *r) {
    char number[32], text[160];
    const struct hpl_movement *m = r->movement;
    const MlirStringRef experts = hec_setting_text(r->module, HEC_KEY_parallel_experts);
    fprintf(r->out, "\nChosen%*s because\n", REASON_COLUMN - 7, "");
    snprintf(text, sizeof text, "%.*s; %s", (int)experts.length, experts.data,
             m->even                                        ? "rows split evenly over holders"
             : r->setup->policy->split == HPL_SPLIT_PLANNED ? "rows split as it plans"
                                                            : "rows split by exact quotas");
    print_choice(r, "policy", m->policy, text);
    snprintf(number, sizeof number, "t = %" PRId64, m->overlap);
    const bool network = r->setup->costs.machine.nodes > 1;
    if (r->search.uses_overlap)
        print_choice(r, network ? "chunks that may enter a node" : "experts that may get replicas",
                     number, overlap_reason(r, text, sizeof text));
    snprintf(number, sizeof number, r->search.uses_slots ? "m = %" PRId64 : "free", m->slots);
    print_choice(r, "replicas a device and layer", number, slots_reason(r, text, sizeof text));
    print_choice(r, "re-materialize", m->rematerialize ? "yes" : "no",
                 rematerialize_reason(r, text, sizeof text));
    print_choice(r, "lifetime of replicas", hec_lifetime_name(m->lifetime),
                 lifetime_reason(r, text, sizeof text));
    print_choice(r, "calibrate behind the router", hec_calibrate_name(m->calibrate),
                 calibrate_reason(r, text, sizeof text));
    print_rhythm(r);
    if (hec_module_has_plan(r->module)) {
        const MlirStringRef plan = hec_module_plan(r->module);
        fprintf(r->out, "  All of it is read from %.*s.\n", (int)plan.length, plan.data);
    }
}

// ---- what else

static const char *choice_text(const struct hpl_movement *m, enum hec_differs of, char text[32]) {
    switch (of) {
    case HEC_DIFFERS_OVERLAP:
        snprintf(text, 32, "t = %" PRId64, m->overlap);
        return text;
    case HEC_DIFFERS_SLOTS:
        snprintf(text, 32, "m = %" PRId64, m->slots);
        return text;
    case HEC_DIFFERS_REMATERIALIZE:
        return m->rematerialize ? "re-materialized" : "kept";
    case HEC_DIFFERS_DISCOUNT:
        return m->import_discount ? "entries at half price" : "entries at full price";
    case HEC_DIFFERS_LIFETIME:
        return m->lifetime == HPL_LIFETIME_STEP ? "for a step" : "for an iteration";
    default:
        return m->calibrate == HPL_CALIBRATES_NEVER ? "as forecast" : "calibrated";
    }
}

// Why a faster one was not chosen; empty for others.
static const char *why_not(const struct report *r, const struct hec_candidate *other) {
    const struct hec_candidate *chosen = chosen_of(r);
    if (!other->fits) return "does not fit";
    if (longer(r, other) >= 0) return "";
    if (other->movement.calibrate == HPL_CALIBRATES_NEVER &&
        chosen->movement.calibrate != HPL_CALIBRATES_NEVER)
        return "trusts the forecast";
    return other->replica_bytes > chosen->replica_bytes ? "not worth its memory"
                                                        : "counts as equal";
}

static void print_other(const struct report *r, const char *what, const char *text,
                        const struct hec_candidate *other) {
    const double more = (double)(other->replica_bytes - chosen_of(r)->replica_bytes);
    const char *why = why_not(r, other);
    char bytes[40];
    snprintf(bytes, sizeof bytes, "%c%s", more < 0 ? '-' : '+',
             hec_text_bytes(more < 0 ? -more : more).text);
    fprintf(r->out, "  %-16s %-16s %+8.1f %% %11s%s%s\n", what, text, longer(r, other), bytes,
            *why ? "  " : "", why);
}

// For each choice the best candidate that differs in it alone: the gain of the choice, and by how much that
// would have to be faster.
static void print_compared(const struct report *r) {
    const struct hec_search *s = &r->search;
    if (!s->count) return;
    fprintf(r->out, "\nCompared: %d candidates by short simulations with messages summed up",
            s->most);
    if (s->singles) fprintf(r->out, ",\nthe best %d of them message by message", s->singles);
    fputc('\n', r->out);
    fprintf(r->out, "  %-16s %-16s %10s %11s\n", "chosen", "nearest other", "takes", "memory");
    for (int of = 0; of < HEC_DIFFERS; of++) {
        const struct hec_candidate *other = other_of(r, (enum hec_differs)of);
        char text[2][32];
        if (!other) continue;
        print_other(r, choice_text(r->movement, (enum hec_differs)of, text[0]),
                    choice_text(&other->movement, (enum hec_differs)of, text[1]), other);
    }
    if (s->count < 2) return;
    const struct hec_candidate *second = &s->candidate[1];
    char text[64];
    snprintf(text, sizeof text, "t = %" PRId64 ", m = %" PRId64, second->movement.overlap,
             second->movement.slots);
    print_other(r, "runner-up", text, second);
}

static void print_changes(const struct report *r) {
    fputs("\nFacts that would change it\n", r->out);
    if (r->setup->recorded) {
        fprintf(r->out, "  other loads: these are %" PRId64 " recorded microbatches of %s\n",
                r->setup->recorded_times, r->setup->recorded);
    } else {
        fprintf(r->out,
                "  real loads: assumed are Zipf %.1f, drifting; record some with\n"
                "    --record-loads=FILE, then compile with --profile=FILE\n",
                hec_assumed_skew);
    }
    fputs("  the cluster:\n", r->out);
    hec_explain_machine(&r->setup->costs.machine, r->out);
    fputs("  settings: parallel.placement.overlap (t), .memory (m, or bytes),\n"
          "    .rematerialize, .lifetime, .calibrate, .dispatch, .forecast, .reshard;\n"
          "    --plan=FILE repeats what --emit-plan=FILE kept; --autotune looks further\n",
          r->out);
}

// ---- all of it

// Both as the search counts.
static double ep_of(const struct hec_setup *setup, const struct hec_script *script) {
    struct hpl_movement ep = setup->movement;
    double us, stay;
    strcpy(ep.policy, "ep");
    return hec_search_us(setup, script, &setup->movement, HEC_DETAIL_SUMS, &us) &&
                   hec_search_us(setup, script, &ep, HEC_DETAIL_SUMS, &stay)
               ? stay / us
               : 0;
}

static bool report(struct report *r, struct hec_arena *arena) {
    const struct hec_estimate_request request = {.module = r->module, .setup = r->setup};
    if (!hec_setup_read(r->module, arena, &r->search.setup) ||
        !hec_estimate(&request, arena, &r->estimate))
        return false;
    hec_search_settings(r->module, &r->search);
    hec_compared_read(r->module, &r->search);
    r->ep = ep_of(r->setup, &r->estimate.script);
    print_head(r);
    print_step(r);
    print_choices(r);
    print_compared(r);
    print_changes(r);
    return true;
}

bool hec_explain_plan(MlirOperation module, FILE *out) {
    struct hec_arena arena = {0};
    if (!hec_moves_experts(module)) {
        const MlirStringRef experts = hec_setting_text(module, HEC_KEY_parallel_experts);
        if (hec_has_ranks(module))
            fprintf(out, "No experts move: parallel.experts = %.*s.\n", (int)experts.length,
                    experts.data);
        else
            fputs("No experts move: one process has all.\n", out);
        return true;
    }
    struct report *r = HEC_NEW(&arena, struct report);
    *r = (struct report){.out = out, .module = module};
    r->setup = &r->search.setup;
    r->movement = &r->setup->movement;
    const bool sound = report(r, &arena);
    hec_recorded_free(&r->search.setup);
    hec_arena_free(&arena);
    return sound;
}
