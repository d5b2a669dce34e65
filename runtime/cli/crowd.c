// Other programs on our cores: notices them, and ends long spinning while they are there.
#define _GNU_SOURCE // sigset_t for threads.
#include "runtime/cli/crowd.h"

#include <dirent.h>
#include <omp.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

// How long all threads together wait for cores, of the time. Other work makes it most of the time, housekeeping of the
// system a thousandth; threads that sleep and are woken thousands of times a second wait for some percent even alone, so
// that they go back to spinning at a higher share. The machine must be quiet for a while: spinning threads would else
// meet each further burst of other work.
enum {
    PERIOD_MS = 50,
    SPINNING_PERCENT = 10,
    SLEEPING_PERCENT = 40,
    QUIET_PERIODS = 20,
    TEAM_MAX = 8
};

// Nanoseconds that all threads of this process have waited for a core so far; -1 where the kernel does not tell.
static long long waited_for_cores(void) {
    DIR *tasks = opendir("/proc/self/task");
    if (!tasks) return -1;
    long long sum = 0;
    bool told = false;
    for (const struct dirent *task; (task = readdir(tasks));) {
        char path[sizeof "/proc/self/task//schedstat" + sizeof task->d_name];
        snprintf(path, sizeof path, "/proc/self/task/%s/schedstat", task->d_name);
        FILE *file = task->d_name[0] == '.' ? NULL : fopen(path, "r");
        if (!file) continue; // It has ended.
        long long ran, waited;
        if (fscanf(file, "%lld %lld", &ran, &waited) == 2) told = true, sum += waited;
        fclose(file);
    }
    closedir(tasks);
    return told ? sum : -1;
}

// A team that only sleeps. It is counted until its thread ends.
struct team {
    pthread_t thread;
    sem_t wake;
    int threads;
};

static void *sleep_in_team(void *argument) {
    struct team *team = argument;
#pragma omp parallel num_threads(team->threads)
    while (sem_wait(&team->wake) != 0) continue;
    return NULL;
}

static bool begin(struct team *team) {
    return sem_init(&team->wake, 0, 0) == 0 &&
           pthread_create(&team->thread, NULL, sleep_in_team, team) == 0;
}

static void end(struct team *team) {
    for (int i = 0; i < team->threads; i++) sem_post(&team->wake);
    pthread_join(team->thread, NULL);
    sem_destroy(&team->wake);
}

static long long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void *watch(void *argument) {
    struct team team = {.threads = *(const int *)argument};
    bool sleeps = begin(&team); // Until a first second has been quiet.
    if (!sleeps) return NULL;
    long long waited = waited_for_cores(), then = now();
    for (int quiet = 0;;) {
        nanosleep(&(struct timespec){.tv_nsec = PERIOD_MS * 1000000L}, NULL);
        const long long waited_now = waited_for_cores(), at = now();
        const int percent = sleeps ? SLEEPING_PERCENT : SPINNING_PERCENT;
        const bool crowded = (waited_now - waited) * 100 > (at - then) * percent;
        waited = waited_now, then = at;
        quiet = crowded ? 0 : quiet < QUIET_PERIODS ? quiet + 1 : quiet;
        if (crowded && !sleeps) sleeps = begin(&team);
        if (quiet == QUIET_PERIODS && sleeps) end(&team), sleeps = false;
    }
}

void hrt_cli_watch_cores(void) {
    static int threads; // Outlives this call; more than the cores together with the program's own.
    if (omp_get_max_threads() < 2 || waited_for_cores() < 0) return;
    threads = omp_get_num_procs() - omp_get_max_threads() + 2;
    // There are too many already; or so few that other programs find cores enough.
    if (threads < 2 || threads > TEAM_MAX) return;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before); // Signals are for the thread that computes.
    pthread_t thread;
    if (pthread_create(&thread, NULL, watch, &threads) == 0) pthread_detach(thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}
