// Connections between ranks that are near each other in the grid, which of few ranks are all. Each connects to those
// before it, as often as it takes, and at the same time takes in those behind it; then all tell rank 0 how it went. One
// loop waits for all of it, and for rank 0's word that it is over. Rank 0 then keeps no more connections than others.
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/net/tcp_hello.h"
#include "runtime/net/tcp_reach.h"

struct mesh {
    struct hrt_meeting *meeting;
    double
        reserve; // Seconds ahead of rank 0's deadline at which this one gives up, so that it hears why.
    int before, behind; // Ranks before this one, and behind it, that are not connected.
};

// Ranks in the order of their nodes.
static bool number(struct hrt_meeting *meeting, struct hrt_error *error) {
    const size_t size = (size_t)meeting->size;
    int32_t *node_of = malloc(size * sizeof *node_of), next = 0;
    meeting->number_of = malloc(size * sizeof *meeting->number_of);
    const bool sound = (node_of && meeting->number_of) || hrt_fail(error, "out of memory");
    for (int32_t node = 0; sound && node < meeting->nodes; node++) {
        for (int r = 0; r < meeting->size; r++) {
            if (meeting->seat[r].node != node) continue;
            node_of[next] = node;
            meeting->number_of[r] = next++;
        }
    }
    if (sound) meeting->grid = hpl_grid_of(meeting->size, meeting->nodes, node_of);
    free(node_of);
    return sound;
}

static bool is_near(const struct hrt_meeting *meeting, int rank) {
    return hpl_grid_near(&meeting->grid, meeting->number_of[meeting->rank],
                         meeting->number_of[rank]);
}

// One that comes again has not heard the answer.
static void reached(void *context, int rank, int fd, int error) {
    struct mesh *mesh = context;
    int *place = &mesh->meeting->fd[rank];
    (void)error; // For want of memory: it is missed.
    if (fd < 0) return;
    if (*place >= 0) {
        close(*place);
    } else if (rank < mesh->meeting->rank) {
        mesh->before--;
    } else {
        mesh->behind--;
    }
    *place = fd;
}

static bool tell_who_is_missing(const struct mesh *mesh, struct hrt_error *error) {
    const struct hrt_meeting *meeting = mesh->meeting;
    const bool reaches = mesh->before == 0;
    int other = reaches ? meeting->rank + 1 : 1;
    while (!is_near(meeting, other) || meeting->fd[other] >= 0) other++;
    const struct hrt_net_peer *peer = &meeting->seat[other].peer;
    const struct hrt_address address = hrt_net_reach_address(meeting->reach, other);
    const int why = hrt_net_reach_error(meeting->reach, other);
    char rank[128], more[32] = " has";
    snprintf(rank, sizeof rank, "rank %d (process %lld on %s)", other, (long long)peer->process,
             peer->host);
    if (mesh->behind > 1) snprintf(more, sizeof more, " and %d more have", mesh->behind - 1);
    if (reaches)
        return hrt_fail(error,
                        "%s%s not reached rank %d within %d s (HECATE_COMM_JOIN=SECONDS allows "
                        "more)%s",
                        rank, more, meeting->rank, meeting->seconds,
                        hrt_net_reach_silence(meeting->reach).text);
    return hrt_fail(error,
                    "rank %d cannot reach %s at %s: %s (tried for %d s; HECATE_COMM_JOIN=SECONDS "
                    "allows more)",
                    meeting->rank, rank, hrt_net_address_text(&address).text,
                    strerror(why ? why : ETIMEDOUT), meeting->seconds);
}

// A rank that cannot connect reports that before the ranks that only wait for it give up.
static bool is_over(const struct mesh *mesh) {
    const double ahead = mesh->before > 0 ? mesh->reserve : mesh->reserve / 2;
    return hrt_base_now() > mesh->meeting->deadline - ahead;
}

static bool connect_all(struct mesh *mesh, struct hrt_error *error) {
    const struct hrt_meeting *meeting = mesh->meeting;
    while (mesh->before > 0 || mesh->behind > 0) {
        if (is_over(mesh)) return tell_who_is_missing(mesh, error);
        hrt_net_reach_advance(meeting->reach);
        struct pollfd wait[2] = {
            {.fd = meeting->fd[0], .events = POLLIN},
            {.fd = hrt_net_reach_descriptor(meeting->reach), .events = POLLIN},
        };
        if (poll(wait, 2, 100) > 0 && wait[0].revents) return true; // Rank 0 has heard of an error.
    }
    return true;
}

static bool open_reach(struct mesh *mesh, struct hrt_error *error) {
    mesh->meeting->reach = hrt_net_reach_open(mesh->meeting, reached, mesh);
    return mesh->meeting->reach || hrt_fail(error, "out of memory");
}

static bool connect_others(struct hrt_meeting *meeting, struct hrt_error *error) {
    const double left = meeting->deadline - hrt_base_now();
    struct mesh mesh = {.meeting = meeting, .reserve = left < 5 ? left / 5 : 1};
    if (!number(meeting, error) || !open_reach(&mesh, error)) return false;
    for (int r = 1; r < meeting->size; r++) {
        if (r == meeting->rank || !is_near(meeting, r)) continue;
        mesh.before += r < meeting->rank;
        mesh.behind += r > meeting->rank;
        if (r < meeting->rank) hrt_net_reach_ask(meeting->reach, r, INFINITY);
    }
    return connect_all(&mesh, error);
}

// The message of a rank to rank 0, and rank 0's to all.
struct outcome {
    int32_t sound;
    struct hrt_error error;
};

static struct hrt_error silent_ranks(const struct hrt_meeting *meeting, const struct pollfd *wait) {
    struct hrt_error error = {0};
    for (int r = meeting->size - 1; r > 0; r--) {
        const struct hrt_net_peer *peer = &meeting->seat[r].peer;
        if (wait[r].fd >= 0)
            hrt_fail(&error,
                     "rank %d (process %lld on %s) came, and has not said within %d s whether it "
                     "reaches the others (HECATE_COMM_JOIN=SECONDS allows more)",
                     r, (long long)peer->process, peer->host, meeting->seconds);
    }
    return error;
}

// Rank 0 hears from all ranks; `wait` [size] is scratch. Ends as soon as one has failed.
static void gather(const struct hrt_meeting *meeting, struct pollfd *wait, struct outcome *all) {
    for (int r = 0; r < meeting->size; r++)
        wait[r] = (struct pollfd){.fd = r ? meeting->fd[r] : -1, .events = POLLIN};
    for (int left = meeting->size - 1; left > 0 && all->sound;) {
        if (hrt_base_now() > meeting->deadline) {
            all->sound = false;
            all->error = silent_ranks(meeting, wait);
        }
        if (poll(wait, (nfds_t)meeting->size, 100) <= 0) continue;
        for (int r = 1; r < meeting->size && all->sound; r++) {
            if (!wait[r].revents) continue;
            const struct hrt_net_peer *peer = &meeting->seat[r].peer;
            if (!hrt_net_socket_receive(wait[r].fd, all, sizeof *all, hrt_base_now() + 1))
                all->sound =
                    hrt_fail(&all->error, "rank %d (process %lld on %s) has ended while all joined",
                             r, (long long)peer->process, peer->host);
            all->error.text[sizeof all->error.text - 1] = '\0';
            wait[r].fd = -1;
            left--;
        }
    }
}

static bool mesh_as_first(struct hrt_meeting *meeting, struct hrt_error *error) {
    struct outcome all;
    struct mesh mesh = {.meeting = meeting}; // All have come to it.
    memset(&all, 0, sizeof all);
    struct pollfd *wait = calloc((size_t)meeting->size, sizeof *wait);
    all.sound = (wait || hrt_fail(&all.error, "out of memory")) && number(meeting, &all.error) &&
                open_reach(&mesh, &all.error);
    if (wait) gather(meeting, wait, &all);
    free(wait);
    for (int r = 1; r < meeting->size; r++)
        hrt_net_socket_send(meeting->fd[r], &all, sizeof all, hrt_base_now() + 1);
    if (!all.sound) *error = all.error;
    return all.sound;
}

// All had a connection with rank 0.
static void leave_the_far(const struct hrt_meeting *meeting) {
    for (int r = 0; r < meeting->size; r++) {
        if (meeting->fd[r] < 0 || is_near(meeting, r)) continue;
        close(meeting->fd[r]);
        meeting->fd[r] = -1;
    }
}

static bool mesh_as_other(struct hrt_meeting *meeting, struct hrt_error *error) {
    struct outcome outcome;
    memset(&outcome, 0, sizeof outcome);
    outcome.sound = connect_others(meeting, &outcome.error);
    const double deadline = meeting->deadline + 2;
    if (!hrt_net_socket_send(meeting->fd[0], &outcome, sizeof outcome, deadline) ||
        !hrt_net_socket_receive(meeting->fd[0], &outcome, sizeof outcome, deadline))
        return hrt_fail(error, "rank %d was with rank 0 when that ended", meeting->rank);
    error->code = outcome.error.code; // Rank 0 says it.
    return outcome.sound;
}

bool hrt_net_tcp_mesh(struct hrt_meeting *meeting, struct hrt_error *error) {
    if (meeting->size == 1) return number(meeting, error);
    if (!(meeting->rank ? mesh_as_other(meeting, error) : mesh_as_first(meeting, error)))
        return false;
    leave_the_far(meeting);
    return true;
}
