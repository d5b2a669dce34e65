// The memory of all combinations of open settings is known from few trials (trial.h), which simulate nothing: tokens'
// settings and those of what is held add up. A combination that fits matters only where no setting could go less far.
// Trials check its memory, and its steps are simulated. Where several are about as fast, the search for slots tells
// which one makes the best use of the room that is left.
#include "codegen/tune/fit.h"

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

enum {
    MICROBATCH,
    LOGITS,
    RECOMPUTE,
    DENSE,
    HOST,
    AXES,
    TOKENS = DENSE
}; // Before TOKENS: tokens' axes.
enum { STEPS = 8, REPLICAS = 5, FINAL = 4 };
static const double nearly = 1.05; // A sum of parts may be that much too high.
static const double alike = 1.1;   // Replicas may be worth more than what is between two steps.

// A setting, and values from its own on, each of which needs less memory than the one before.
struct axis {
    const char *key;
    const char *value[STEPS];
    int steps; // 0: it is given, or means nothing here.
};

static const struct axis ladders[AXES] = {
    [MICROBATCH] = {"parallel.microbatch", {NULL}, 0},
    [LOGITS] = {"parallel.logits", {"whole", "512"}, 2},
    [RECOMPUTE] = {"parallel.recompute", {"none", "elementwise", "cheap", "all"}, 4},
    [DENSE] = {"parallel.dense", {"replicate", "states", "shard"}, 3},
    [HOST] = {"parallel.states", {"device", "host"}, 2},
};

// A combination.
struct point {
    int at[AXES];
    bool sound;         // As far as known, the program can have it.
    bool summed, timed; // A trial has told the bytes; and the time.
    struct hec_step_score score;
};

struct fit {
    struct hec_compilation *c;
    struct axis axis[AXES];
    const char *tokens;  // "train.tokens=N" of the own settings: other microbatches leave them.
    struct point *point; // [points] all combinations; the first are the own settings.
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

static void look(void *context) {
    (void)context;
}

static void run_trials(struct fit *f, struct hec_trial *trial, int count,
                       enum hec_trial_effort effort) {
    const struct hec_trial_watch watch = {.stop = INFINITY, .look = look};
    for (int i = 0; i < count; i++) trial[i].effort = effort;
    hec_trials(f->c->options, trial, count, &watch);
}

// The fewest replicas leave the most room, and nothing to search. Returns how many settings.
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
    const char **set = hec_arena_alloc(arena, AXES + 1, sizeof *set);
    struct hec_trial trial = {.set = set};
    for (int a = 0; a < AXES; a++) {
        const struct axis *axis = &f->axis[a];
        if (p->at[a])
            set[trial.count++] = hec_arena_format(arena, "%s=%s", axis->key, axis->value[p->at[a]]);
    }
    if (p->at[MICROBATCH] && f->tokens) set[trial.count++] = f->tokens;
    return trial;
}

// The same with the fewest replicas, on as many nodes; 0: its own.
static struct hec_trial least_trial(struct fit *f, const struct point *p, int64_t nodes) {
    struct hec_arena *arena = f->c->arena;
    const struct axis *microbatch = &f->axis[MICROBATCH];
    struct hec_trial trial = trial_of(f, p);
    const char **set = hec_arena_alloc(arena, (size_t)trial.count + 3 + REPLICAS, sizeof *set);
    for (int i = 0; i < trial.count; i++) set[i] = trial.set[i];
    trial.set = set;
    trial.count += least_replicas(f->c, set + trial.count);
    if (nodes == 0) return trial;
    set[trial.count++] = hec_arena_format(arena, "cluster.nodes=%" PRId64, nodes);
    set[trial.count++] = "train.tokens=auto";
    if (microbatch->steps)
        set[trial.count++] =
            hec_arena_format(arena, "%s=%s", microbatch->key, microbatch->value[p->at[MICROBATCH]]);
    return trial;
}

// Trials of those points that have had none with as much effort, side by side.
static void try_points(struct fit *f, struct point **p, int count, enum hec_trial_effort effort) {
    struct hec_trial *trial = hec_arena_alloc(f->c->arena, (size_t)count + 1, sizeof *trial);
    struct point **of = hec_arena_alloc(f->c->arena, (size_t)count + 1, sizeof *of);
    int fresh = 0;
    for (int i = 0; i < count; i++) {
        if (effort == HEC_TRIAL_MEMORY ? p[i]->summed : p[i]->timed) continue;
        p[i]->summed = true;
        p[i]->timed = effort != HEC_TRIAL_MEMORY;
        of[fresh] = p[i];
        trial[fresh++] = least_trial(f, p[i], 0);
    }
    run_trials(f, trial, fresh, effort);
    for (int i = 0; i < fresh; i++) {
        of[i]->sound = trial[i].sound;
        of[i]->score = trial[i].score;
    }
}

// ---- memory

static int steps_of(const struct fit *f, int axis) {
    return f->axis[axis].steps ? f->axis[axis].steps : 1;
}

static void list_points(struct fit *f) {
    f->points = 1;
    for (int a = 0; a < AXES; a++) f->points *= steps_of(f, a);
    f->point = hec_arena_alloc(f->c->arena, (size_t)f->points, sizeof *f->point);
    for (int i = 0; i < f->points; i++) {
        for (int a = 0, rest = i; a < AXES; rest /= steps_of(f, a++))
            f->point[i].at[a] = rest % steps_of(f, a);
    }
}

static struct point *point_at(const struct fit *f, const int at[AXES]) {
    int number = 0;
    for (int a = AXES - 1; a >= 0; a--) number = number * steps_of(f, a) + at[a];
    return &f->point[number];
}

// The point with p's settings on axes `from` .. `to` - 1, and its own ones on the others.
static struct point *part_of(const struct fit *f, const struct point *p, int from, int to) {
    int at[AXES] = {0};
    for (int a = from; a < to; a++) at[a] = p->at[a];
    return point_at(f, at);
}

// The microbatches whose memory trials tell: the first two and the last. Others lie between.
static bool is_end(const struct fit *f, int microbatch) {
    return microbatch < 2 || microbatch == steps_of(f, MICROBATCH) - 1;
}

static double microbatch_of(const struct fit *f, int at) {
    return strtod(f->axis[MICROBATCH].value[at], NULL);
}

// Bytes of a part with tokens' settings; the arena is about a line in the microbatch.
static double bytes_between(const struct fit *f, const struct point *p) {
    if (p->summed) return p->score.bytes;
    int at[AXES];
    memcpy(at, p->at, sizeof at);
    at[MICROBATCH] = 1;
    const struct point *high = point_at(f, at);
    at[MICROBATCH] = steps_of(f, MICROBATCH) - 1;
    const struct point *low = point_at(f, at);
    const double least = microbatch_of(f, at[MICROBATCH]);
    const double part =
        (microbatch_of(f, p->at[MICROBATCH]) - least) / (microbatch_of(f, 1) - least);
    return high->sound && low->sound
               ? low->score.bytes + part * (high->score.bytes - low->score.bytes)
               : INFINITY;
}

// Parts from trials, the others as their sums.
static void sum_all(struct fit *f) {
    struct point **sample = hec_arena_alloc(f->c->arena, (size_t)f->points, sizeof *sample);
    struct point *own = &f->point[0];
    int count = 0;
    for (int i = 0; i < f->points; i++) {
        struct point *p = &f->point[i];
        const bool tokens = part_of(f, p, 0, TOKENS) == p && is_end(f, p->at[MICROBATCH]);
        if (tokens || part_of(f, p, TOKENS, AXES) == p) sample[count++] = p;
    }
    try_points(f, sample, count, HEC_TRIAL_MEMORY);
    for (int i = 0; i < f->points; i++) {
        struct point *p = &f->point[i];
        const struct point *tokens = part_of(f, p, 0, TOKENS), *held = part_of(f, p, TOKENS, AXES);
        if (p->summed) continue;
        p->score.bytes = bytes_between(f, tokens) + held->score.bytes - own->score.bytes;
        p->score.memory = own->score.memory;
        p->sound = own->sound && held->sound && isfinite(p->score.bytes);
    }
}

static bool fits(const struct point *p) {
    return p->sound && p->score.bytes <= (p->summed ? 1 : nearly) * p->score.memory;
}

// Whether no setting goes farther than the other's, and one less far.
static bool is_before(const struct point *p, const struct point *other) {
    for (int a = 0; a < AXES; a++)
        if (p->at[a] > other->at[a]) return false;
    return p != other;
}

// Lists points that fit and have none before them that does. Returns how many.
static int first_fitting(const struct fit *f, struct point **first) {
    int count = 0;
    for (int i = 0; i < f->points; i++) {
        struct point *p = &f->point[i];
        bool is_first = fits(p);
        for (int k = 0; k < f->points && is_first; k++)
            is_first = !(fits(&f->point[k]) && is_before(&f->point[k], p));
        if (is_first) first[count++] = p;
    }
    return count;
}

static bool are_summed(struct point **p, int count) {
    for (int i = 0; i < count; i++)
        if (!p[i]->summed) return false;
    return true;
}

// ---- choices

static double us_of(const struct point *p) {
    return p->score.speed.us / p->score.speed.tokens;
}

static int by_us(const void *left, const void *right) {
    const struct point *a = *(struct point *const *)left, *b = *(struct point *const *)right;
    if (a->sound != b->sound) return a->sound ? -1 : 1;
    if (us_of(a) != us_of(b)) return us_of(a) < us_of(b) ? -1 : 1;
    return (a > b) - (a < b);
}

// The fastest of those that are about as fast as the first, with as many replicas as each has room for.
static struct point *fastest_searched(struct fit *f, struct point **p, int count) {
    struct hec_trial trial[FINAL];
    int best = 0, among = 0;
    while (among < count && among < FINAL && p[among]->sound &&
           us_of(p[among]) <= alike * us_of(p[0]))
        among++;
    for (int i = 0; i < among; i++) trial[i] = trial_of(f, p[i]);
    if (among > 1) run_trials(f, trial, among, HEC_TRIAL_SEARCHED);
    for (int i = 1; i < among; i++) {
        const struct hec_speed *speed = &trial[i].score.speed, *than = &trial[best].score.speed;
        if (!trial[i].sound) continue;
        if (!trial[best].sound || speed->us / speed->tokens < than->us / than->tokens) best = i;
    }
    return among ? p[best] : NULL;
}

// The fastest that fits. NULL: none does.
static struct point *find_fastest(struct fit *f) {
    struct point **first = hec_arena_alloc(f->c->arena, (size_t)f->points, sizeof *first);
    int count;
    while (!are_summed(first, count = first_fitting(f, first)))
        try_points(f, first, count, HEC_TRIAL_MEMORY);
    try_points(f, first, count, HEC_TRIAL_BRIEF);
    qsort(first, (size_t)count, sizeof(struct point *), by_us);
    return fastest_searched(f, first, count);
}

// The one that needs least; NULL: none is sound.
static struct point *find_least(struct fit *f) {
    for (;;) {
        struct point *least = NULL;
        for (int i = 0; i < f->points; i++) {
            struct point *p = &f->point[i];
            if (p->sound && (!least || p->score.bytes < least->score.bytes)) least = p;
        }
        if (!least || least->summed) return least;
        try_points(f, &least, 1, HEC_TRIAL_MEMORY);
    }
}

// ---- other clusters

static bool fits_on(struct fit *f, const struct point *least, int64_t nodes) {
    struct hec_trial trial = least_trial(f, least, nodes);
    run_trials(f, &trial, 1, HEC_TRIAL_MEMORY);
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
    const double more = least ? least->score.bytes - least->score.memory : 0;
    const char *settings = least ? settings_text(f, least) : "";
    if (more > 0)
        HEC_PUSH(lines.arena, &lines.text,
                 hec_arena_format(
                     lines.arena, "the least%s%s: %s, still %s too much", *settings ? ", with" : "",
                     settings, hec_text_bytes(least->score.bytes).text, hec_text_bytes(more).text));
    if (asks_for_memory(f->c) && least) {
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

// Compares `p` with the same without one setting.
static const char *cost_of(struct fit *f, const struct point *p, const struct point *without) {
    if (!without->sound) return "";
    return hec_arena_format(f->c->arena, "%+.1f %% time, %s less",
                            100 * (us_of(p) / us_of(without) - 1),
                            hec_text_bytes(without->score.bytes - p->score.bytes).text);
}

// Compares every chosen setting with its own value, all others as chosen.
static void say_chosen(struct fit *f, const struct point *p, struct lines *lines) {
    struct point *without[AXES + 1] = {&f->point[0]}, *own = without[0];
    int of[AXES + 1], count = 1;
    const char *text = "";
    for (int a = 0; a < AXES; a++) {
        int at[AXES];
        if (!p->at[a]) continue;
        memcpy(at, p->at, sizeof at);
        at[a] = 0;
        without[count] = point_at(f, at);
        of[count++] = a;
    }
    try_points(f, without, count, HEC_TRIAL_BRIEF);
    HEC_PUSH(
        lines->arena, &lines->text,
        hec_arena_format(lines->arena, "chosen, as it takes %s without; a step takes %+.1f %%:",
                         hec_text_bytes(own->score.bytes).text, 100 * (us_of(p) / us_of(own) - 1)));
    for (int i = 1; i < count; i++) {
        const struct axis *axis = &f->axis[of[i]];
        const char *value = axis->value[p->at[of[i]]], *cost = cost_of(f, p, without[i]);
        text = hec_arena_format(lines->arena, "%s%s %s = %s (%s)", text, i > 1 ? "," : "",
                                axis->key, value, cost);
        HEC_PUSH(lines->arena, &lines->text,
                 hec_arena_format(lines->arena, "  --set %s=%s  %s", axis->key, value, cost));
    }
    if (f->c->options->no_warnings) return;
    fprintf(stderr, "hecatec: %s needs %s of a device's %s; to fit, chosen are%s\n", f->c->name,
            hec_text_bytes(own->score.bytes).text, hec_text_bytes(own->score.memory).text, text);
}

// ---- all of it

static const struct hec_options *options_of(struct fit *f, const struct point *p,
                                            const struct lines *lines) {
    struct hec_compilation *c = f->c;
    struct hec_options *o = HEC_NEW(c->arena, struct hec_options);
    struct hec_plan_tuned *tuned = HEC_NEW(c->arena, struct hec_plan_tuned);
    const struct hec_trial trial = trial_of(f, p);
    const int before = c->tuned ? c->tuned->of[0].count : 0; // The placement of experts.
    const char **all = hec_arena_alloc(c->arena, (size_t)(before + trial.count) + 1, sizeof *all);
    for (int i = 0; i < before; i++) all[i] = c->tuned->of[0].set[i];
    for (int i = 0; i < trial.count; i++) all[before + i] = trial.set[i];
    *o = *c->options;
    o->sets = (struct hec_texts){0};
    for (int i = 0; i < c->options->sets.text.count; i++)
        HEC_PUSH(c->arena, &o->sets.text, c->options->sets.text.item[i]);
    for (int i = 0; i < trial.count; i++) HEC_PUSH(c->arena, &o->sets.text, trial.set[i]);
    *tuned = (struct hec_plan_tuned){
        .error = hec_trial_error,
        .count = 1,
        .of = {{.set = all, .count = before + trial.count, .us = p->score.speed.us}}};
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
    if (c->from > STAGE_PARSE || c->options->autotune || c->options->plan || c->fit) return NULL;
    if (!hec_memory_of(c->module, &memory) || !memory.device || memory.all <= memory.device)
        return NULL;
    const struct hec_setting *tokens = setting_of(c, "train.tokens");
    if (tokens && !tokens->given)
        f.tokens = hec_arena_format(c->arena, "train.tokens=%s", tokens->value);
    if (!find_axes(&f) && !asks_for_memory(c)) return NULL;
    list_points(&f);
    sum_all(&f);
    const struct point *chosen = find_fastest(&f);
    if (!chosen) {
        say_nothing_fits(&f, find_least(&f));
        return NULL;
    }
    struct lines lines = {.arena = c->arena};
    say_chosen(&f, chosen, &lines);
    hec_driver_lap(c, "choose what fits");
    return options_of(&f, chosen, &lines);
}
