// The start of MPI waits for all ranks for ever, and ranks do not know each other yet: when one hangs before it
// has come, nobody would notice. A thread counts the seconds, and ends this rank when they are too many, which
// most launchers answer by ending everybody. Which rank is missing nobody can say.
//
// Seconds are counted by this thread, as in heart.c: a job that was stopped as a whole goes on.
#include "runtime/net/mpi_start.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/world.h"

// Waits a second, or until MPI has started. True: it has not.
static bool wait_on(struct hrt_mpi_vigil *vigil) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec++;
    pthread_mutex_lock(&vigil->lock);
    while (!vigil->started && pthread_cond_clockwait(&vigil->wake, &vigil->lock, CLOCK_MONOTONIC,
                                                     &until) != ETIMEDOUT) {
    }
    const bool waits = !vigil->started;
    pthread_mutex_unlock(&vigil->lock);
    return waits;
}

static void *watch(void *argument) {
    struct hrt_mpi_vigil *vigil = argument;
    const int turn = vigil->rank < 20 ? vigil->rank : 20; // One prints first, and ends the others.
    for (int i = 0; i < vigil->seconds + 2 * turn; i++) {
        if (!wait_on(vigil)) return NULL;
    }
    fflush(stdout);
    fprintf(stderr,
            "%s: error: rank %d has waited %d s for MPI to start: another rank hangs, was stopped "
            "or cannot be reached (HECATE_COMM_PATIENCE=SECONDS allows more)\n",
            program_invocation_short_name, vigil->rank, vigil->seconds);
    _exit(HRT_EXIT_FAILED);
}

void hrt_net_mpi_vigil_begin(struct hrt_mpi_vigil *vigil, int seconds) {
    // Asked for here: the thread may not look into the environment while MPI's start writes to it.
    struct hrt_world world = {0};
    struct hrt_error ignored = {0};
    hrt_base_world_find(&world, &ignored);
    *vigil = (struct hrt_mpi_vigil){.seconds = seconds, .rank = world.rank};
    pthread_mutex_init(&vigil->lock, NULL);
    pthread_cond_init(&vigil->wake, NULL);
    vigil->watched = pthread_create(&vigil->thread, NULL, watch, vigil) == 0;
}

void hrt_net_mpi_vigil_end(struct hrt_mpi_vigil *vigil) {
    pthread_mutex_lock(&vigil->lock);
    vigil->started = true;
    pthread_cond_signal(&vigil->wake);
    pthread_mutex_unlock(&vigil->lock);
    if (vigil->watched) pthread_join(vigil->thread, NULL);
    pthread_cond_destroy(&vigil->wake);
    pthread_mutex_destroy(&vigil->lock);
}
