// The place where ranks without MPI find each other, and the facts that they need: from the environment.
#ifndef HECATE_RUNTIME_NET_PLACE_H
#define HECATE_RUNTIME_NET_PLACE_H

#include "runtime/base/error.h"
#include "runtime/base/world.h"

struct hrt_place {
    struct hrt_world world;
    char host
        [256]; // Rank 0's, a loopback address where all ranks are here; empty: it is told by `file`.
    int port;
    char file[1024];    // On a file system of all ranks; rank 0 writes it.
    const char *subnet; // For ranks that need no secret; NULL: those of rank 0's machine.
};

// HECATE_ADDRESS=HOST:PORT, or HECATE_RENDEZVOUS=FILE, or the launcher's address: torchrun MASTER_ADDR and MASTER_PORT,
// Slurm its list of nodes, mpirun a folder of its own where all ranks are on one machine. False: a variable is
// wrong or missing, or they contradict each other. A run of one rank needs no place.
bool hrt_net_place_find(struct hrt_place *place, struct hrt_error *error);

// Whether all ranks are on this machine for sure, so that they meet at its loopback.
bool hrt_net_place_is_local(const struct hrt_place *place);

// The first name of a list of Slurm's, "n[003-7,9],m1": "n003". False: it does not fit.
bool hrt_net_first_host(const char *list, char *host, int room);

#endif
