// Connections between all ranks but rank 0, which has them already. Each connects to those before it and waits for
// those behind it; then all tell rank 0 how it went.
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/comm/tcp_hello.h"

// The first words of a rank to another one.
struct greeting {
    char magic[8];
    uint64_t job;
    int32_t from, to;
    unsigned char proof[HRT_PROOF];
};

static bool proof_of(const struct hrt_meeting *meeting, struct greeting *greeting, bool check) {
    const struct hrt_part part = {greeting, offsetof(struct greeting, proof)};
    return check ? hrt_proves(&meeting->secret, &part, 1, greeting->proof)
                 : hrt_prove(&meeting->secret, &part, 1, greeting->proof);
}

// Where a rank is, as this one sees it: rank 0 may have seen one of its own machine at its loopback.
static struct hrt_address address_of(const struct hrt_meeting *meeting, int rank) {
    struct hrt_address address = meeting->seat[rank].address;
    const int port = hrt_address_port(&address);
    if (hrt_address_is_loopback(&address)) address = meeting->first;
    hrt_address_set_port(&address, port);
    return address;
}

static bool connect_to(struct hrt_meeting *meeting, int rank, struct hrt_error *error) {
    const struct hrt_address address = address_of(meeting, rank);
    struct greeting greeting;
    memset(&greeting, 0, sizeof greeting);
    memcpy(greeting.magic, HRT_TCP_MAGIC, sizeof greeting.magic);
    greeting.job = meeting->job;
    greeting.from = meeting->rank;
    greeting.to = rank;
    meeting->fd[rank] = hrt_socket_connect(&address, meeting->deadline);
    if (meeting->fd[rank] >= 0 && proof_of(meeting, &greeting, false) &&
        hrt_socket_send(meeting->fd[rank], &greeting, sizeof greeting, meeting->deadline))
        return true;
    const struct hrt_net_peer *peer = &meeting->seat[rank].peer;
    return hrt_fail(error, "rank %d cannot reach rank %d (process %lld on %s) at %s: %s",
                    meeting->rank, rank, (long long)peer->process, peer->host,
                    hrt_address_text(&address).text, strerror(errno));
}

// Takes one connection. True: it is that of a rank behind this one. Others are not answered.
static bool take_in(struct hrt_meeting *meeting) {
    struct greeting greeting;
    const int fd = hrt_socket_accept(meeting->listens);
    if (fd < 0) return false;
    if (hrt_socket_receive(fd, &greeting, sizeof greeting, hrt_socket_now() + 2) &&
        memcmp(greeting.magic, HRT_TCP_MAGIC, sizeof greeting.magic) == 0 &&
        greeting.job == meeting->job && greeting.to == meeting->rank &&
        greeting.from > meeting->rank && greeting.from < meeting->size &&
        meeting->fd[greeting.from] < 0 && proof_of(meeting, &greeting, true)) {
        meeting->fd[greeting.from] = fd;
        return true;
    }
    close(fd);
    return false;
}

// Waits for those behind this rank, or until rank 0 says that it is over.
static bool wait_for_others(struct hrt_meeting *meeting, struct hrt_error *error) {
    int missing = meeting->size - 1 - meeting->rank;
    while (missing > 0) {
        struct pollfd wait[2] = {{.fd = meeting->listens, .events = POLLIN},
                                 {.fd = meeting->fd[0], .events = POLLIN}};
        const double left = meeting->deadline - hrt_socket_now();
        if (left <= 0)
            return hrt_fail(error, "rank %d has waited %d s for %d other ranks to reach it",
                            meeting->rank, meeting->seconds, missing);
        if (poll(wait, 2, (int)(1000 * left) + 1) <= 0) continue;
        if (wait[1].revents) return true; // Rank 0 has heard of an error.
        if (wait[0].revents) missing -= take_in(meeting);
    }
    return true;
}

// What a rank tells rank 0, and what that tells all.
struct outcome {
    int32_t sound;
    struct hrt_error error;
};

// Rank 0 hears from all ranks; `wait` [size] is scratch. Ends as soon as one has failed.
static void gather(const struct hrt_meeting *meeting, struct pollfd *wait, struct outcome *all) {
    for (int r = 0; r < meeting->size; r++)
        wait[r] = (struct pollfd){.fd = r ? meeting->fd[r] : -1, .events = POLLIN};
    for (int left = meeting->size - 1; left > 0 && all->sound;) {
        const double seconds = meeting->deadline + 2 - hrt_socket_now();
        if (seconds <= 0) all->sound = hrt_fail(&all->error, "ranks do not reach each other");
        if (poll(wait, (nfds_t)meeting->size, 100) <= 0) continue;
        for (int r = 1; r < meeting->size && all->sound; r++) {
            if (!wait[r].revents) continue;
            const struct hrt_net_peer *peer = &meeting->seat[r].peer;
            if (!hrt_socket_receive(wait[r].fd, all, sizeof *all, hrt_socket_now() + 5))
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
        hrt_socket_send(meeting->fd[r], &all, sizeof all, hrt_socket_now() + 5);
    if (!all.sound) *error = all.error;
    return all.sound;
}

bool hrt_tcp_mesh(struct hrt_meeting *meeting, struct hrt_error *error) {
    struct outcome outcome;
    if (meeting->rank == 0) return mesh_as_first(meeting, error);
    memset(&outcome, 0, sizeof outcome);
    outcome.sound = true;
    for (int r = 1; r < meeting->rank && outcome.sound; r++)
        outcome.sound = connect_to(meeting, r, &outcome.error);
    outcome.sound = outcome.sound && wait_for_others(meeting, &outcome.error);
    const double deadline = meeting->deadline + 5;
    if (!hrt_socket_send(meeting->fd[0], &outcome, sizeof outcome, deadline) ||
        !hrt_socket_receive(meeting->fd[0], &outcome, sizeof outcome, deadline))
        return hrt_fail(error, "rank %d was with rank 0 when that ended", meeting->rank);
    error->code = outcome.error.code; // Rank 0 says it.
    return outcome.sound;
}
