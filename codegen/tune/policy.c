// Steps are simulated message by message: sums flatter some placements by some percent.
#include "codegen/tune/policy.h"

#include <math.h>
#include <string.h>

#include "codegen/tune/trial.h"
#include "passes/cost/explain.h"
#include "passes/plan_file.h"

// The simplest first: experts stay, or change places now and then; each rank, or each node, has all of them, for good
// or layer by layer; copies follow the counts, or a forecast.
static const char *const placements[] = {"ep",   "smartmoe", "replicate", "edp",
                                         "fsdp", "llep",     "laer",      "fssdp"};
enum { PLACEMENTS = sizeof placements / sizeof *placements, FSSDP = PLACEMENTS - 1 };

static const double alike = 0.01;

static void look(void *context) {
    (void)context;
}

static double us_of(const struct hec_trial *trial) {
    return trial->score.speed.us / trial->score.speed.tokens;
}

static bool fits(const struct hec_trial *trial) {
    return !trial->score.memory || trial->score.bytes <= trial->score.memory;
}

// Where none fits, other settings may help each of them.
static int choose(const struct hec_trial trial[PLACEMENTS]) {
    bool any = false;
    int best = -1;
    for (int i = 0; i < PLACEMENTS; i++) any |= trial[i].sound && fits(&trial[i]);
    for (int i = 0; i < PLACEMENTS; i++) {
        if (!trial[i].sound || (any && !fits(&trial[i]))) continue;
        if (best < 0 || us_of(&trial[i]) < us_of(&trial[best])) best = i;
    }
    for (int i = 0; i < best; i++) {
        if (!trial[i].sound || (any && !fits(&trial[i]))) continue;
        if (us_of(&trial[i]) <= (1 + alike) * us_of(&trial[best])) return i;
    }
    return best < 0 ? FSSDP : best;
}

static void say(const struct hec_compilation *c, const struct hec_trial trial[PLACEMENTS],
                int chosen) {
    const char *text = "";
    if (c->options->no_warnings) return;
    for (int i = 0; i < PLACEMENTS; i++) {
        const char *step =
            !trial[i].sound ? "impossible"
            : fits(&trial[i])
                ? hec_arena_format(c->arena, "%s", hec_text_us(trial[i].score.speed.us).text)
                : "too large";
        text = hec_arena_format(c->arena, "%s%s %s %s", text, i ? "," : "", placements[i], step);
    }
    fprintf(stderr, "hecatec: %s: parallel.experts = %s%s; a step takes with%s\n", c->name,
            placements[chosen], chosen ? "" : ": moving experts gains nothing", text);
}

static const struct hec_options *options_of(struct hec_compilation *c,
                                            const struct hec_trial *chosen) {
    struct hec_options *o = HEC_NEW(c->arena, struct hec_options);
    struct hec_plan_tuned *tuned = HEC_NEW(c->arena, struct hec_plan_tuned);
    *o = *c->options;
    o->sets = (struct hec_texts){0};
    for (int i = 0; i < c->options->sets.text.count; i++)
        HEC_PUSH(c->arena, &o->sets.text, c->options->sets.text.item[i]);
    HEC_PUSH(c->arena, &o->sets.text, chosen->set[0]);
    *tuned = (struct hec_plan_tuned){
        .error = hec_trial_error,
        .count = 1,
        .of = {{.set = chosen->set, .count = 1, .us = chosen->score.speed.us}}};
    c->tuned = tuned;
    return o;
}

const struct hec_options *hec_choose_policy(struct hec_compilation *c) {
    const struct hec_trial_watch watch = {.stop = INFINITY, .look = look};
    const struct hec_setting *experts =
        c->program ? hec_program_setting(c->program, HEC_KEY_parallel_experts) : NULL;
    if (!experts || strcmp(experts->value, "auto") != 0 || !c->several_ranks) return NULL;
    struct hec_trial trial[PLACEMENTS];
    for (int i = 0; i < PLACEMENTS; i++) {
        const char **set = hec_arena_alloc(c->arena, 1, sizeof *set);
        set[0] = hec_arena_format(c->arena, "parallel.experts=%s", placements[i]);
        trial[i] = (struct hec_trial){.set = set, .count = 1, .effort = HEC_TRIAL_MESSAGES};
    }
    hec_trials(c->options, trial, PLACEMENTS, &watch);
    const int chosen = choose(trial);
    say(c, trial, chosen);
    hec_driver_lap(c, "choose a placement");
    return options_of(c, &trial[chosen]);
}
