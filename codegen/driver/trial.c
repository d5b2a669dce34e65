// Silent compilations, up to the placed module, side by side. Processes and not threads: a compilation has the process for itself, and
// what goes wrong in one stays there.
#define _GNU_SOURCE // sched_getaffinity, MAP_ANONYMOUS
#include "codegen/driver/trial.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "codegen/driver/compilation.h"
#include "codegen/driver/read.h"
#include "codegen/driver/run_passes.h"
#include "passes/movement.h"

// What a trial is compiled with: nothing that prints or writes.
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

static bool place(struct hec_compilation *c) {
    int status;
    if (!hec_run_front(c, &status) || !hec_make_module(c) || !hec_has_ranks(c->module))
        return false;
    if (c->options->profile)
        hec_set_attr(c->module,
                     hec_attr_string(c->context, "hecate.recorded_loads", c->options->profile));
    return hec_run_passes(c, &status);
}

static bool try_one(const struct hec_options *given, const struct hec_trial *trial,
                    struct hec_step_score *score) {
    struct hec_arena arena = {0};
    const struct hec_options options = options_of(given, trial, &arena);
    struct hec_compilation c = {.arena = &arena,
                                .options = &options,
                                .name = "model",
                                .from = STAGE_PARSE,
                                .to = STAGE_PROGRAM,
                                .started = hec_driver_now()};
    FILE *nowhere = fopen("/dev/null", "w");
    if (!nowhere) abort();
    c.diag.out = nowhere;
    c.reporter = (struct hec_reporter){.diag = &c.diag, .sources.arena = &arena};
    const bool sound =
        place(&c) && hec_simulate_score(c.module, trial->steps, trial->coarse, score);
    hec_diag_free(&c.diag);
    hec_pipeline_free(c.pipeline);
    if (!mlirOperationIsNull(c.module)) mlirOperationDestroy(c.module);
    if (!mlirContextIsNull(c.context)) mlirContextDestroy(c.context);
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

// Returns how many were started; this process is one more.
static int start(const struct hec_options *given, const struct hec_trial *trial, int count,
                 struct shared *shared, pid_t child[PROCESSES_MOST]) {
    const int wanted = (count < processors() ? count : processors()) - 1;
    const pid_t parent = getpid();
    int started = 0;
    fflush(NULL); // Of what is not written yet children have a copy.
    while (started < wanted) {
        child[started] = fork();
        if (child[started] < 0) break;
        if (child[started] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (getppid() == parent) work(given, trial, count, shared);
            _exit(0); // Nothing of the parent's is closed or removed.
        }
        started++;
    }
    return started;
}

void hec_trials(const struct hec_options *given, struct hec_trial *trial, int count) {
    const size_t bytes = sizeof(struct shared) + (size_t)count * sizeof(struct made);
    struct shared *shared =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) abort();
    pid_t child[PROCESSES_MOST];
    const int started = start(given, trial, count, shared, child);
    work(given, trial, count, shared);
    for (int i = 0; i < started; i++) waitpid(child[i], NULL, 0);
    for (int i = 0; i < count; i++) {
        struct made *made = &shared->made[i];
        if (!made->done) made->sound = try_one(given, &trial[i], &made->score); // Its process died.
        trial[i].sound = made->sound;
        trial[i].score = made->score;
    }
    munmap(shared, bytes);
}
