// Connections between all ranks but rank 0, which has them already. Each connects to those before it, one after the
// other and as often as it takes, and at the same time takes in those behind it; then all tell rank 0 how it went.
// Nothing blocks: one loop waits for all of it, and for rank 0's word that it is over.
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/net/door.h"
#include "runtime/net/tcp_hello.h"

// The first words of a rank to another one, which answers with its magic.
struct greeting {
    char magic[8];
    uint64_t job;
    int32_t from, to;
    unsigned char proof[HRT_PROOF];
};

struct mesh {
    struct hrt_meeting *meeting;
    double
        reserve; // Seconds ahead of rank 0's deadline at which this one gives up, so that it hears why.
    struct hrt_door *door;
    int missing; // Ranks behind this one that have not connected.

    int next;     // The rank to connect to.
    int fd;       // On its way there; -1: not now.
    bool greeted; // It waits for the answer.
    double again; // When to try again.
    int error;    // The error of the last try.
};

static bool proof_of(const struct hrt_meeting *meeting, struct greeting *greeting, bool check) {
    const struct hrt_part part = {greeting, offsetof(struct greeting, proof)};
    return check ? hrt_net_proves(&meeting->secret, &part, 1, greeting->proof)
                 : hrt_net_prove(&meeting->secret, &part, 1, greeting->proof);
}

// Where a rank is, as this one sees it: rank 0 may have seen one of its own machine at its loopback.
static struct hrt_address address_of(const struct hrt_meeting *meeting, int rank) {
    struct hrt_address address = meeting->seat[rank].address;
    const int port = hrt_net_address_port(&address);
    if (hrt_net_address_is_loopback(&address)) address = meeting->first;
    hrt_net_address_set_port(&address, port);
    return address;
}

// ---- to those before this rank

static void try_again(struct mesh *mesh, int error) {
    if (mesh->fd >= 0) close(mesh->fd);
    mesh->fd = -1;
    mesh->error = error;
    mesh->again = hrt_base_now() + 0.1;
}

static bool greet(struct mesh *mesh) {
    struct greeting greeting;
    memset(&greeting, 0, sizeof greeting);
    memcpy(greeting.magic, HRT_TCP_MAGIC, sizeof greeting.magic);
    greeting.job = mesh->meeting->job;
    greeting.from = mesh->meeting->rank;
    greeting.to = mesh->next;
    return proof_of(mesh->meeting, &greeting, false) &&
           hrt_net_socket_send(mesh->fd, &greeting, sizeof greeting, hrt_base_now());
}

// The answer is so short that it comes whole.
static bool hear_answer(struct mesh *mesh) {
    char magic[8];
    errno = ECONNRESET; // For a connection that ends without a word.
    if (recv(mesh->fd, magic, sizeof magic, 0) != sizeof magic) return false;
    errno = EPROTO;
    return memcmp(magic, HRT_TCP_MAGIC, sizeof magic) == 0;
}

// Something has happened to the connection that is on its way.
static void go_on(struct mesh *mesh) {
    if (!mesh->greeted) {
        mesh->greeted = hrt_net_socket_connected(mesh->fd) && greet(mesh);
        if (!mesh->greeted) try_again(mesh, errno);
    } else if (hear_answer(mesh)) {
        mesh->meeting->fd[mesh->next++] = mesh->fd;
        mesh->fd = -1;
        mesh->again = 0;
    } else {
        try_again(mesh, errno);
    }
}

static void begin(struct mesh *mesh) {
    const struct hrt_address address = address_of(mesh->meeting, mesh->next);
    mesh->greeted = false;
    mesh->fd = hrt_net_socket_begin_connect(&address);
    if (mesh->fd < 0) try_again(mesh, errno);
}

// ---- from those behind it

static bool is_of_job(const struct hrt_meeting *meeting, struct greeting *greeting) {
    return memcmp(greeting->magic, HRT_TCP_MAGIC, sizeof greeting->magic) == 0 &&
           greeting->job == meeting->job && greeting->to == meeting->rank &&
           greeting->from > meeting->rank && greeting->from < meeting->size &&
           proof_of(meeting, greeting, true);
}

// One that comes again has not heard the answer.
static void take_in(struct mesh *mesh) {
    struct hrt_meeting *meeting = mesh->meeting;
    struct hrt_visitor visitor;
    while (mesh->missing > 0 && hrt_net_door_next(mesh->door, &visitor)) {
        struct greeting greeting;
        memcpy(&greeting, visitor.said, sizeof greeting);
        if (!is_of_job(meeting, &greeting)) {
            hrt_net_door_turn_away(mesh->door, visitor.fd);
            continue;
        }
        int *place = &meeting->fd[greeting.from];
        if (*place >= 0) close(*place);
        mesh->missing -= *place < 0;
        *place = visitor.fd;
        hrt_net_socket_send(visitor.fd, HRT_TCP_MAGIC, 8, hrt_base_now());
    }
}

// ---- all of it

static bool tell_who_is_missing(const struct mesh *mesh, struct hrt_error *error) {
    const struct hrt_meeting *meeting = mesh->meeting;
    const bool reaches = mesh->next == meeting->rank;
    int other = reaches ? meeting->rank + 1 : mesh->next;
    while (reaches && meeting->fd[other] >= 0) other++;
    const struct hrt_net_peer *peer = &meeting->seat[other].peer;
    const struct hrt_address address = address_of(meeting, other);
    char rank[128], more[32] = " has";
    snprintf(rank, sizeof rank, "rank %d (process %lld on %s)", other, (long long)peer->process,
             peer->host);
    if (mesh->missing > 1) snprintf(more, sizeof more, " and %d more have", mesh->missing - 1);
    if (reaches)
        return hrt_fail(error,
                        "%s%s not reached rank %d within %d s (HECATE_COMM_JOIN=SECONDS allows "
                        "more)%s",
                        rank, more, meeting->rank, meeting->seconds,
                        hrt_net_door_silence(mesh->door).text);
    return hrt_fail(error,
                    "rank %d cannot reach %s at %s: %s (tried for %d s; HECATE_COMM_JOIN=SECONDS "
                    "allows more)",
                    meeting->rank, rank, hrt_net_address_text(&address).text,
                    strerror(mesh->error ? mesh->error : ETIMEDOUT), meeting->seconds);
}

// A rank that cannot connect reports that before the ranks that only wait for it give up.
static bool is_over(const struct mesh *mesh) {
    const struct hrt_meeting *meeting = mesh->meeting;
    const double ahead = mesh->next < meeting->rank ? mesh->reserve : mesh->reserve / 2;
    return hrt_base_now() > meeting->deadline - ahead;
}

static bool connect_all(struct mesh *mesh, struct hrt_error *error) {
    const struct hrt_meeting *meeting = mesh->meeting;
    while (mesh->missing > 0 || mesh->next < meeting->rank) {
        if (is_over(mesh)) return tell_who_is_missing(mesh, error);
        const bool connects = mesh->next < meeting->rank && mesh->fd < 0;
        if (connects && hrt_base_now() >= mesh->again) begin(mesh);
        struct pollfd wait[3] = {
            {.fd = meeting->fd[0], .events = POLLIN},
            {.fd = hrt_net_door_descriptor(mesh->door), .events = POLLIN},
            {.fd = mesh->fd, .events = mesh->greeted ? POLLIN : POLLOUT},
        };
        if (poll(wait, 3, 100) < 0) continue;
        if (wait[0].revents) return true; // Rank 0 has heard of an error.
        if (wait[2].revents) go_on(mesh);
        take_in(mesh);
    }
    return true;
}

static bool connect_others(struct hrt_meeting *meeting, struct hrt_error *error) {
    const double left = meeting->deadline - hrt_base_now();
    struct mesh mesh = {.meeting = meeting,
                        .reserve = left < 5 ? left / 5 : 1,
                        .missing = meeting->size - 1 - meeting->rank,
                        .next = 1,
                        .fd = -1};
    mesh.door = hrt_net_door_open(meeting->listens, sizeof(struct greeting), NULL, NULL);
    if (!mesh.door) return hrt_fail(error, "out of memory");
    const bool sound = connect_all(&mesh, error);
    if (mesh.fd >= 0) close(mesh.fd);
    hrt_net_door_close(mesh.door);
    return sound;
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
    memset(&all, 0, sizeof all);
    struct pollfd *wait = calloc((size_t)meeting->size, sizeof *wait);
    all.sound = wait || hrt_fail(&all.error, "out of memory");
    gather(meeting, wait, &all);
    free(wait);
    for (int r = 1; r < meeting->size; r++)
        hrt_net_socket_send(meeting->fd[r], &all, sizeof all, hrt_base_now() + 1);
    if (!all.sound) *error = all.error;
    return all.sound;
}

bool hrt_net_tcp_mesh(struct hrt_meeting *meeting, struct hrt_error *error) {
    struct outcome outcome;
    if (meeting->rank == 0) return mesh_as_first(meeting, error);
    memset(&outcome, 0, sizeof outcome);
    outcome.sound = connect_others(meeting, &outcome.error);
    const double deadline = meeting->deadline + 2;
    if (!hrt_net_socket_send(meeting->fd[0], &outcome, sizeof outcome, deadline) ||
        !hrt_net_socket_receive(meeting->fd[0], &outcome, sizeof outcome, deadline))
        return hrt_fail(error, "rank %d was with rank 0 when that ended", meeting->rank);
    error->code = outcome.error.code; // Rank 0 says it.
    return outcome.sound;
}
