// Candidates are settings. From those of the model on, one setting after the other takes each of its values
// while the rest stay as they are best so far, in short and coarse simulations, corrected for each policy; then
// again. The best of a few policies, and the model's own, are simulated at length with single messages, and the
// fastest of these wins; with --measure the fastest in runs.
//
// The search's budget is a number of actions that devices take in simulations, not seconds, so that a fast
// machine chooses as a slow one does.
#include "codegen/tune/autotune.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/base/status.h"
#include "codegen/tune/knobs.h"
#include "codegen/tune/measure.h"
#include "codegen/tune/trial.h"
#include "lang/base/clock.h"
#include "passes/cost/explain.h"
#include "passes/plan_file.h"

enum { SECONDS = 30, SECONDS_MOST = 86400, CLOCK_LEAST = 60, ROUNDS = 2, SHORT = 2, LONG = 0 };
enum { QUIET_SECONDS = 5 }; // Before and between lines that tell how far it is.
// At length beside the model's own: at least, where nothing is measured, and at most.
enum { FEW = 3, FINALISTS = HEC_PLAN_TUNED - 1 };
enum { TRIALS_MOST = 4096 };

// Actions a second of this budget; a compilation counts as so many; single messages take so many times as long.
static const double action_rate = 250e3, compilation_actions = 25e3, single_factor = 6;
static const double least_gain = 0.002, short_gain = 0.005; // A smaller gain changes nothing.
static const double rival_gap = 0.1; // A policy that is so much slower is not searched for itself.
static const double search_share = 0.6; // Part of the clock; the rest is for the best at length.

// A candidate: for each knob a setting ("KEY=VALUE"); NULL: as the model has it.
struct candidate {
    const char *set[HEC_KNOBS];
};

struct trial {
    struct candidate candidate;
    struct hec_step_score score;
    bool ended, sound;
    double factor; // For single messages, if it was simulated with sums.
};

// How a trial is simulated.
enum effort {
    COARSE,    // A few steps, messages as sums.
    FINE,      // As few, single messages.
    AT_LENGTH, // Many, single messages.
};

struct tuning {
    struct hec_compilation *c;
    FILE *out;
    struct trial *trial; // [TRIALS_MOST] short ones, in their order.
    int trials, refused, too_large;
    double spent, budget;     // Actions.
    double begun, stop, told; // On the clock of hec_now.
    double until;             // Current trials have to end then: `stop` or before.
    enum effort effort;       // How current trials are simulated.
    bool by_clock, by_budget, at_length;
    bool corrected;
    double factor[HEC_KNOB_VALUES + 1]; // For policies: the model's own, then the knob's values.
    const char *own;                    // The model's policy as a setting, once it is known.
    const struct hec_plan_measured *measured; // NULL: simulations decide.
};

static bool fits(const struct trial *t) {
    return t->sound && t->score.bytes <= t->score.memory;
}

static double us_of(const struct trial *t) {
    return t->factor * t->score.speed.us / t->score.speed.tokens;
}

static bool is_better(const struct trial *a, const struct trial *b, double gain) {
    if (fits(a) != fits(b)) return fits(a);
    if (!fits(a)) return a->sound && (!b->sound || a->score.bytes < b->score.bytes);
    return us_of(a) < (1 - gain) * us_of(b);
}

static bool same_texts(const char *a, const char *b) {
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool is_same(const struct candidate *a, const struct candidate *b) {
    bool same = true;
    for (int k = 0; k < HEC_KNOBS; k++) same &= same_texts(a->set[k], b->set[k]);
    return same;
}

// Whether they say the same of all that is compared: one then says in other words what the other does.
static bool is_equal(const struct trial *a, const struct trial *b) {
    return a->sound && b->sound && a->score.speed.us == b->score.speed.us &&
           a->score.bytes == b->score.bytes;
}

// ---- trying

static int policy_of(const struct candidate *candidate) {
    return hec_knob_place(&hec_knobs[HEC_KNOB_POLICY], candidate->set[HEC_KNOB_POLICY]);
}

// Tells how far it is; the longer it has taken, the less often.
static void tell(void *context) {
    struct tuning *t = context;
    const double now = hec_now(), pause = 0.3 * (now - t->begun);
    if (now < t->told + (pause > QUIET_SECONDS ? pause : QUIET_SECONDS)) return;
    fprintf(t->out, "hecatec: --autotune: candidate %d, %.0f of at most %.0f s%s\n", t->trials,
            now - t->begun, t->stop - t->begun,
            t->effort == AT_LENGTH ? "; the best at length" : "");
    t->told = now;
}

// Runs trials whose candidates are set. False: the clock has ended some.
static bool run(struct tuning *t, struct trial *trial, int count, enum effort effort) {
    const struct hec_trial_watch watch = {.stop = t->until, .look = tell, .context = t};
    bool ended = true;
    t->effort = effort;
    struct hec_trial *made = hec_arena_alloc(t->c->arena, (size_t)count, sizeof *made);
    for (int i = 0; i < count; i++) {
        const char **set = hec_arena_alloc(t->c->arena, HEC_KNOBS, sizeof *set);
        made[i] = (struct hec_trial){
            .set = set,
            .steps = effort == AT_LENGTH ? LONG : SHORT,
            .effort = effort == COARSE ? HEC_TRIAL_SUMS : HEC_TRIAL_MESSAGES,
        };
        for (int k = 0; k < HEC_KNOBS; k++) {
            if (trial[i].candidate.set[k]) set[made[i].count++] = trial[i].candidate.set[k];
        }
    }
    hec_trials(t->c->options, made, count, &watch);
    for (int i = 0; i < count; i++) {
        ended = ended && made[i].ended;
        trial[i].ended = made[i].ended;
        trial[i].sound = made[i].ended && made[i].sound;
        trial[i].score = made[i].score;
        trial[i].factor = effort == COARSE ? t->factor[policy_of(&trial[i].candidate)] : 1;
        t->spent += compilation_actions;
        if (trial[i].sound)
            t->spent += (effort == COARSE ? 1 : single_factor) * trial[i].score.actions;
    }
    t->by_clock |= !ended;
    return ended;
}

static struct trial *find_trial(const struct tuning *t, const struct candidate *candidate) {
    for (int i = 0; i < t->trials; i++) {
        if (is_same(&t->trial[i].candidate, candidate)) return &t->trial[i];
    }
    return NULL;
}

// Leaves those that the clock has ended out of the trials from `first` on.
static void forget_unended(struct tuning *t, int first) {
    int kept = first;
    for (int i = first; i < t->trials; i++) {
        if (t->trial[i].ended) t->trial[kept++] = t->trial[i];
    }
    t->trials = kept;
}

// Short trials of candidates that have none yet, side by side. False: the budget is spent or the clock has
// ended it, so that some may have none. The choice must not depend on how many run at a time, so the budget
// is looked at before they do.
static bool try_short(struct tuning *t, const struct candidate *candidate, int count) {
    const int first = t->trials;
    if (first + count > TRIALS_MOST) t->by_budget = true;
    for (int i = 0; i < count; i++) {
        if (find_trial(t, &candidate[i])) continue;
        t->by_budget |= t->spent >= t->budget;
        t->by_clock |= hec_now() > t->until;
        if (t->by_budget || t->by_clock) {
            t->trials = first;
            return false;
        }
        t->trial[t->trials++] = (struct trial){.candidate = candidate[i]};
    }
    const bool ended = run(t, t->trial + first, t->trials - first, COARSE);
    forget_unended(t, first);
    for (int i = first; i < t->trials; i++) {
        t->refused += !t->trial[i].sound;
        t->too_large += t->trial[i].sound && !fits(&t->trial[i]);
    }
    return ended;
}

// The search leaves settings of the command line alone.
static bool is_given(const struct tuning *t, const char *key) {
    const struct hec_texts *sets = &t->c->options->sets;
    const size_t length = strlen(key);
    for (int i = 0; i < sets->text.count; i++) {
        const char *text = sets->text.item[i];
        if (strncmp(text, key, length) == 0 && (text[length] == '=' || text[length] == '.'))
            return true;
    }
    return false;
}

static bool moves(const struct trial *t) {
    return t->score.slots > 0;
}

// Sums of messages flatter some policies by some percent: simulates each once with single messages, and
// corrects all its trials by the ratio. `next`: the latest trials, one candidate for each policy.
static void correct(struct tuning *t, const struct candidate *own, const struct candidate *next,
                    int count) {
    struct trial fine[HEC_KNOB_VALUES + 1] = {{.candidate = *own}};
    const struct trial *given = find_trial(t, own);
    int wanted = 1;
    for (int i = 0; i < count; i++) {
        const struct trial *coarse = find_trial(t, &next[i]);
        if (coarse->sound && !is_equal(coarse, given)) fine[wanted++].candidate = next[i];
    }
    if (!run(t, fine, wanted, FINE)) return;
    for (int i = 0; i < wanted; i++) {
        const struct trial *coarse = find_trial(t, &fine[i].candidate);
        if (fine[i].sound && coarse->sound)
            t->factor[policy_of(&fine[i].candidate)] =
                fine[i].score.speed.us / coarse->score.speed.us;
    }
    for (int i = 0; i < count; i++) { // The model's own, by its name.
        if (!is_equal(find_trial(t, &next[i]), given)) continue;
        t->factor[policy_of(&next[i])] = t->factor[0];
        t->own = next[i].set[HEC_KNOB_POLICY];
    }
    for (int i = 0; i < t->trials; i++)
        t->trial[i].factor = t->factor[policy_of(&t->trial[i].candidate)];
    t->corrected = true;
}

// Tries all values of one knob; `best` becomes the best candidate. False: the budget is spent.
static bool turn(struct tuning *t, int k, const struct trial **best) {
    const struct hec_knob *knob = &hec_knobs[k];
    const struct candidate from = (*best)->candidate;
    struct candidate next[HEC_KNOB_VALUES];
    int count = 0;
    if (is_given(t, knob->key) || !hec_knob_counts(knob, &(*best)->score, moves(*best)))
        return true;
    for (int v = 0; v < HEC_KNOB_VALUES && knob->value[v]; v++) {
        next[count] = from;
        next[count].set[k] =
            hec_knob_setting(t->c->arena, knob, knob->value[v], &t->trial[0].score);
        count += next[count].set[k] != NULL;
    }
    if (!try_short(t, next, count)) return false;
    if (k == HEC_KNOB_POLICY && !t->corrected) correct(t, &from, next, count);
    for (int i = 0; i < count; i++) {
        const struct trial *trial = find_trial(t, &next[i]);
        if (is_better(trial, *best, short_gain)) *best = trial;
    }
    return true;
}

// As the model says.
static bool try_own(struct tuning *t) {
    const struct candidate own = {{NULL}};
    return try_short(t, &own, 1) && t->trial[0].sound; // Nothing is spent yet.
}

static const char *policy_set(const struct tuning *t, const struct trial *trial) {
    const char *set = trial->candidate.set[HEC_KNOB_POLICY];
    return set ? set : t->own;
}

// The best short trial that is not among `chosen`, nor of the policy of one of them where `other` is wanted;
// NULL: there is none.
static const struct trial *next_best(const struct tuning *t, const struct trial *const *chosen,
                                     int count, bool other) {
    const struct trial *best = NULL;
    for (int i = 0; i < t->trials; i++) {
        const struct trial *trial = &t->trial[i];
        bool taken = !trial->sound;
        for (int k = 0; k < count; k++) {
            taken |= is_equal(chosen[k], trial);
            taken |= other && k > 0 && same_texts(policy_set(t, chosen[k]), policy_set(t, trial));
        }
        if (!taken && (!best || is_better(trial, best, 0))) best = trial;
    }
    return best;
}

// Turns one knob after the other, the policy's only where `any`.
static const struct trial *descend(struct tuning *t, const struct trial *best, bool any) {
    const struct trial *before = NULL;
    for (int round = 0; round < ROUNDS && best != before; round++) {
        before = best;
        for (int k = 0; k < HEC_KNOBS; k++)
            if ((any || k != HEC_KNOB_POLICY) && !turn(t, k, &best)) return best;
    }
    return best;
}

// Other settings may suit the next best policy: without them small changes of loads would decide between the two.
static void search(struct tuning *t) {
    const struct trial *found[] = {&t->trial[0], descend(t, &t->trial[0], true)};
    const struct trial *other = next_best(t, found, 2, true);
    if (other && us_of(other) < (1 + rival_gap) * us_of(found[1])) descend(t, other, false);
}

// ---- at length

// The clock has ended some simulations at length: they are left out. Without the model's own, the short ones
// count for all. Returns how many stay.
static int keep_ended(const struct trial *const *chosen, struct trial *final, int count) {
    const bool own = final[0].ended;
    int kept = 0;
    for (int i = 0; i < count; i++) {
        if (!own)
            final[kept++] = *chosen[i];
        else if (final[i].ended)
            final[kept++] = final[i];
    }
    return kept;
}

// The model's own and `wanted` others, first the best of each policy, at length, the fastest first behind it:
// coarse simulations flatter some policies by some percent, and compare settings of one policy better. Returns
// how many.
static int compare(struct tuning *t, int wanted, struct trial final[FINALISTS + 1]) {
    const struct trial *chosen[FINALISTS + 1] = {&t->trial[0]};
    int count = 1;
    while (count <= wanted && (chosen[count] = next_best(t, chosen, count, true))) count++;
    while (count <= wanted && (chosen[count] = next_best(t, chosen, count, false))) count++;
    for (int i = 0; i < count; i++) final[i] = (struct trial){.candidate = chosen[i]->candidate};
    const bool ended = run(t, final, count, AT_LENGTH);
    t->at_length = ended || final[0].ended;
    if (!ended) count = keep_ended(chosen, final, count);
    for (int i = 2; i < count; i++) {
        for (int k = i; k > 1 && is_better(&final[k], &final[k - 1], 0); k--) {
            const struct trial swap = final[k];
            final[k] = final[k - 1];
            final[k - 1] = swap;
        }
    }
    return count;
}

// ---- what people see

static const char *value_in(const char *setting) {
    return setting ? strchr(setting, '=') + 1 : "as the model says";
}

static void print_settings(const struct tuning *t, const struct candidate *candidate) {
    for (int k = 0; k < HEC_KNOBS; k++) {
        if (candidate->set[k]) fprintf(t->out, " --set %s", candidate->set[k]);
    }
    fputs("\n", t->out);
}

// The same tokens as the model's own step, in this one's speed.
static double step_us(const struct trial *trial, const struct trial *own) {
    return us_of(trial) * own->score.speed.tokens;
}

// Prints the gain of each setting, and its next best value, by the short simulations.
static void print_gains(struct tuning *t, const struct trial *chosen) {
    struct candidate wanted[HEC_KNOBS + 1] = {chosen->candidate};
    int count = 1;
    for (int k = 0; k < HEC_KNOBS; k++) {
        if (!chosen->candidate.set[k]) continue;
        wanted[count] = chosen->candidate;
        wanted[count++].set[k] = NULL;
    }
    t->budget = INFINITY; // These belong to the report.
    t->by_budget = false;
    try_short(t, wanted, count);
    const struct trial *with = find_trial(t, &wanted[0]);
    for (int k = 0, i = 1; k < HEC_KNOBS; k++) {
        if (!chosen->candidate.set[k]) continue;
        const struct trial *other = find_trial(t, &wanted[i++]);
        fprintf(t->out, "  %-34s %-12s", hec_knobs[k].key, value_in(chosen->candidate.set[k]));
        if (!with || !other)
            fputs("unknown: the clock\n", t->out);
        else if (other->sound)
            fprintf(t->out, "%+.1f %% without it%s\n", 100 * (us_of(other) / us_of(with) - 1),
                    fits(other) ? "" : ", which does not fit in memory");
        else
            fputs("needed by the others\n", t->out);
    }
    if (is_same(&chosen->candidate, &(struct candidate){{NULL}}))
        fputs("  nothing is better than what the model says\n", t->out);
}

// For each knob the best other value: how much slower it is.
static void print_nearest(const struct tuning *t, const struct trial *chosen) {
    const struct trial *short_one = find_trial(t, &chosen->candidate);
    fputs("\nNearest other values (what would have to change by so much)\n", t->out);
    for (int k = 0; k < HEC_KNOBS && short_one; k++) {
        const struct trial *near = NULL;
        for (int i = 0; i < t->trials; i++) {
            struct candidate same = t->trial[i].candidate;
            same.set[k] = chosen->candidate.set[k];
            if (!fits(&t->trial[i]) || !is_same(&same, &chosen->candidate) ||
                is_equal(&t->trial[i], short_one))
                continue;
            if (!near || is_better(&t->trial[i], near, 0)) near = &t->trial[i];
        }
        if (near)
            fprintf(t->out, "  %-34s %-18s %+.1f %%\n", hec_knobs[k].key,
                    value_in(near->candidate.set[k]), 100 * (us_of(near) / us_of(short_one) - 1));
    }
}

// Prints the corrections of the short simulations.
static void print_factors(const struct tuning *t) {
    if (!t->corrected) return;
    fputs("  single messages beside sums:", t->out);
    for (int v = 0; v < HEC_KNOB_VALUES && hec_knobs[HEC_KNOB_POLICY].value[v]; v++)
        fprintf(t->out, "%s %s %+.1f %%", v ? "," : "", hec_knobs[HEC_KNOB_POLICY].value[v],
                100 * (t->factor[v + 1] - 1));
    fputs("\n", t->out);
}

static void print_report(struct tuning *t, const struct trial *final, int finals, int chosen) {
    const struct trial *own = &final[0], *best = &final[chosen];
    const int trials = t->trials, refused = t->refused, too_large = t->too_large;
    const bool by_budget = t->by_budget;
    fprintf(t->out,
            "Autotuned: %d candidates, %d of them impossible, %d too large; %d at length%s\n",
            trials, refused, too_large, t->at_length ? finals : 0,
            t->by_clock ? "; ended by the clock: another run may choose otherwise"
            : by_budget ? "; ended by the budget"
                        : "");
    fprintf(t->out, "  a step takes %s as the model says, %s as chosen (+- %.0f %%, simulated)\n",
            hec_text_us(own->score.speed.us).text, hec_text_us(step_us(best, own)).text,
            100 * hec_trial_error);
    if (t->measured) fputs("  chosen by what was measured, above\n", t->out);
    print_factors(t);
    fprintf(t->out, "  a device remembers %s, %s of %s\n  as chosen: %s\n\nChosen%s\n",
            hec_text_bytes(own->score.bytes).text, hec_text_bytes(best->score.bytes).text,
            hec_text_bytes(best->score.memory).text, hec_speed_text(&best->score.speed).text,
            t->measured ? " (and what simulated steps say of it)" : "");
    print_gains(t, best);
    print_nearest(t, best);
    if (finals > 1) fputs("\nRunners-up\n", t->out);
    for (int i = 0; i < finals; i++) {
        if (i == chosen || !final[i].sound) continue;
        fprintf(t->out, "  %10s %10s ", hec_text_us(step_us(&final[i], own)).text,
                hec_text_bytes(final[i].score.bytes).text);
        if (i == 0)
            fputs(" as the model says\n", t->out);
        else
            print_settings(t, &final[i].candidate);
    }
    if (chosen == 0) return;
    fputs("\nThe same without the search:", t->out);
    print_settings(t, &best->candidate);
}

// ---- the command line

// 0: not a number of seconds.
static long seconds_of(const struct hec_options *o) {
    if (!o->autotune_seconds) return SECONDS;
    char *end;
    errno = 0;
    const long seconds = strtol(o->autotune_seconds, &end, 10);
    return !errno && !*end && seconds >= 1 && seconds <= SECONDS_MOST ? seconds : 0;
}

bool hec_check_autotune(struct hec_compilation *c) {
    const struct hec_options *o = c->options;
    int measured;
    if (!hec_check_measure(o, &measured)) return false;
    if (!o->autotune) return true;
    if (!seconds_of(o))
        return hec_fail("--autotune needs seconds from 1 to %d, got '%s'", SECONDS_MOST,
                        o->autotune_seconds);
    if (o->plan) return hec_fail("--autotune chooses what --plan=FILE says; give one of them");
    if (c->from > STAGE_PARSE)
        return hec_fail("--autotune needs the model: it does not go with --compile-from");
    return true;
}

static void take(struct tuning *t, const struct candidate *chosen) {
    struct hec_options *o = HEC_NEW(t->c->arena, struct hec_options);
    *o = *t->c->options;
    o->sets = (struct hec_texts){0};
    for (int i = 0; i < t->c->options->sets.text.count; i++)
        HEC_PUSH(t->c->arena, &o->sets.text, t->c->options->sets.text.item[i]);
    for (int k = 0; k < HEC_KNOBS; k++) {
        if (chosen->set[k]) HEC_PUSH(t->c->arena, &o->sets.text, chosen->set[k]);
    }
    t->c->options = o;
}

static struct hec_plan_settings settings_of(struct tuning *t, const struct trial *trial,
                                            const struct trial *own) {
    const char **set = hec_arena_alloc(t->c->arena, HEC_KNOBS, sizeof *set);
    struct hec_plan_settings s = {.set = set, .us = step_us(trial, own)};
    for (int k = 0; k < HEC_KNOBS; k++) {
        if (trial->candidate.set[k]) set[s.count++] = trial->candidate.set[k];
    }
    return s;
}

// For the plan file: the chosen candidate, and those compared with it at length.
static const struct hec_plan_tuned *tuned_of(struct tuning *t, const struct trial *final,
                                             int finals, int chosen) {
    struct hec_plan_tuned *tuned = HEC_NEW(t->c->arena, struct hec_plan_tuned);
    *tuned = (struct hec_plan_tuned){.error = hec_trial_error, .count = 1, .measured = t->measured};
    tuned->of[0] = settings_of(t, &final[chosen], &final[0]);
    for (int i = 0; i < finals; i++) {
        if (i != chosen && final[i].sound)
            tuned->of[tuned->count++] = settings_of(t, &final[i], &final[0]);
    }
    return tuned;
}

// ---- measuring

// For the plan file.
static const struct hec_plan_measured *note_measured(struct tuning *t,
                                                     const struct hec_measurement *m,
                                                     const struct hec_measured *candidate,
                                                     int count, int best) {
    struct hec_plan_measured *note = HEC_NEW(t->c->arena, struct hec_plan_measured);
    const double tokens = t->trial[0].score.speed.tokens;
    *note = (struct hec_plan_measured){
        .machine = hec_arena_format(t->c->arena, "%s", m->machine),
        .launch = m->bed.launch,
        .route = m->bed.route,
        .rounds = m->rounds,
        .steps = HEC_MEASURE_STEPS,
        .left_out = HEC_MEASURE_LEFT_OUT,
        .chosen = best,
        .count = count,
    };
    for (int i = 0; i < count; i++)
        note->of[i] = (struct hec_plan_run){
            .settings = {candidate[i].set, candidate[i].count, candidate[i].us * tokens},
            .failed = candidate[i].failed};
    return note;
}

// Runs the model's own and the `wanted` best others, of what fits in memory. *chosen becomes the fastest of
// them. False after a complaint.
static bool measure(struct tuning *t, struct hec_measurement *m, int wanted,
                    const struct trial *final, int finals, int *chosen) {
    struct hec_measured candidate[HEC_MEASURE_MOST + 1];
    int of[HEC_MEASURE_MOST + 1], count = 0;
    for (int i = 0; i < finals && i <= wanted; i++) {
        if (!fits(&final[i])) continue;
        const struct hec_plan_settings s = settings_of(t, &final[i], &final[0]);
        candidate[count] =
            (struct hec_measured){.set = s.set, .count = s.count, .simulated = us_of(&final[i])};
        of[count++] = i;
    }
    if (count == 0)
        return hec_fail("--autotune --measure has nothing to run: no candidate fits in memory");
    const int best = hec_measure(m, candidate, count, &t->trial[0].score, least_gain);
    if (best < 0) return false;
    *chosen = of[best];
    t->measured = note_measured(t, m, candidate, count, best);
    return true;
}

static int choose(struct tuning *t) {
    struct hec_compilation *c = t->c;
    struct trial final[FINALISTS + 1];
    struct hec_measurement measurement;
    int measured = 0;
    hec_check_measure(c->options, &measured);
    if (measured && !hec_measure_begin(c, &t->trial[0].score, &measurement)) return HEC_EXIT_CC;
    t->until = t->begun + search_share * (t->stop - t->begun);
    search(t);
    t->until = t->stop;
    const int finals = compare(t, measured > FEW ? measured : FEW, final);
    int chosen = finals > 1 && is_better(&final[1], &final[0], least_gain);
    if (measured && !measure(t, &measurement, measured, final, finals, &chosen)) return HEC_EXIT_CC;
    print_report(t, final, finals, chosen);
    take(t, &final[chosen].candidate);
    c->tuned = tuned_of(t, final, finals, chosen);
    return HEC_EXIT_DONE;
}

int hec_autotune(struct hec_compilation *c) {
    const double seconds = (double)seconds_of(c->options);
    struct tuning t = {.c = c, .out = stderr, .budget = seconds * action_rate};
    for (int i = 0; i <= HEC_KNOB_VALUES; i++) t.factor[i] = 1;
    t.trial = hec_arena_alloc(c->arena, TRIALS_MOST, sizeof *t.trial);
    t.begun = t.told = hec_now();
    t.stop = t.until = t.begun + (seconds < CLOCK_LEAST / 4 ? CLOCK_LEAST : 4 * seconds);
    // A model that cannot be compiled is complained of by its own compilation.
    const bool tries = try_own(&t) && t.trial[0].score.ranks > 1;
    const int status = tries ? choose(&t) : HEC_EXIT_DONE;
    if (t.by_clock && t.trials == 0)
        fprintf(t.out,
                "hecatec: warning: --autotune: no step was simulated within %.0f s; nothing is "
                "chosen\n",
                t.stop - t.begun);
    hec_driver_lap(c, "autotune");
    return status;
}
