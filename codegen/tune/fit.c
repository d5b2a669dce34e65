// From the program's own settings on, every open setting may take a step towards less memory. The single step that
// saves most for its time is taken, with all that cost nearly nothing, until the program fits; then steps that were not
// needed are taken back. Trials (trial.h) tell memory and time.
#include "codegen/tune/fit.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/tune/trial.h"
#include "ir/accessors.h"
#include "ir/core/setting.h"
#include "ir/target/target.h"
#include "lang/base/clock.h"
#include "passes/base/movement.h"
#include "passes/cost/explain.h"
#include "passes/cost/memory.h"
#include "passes/plan_file.h"
#include "runtime/plan/types.h"

enum { AXES = 5, STEPS = 8, POINTS = 128, ROUNDS = 16, SHORT = 2, MICROBATCH = 0, REPLICAS = 5 };
static const double nearly_nothing = 0.005; // Part of a step's time.

// A setting, and values from its own on, each of which needs less memory than the one before.
struct axis {
    const char *key;
    const char *value[STEPS];
    int steps; // 0: it is given, or means nothing here.
};

static const struct axis ladders[AXES] = {
    [MICROBATCH] = {"parallel.microbatch", {NULL}, 0},
    {"parallel.logits", {"whole", "512"}, 2},
    {"parallel.recompute", {"none", "elementwise", "cheap", "all"}, 4},
    {"parallel.dense", {"replicate", "states", "shard"}, 3},
    {"parallel.states", {"device", "host"}, 2},
};

struct point {
    int at[AXES];
    struct hec_trial trial;
};

struct fit {
    struct hec_compilation *c;
    struct axis axis[AXES];
    const char *tokens;  // "train.tokens=N" of the own settings: other microbatches leave them.
    struct point *point; // [POINTS] tried ones.
    int points;
};

// ---- axes

static const struct hec_setting *setting_of(const struct hec_compilation *c, const char *key) {
    for (int i = 0; i < c->program->settings; i++) {
        if (strcmp(c->program->setting[i].key, key) == 0) return &c->program->setting[i];
    }
    return NULL;
}

// Halves of the microbatch. With whole iterations as groups of a router another microbatch would be another result.
static void halve(struct fit *f, const struct hec_setting *own) {
    struct axis *axis = &f->axis[MICROBATCH];
    const struct hec_setting *group = setting_of(f->c, "train.group");
    int64_t value = strtoll(own->value, NULL, 10);
    if (group && strcmp(group->value, "iteration") == 0) return;
    for (axis->steps = 0; value >= 1 && axis->steps < STEPS; value /= 2)
        axis->value[axis->steps++] = hec_arena_format(f->c->arena, "%" PRId64, value);
}

static bool means_something(const struct fit *f, const char *key) {
    const MlirOperation module = f->c->module;
    if (strcmp(key, "parallel.dense") == 0) return f->c->several_ranks;
    if (strcmp(key, "parallel.states") == 0) return hec_target_of(module)->apart;
    return true;
}

// Returns how many steps there are.
static int find_axes(struct fit *f) {
    int steps = 0;
    for (int a = 0; a < AXES; a++) {
        struct axis *axis = &f->axis[a];
        const struct hec_setting *own = setting_of(f->c, ladders[a].key);
        *axis = (struct axis){.key = ladders[a].key};
        if (!own || own->given || !means_something(f, axis->key)) continue;
        if (a == MICROBATCH) halve(f, own);
        int from = 0;
        while (from < ladders[a].steps && strcmp(ladders[a].value[from], own->value) != 0) from++;
        for (int i = from; i < ladders[a].steps; i++)
            axis->value[axis->steps++] = ladders[a].value[i];
        steps += axis->steps > 1 ? axis->steps - 1 : 0;
    }
    return steps;
}

// ---- trials

static bool is_same(const struct point *a, const struct point *b) {
    return memcmp(a->at, b->at, sizeof a->at) == 0;
}

static void look(void *context) {
    (void)context;
}

static void run_trials(struct fit *f, struct hec_trial *trial, int count, bool memory) {
    const struct hec_trial_watch watch = {.stop = INFINITY, .look = look};
    for (int i = 0; i < count; i++) trial[i].memory = memory;
    hec_trials(f->c->options, trial, count, &watch);
}

// For the least memory the fewest replicas are enough; then nothing has to be searched. Returns how many settings.
static int least_replicas(const struct hec_compilation *c, const char **set) {
    static const char *const least[][2] = {
        {"parallel.placement.memory", "parallel.placement.memory=1"},
        {"parallel.placement.overlap", "parallel.placement.overlap=1"},
        {"parallel.placement.lifetime", "parallel.placement.lifetime=iteration"},
        {"parallel.placement.rematerialize", "parallel.placement.rematerialize=true"},
        {"parallel.placement.calibrate", "parallel.placement.calibrate=false"},
    };
    int count = 0;
    for (int i = 0; i < REPLICAS && hec_moves_experts(c->module); i++) {
        const struct hec_setting *own = setting_of(c, least[i][0]);
        if (own && !own->given) set[count++] = least[i][1];
    }
    return count;
}

// The settings of a point that are not the program's own.
static struct hec_trial trial_of(struct fit *f, const struct point *p) {
    struct hec_arena *arena = f->c->arena;
    const char **set = hec_arena_alloc(arena, AXES + 2 + REPLICAS, sizeof *set);
    struct hec_trial trial = {.set = set, .steps = SHORT, .coarse = true};
    for (int a = 0; a < AXES; a++) {
        const struct axis *axis = &f->axis[a];
        if (p->at[a])
            set[trial.count++] = hec_arena_format(arena, "%s=%s", axis->key, axis->value[p->at[a]]);
    }
    if (p->at[MICROBATCH] && f->tokens) set[trial.count++] = f->tokens;
    return trial;
}

// The same with the fewest replicas: nothing is searched, and points are compared by all else.
static struct hec_trial quick_trial(struct fit *f, const struct point *p) {
    struct hec_trial trial = trial_of(f, p);
    const char **set =
        hec_arena_alloc(f->c->arena, (size_t)trial.count + 1 + REPLICAS, sizeof *set);
    for (int i = 0; i < trial.count; i++) set[i] = trial.set[i];
    trial.set = set;
    trial.count += least_replicas(f->c, set + trial.count);
    return trial;
}

// The least memory of a point, on other nodes.
static struct hec_trial memory_of(struct fit *f, const struct point *p, int64_t nodes) {
    struct hec_arena *arena = f->c->arena;
    const struct axis *microbatch = &f->axis[MICROBATCH];
    struct hec_trial trial = trial_of(f, p);
    const char **set = hec_arena_alloc(arena, (size_t)trial.count + 3 + REPLICAS, sizeof *set);
    for (int i = 0; i < trial.count; i++) set[i] = trial.set[i];
    trial.set = set;
    trial.count += least_replicas(f->c, set + trial.count);
    if (nodes == hec_setting_count(f->c->module, HEC_KEY_cluster_nodes, 1)) return trial;
    set[trial.count++] = hec_arena_format(arena, "cluster.nodes=%" PRId64, nodes);
    set[trial.count++] = "train.tokens=auto";
    if (microbatch->steps)
        set[trial.count++] =
            hec_arena_format(arena, "%s=%s", microbatch->key, microbatch->value[p->at[MICROBATCH]]);
    return trial;
}

// Tries points that were not tried yet, side by side, and fills in all of them.
static void try_points(struct fit *f, struct point *wanted, int count) {
    struct hec_trial trial[2 * AXES + 1];
    int of[2 * AXES + 1], fresh = 0;
    assert(count <= 2 * AXES + 1);
    for (int i = 0; i < count; i++) {
        int known = 0;
        while (known < f->points && !is_same(&f->point[known], &wanted[i])) known++;
        if (known == f->points && f->points < POINTS) {
            of[fresh] = f->points;
            trial[fresh++] = quick_trial(f, &wanted[i]);
            f->point[f->points++] = wanted[i];
        }
    }
    run_trials(f, trial, fresh, false);
    for (int i = 0; i < fresh; i++) f->point[of[i]].trial = trial[i];
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < f->points; k++) {
            if (is_same(&f->point[k], &wanted[i])) wanted[i] = f->point[k];
        }
    }
}

static bool fits(const struct point *p) {
    return p->trial.sound && p->trial.score.bytes <= p->trial.score.memory;
}

static double us_of(const struct point *p) {
    return p->trial.score.speed.us / p->trial.score.speed.tokens;
}

// Replicas take the room that is left.
static double needed(const struct point *p) {
    return p->trial.score.bytes - p->trial.score.replicas;
}

// ---- the way down

// Lists single steps from `p`, forward or back. Returns how many.
static int steps_from(const struct fit *f, const struct point *p, int by, struct point next[AXES]) {
    int count = 0;
    for (int a = 0; a < AXES; a++) {
        const int at = p->at[a] + by;
        if (at < 0 || at >= f->axis[a].steps) continue;
        next[count] = (struct point){0};
        memcpy(next[count].at, p->at, sizeof p->at);
        next[count++].at[a] = at;
    }
    return count;
}

static const struct point *fastest_fitting(const struct point *of, int count) {
    const struct point *best = NULL;
    for (int i = 0; i < count; i++) {
        if (fits(&of[i]) && (!best || us_of(&of[i]) < us_of(best))) best = &of[i];
    }
    return best;
}

// Memory saved for the time that the step takes longer.
static double worth(const struct point *from, const struct point *to) {
    const double cost = us_of(to) / us_of(from) - 1;
    return (needed(from) - needed(to)) / (cost > nearly_nothing ? cost : nearly_nothing);
}

// The best step, and with it all that cost nearly nothing. False: none saves anything.
static bool take_steps(struct point *p, const struct point *next, int count) {
    const struct point from = *p;
    int best = -1;
    for (int i = 0; i < count; i++) {
        if (!next[i].trial.sound || needed(&next[i]) >= needed(&from)) continue;
        if (best < 0 || worth(&from, &next[i]) > worth(&from, &next[best])) best = i;
    }
    for (int i = 0; best >= 0 && i < count; i++) {
        if (!next[i].trial.sound || needed(&next[i]) >= needed(&from)) continue;
        const bool cheap = us_of(&next[i]) <= (1 + nearly_nothing) * us_of(&from);
        for (int a = 0; a < AXES && (i == best || cheap); a++)
            if (next[i].at[a] > p->at[a]) p->at[a] = next[i].at[a];
    }
    return best >= 0;
}

// From the own settings to the first point that fits. False: the steps end before.
static bool go_down(struct fit *f, struct point *p) {
    try_points(f, p, 1);
    if (!p->trial.sound) return false;
    for (int round = 0; round < ROUNDS; round++) {
        struct point next[AXES];
        const int count = steps_from(f, p, 1, next);
        try_points(f, next, count);
        const struct point *best = fastest_fitting(next, count);
        if (best) {
            *p = *best;
            return true;
        }
        const struct point before = *p;
        if (!take_steps(p, next, count)) return false;
        try_points(f, p, 1);
        if (!p->trial.sound) *p = before;
        if (fits(p)) return true;
        if (is_same(p, &before)) return false;
    }
    return false;
}

// Takes back steps as long as the program stays small enough and becomes faster.
static void go_back(struct fit *f, struct point *p) {
    for (int round = 0; round < ROUNDS; round++) {
        struct point before[AXES];
        const int count = steps_from(f, p, -1, before);
        try_points(f, before, count);
        const struct point *best = fastest_fitting(before, count);
        if (!best || us_of(best) > us_of(p)) return;
        *p = *best;
    }
}

// ---- the least

// The last step of every axis that the program can take. `p` becomes that point; only its memory is known.
static void find_least(struct fit *f, struct point *p) {
    const int64_t nodes = hec_setting_count(f->c->module, HEC_KEY_cluster_nodes, 1);
    for (bool sound = false; !sound;) {
        struct hec_trial trial[AXES + 1];
        int of[AXES + 1], count = 0;
        for (int a = 0; a < AXES; a++) p->at[a] = f->axis[a].steps ? f->axis[a].steps - 1 : 0;
        trial[count++] = memory_of(f, p, nodes);
        run_trials(f, trial, 1, true);
        p->trial = trial[0];
        sound = trial[0].sound;
        for (int a = 0; a < AXES && !sound; a++) {
            struct point alone = {0};
            alone.at[a] = p->at[a];
            if (!alone.at[a]) continue;
            of[count] = a;
            trial[count++] = memory_of(f, &alone, nodes);
        }
        if (sound || count == 1) return;
        run_trials(f, trial + 1, count - 1, true);
        int dropped = 0;
        for (int i = 1; i < count; i++) {
            if (trial[i].sound) continue;
            f->axis[of[i]].steps--;
            dropped++;
        }
        if (!dropped) return; // They go alone, but not together.
    }
}

// Some last steps do not pay everywhere: where units under way take more than dense = shard saves, say.
static void find_less(struct fit *f, struct point *p) {
    const int64_t nodes = hec_setting_count(f->c->module, HEC_KEY_cluster_nodes, 1);
    struct point before[AXES];
    struct hec_trial trial[AXES];
    const int count = steps_from(f, p, -1, before);
    for (int i = 0; i < count; i++) trial[i] = memory_of(f, &before[i], nodes);
    run_trials(f, trial, count, true);
    for (int i = 0; i < count; i++) {
        before[i].trial = trial[i];
        if (trial[i].sound && trial[i].score.bytes < p->trial.score.bytes) *p = before[i];
    }
}

static bool fits_on(struct fit *f, const struct point *least, int64_t nodes) {
    struct hec_trial trial = memory_of(f, least, nodes);
    run_trials(f, &trial, 1, true);
    return trial.sound && trial.score.bytes <= trial.score.memory;
}

// The least number of such nodes that would do; 0: none.
static int64_t least_nodes(struct fit *f, const struct point *least) {
    const int64_t devices = hec_setting_count(f->c->module, HEC_KEY_cluster_devices, 1);
    int64_t low = hec_setting_count(f->c->module, HEC_KEY_cluster_nodes, 1), high = 2 * low;
    while (high * devices <= HPL_DEVICES_MAX && !fits_on(f, least, high)) {
        low = high;
        high *= 2;
    }
    if (high * devices > HPL_DEVICES_MAX) return 0;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (fits_on(f, least, middle))
            high = middle;
        else
            low = middle;
    }
    return high;
}

// ---- what people see

// Notes lines for --explain=memory.
struct lines {
    struct hec_arena *arena;
    HEC_VEC(const char *) text;
};

static void note(struct hec_compilation *c, const struct lines *lines) {
    MlirAttribute *line = hec_arena_alloc(c->arena, (size_t)lines->text.count + 1, sizeof *line);
    for (int i = 0; i < lines->text.count; i++)
        line[i] = mlirStringAttrGet(c->context, HEC_STR(lines->text.item[i]));
    mlirOperationSetAttributeByName(c->module, HEC_STR("hecate.fit"),
                                    mlirArrayAttrGet(c->context, lines->text.count, line));
}

static const char *settings_text(struct fit *f, const struct point *p) {
    const char *text = "";
    for (int a = 0; a < AXES; a++) {
        if (p->at[a])
            text = hec_arena_format(f->c->arena, "%s --set %s=%s", text, f->axis[a].key,
                                    f->axis[a].value[p->at[a]]);
    }
    return text;
}

static bool asks_for_memory(const struct hec_compilation *c) {
    return c->options->explain && strcmp(c->options->explain, "memory") == 0;
}

// The program stays: it says by how much the smallest one is too large.
static void say_nothing_fits(struct fit *f, const struct point *least) {
    struct lines lines = {.arena = f->c->arena};
    const double more = least->trial.score.bytes - least->trial.score.memory;
    const char *settings = settings_text(f, least);
    if (least->trial.sound && more > 0)
        HEC_PUSH(lines.arena, &lines.text,
                 hec_arena_format(lines.arena, "the least%s%s: %s, still %s too much",
                                  *settings ? ", with" : "", settings,
                                  hec_text_bytes(least->trial.score.bytes).text,
                                  hec_text_bytes(more).text));
    if (asks_for_memory(f->c) && least->trial.sound) {
        const int64_t nodes = least_nodes(f, least);
        HEC_PUSH(lines.arena, &lines.text,
                 nodes ? hec_arena_format(lines.arena,
                                          "the smallest cluster of such nodes that does: %" PRId64
                                          ", --set cluster.nodes=%" PRId64,
                                          nodes, nodes)
                       : "no number of such nodes does");
    }
    note(f->c, &lines);
}

// Compares every chosen setting with its own value, all others as chosen.
static void say_chosen(struct fit *f, const struct point *own, const struct point *p,
                       struct lines *lines) {
    struct point without[AXES];
    int of[AXES], count = 0;
    const char *text = "";
    for (int a = 0; a < AXES; a++) {
        if (!p->at[a]) continue;
        without[count] = *p;
        without[count].at[a] = 0;
        of[count++] = a;
    }
    try_points(f, without, count);
    HEC_PUSH(lines->arena, &lines->text,
             hec_arena_format(
                 lines->arena, "chosen, as it takes %s without; a step takes %+.1f %%:",
                 hec_text_bytes(own->trial.score.bytes).text, 100 * (us_of(p) / us_of(own) - 1)));
    for (int i = 0; i < count; i++) {
        const struct axis *axis = &f->axis[of[i]];
        const char *value = axis->value[p->at[of[i]]];
        const char *cost = "";
        if (without[i].trial.sound)
            cost = hec_arena_format(lines->arena, "%+.1f %% time, %s less",
                                    100 * (us_of(p) / us_of(&without[i]) - 1),
                                    hec_text_bytes(needed(&without[i]) - needed(p)).text);
        text = hec_arena_format(lines->arena, "%s%s %s = %s (%s)", text, i ? "," : "", axis->key,
                                value, cost);
        HEC_PUSH(lines->arena, &lines->text,
                 hec_arena_format(lines->arena, "  --set %s=%s  %s", axis->key, value, cost));
    }
    if (f->c->options->no_warnings) return;
    fprintf(stderr, "hecatec: %s needs %s of a device's %s; to fit, chosen are%s\n", f->c->name,
            hec_text_bytes(own->trial.score.bytes).text,
            hec_text_bytes(own->trial.score.memory).text, text);
}

// ---- all of it

static const struct hec_options *options_of(struct fit *f, const struct point *p,
                                            const struct lines *lines) {
    struct hec_compilation *c = f->c;
    struct hec_options *o = HEC_NEW(c->arena, struct hec_options);
    struct hec_plan_tuned *tuned = HEC_NEW(c->arena, struct hec_plan_tuned);
    const struct hec_trial trial = trial_of(f, p);
    *o = *c->options;
    o->sets = (struct hec_texts){0};
    for (int i = 0; i < c->options->sets.text.count; i++)
        HEC_PUSH(c->arena, &o->sets.text, c->options->sets.text.item[i]);
    for (int i = 0; i < trial.count; i++) HEC_PUSH(c->arena, &o->sets.text, trial.set[i]);
    *tuned = (struct hec_plan_tuned){
        .error = hec_trial_error,
        .count = 1,
        .of = {{.set = trial.set, .count = trial.count, .us = p->trial.score.speed.us}}};
    c->tuned = tuned;
    c->fit = HEC_NEW(c->arena, struct lines);
    *(struct lines *)c->fit = *lines;
    return o;
}

void hec_fit_note(struct hec_compilation *c) {
    if (c->fit) note(c, c->fit);
}

const struct hec_options *hec_fit(struct hec_compilation *c) {
    struct fit f = {.c = c};
    struct hec_memory memory;
    struct point own = {0}, least = {0};
    if (c->from > STAGE_PARSE || c->options->autotune || c->options->plan || c->fit) return NULL;
    if (!hec_memory_of(c->module, &memory) || !memory.device || memory.all <= memory.device)
        return NULL;
    const struct hec_setting *tokens = setting_of(c, "train.tokens");
    if (tokens && !tokens->given)
        f.tokens = hec_arena_format(c->arena, "train.tokens=%s", tokens->value);
    f.point = hec_arena_alloc(c->arena, POINTS, sizeof *f.point);
    if (!find_axes(&f) && !asks_for_memory(c)) return NULL;
    find_least(&f, &least);
    if (least.trial.sound && !fits(&least)) find_less(&f, &least);
    bool found = fits(&least) && go_down(&f, &own);
    if (!found && fits(&least)) { // Single steps may save nothing where all together do.
        memcpy(own.at, least.at, sizeof own.at);
        try_points(&f, &own, 1);
        found = fits(&own);
    }
    if (!found) {
        say_nothing_fits(&f, &least);
        return NULL;
    }
    struct point first = {0};
    try_points(&f, &first, 1);
    go_back(&f, &own);
    struct lines lines = {.arena = c->arena};
    say_chosen(&f, &first, &own, &lines);
    hec_driver_lap(c, "choose what fits");
    return options_of(&f, &own, &lines);
}
