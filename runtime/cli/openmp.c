// The environment of OpenMP.
#define _GNU_SOURCE // sched_getaffinity, pthread_getattr_np
#include "runtime/cli/openmp.h"

#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool hrt_cli_check_openmp(struct hrt_error *error) {
    const char *text = getenv("OMP_NUM_THREADS");
    if (!text || !*text) return true;
    char *end;
    const long threads = strtol(text, &end, 10);
    end += strspn(end, " \t");
    if (threads >= 1 && threads <= HRT_THREADS_MOST && (!*end || *end == ',')) return true;
    return hrt_fail_usage(error, "OMP_NUM_THREADS is '%s'; it takes a number of threads, 1 to %d",
                          text, HRT_THREADS_MOST);
}

// Bytes of the calling thread's stack, or SIZE_MAX where they are not to be known.
static size_t stack_bytes(void) {
    pthread_attr_t attributes;
    void *lowest;
    size_t bytes = SIZE_MAX;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return bytes;
    if (pthread_attr_getstack(&attributes, &lowest, &bytes) != 0) bytes = SIZE_MAX;
    pthread_attr_destroy(&attributes);
    return bytes;
}

bool hrt_cli_check_stacks(int threads, struct hrt_error *error) {
    const size_t own = stack_bytes();
    size_t other = own;
    // All threads but the first are alike.
#pragma omp parallel num_threads(threads > 1 ? 2 : 1)
    if (omp_get_thread_num() > 0) other = stack_bytes();
    const size_t least = own < other ? own : other;
    if (least >= HRT_STACK_LEAST) return true;
    return hrt_fail_usage(error, "a thread has %zu KiB of stack, kernels take %d: raise %s",
                          least >> 10, HRT_STACK_LEAST >> 10,
                          own > other ? "OMP_STACKSIZE" : "ulimit -s");
}

int hrt_cli_threads_of_rank(int cores, int all, int ranks) {
    // Bound ranks are spread over all cores: as many share these as their part of all says.
    const int sharing = (int)(((long)ranks * cores + all - 1) / all);
    const int threads = cores / (sharing > 1 ? sharing : 1);
    return threads > 1 ? threads : 1;
}

int hrt_cli_local_ranks(void) {
    static const char *const names[] = {
        "LOCAL_WORLD_SIZE",           // torchrun
        "OMPI_COMM_WORLD_LOCAL_SIZE", // mpirun
        "SLURM_STEP_TASKS_PER_NODE",  // srun: the first number of "4(x2),3"
    };
    for (int i = 0; i < (int)(sizeof names / sizeof *names); i++) {
        const char *text = getenv(names[i]);
        const long ranks = text ? strtol(text, NULL, 10) : 0;
        if (ranks > 0 && ranks < 1 << 20) return (int)ranks;
    }
    return 1;
}

// Sets `name` unless the environment has it, or `other` says something about the same.
static bool set(const char *name, const char *value, const char *const *other) {
    const char *given = getenv(name);
    if (given && *given) return false;
    for (; *other; other++) {
        if (getenv(*other)) return false;
    }
    return setenv(name, value, 1) == 0;
}

// Cores that process `pid` may run on; 0: this process.
static int cores_of(pid_t pid) {
    cpu_set_t cores;
    return sched_getaffinity(pid, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 1;
}

// The launcher binds ranks, but not itself: its cores are all that the run has here.
static int cores_of_all_ranks(void) {
    const int own = cores_of(0), launcher = cores_of(getppid());
    return launcher > own ? launcher : own;
}

static bool set_threads(void) {
    static const char *const other[] = {"OMP_THREAD_LIMIT", NULL};
    const int ranks = hrt_cli_local_ranks();
    if (ranks < 2) return false;
    char threads[16];
    snprintf(threads, sizeof threads, "%d",
             hrt_cli_threads_of_rank(cores_of(0), cores_of_all_ranks(), ranks));
    return set("OMP_NUM_THREADS", threads, other);
}

static bool set_binding(void) {
    static const char *const other[] = {"OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY", NULL};
    if (access("/sys/devices/system/node/node1", F_OK) != 0) return false;
    // Ranks that are not bound would all begin with the first core.
    if (hrt_cli_local_ranks() > 1 && cores_of(0) == cores_of_all_ranks()) return false;
    return set("OMP_PROC_BIND", "true", other);
}

// Iterations for which one process spins, OpenMP's own unit; some tenths of a millisecond.
static const char spins[] = "30000";

bool hrt_cli_openmp_spins(void) {
    const char *count = getenv("GOMP_SPINCOUNT");
    return count && strcmp(count, spins) == 0;
}

static bool set_spinning(void) {
    static const char *const other[] = {"OMP_WAIT_POLICY", "KMP_BLOCKTIME", NULL};
    // Ranks have helper threads besides, which need the cores of those that wait.
    if (!set("GOMP_SPINCOUNT", hrt_cli_local_ranks() > 1 ? "1000" : spins, other)) return false;
    return setenv("KMP_BLOCKTIME", "1", 1) == 0; // LLVM's OpenMP; milliseconds.
}

void hrt_cli_prepare_openmp(char **argv) {
    const bool threads = set_threads(), binding = set_binding(), spinning = set_spinning();
    if (threads || binding || spinning) execv("/proc/self/exe", argv);
}

int hrt_cli_openmp_threads(void) {
    const int wanted = omp_get_max_threads(), limit = omp_get_thread_limit();
    return wanted < limit ? wanted : limit;
}
