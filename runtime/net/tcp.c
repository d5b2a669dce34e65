// Back end `tcp`: ranks that no MPI joins.
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/net/backend.h"
#include "runtime/net/door.h"
#include "runtime/net/tcp_meet.h"
#include "runtime/net/tcp_reach.h"
#include "runtime/net/tcp_wire.h"

enum { JOIN = 30 }; // Seconds, where HECATE_COMM_JOIN says nothing.

// Rank 0 takes in all, and where all have something to say to all, each has a connection to each; strangers may come.
static void allow_descriptors(int size) {
    struct rlimit limit;
    const rlim_t needed = 3 * (rlim_t)size + HRT_DOOR_ROOM + 256;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed) return;
    limit.rlim_cur = limit.rlim_max < needed ? limit.rlim_max : needed;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static bool open_meeting(struct hrt_meeting *meeting, struct hrt_error *error) {
    const struct hrt_place *place = meeting->place;
    const size_t size = (size_t)meeting->size;
    struct hrt_address any;
    const char *why;
    meeting->seat = calloc(size, sizeof *meeting->seat);
    meeting->fd = malloc(size * sizeof *meeting->fd);
    if (!meeting->seat || !meeting->fd) return hrt_fail(error, "out of memory");
    for (size_t r = 0; r < size; r++) meeting->fd[r] = -1;
    if (size == 1) return true;
    // The address family is that of rank 0's address, which may not be known yet.
    if ((!*place->host || !hrt_net_address_find(place->host, 0, &any, &why)) &&
        !hrt_net_address_find("0.0.0.0", 0, &any, &why))
        return hrt_fail(error, "%s", why);
    meeting->listens = hrt_net_socket_listen(&any, hrt_net_place_is_local(place));
    if (meeting->listens < 0) return hrt_fail(error, "rank %d cannot listen", meeting->rank);
    if (meeting->rank > 0) return true;
    // The others know where they have found rank 0, but for this port.
    return hrt_net_address_find("127.0.0.1", hrt_net_socket_port(meeting->listens),
                                &meeting->seat[0].address, &why) ||
           hrt_fail(error, "%s", why);
}

static void close_meeting(struct hrt_meeting *meeting, bool joined) {
    for (int r = 0; r < meeting->size && meeting->fd && !joined; r++) {
        if (meeting->fd[r] >= 0) close(meeting->fd[r]);
    }
    if (!joined) hrt_net_reach_close(meeting->reach);
    if (meeting->listens >= 0) close(meeting->listens);
    free(meeting->seat);
    free(meeting->number_of);
    free(meeting->fd);
}

// Sets node_of, peers and this rank in the order of nodes.
static void number(struct hrt_net *own, const struct hrt_meeting *meeting) {
    own->rank = meeting->number_of[meeting->rank];
    for (int r = 0; r < meeting->size; r++) {
        own->node_of[meeting->number_of[r]] = meeting->seat[r].node;
        own->peer[meeting->number_of[r]] = meeting->seat[r].peer;
    }
}

static bool join(struct hrt_net *own, struct hrt_meeting *meeting, struct hrt_error *error) {
    const bool sound = hrt_net_read_settings(own, error);
    if (!open_meeting(meeting, error)) return false;
    const bool met = meeting->rank ? hrt_net_tcp_meet(meeting, sound, error)
                                   : hrt_net_tcp_meet_as_first(meeting, sound, error);
    if (!met || !hrt_net_tcp_mesh(meeting, error)) return false;
    number(own, meeting);
    return hrt_net_tcp_wire_open(own, meeting) || hrt_fail(error, "out of memory");
}

static bool start(struct hrt_comm *comm, const struct hrt_place *place, const char *topology,
                  struct hrt_error *error) {
    struct hrt_meeting meeting = {.place = place,
                                  .seconds = JOIN,
                                  .topology = topology,
                                  .rank = place->world.rank,
                                  .size = place->world.size,
                                  .listens = -1};
    if (!hrt_net_secret_read(&meeting.secret, error) ||
        !hrt_net_read_seconds("HECATE_COMM_JOIN", &meeting.seconds, error))
        return false;
    meeting.deadline = hrt_base_now() + meeting.seconds;
    allow_descriptors(meeting.size);
    struct hrt_net *own = hrt_net_reserve(&hrt_net_tcp_wire, meeting.size);
    if (!own) return hrt_fail(error, "out of memory for %d ranks", meeting.size);
    own->many_threads = true;
    const bool joined = join(own, &meeting, error);
    const int nodes = meeting.nodes;
    const uint64_t job = meeting.job;
    close_meeting(&meeting, joined);
    if (!joined) hrt_net_free(own);
    if (joined) hrt_net_begin(own, comm, nodes, job);
    return joined;
}

static bool open_tcp(struct hrt_comm *comm, const char *topology, struct hrt_error *error) {
    struct hrt_place place;
    hrt_net_comm_open_self(comm); // Until they have joined, and if they do not.
    if (hrt_net_place_find(&place, error) && start(comm, &place, topology, error)) return true;
    error->shared = true; // Every rank that has a text prints it.
    return false;
}

const struct hrt_comm_backend hrt_net_comm_tcp = {.name = "tcp", .open = open_tcp};
