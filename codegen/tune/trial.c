// Silent compilations, up to the placed module, side by side. Processes and not threads: a compilation has the
// process for itself, and an error in one stays there.
#define _GNU_SOURCE // sched_getaffinity, MAP_ANONYMOUS, pipe2
#include "codegen/tune/trial.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "codegen/stages/compilation.h"
#include "codegen/stages/read.h"
#include "codegen/stages/run_passes.h"
#include "ir/accessors.h"
#include "lang/base/clock.h"
#include "passes/base/movement.h"

const double hec_trial_error = 0.06;

// The options of a trial: nothing that prints or writes.
static struct hec_options options_of(const struct hec_options *given, const struct hec_trial *trial,
                                     struct hec_arena *arena) {
    struct hec_options o = {
        .input = given->input,
        .defines = given->defines,
        .cluster = given->cluster,
        .target = given->target,
        .passes = given->passes,
        .profile = given->profile,
        .simulate = true,
    };
    for (int i = 0; i < given->sets.text.count; i++)
        HEC_PUSH(arena, &o.sets.text, given->sets.text.item[i]);
    for (int i = 0; i < trial->count; i++) HEC_PUSH(arena, &o.sets.text, trial->set[i]);
    return o;
}

// Brief trials have their choices set; those whose messages are sums compare choices so.
static bool place(struct hec_compilation *c, enum hec_trial_effort effort) {
    int status;
    if (!hec_run_front(c, &status) || !hec_make_module(c)) return false;
    hec_module_put_only_placed(c->module, effort <= HEC_TRIAL_BRIEF);
    hec_module_put_in_sums(c->module, effort <= HEC_TRIAL_SUMS);
    if (c->options->profile && hec_has_ranks(c->module))
        hec_set_attr(c->module,
                     hec_attr_string(c->context, "hecate.recorded_loads", c->options->profile));
    if (!hec_run_passes(c, &status)) return false;
    hec_module_put_only_placed(c->module, false);
    hec_module_put_in_sums(c->module, false);
    return true;
}

static bool estimate(MlirOperation module, const struct hec_trial *trial,
                     struct hec_step_score *score) {
    if (trial->effort == HEC_TRIAL_MEMORY) return hec_estimate_memory(module, score);
    if (trial->effort <= HEC_TRIAL_SEARCHED) return hec_estimate_brief(module, score);
    return hec_estimate_score(module, trial->steps, trial->effort == HEC_TRIAL_SUMS, score);
}

static bool try_one(const struct hec_options *given, const struct hec_trial *trial,
                    struct hec_step_score *score) {
    struct hec_arena arena = {0};
    const struct hec_options options = options_of(given, trial, &arena);
    struct hec_compilation c = {.arena = &arena,
                                .options = &options,
                                .name = "model",
                                .trial = true,
                                .from = STAGE_PARSE,
                                .to = STAGE_PROGRAM,
                                .started = hec_now()};
    FILE *nowhere = fopen("/dev/null", "w");
    if (!nowhere) abort();
    c.diag.out = nowhere;
    c.reporter = (struct hec_reporter){.diag = &c.diag, .sources.arena = &arena};
    const bool sound = place(&c, trial->effort) && estimate(c.module, trial, score);
    hec_compilation_end(&c);
    hec_arena_free(&arena);
    fclose(nowhere);
    return sound;
}

// ---- side by side

enum { PROCESSES_MOST = 8 };

// Memory of all processes.
struct shared {
    atomic_int next; // The trial that nobody has begun yet.
    struct made {
        bool done, sound;
        struct hec_step_score score;
    } made[];
};

static void work(const struct hec_options *given, const struct hec_trial *trial, int count,
                 struct shared *shared) {
    for (int i; (i = atomic_fetch_add(&shared->next, 1)) < count;) {
        struct made *made = &shared->made[i];
        made->sound = try_one(given, &trial[i], &made->score);
        made->done = true;
    }
}

static int processors(void) {
    cpu_set_t set;
    const int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return count < PROCESSES_MOST ? count : PROCESSES_MOST;
}

// Processes that work, each of which holds the end of a pipe, so that reading from it ends with the last of them.
struct workers {
    pid_t process[PROCESSES_MOST];
    int count, pipe;
};

static bool start(const struct hec_options *given, const struct hec_trial *trial, int count,
                  struct shared *shared, struct workers *workers) {
    const int wanted = count < processors() ? count : processors();
    const pid_t parent = getpid();
    int end[2];
    *workers = (struct workers){0};
    if (pipe2(end, O_CLOEXEC) != 0) return false;
    fflush(NULL); // Children would write our buffers once more.
    while (workers->count < wanted) {
        const pid_t process = fork();
        if (process < 0) break;
        if (process == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (getppid() == parent) work(given, trial, count, shared);
            _exit(0); // Nothing of the parent's is closed or removed.
        }
        workers->process[workers->count++] = process;
    }
    close(end[1]);
    workers->pipe = end[0];
    return true;
}

// False: the clock has ended them.
static bool await(const struct workers *workers, const struct hec_trial_watch *watch) {
    struct pollfd wait = {.fd = workers->pipe, .events = POLLIN};
    bool in_time;
    while ((in_time = hec_now() < watch->stop) && poll(&wait, 1, 100) <= 0)
        watch->look(watch->context);
    for (int i = 0; i < workers->count; i++) {
        if (!in_time) kill(workers->process[i], SIGKILL);
        waitpid(workers->process[i], NULL, 0);
    }
    close(workers->pipe);
    return in_time;
}

void hec_trials(const struct hec_options *given, struct hec_trial *trial, int count,
                const struct hec_trial_watch *watch) {
    const size_t bytes = sizeof(struct shared) + (size_t)count * sizeof(struct made);
    struct shared *shared =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) abort();
    struct workers workers;
    bool in_time = !start(given, trial, count, shared, &workers) || await(&workers, watch);
    for (int i = 0; i < count; i++) {
        struct made *made = &shared->made[i];
        in_time = in_time && hec_now() < watch->stop;
        if (!made->done && in_time) { // Its process died, or there was none.
            made->sound = try_one(given, &trial[i], &made->score);
            made->done = true;
        }
        trial[i].ended = made->done;
        trial[i].sound = made->sound;
        trial[i].score = made->score;
    }
    munmap(shared, bytes);
}
