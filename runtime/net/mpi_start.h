// Watches the start of MPI.
#ifndef HECATE_RUNTIME_NET_MPI_START_H
#define HECATE_RUNTIME_NET_MPI_START_H

#include <pthread.h>
#include <stdbool.h>

// Between the two calls this rank ends, with a message, after `seconds`. The caller owns `vigil`;
// where no thread can be had nobody watches.
struct hrt_mpi_vigil {
    int seconds, rank;
    bool watched;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool started; // Under the lock.
};
void hrt_net_mpi_vigil_begin(struct hrt_mpi_vigil *vigil, int seconds);
void hrt_net_mpi_vigil_end(struct hrt_mpi_vigil *vigil);

#endif
