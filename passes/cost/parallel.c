// A few threads that take numbers in turn.
#define _GNU_SOURCE // sched_getaffinity
#include "passes/cost/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { THREADS_MOST = 8 };

struct work {
    int count;
    void (*work)(void *context, int number);
    void *context;
    atomic_int next;
};

static void *take(void *argument) {
    struct work *w = argument;
    for (int i; (i = atomic_fetch_add(&w->next, 1)) < w->count;) w->work(w->context, i);
    return NULL;
}

static int processors(void) {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

void hec_in_parallel(int count, void (*work)(void *context, int number), void *context) {
    struct work w = {.count = count, .work = work, .context = context};
    pthread_t thread[THREADS_MOST];
    const int wanted = count < processors() ? count : processors();
    int started = 0;
    while (started < wanted - 1 && started < THREADS_MOST &&
           pthread_create(&thread[started], NULL, take, &w) == 0)
        started++;
    take(&w); // This thread does what others do not.
    for (int i = 0; i < started; i++) pthread_join(thread[i], NULL);
}
