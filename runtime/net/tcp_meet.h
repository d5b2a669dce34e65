// How ranks meet without MPI: all come to rank 0, prove that they may, and learn the facts of the others.
#ifndef HECATE_RUNTIME_NET_TCP_MEET_H
#define HECATE_RUNTIME_NET_TCP_MEET_H

#include "runtime/net/net.h"
#include "runtime/net/place.h"
#include "runtime/net/secret.h"
#include "runtime/net/socket.h"
#include "runtime/plan/grid.h"

// Facts of a rank that all know.
struct hrt_seat {
    struct hrt_net_peer peer;   // `launched` is its number.
    struct hrt_address address; // Where it listens for the others.
    int32_t node;
};

struct hrt_reach; // tcp_reach.h

struct hrt_meeting {
    const struct hrt_place *place;
    struct hrt_secret secret; // The environment's and, with a file, its key.
    int seconds;              // Limit of the meeting.
    double deadline;          // Rank 0's deadline, as far as it is known: all count as it does.
    const char *topology;
    int rank, size;
    int listens; // For the others' connections.
    int tries;   // To reach rank 0 by a file.

    uint64_t job; // The same number on all ranks, and on no others.
    int32_t nodes;
    struct hrt_seat *seat;    // [size]
    int *fd;                  // [size] To rank 0, or of rank 0 to all others; -1.
    struct hrt_address first; // Where this rank has found rank 0.

    int32_t *number_of;      // [size] Numbers of ranks in the order of nodes.
    struct hpl_grid grid;    // In these numbers.
    struct hrt_reach *reach; // Once the mesh stands.
};

// tcp_first.c, tcp_meet.c. `sound` false: this rank cannot run because of `error`, and all shall know. False: the error
// of all; of ranks but 0 without text where rank 0 has it.
bool hrt_net_tcp_meet_as_first(struct hrt_meeting *meeting, bool sound, struct hrt_error *error);
bool hrt_net_tcp_meet(struct hrt_meeting *meeting, bool sound, struct hrt_error *error);

// tcp_mesh.c: sets number_of and grid, and connects the ranks that are near each other in the grid: fd of others is -1,
// and `reach` connects them when they have something to say. Returns as the above.
bool hrt_net_tcp_mesh(struct hrt_meeting *meeting, struct hrt_error *error);

#endif
