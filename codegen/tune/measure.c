// Rounds in which every candidate runs once, each round beginning with another one: a slow change of the
// machine then meets all of them alike. A candidate's time is compared with the first one's of the same round,
// and the median of these ratios decides.
#include "codegen/tune/measure.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "codegen/base/output.h"
#include "codegen/base/status.h"
#include "lang/base/clock.h"
#include "passes/cost/explain.h"

// Rounds that take long are fewer.
enum { ROUNDS = 5, FEW_ROUNDS = 3, LONG_ROUND_SECONDS = 120 };
enum { SECONDS = 600, SECONDS_MOST = 86400, MOST = HEC_MEASURE_MOST + 1 };

// ---- the command line

// "4" or "4,60".
static bool read_numbers(const char *text, int *count, unsigned *seconds) {
    char *end;
    errno = 0;
    const long candidates = strtol(text, &end, 10);
    const long limit = *end == ',' ? strtol(end + 1, &end, 10) : SECONDS;
    *count = (int)candidates, *seconds = (unsigned)limit;
    return !errno && !*end && candidates >= 1 && candidates <= HEC_MEASURE_MOST && limit >= 1 &&
           limit <= SECONDS_MOST;
}

bool hec_check_measure(const struct hec_options *o, int *count) {
    unsigned seconds;
    *count = 0;
    if (!o->measure)
        return !o->launch || hec_fail("--launch is of measurements: add --autotune --measure=N");
    if (!o->autotune) return hec_fail("--measure is of a search: add --autotune");
    if (!read_numbers(o->measure, count, &seconds))
        return hec_fail("--measure needs a number of candidates from 1 to %d, and may have a "
                        "limit for each run from 1 to %d seconds behind a comma, got '%s'",
                        HEC_MEASURE_MOST, SECONDS_MOST, o->measure);
    if (o->launch && !o->launch[strspn(o->launch, " ")])
        return hec_fail("--launch names no command");
    if (o->dry_run) return hec_fail("--measure runs programs: it does not go with -###");
    return true;
}

bool hec_measure_begin(struct hec_compilation *c, const struct hec_step_score *of,
                       struct hec_measurement *m) {
    int count;
    *m = (struct hec_measurement){.bed = {.arena = c->arena, .options = c->options}};
    const bool sound = read_numbers(c->options->measure, &count, &m->bed.seconds);
    assert(sound);
    m->bed.ranks = of->ranks;
    m->bed.launch = c->options->launch
                        ? c->options->launch
                        : hec_arena_format(c->arena, "mpirun -n %" PRId64, of->ranks);
    if (gethostname(m->machine, sizeof m->machine - 1) != 0) strcpy(m->machine, "localhost");
    return hec_measure_can_launch(&m->bed);
}

// ---- what people see

// On a terminal: names the current run, in place of the last message.
static void __attribute__((format(printf, 1, 2))) tell(const char *format, ...) {
    if (!isatty(STDERR_FILENO)) return;
    va_list arguments;
    va_start(arguments, format);
    fputs("\r\033[K  ", stderr);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fflush(stderr);
}

static void tell_nothing(void) {
    if (isatty(STDERR_FILENO)) fputs("\r\033[K", stderr);
}

// Settings without what they all begin with.
static void print_settings(const struct hec_measured *m) {
    static const char all[] = "parallel.";
    if (m->count == 0) fputs("as the model says", stderr);
    for (int i = 0; i < m->count; i++) {
        const bool shared = strncmp(m->set[i], all, sizeof all - 1) == 0;
        fprintf(stderr, "%s%s", i ? ", " : "", m->set[i] + (shared ? sizeof all - 1 : 0));
    }
    fputs("\n", stderr);
}

static void print_row(const struct hec_measured *m, int number, double tokens, bool chosen) {
    char measured[32] = "failed", ratio[40] = "";
    if (!m->failed) {
        snprintf(measured, sizeof measured, "%s", hec_text_us(m->us * tokens).text);
        snprintf(ratio, sizeof ratio, "%.3f (%.3f to %.3f)", m->ratio, m->least, m->most);
    }
    fprintf(stderr, "%s %d: %10s %10s  %-22s  ", chosen ? "*" : " ", number,
            hec_text_us(m->simulated * tokens).text, measured, ratio);
    print_settings(m);
    if (m->failed) fprintf(stderr, "    %s\n", m->failed);
}

static void print_table(const struct hec_measurement *m, const struct hec_measured *candidate,
                        int count, double tokens, int chosen) {
    fprintf(
        stderr,
        "\nMeasured on %s: a step, without the first %d of %d; ratios to the first that ran, of %d "
        "rounds: median (least to most); * is chosen\n     %10s %10s  %s\n",
        m->machine, HEC_MEASURE_LEFT_OUT, HEC_MEASURE_STEPS, m->rounds, "simulated", "measured",
        "ratio");
    for (int i = 0; i < count; i++) print_row(&candidate[i], i + 1, tokens, i == chosen);
}

// ---- rounds

struct rounds {
    struct hec_measurement *m;
    struct hec_measured *candidate;
    int count;
    double tokens;
    const char *program[MOST];
    double us[ROUNDS][MOST];
};

static void build(struct rounds *r) {
    for (int i = 0; i < r->count; i++) {
        struct hec_measured *one = &r->candidate[i];
        const double begun = hec_now();
        tell("building %d of %d", i + 1, r->count);
        one->failed = hec_measure_build(&r->m->bed, one->set, one->count, &r->program[i]);
        tell_nothing();
        fprintf(stderr, "  %d: %s %5.1f s  ", i + 1, one->failed ? "failed" : "built ",
                hec_now() - begun);
        print_settings(one);
    }
}

static void run_round(struct rounds *r, int round) {
    for (int k = 0; k < r->count; k++) {
        const int i = (round + k) % r->count;
        struct hec_measured *one = &r->candidate[i];
        if (one->failed) continue;
        tell("round %d of %d: running %d, for %u s at most", round + 1, r->m->rounds, i + 1,
             r->m->bed.seconds);
        one->failed = hec_measure_run(&r->m->bed, r->program[i], &r->us[round][i]);
    }
    tell_nothing();
    fprintf(stderr, "  round %d of %d:", round + 1, r->m->rounds);
    for (int i = 0; i < r->count; i++)
        fprintf(stderr, "%s %s", i ? "," : "",
                r->candidate[i].failed ? "failed" : hec_text_us(r->us[round][i] * r->tokens).text);
    fputs("\n", stderr);
}

static int by_size(const void *left, const void *right) {
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

// Sorts; the rounds are an odd number.
static double median(double *number, int count) {
    qsort(number, (size_t)count, sizeof *number, by_size);
    return number[count / 2];
}

// Sets what came of the candidates; returns the fastest, or -1.
static int judge(struct rounds *r, double gain) {
    const int rounds = r->m->rounds;
    int first = 0, best = -1;
    while (first < r->count && r->candidate[first].failed) first++;
    for (int i = first; i < r->count; i++) {
        struct hec_measured *one = &r->candidate[i];
        double us[ROUNDS], ratio[ROUNDS];
        if (one->failed) continue;
        for (int k = 0; k < rounds; k++) {
            us[k] = r->us[k][i];
            ratio[k] = r->us[k][i] / r->us[k][first];
        }
        one->us = median(us, rounds);
        one->ratio = median(ratio, rounds);
        one->least = ratio[0], one->most = ratio[rounds - 1];
        if (best < 0 || one->ratio < (1 - gain) * r->candidate[best].ratio) best = i;
    }
    return best;
}

// Says which candidate was faster than the chosen one most often, round by round, if any was.
static void print_doubt(const struct rounds *r, int chosen) {
    int most = 0, rival = 0;
    for (int i = 0; i < r->count; i++) {
        int faster = 0;
        for (int k = 0; k < r->m->rounds && !r->candidate[i].failed; k++)
            faster += r->us[k][i] < r->us[k][chosen];
        if (faster > most) most = faster, rival = i;
    }
    if (most)
        fprintf(stderr,
                "  not certain: %d was faster than the chosen one in %d of %d rounds; another "
                "measurement may choose it\n",
                rival + 1, most, r->m->rounds);
}

static bool any_left(const struct rounds *r) {
    for (int i = 0; i < r->count; i++) {
        if (!r->candidate[i].failed) return true;
    }
    return false;
}

static void run_all(struct rounds *r) {
    for (int round = 0; round < r->m->rounds && any_left(r); round++) {
        const double begun = hec_now();
        run_round(r, round);
        if (round == 0 && hec_now() - begun > LONG_ROUND_SECONDS) r->m->rounds = FEW_ROUNDS;
    }
}

int hec_measure(struct hec_measurement *m, struct hec_measured *candidate, int count,
                const struct hec_step_score *of, double gain) {
    struct rounds r = {.m = m, .candidate = candidate, .count = count, .tokens = of->speed.tokens};
    int best = -1;
    assert(count <= MOST);
    m->rounds = ROUNDS;
    if (hec_measure_prepare(&m->bed, of)) {
        fprintf(stderr, "Measuring %d candidates: %s PROGRAM train --route %s --steps %d\n", count,
                m->bed.launch, m->bed.route, HEC_MEASURE_STEPS);
        build(&r);
        run_all(&r);
        best = judge(&r, gain);
        print_table(m, candidate, count, of->speed.tokens, best);
        if (best >= 0) print_doubt(&r, best);
        fputs("\n", stderr);
        if (best < 0) hec_fail("--measure: none of the candidates could be built and run");
    }
    for (int i = 0; i < count; i++) {
        if (r.program[i]) hec_output_discard(r.program[i]);
    }
    hec_measure_clear(&m->bed);
    return best;
}
