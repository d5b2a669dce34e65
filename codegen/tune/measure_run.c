// Programs of candidates: built by this same executable, run with forced loads, timed by their own log.
#define _GNU_SOURCE // getline
#include "codegen/tune/measure_run.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "codegen/base/command.h"
#include "codegen/base/output.h"
#include "codegen/base/prefix.h"
#include "codegen/base/status.h"
#include "files/files.h"
#include "passes/cost/setup.h"
#include "runtime/plan/loads/loads.h"

// ---- what a command has said

enum { LINE_SHOWN = 160, BUILD_SECONDS = 3600 };

static bool has_letter(const char *line) {
    while (*line && !isalpha((unsigned char)*line)) line++;
    return *line != '\0';
}

// Calls `take` with each line that the file has.
static void each_line(const char *path, bool (*take)(void *user, char *line), void *user) {
    const char *why;
    FILE *file = hf_input(path, false, &why);
    char *line = NULL;
    size_t room = 0;
    while (file && getline(&line, &room, file) >= 0 && take(user, line)) continue;
    free(line);
    if (file) fclose(file);
}

struct quest {
    struct hec_arena *arena;
    const char *wanted, *last, *found;
};

static bool seek(void *user, char *line) {
    struct quest *q = user;
    for (char *at = line; *at; at++) {
        if (iscntrl((unsigned char)*at)) *at = ' ';
    }
    line += strspn(line, " ");
    size_t length = strlen(line);
    while (length && line[length - 1] == ' ') length--;
    if (length > LINE_SHOWN) length = LINE_SHOWN;
    if (!has_letter(line)) return true;
    q->last = hec_arena_copy(q->arena, line, length);
    if (strstr(line, q->wanted)) q->found = q->last;
    return !q->found;
}

// The line for people: the first line with `wanted` in it, else the last one. NULL: there is none.
static const char *line_of(const struct hec_measure_bed *bed, const char *wanted) {
    struct quest q = {.arena = bed->arena, .wanted = wanted};
    each_line(bed->said, seek, &q);
    return q.found ? q.found : q.last;
}

// NULL: it went well.
static const char *why_not(const struct hec_measure_bed *bed, const struct hec_command *command,
                           int status) {
    struct hec_arena *arena = bed->arena;
    if (status == 0) return NULL;
    if (status == -1)
        return hec_arena_format(arena, "cannot run '%s': %s", command->word.item[0],
                                strerror(errno));
    if (status == HEC_COMMAND_NO_FOLDER) return "there is no room for temporary files";
    if (status == HEC_COMMAND_LATE)
        return hec_arena_format(arena, "took longer than %u s, and was ended", command->seconds);
    const char *line = line_of(bed, "error: ");
    if (line) return line;
    if (WIFSIGNALED(status))
        return hec_arena_format(arena, "ended by signal %d (%s)", WTERMSIG(status),
                                strsignal(WTERMSIG(status)));
    return hec_arena_format(arena, "exit status %d, without a word", WEXITSTATUS(status));
}

// ---- the launch line

static bool show(void *user, char *line) {
    (void)user;
    fprintf(stderr, "  %s", line);
    return true;
}

bool hec_measure_can_launch(const struct hec_measure_bed *bed) {
    struct hec_measure_bed probe = *bed;
    probe.said = hec_output_temporary(bed->arena, NULL, ".txt", false);
    if (!probe.said) return false;
    struct hec_command command = {
        .arena = bed->arena, .said = probe.said, .spreads = true, .seconds = bed->seconds};
    hec_command_add_words(&command, bed->launch);
    hec_command_add(&command, "true");
    if (bed->options->verbose) hec_command_show(&command);
    const int status = hec_command_run(&command);
    const char *why = why_not(&probe, &command, status);
    if (why) {
        fprintf(stderr, "hecatec: error: --measure: '%s' starts nothing here", bed->launch);
        if (status > 0) {
            fputs(":\n", stderr);
            each_line(probe.said, show, NULL);
        } else {
            fprintf(stderr, ": %s\n", why);
        }
        fprintf(stderr,
                "hecatec: --launch=COMMAND says what starts %" PRId64
                " ranks here, such as --launch='mpirun --oversubscribe -n %" PRId64 "'\n",
                bed->ranks, bed->ranks);
    }
    hec_output_discard(probe.said);
    return why == NULL;
}

// ---- files

static const char *folder_of(const struct hec_options *o, struct hec_arena *arena) {
    const char *slash = o->output ? strrchr(o->output, '/') : NULL;
    if (!slash || strncmp(o->output, "/dev/", 5) == 0) return ".";
    return slash == o->output ? "/" : hec_arena_copy(arena, o->output, (size_t)(slash - o->output));
}

enum { LLMC_HEADER = 256 }; // Numbers; magic, version and how many tokens are the first ones.

static void put_token(unsigned char *at, int bytes, uint64_t token) {
    for (int b = 0; b < bytes; b++) at[b] = (unsigned char)(token >> (8 * b));
}

// Any tokens, since the routes are forced, but of the whole vocabulary: embeddings are read as in a run.
static bool write_tokens(struct hec_measure_bed *bed, const struct hec_step_score *of) {
    const size_t count = (size_t)of->positions * 4 + (1 << 20);
    const uint64_t words =
        of->vocabulary > 1 ? (uint64_t)of->vocabulary - 1 : 1; // The last is a mask's.
    const int bytes = words <= 1 << 8 ? 1 : words <= 1 << 16 ? 2 : 4;
    const size_t head = bytes == 1 ? 0 : LLMC_HEADER * sizeof(int32_t);
    unsigned char *text = hec_checked(calloc(1, head + count * (size_t)bytes));
    const int32_t header[] = {bytes == 2 ? 20240520 : 20240801, bytes == 2 ? 1 : 7, (int32_t)count};
    if (head) memcpy(text, header, sizeof header);
    uint64_t state = 1;
    for (size_t i = 0; i < count; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u; // Knuth's MMIX.
        put_token(text + head + i * (size_t)bytes, bytes, (state >> 33) % words);
    }
    bed->format = head ? "llmc" : "bytes";
    const bool written =
        hec_output_write(bed->arena, bed->tokens, (char *)text, head + count * (size_t)bytes);
    free(text);
    return written;
}

// The last iterations that were recorded, on which candidates are simulated, too; uncompressed, as programs
// want them.
static bool write_loads(struct hec_measure_bed *bed) {
    char why[LOADS_WHY];
    struct loads all;
    if (!loads_read(&all, bed->options->profile, why)) return hec_fail("%s", why);
    struct loads last = all;
    if (last.iterations > HEC_MEASURE_STEPS) last.iterations = HEC_MEASURE_STEPS;
    last.rows += (size_t)(all.iterations - last.iterations) * all.layers * all.devices *
                 all.microbatches * all.experts;
    const bool written = loads_write(&last, bed->loads, why);
    if (!written) hec_fail("%s", why);
    loads_free(&all);
    return written;
}

bool hec_measure_prepare(struct hec_measure_bed *bed, const struct hec_step_score *of) {
    struct hec_arena *arena = bed->arena;
    const char *profile = bed->options->profile;
    bed->folder = folder_of(bed->options, arena);
    bed->route = profile ? hec_arena_format(arena, "trace:%s", profile)
                         : hec_arena_format(arena, "zipf:%g", hec_assumed_skew);
    bed->said = hec_output_temporary(arena, NULL, ".txt", false);
    bed->log = bed->said ? hec_output_temporary(arena, bed->folder, ".jsonl", false) : NULL;
    bed->tokens = bed->log ? hec_output_temporary(arena, bed->folder, ".tokens", false) : NULL;
    if (!bed->tokens || !write_tokens(bed, of)) return false;
    bed->forced = bed->route;
    if (!profile) return true;
    bed->loads = hec_output_temporary(arena, bed->folder, ".loads", false);
    if (!bed->loads) return false;
    bed->forced = hec_arena_format(arena, "trace:%s", bed->loads);
    return write_loads(bed);
}

void hec_measure_clear(struct hec_measure_bed *bed) {
    const char *const file[] = {bed->said, bed->log, bed->tokens, bed->loads};
    for (int i = 0; i < 4; i++) {
        if (file[i]) hec_output_discard(file[i]);
    }
}

// ---- building

// The options that a program depends on; hecatec finds the rest by itself.
static struct hec_options options_of(const struct hec_measure_bed *bed, const char *const *set,
                                     int count, const char *program) {
    const struct hec_options *given = bed->options;
    struct hec_options o = {
        .input = given->input,
        .output = program,
        .defines = given->defines,
        .cluster = given->cluster,
        .target = given->target,
        .passes = given->passes,
        .profile = given->profile,
        .color = "never",
        .ranks = given->ranks,
        .no_warnings = true,
        .cc = given->cc,
        .nvcc = given->nvcc,
        .march = given->march,
        .optimize = given->optimize,
        .sanitize = given->sanitize,
    };
    for (int i = 0; i < given->sets.text.count; i++)
        HEC_PUSH(bed->arena, &o.sets.text, given->sets.text.item[i]);
    for (int i = 0; i < count; i++) HEC_PUSH(bed->arena, &o.sets.text, set[i]);
    return o;
}

const char *hec_measure_build(struct hec_measure_bed *bed, const char *const *set, int count,
                              const char **program) {
    *program = hec_output_temporary(bed->arena, bed->folder, "", false);
    if (!*program) return "there is no room for its program";
    const char *prefix = hec_prefix(bed->arena);
    const struct hec_options options = options_of(bed, set, count, *program);
    const struct hec_texts words = hec_options_words(&options, bed->arena);
    struct hec_command command = {.arena = bed->arena, .said = bed->said, .seconds = BUILD_SECONDS};
    hec_command_add(&command, hec_arena_format(bed->arena, "%s/bin/hecatec", prefix ? prefix : ""));
    for (int i = 0; i < words.text.count; i++) hec_command_add(&command, words.text.item[i]);
    if (bed->options->verbose) hec_command_show(&command);
    return why_not(bed, &command, hec_command_run(&command));
}

// ---- running

struct times {
    int steps;
    double us; // Per token, summed over the steps that count.
};

static bool add_step(void *user, char *line) {
    struct times *times = user;
    json_t *step = json_loads(line, 0, NULL);
    const double rate = json_number_value(json_object_get(step, "tokens_per_s"));
    json_decref(step);
    if (!(rate > 0)) return false;
    if (times->steps++ >= HEC_MEASURE_LEFT_OUT) times->us += 1e6 / rate;
    return true;
}

static const char *read_log(const struct hec_measure_bed *bed, double *us) {
    struct times times = {0};
    each_line(bed->log, add_step, &times);
    *us = times.us / (HEC_MEASURE_STEPS - HEC_MEASURE_LEFT_OUT);
    if (times.steps == HEC_MEASURE_STEPS) return NULL;
    const char *line = line_of(bed, "warning: ");
    return hec_arena_format(bed->arena, "its log has %d of %d steps%s%s", times.steps,
                            HEC_MEASURE_STEPS, line ? ": " : "", line ? line : "");
}

const char *hec_measure_run(struct hec_measure_bed *bed, const char *program, double *us) {
    const char *const words[] = {
        program,    "train",
        "--data",   bed->tokens,
        "--val",    bed->tokens,
        "--format", bed->format,
        "--route",  bed->forced,
        "--steps",  hec_arena_format(bed->arena, "%d", HEC_MEASURE_STEPS),
        "--log",    bed->log,
        "--set",    "log.every=1",
        "--set",    "log.loads=0",
        "--set",    "train.eval_steps=0",
        "--set",    "checkpoint.dir=none",
    };
    struct hec_command command = {
        .arena = bed->arena, .said = bed->said, .spreads = true, .seconds = bed->seconds};
    hec_command_add_words(&command, bed->launch);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) hec_command_add(&command, words[i]);
    if (bed->options->verbose) hec_command_show(&command);
    if (truncate(bed->log, 0) != 0)
        return hec_arena_format(bed->arena, "cannot write '%s': %s", bed->log, strerror(errno));
    const char *why = why_not(bed, &command, hec_command_run(&command));
    return why ? why : read_log(bed, us);
}
