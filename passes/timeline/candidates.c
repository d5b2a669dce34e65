// One iteration stands for all (three for replicas of a step), HEC_SEARCH_LAYERS layers for more, and messages are sums
// through ports. These rank t and m otherwise than single messages do, which take several times as long to simulate.
#include "passes/timeline/candidates.h"

#include <math.h>
#include <string.h>

#include "ir/accessors.h"
#include "passes/cost/memory.h"
#include "passes/cost/parallel.h"
#include "passes/timeline/timeline.h"
#include "passes/timeline/traffic.h"

enum { FIRST_TO_LAST = 3, BRIEF_LAYERS = 4 };

// How much slower than the fastest a candidate may be expected to be to be simulated message by message, and how much
// sums are wrong for other numbers of slots.
static const double reach = 0.03, unlike = 0.03;

// Without place-buffers nobody knows, and nothing decides.
static int64_t room_beside(const struct hec_variant *v) {
    struct hec_memory memory;
    if (!v->sound || !hec_memory_of(v->module, &memory)) return -1;
    return (int64_t)v->setup.costs.machine.memory - (memory.all - memory.item[HEC_MEMORY_REPLICAS]);
}

// The passes behind shard go over a copy of the module.
static struct hec_variant *variant_of(struct hec_searching *g, const struct hpl_movement *of) {
    struct hec_variant *v = &g->variant[of->lifetime][of->rematerialize];
    if (v->module.ptr) return v;
    struct hpl_movement movement = g->search->setup.movement;
    movement.rematerialize = of->rematerialize;
    movement.lifetime = of->lifetime;
    movement.calibrate = HPL_CALIBRATES_WORTH; // Costs nothing where nothing is calibrated.
    v->module = mlirOperationClone(g->module);
    hec_movement_write(v->module, &movement);
    v->setup = g->search->setup;
    v->sound = (!g->options->rest || g->options->rest(g->options, v->module) == HEC_PASS_DONE) &&
               hec_costs_of(v->module, &v->setup.costs) &&
               hec_script_of(v->module, &v->setup.costs, HEC_SEARCH_LAYERS, g->arena, &v->script) &&
               hec_script_of(v->module, &v->setup.costs, BRIEF_LAYERS, g->arena, &v->brief);
    v->room = g->search->slot_bytes ? g->search->slot_bytes : room_beside(v);
    return v;
}

// A choice to compare, and its simulated time.
struct compared {
    const struct hec_variant *variant; // NULL: nothing is compared.
    struct hpl_movement movement;
    enum hec_detail detail;
    double us;
    bool sound;
};

// Iterations that are simulated: one, which stands for all, or where replicas live for a step its first, its last, and
// one between for the others.
static int64_t enough(const struct hec_script *script, const struct hpl_movement *movement) {
    if (movement->lifetime == HPL_LIFETIME_ITERATION) return 1;
    return script->iterations < FIRST_TO_LAST ? script->iterations : FIRST_TO_LAST;
}

bool hec_search_us(const struct hec_setup *setup, const struct hec_script *script,
                   const struct hpl_movement *movement, enum hec_detail detail, double *us) {
    struct hec_script brief = *script;
    struct hec_step_time step;
    double ends[FIRST_TO_LAST];
    brief.iterations = enough(script, movement);
    const struct hec_timeline_request request = {
        .setup = setup,
        .script = &brief,
        .movement = movement,
        .steps = 1,
        .begins = hec_setup_begin(setup, brief.iterations),
        .sums = detail == HEC_DETAIL_SUMS,
    };
    if (hec_timeline(&request, &(struct hec_timeline_result){.step = &step, .ends = ends}))
        return false;
    const double other = brief.iterations > 1 ? ends[1] - ends[0] : step.body_us;
    const double left = (double)(script->iterations - brief.iterations);
    *us = step.us + (script->shortened - 1) * step.body_us + left * script->shortened * other;
    return true;
}

static void simulate_one(void *context, int number) {
    struct compared *c = (struct compared *)context + number;
    const struct hec_variant *v = c->variant;
    const bool brief = c->detail == HEC_DETAIL_BRIEF;
    c->sound =
        hec_search_us(&v->setup, brief ? &v->brief : &v->script, &c->movement, c->detail, &c->us);
}

static bool is_same(const struct hpl_movement *a, const struct hpl_movement *b) {
    return a->overlap == b->overlap && a->slots == b->slots && a->calibrate == b->calibrate &&
           a->rematerialize == b->rematerialize && a->lifetime == b->lifetime &&
           a->import_discount == b->import_discount;
}

static bool is_known(const struct hec_search *s, const struct hpl_movement *choice) {
    bool known = false;
    for (int i = 0; i < s->count; i++) known |= is_same(&s->candidate[i].movement, choice);
    return known;
}

bool hec_is_twin(const struct hec_candidate *a, const struct hec_candidate *b) {
    return a->movement.lifetime == b->movement.lifetime &&
           a->movement.rematerialize == b->movement.rematerialize &&
           a->took[HEC_DETAIL_SUMS] == b->took[HEC_DETAIL_SUMS];
}

static int64_t bytes_of(const struct hec_search *s, const struct compared *of) {
    return hec_replica_bytes(&s->setup.costs, s->setup.policy, &of->movement);
}

static bool fits(const struct hec_search *s, const struct compared *of) {
    const int64_t room = of->variant ? of->variant->room : -1;
    return room < 0 || bytes_of(s, of) <= room; // Less than nothing decides nothing.
}

static void add(struct hec_search *s, const struct compared *of) {
    struct hec_candidate *c = &s->candidate[s->count];
    *c = (struct hec_candidate){.movement = of->movement,
                                .us = of->us,
                                .took = {of->us},
                                .replica_bytes = bytes_of(s, of),
                                .fits = fits(s, of)};
    for (int i = 0; i < s->count && !c->detail; i++) {
        const struct hec_candidate *twin = &s->candidate[i];
        if (!hec_is_twin(twin, c)) continue;
        c->us = twin->us;
        c->detail = twin->detail;
        memcpy(c->took, twin->took, sizeof c->took);
    }
    s->count++;
}

// Where some candidate fits into memory, those that do not are not simulated.
static int leave_out_too_large(const struct hec_search *s, struct compared *of, int count) {
    bool any = false;
    int kept = 0;
    for (int i = 0; i < s->count; i++) any |= s->candidate[i].fits;
    for (int i = 0; i < count; i++) any |= fits(s, &of[i]);
    for (int i = 0; i < count; i++) {
        if (!any || fits(s, &of[i])) of[kept++] = of[i];
    }
    return kept;
}

// Re-materialization that is open (-1) is for replicas that do not fit: it costs time.
static bool rematerializes_at(struct hec_searching *g, struct hpl_movement kept,
                              int rematerialize) {
    const struct hec_search *s = g->search;
    if (rematerialize >= 0) return rematerialize;
    kept.rematerialize = false;
    const int64_t room = variant_of(g, &kept)->room;
    return room >= 0 && hec_replica_bytes(&s->setup.costs, s->setup.policy, &kept) > room;
}

static bool simulate(struct hec_searching *g, const struct hpl_movement *choice, int count) {
    struct compared compared[HEC_LISTED_MAX];
    struct hec_search *s = g->search;
    int wanted = 0;
    for (int i = 0; i < count && s->count + wanted < s->most; i++) {
        struct compared c = {.movement = choice[i]};
        bool known = is_known(s, &c.movement);
        for (int k = 0; k < wanted; k++) known |= is_same(&compared[k].movement, &c.movement);
        if (known) continue;
        c.sound = true; // Until a simulation refuses it.
        if (!hec_module_only_placed(g->module)) {
            c.variant = variant_of(g, &c.movement);
            if (!c.variant->sound) return false;
        }
        compared[wanted++] = c;
    }
    wanted = leave_out_too_large(s, compared, wanted);
    if (!hec_module_only_placed(g->module)) hec_in_parallel(wanted, simulate_one, compared);
    for (int i = 0; i < wanted; i++) {
        if (compared[i].sound) add(s, &compared[i]);
    }
    return true;
}

// The least time to expect message by message: that as sums, as many times as long as of the candidate that is most
// alike.
static double expected(const struct hec_search *s, const struct hec_candidate *c) {
    const struct hpl_movement *m = &c->movement;
    double ratio = 1;
    int most = -1;
    for (int i = 0; i < s->count; i++) {
        const struct hec_candidate *o = &s->candidate[i];
        const struct hpl_movement *n = &o->movement;
        const int alike = 4 * (m->lifetime == n->lifetime && m->rematerialize == n->rematerialize) +
                          2 * (m->slots == n->slots) + (m->overlap == n->overlap);
        if (o->detail < HEC_DETAIL_BRIEF || alike <= most) continue;
        most = alike;
        ratio = o->took[HEC_DETAIL_BRIEF] / o->took[HEC_DETAIL_SUMS];
    }
    return (most & 2 ? 1 : 1 - unlike) * ratio * c->took[HEC_DETAIL_SUMS];
}

static double fastest_in_detail(const struct hec_search *s) {
    double us = INFINITY;
    for (int i = 0; i < s->count; i++) {
        const struct hec_candidate *c = &s->candidate[i];
        if (c->detail >= HEC_DETAIL_BRIEF && c->took[HEC_DETAIL_BRIEF] < us)
            us = c->took[HEC_DETAIL_BRIEF];
    }
    return us;
}

// The choice that is expected to be fastest, of those that a simulation in more detail would still tell something of
// and that are not among `except`; -1: there is none.
static int next_of(const struct hec_search *s, const struct hpl_movement *choice, int count,
                   const int *except, int excepted) {
    double least = (1 + reach) * fastest_in_detail(s);
    int next = -1;
    for (int i = 0; i < s->count; i++) {
        const struct hec_candidate *c = &s->candidate[i];
        bool wanted = c->fits && c->detail < s->detail;
        bool listed = false;
        for (int k = 0; k < count; k++) listed |= is_same(&c->movement, &choice[k]);
        for (int k = 0; k < excepted; k++) wanted &= !hec_is_twin(&s->candidate[except[k]], c);
        if (!wanted || !listed || expected(s, c) > least) continue;
        least = expected(s, c);
        next = i;
    }
    return next;
}

static void simulate_in_detail(struct hec_searching *g, const struct hpl_movement *choice,
                               int count) {
    struct compared of[HEC_LISTED_MAX];
    struct hec_search *s = g->search;
    int at[HEC_LISTED_MAX], wanted = 0;
    for (int next; wanted < HEC_LISTED_MAX && g->left > 0 &&
                   (next = next_of(s, choice, count, at, wanted)) >= 0;) {
        const struct hpl_movement *m = &s->candidate[next].movement;
        of[wanted] = (struct compared){.movement = *m, .detail = s->detail};
        of[wanted].variant = &g->variant[m->lifetime][m->rematerialize];
        if (s->detail == HEC_DETAIL_BRIEF) g->left -= enough(&of[wanted].variant->brief, m);
        at[wanted++] = next;
    }
    hec_in_parallel(wanted, simulate_one, of);
    for (int i = 0; i < wanted; i++) {
        for (int k = 0; k < s->count && of[i].sound; k++) {
            struct hec_candidate *c = &s->candidate[k];
            if (!hec_is_twin(c, &s->candidate[at[i]])) continue;
            c->detail = s->detail;
            c->us = c->took[c->detail] = of[i].us;
        }
    }
}

bool hec_consider(struct hec_searching *g, const struct hpl_movement *choice, int count,
                  int rematerialize) {
    struct hpl_movement settled[HEC_LISTED_MAX];
    for (int i = 0; i < count; i++) {
        settled[i] = choice[i];
        settled[i].rematerialize = rematerializes_at(g, choice[i], rematerialize);
    }
    if (!simulate(g, settled, count)) return false;
    if (g->search->detail) simulate_in_detail(g, settled, count);
    return true;
}

// ---- message by message

// Iterations message by message that take some tenths of a second on one processor.
static int64_t affordable(const struct hec_search *s) {
    enum { MESSAGES = 3 << 15, LEAST = 4 };
    const int64_t devices = s->setup.costs.machine.nodes * s->setup.costs.machine.devices;
    const int64_t count = MESSAGES / (devices * devices * BRIEF_LAYERS);
    return count < LEAST ? LEAST : count;
}

bool hec_may_be_single(const struct hec_searching *g) {
    const struct hec_machine *m = &g->search->setup.costs.machine;
    return m->nodes * m->devices <= HEC_PAIRS_MOST && !hec_module_only_placed(g->module) &&
           !hec_module_in_sums(g->module);
}

void hec_detail(struct hec_searching *g, enum hec_detail detail, const struct hpl_movement *choice,
                int count) {
    g->search->detail = detail;
    g->left = affordable(g->search);
    simulate_in_detail(g, choice, count);
}

void hec_searching_free(struct hec_searching *g) {
    for (int k = 0; k < 4; k++) {
        struct hec_variant *v = &g->variant[k / 2][k % 2];
        if (v->module.ptr) mlirOperationDestroy(v->module);
    }
}
