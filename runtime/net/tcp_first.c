// Rank 0, to whom all others come.
#include "runtime/net/tcp_meet.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/net/door.h"
#include "runtime/net/rendezvous.h"
#include "runtime/net/tcp_hello.h"

// A rank that has proven that it may join, and waits for the verdict.
struct seated {
    int fd;
    struct hrt_tcp_hello hello;
};

struct hall {
    struct hrt_meeting *meeting;
    int listens;
    struct hrt_rendezvous_file file;
    struct hrt_door *door;
    struct seated *seated; // [size] The last place is for one too many, because of whom all end.
    int count;
    struct pollfd *poll;            // [size + 1]
    char refused[256];              // The last one that was, and why; empty: nobody.
    unsigned char seats[HRT_PROOF]; // The proof of all seats.
    struct hrt_error *error;
};

// ---- where others find this rank

static bool write_file(struct hall *hall) {
    struct hrt_meeting *meeting = hall->meeting;
    const bool here = meeting->place->world.here;
    unsigned char key[HRT_PROOF];
    struct hrt_rendezvous what = {.port = hrt_net_socket_port(hall->listens), .host = "127.0.0.1"};
    struct hrt_net_peer self;
    hrt_net_peer_self(&self, 0);
    what.boot = self.boot;
    if (!here) gethostname(what.host, sizeof what.host - 1);
    hrt_net_nonce(key, sizeof key);
    for (int i = 0; i < HRT_PROOF; i++) snprintf(what.key + 2 * i, 3, "%02x", key[i]);
    const size_t length = strlen(meeting->secret.text);
    if (length + sizeof what.key > sizeof meeting->secret.text)
        return hrt_fail_usage(hall->error, "the secret is too long");
    memcpy(meeting->secret.text + length, what.key, sizeof what.key);
    return hrt_net_rendezvous_write(&hall->file, meeting->place->file, &what, hall->error);
}

static bool listen_for_all(struct hall *hall) {
    const struct hrt_place *place = hall->meeting->place;
    struct hrt_address address;
    const char *why;
    const char *host = *place->host ? place->host : "0.0.0.0";
    if (!hrt_net_address_find(host, place->port, &address, &why))
        return hrt_fail(hall->error, "rank 0's address, %s: %s", host, why);
    hall->listens = hrt_net_socket_listen(&address, hrt_net_place_is_local(place));
    if (hall->listens < 0)
        return hrt_fail(hall->error, "rank 0 cannot listen at %s: %s",
                        hrt_net_address_text(&address).text, strerror(errno));
    return *place->host || write_file(hall);
}

// ---- guests

static int32_t left_ms(double deadline) {
    const double left = deadline - hrt_base_now();
    return left > 0 ? (int32_t)(1000 * left) : 0;
}

// Sends a verdict. An error in sending concerns this guest alone.
static void answer(struct hall *hall, int fd, const struct hrt_tcp_hello *hello,
                   enum hrt_tcp_verdict_kind kind) {
    const struct hrt_meeting *meeting = hall->meeting;
    struct hrt_tcp_verdict verdict;
    const double deadline = kind == HRT_TCP_GO ? meeting->deadline : hrt_base_now() + 1;
    const size_t seats = kind == HRT_TCP_GO ? (size_t)meeting->size * sizeof *meeting->seat : 0;
    memset(&verdict, 0, sizeof verdict);
    memcpy(verdict.magic, HRT_TCP_MAGIC, sizeof verdict.magic);
    verdict.kind = kind;
    verdict.nodes = meeting->nodes;
    verdict.left_ms = left_ms(meeting->deadline);
    verdict.job = meeting->job;
    if (kind == HRT_TCP_NO) verdict.error = *hall->error;
    if (kind == HRT_TCP_REFUSED) {
        verdict.error.code = HRT_EXIT_FAILED;
        snprintf(verdict.error.text, sizeof verdict.error.text, "rank 0 refuses %s", hall->refused);
    }
    memcpy(verdict.seats, hall->seats, sizeof verdict.seats);
    const struct hrt_part parts[] = {{hello->nonce, HRT_NONCE},
                                     {&verdict, offsetof(struct hrt_tcp_verdict, proof)}};
    hrt_net_prove(&meeting->secret, parts, 2, verdict.proof);
    if (hrt_net_socket_send(fd, &verdict, sizeof verdict, deadline))
        hrt_net_socket_send(fd, meeting->seat, seats, deadline);
}

static void refuse(struct hall *hall, int fd, const struct hrt_tcp_hello *hello, const char *why) {
    const struct hrt_address from = hrt_net_socket_peer(fd);
    snprintf(hall->refused, sizeof hall->refused, "the process at %s: %s",
             hrt_net_address_text(&from).text, why);
    answer(hall, fd, hello, HRT_TCP_REFUSED);
    close(fd);
}

// hrt_door_welcome.
static bool welcome(void *context, int fd, unsigned char nonce[HRT_NONCE]) {
    const struct hall *hall = context;
    struct hrt_tcp_challenge challenge;
    memset(&challenge, 0, sizeof challenge);
    memcpy(challenge.magic, HRT_TCP_MAGIC, sizeof challenge.magic);
    hrt_net_nonce(nonce, HRT_NONCE);
    memcpy(challenge.nonce, nonce, HRT_NONCE);
    challenge.left_ms = left_ms(hall->meeting->deadline);
    return hrt_net_socket_send(fd, &challenge, sizeof challenge, hrt_base_now());
}

// Why a process may not join; NULL: it may.
static const char *objection(const struct hrt_meeting *meeting, const struct hrt_visitor *visitor,
                             const struct hrt_tcp_hello *hello) {
    const struct hrt_part parts[] = {{visitor->nonce, HRT_NONCE},
                                     {hello, offsetof(struct hrt_tcp_hello, proof)}};
    if (!*meeting->secret.text && !hrt_net_socket_is_near(visitor->fd, meeting->place->subnet))
        return "it is on another machine, and there is no secret (HECATE_SECRET, or "
               "HECATE_SECRET_FILE; or HECATE_SUBNET=NET/BITS)";
    if (!hrt_net_proves(&meeting->secret, parts, 2, hello->proof)) return "it has another secret";
    if (hello->rank < 0 || hello->rank >= hello->size) return "it has a number that no rank has";
    return NULL;
}

// Whether it may take a seat; else its connection is closed.
static bool is_rank(struct hall *hall, const struct hrt_visitor *visitor,
                    const struct hrt_tcp_hello *hello) {
    if (memcmp(hello->magic, HRT_TCP_MAGIC, sizeof hello->magic) != 0) {
        hrt_net_door_turn_away(hall->door, visitor->fd);
        return false;
    }
    const char *why = objection(hall->meeting, visitor, hello);
    if (why) refuse(hall, visitor->fd, hello, why);
    return !why;
}

// Gives a rank its seat. False: an error of all.
static bool seat(struct hall *hall, int fd, const struct hrt_tcp_hello *hello) {
    struct hrt_meeting *meeting = hall->meeting;
    const int rank = hello->rank;
    struct seated *seated = &hall->seated[hall->count++];
    *seated = (struct seated){.fd = fd, .hello = *hello};
    if (hello->size != meeting->size)
        return hrt_fail_usage(
            hall->error, "rank %d (process %lld on %s) is one of %d ranks, rank 0 one of %d", rank,
            (long long)hello->peer.process, hello->peer.host, hello->size, meeting->size);
    struct hrt_seat *place = &meeting->seat[rank];
    if (rank == 0 || meeting->fd[rank] >= 0)
        return hrt_fail_usage(hall->error,
                              "rank %d is there twice: process %lld on %s, and process %lld on %s",
                              rank, (long long)place->peer.process, place->peer.host,
                              (long long)hello->peer.process, hello->peer.host);
    if (!hello->sound) {
        *hall->error = hello->error;
        return false;
    }
    place->peer = hello->peer;
    place->address = hrt_net_socket_peer(fd);
    hrt_net_address_set_port(&place->address, hello->port);
    meeting->fd[rank] = fd;
    return true;
}

// Seats ranks that have said hello. False: an error of all.
static bool let_in(struct hall *hall) {
    struct hrt_visitor visitor;
    while (hall->count < hall->meeting->size - 1 && hrt_net_door_next(hall->door, &visitor)) {
        struct hrt_tcp_hello hello;
        memcpy(&hello, visitor.said, sizeof hello);
        hello.peer.host[sizeof hello.peer.host - 1] = '\0';
        hello.error.text[sizeof hello.error.text - 1] = '\0';
        if (is_rank(hall, &visitor, &hello) && !seat(hall, visitor.fd, &hello)) return false;
    }
    return true;
}

// A seated rank sends nothing until all have a seat. False: it has gone.
static bool check_seated(struct hall *hall) {
    for (int i = 0; i < hall->count; i++) {
        const struct hrt_tcp_hello *hello = &hall->seated[i].hello;
        if (hall->poll[i].revents)
            return hrt_fail(hall->error,
                            "rank %d (process %lld on %s) has ended before all ranks had come",
                            hello->rank, (long long)hello->peer.process, hello->peer.host);
    }
    return true;
}

static bool tell_who_is_missing(struct hall *hall) {
    const struct hrt_meeting *meeting = hall->meeting;
    char list[256] = "";
    int missing = 0;
    for (int r = 1; r < meeting->size; r++) {
        if (meeting->fd[r] >= 0) continue;
        const size_t length = strlen(list);
        if (missing++ < 16)
            snprintf(list + length, sizeof list - length, "%s%d", length ? ", " : "", r);
    }
    return hrt_fail(hall->error,
                    "%s %s%s not come within %d s (HECATE_COMM_JOIN=SECONDS allows more)%s%s%s",
                    missing == 1 ? "rank" : "ranks", list,
                    missing > 16   ? " and more have"
                    : missing == 1 ? " has"
                                   : " have",
                    meeting->seconds, *hall->refused ? "; refused: " : "", hall->refused,
                    hrt_net_door_silence(hall->door).text);
}

static bool wait_for_all(struct hall *hall) {
    const struct hrt_meeting *meeting = hall->meeting;
    while (hall->count < meeting->size - 1) {
        const int32_t left = left_ms(meeting->deadline);
        if (left == 0) return tell_who_is_missing(hall);
        for (int i = 0; i < hall->count; i++)
            hall->poll[i] = (struct pollfd){.fd = hall->seated[i].fd, .events = POLLIN};
        hall->poll[hall->count] =
            (struct pollfd){.fd = hrt_net_door_descriptor(hall->door), .events = POLLIN};
        if (poll(hall->poll, (nfds_t)hall->count + 1, left < 1000 ? left : 1000) < 0) continue;
        if (!check_seated(hall) || !let_in(hall)) return false;
    }
    return true;
}

// ---- nodes

// Those of one machine, in the order of their first ranks; or what the topology says.
static bool find_nodes(struct hall *hall) {
    struct hrt_meeting *meeting = hall->meeting;
    int32_t *node_of = calloc((size_t)meeting->size, sizeof *node_of);
    int nodes = 0;
    bool sound = node_of || hrt_fail(hall->error, "out of memory");
    if (sound && meeting->topology)
        sound =
            hrt_base_topology_read(meeting->topology, meeting->size, node_of, &nodes, hall->error);
    for (int r = 0; r < meeting->size && sound && !meeting->topology; r++) {
        int first = 0;
        while (!hrt_net_same_machine(&meeting->seat[first].peer, &meeting->seat[r].peer)) first++;
        node_of[r] = first == r ? nodes++ : node_of[first];
    }
    for (int r = 0; r < meeting->size && sound; r++) meeting->seat[r].node = node_of[r];
    meeting->nodes = nodes;
    free(node_of);
    return sound;
}

static bool open_hall(struct hall *hall) {
    const size_t size = (size_t)hall->meeting->size;
    hall->seated = calloc(size, sizeof *hall->seated);
    hall->poll = calloc(size + 1, sizeof *hall->poll);
    if (!hall->seated || !hall->poll) return hrt_fail(hall->error, "out of memory");
    if (size == 1) return true;
    if (!listen_for_all(hall)) return false;
    hall->door = hrt_net_door_open(hall->listens, sizeof(struct hrt_tcp_hello), welcome, hall);
    return hall->door || hrt_fail(hall->error, "out of memory");
}

static void close_hall(struct hall *hall) {
    hrt_net_door_close(hall->door);
    if (hall->listens >= 0) close(hall->listens);
    hrt_net_rendezvous_remove(&hall->file);
    free(hall->seated);
    free(hall->poll);
}

bool hrt_net_tcp_meet_as_first(struct hrt_meeting *meeting, bool sound, struct hrt_error *error) {
    struct hall hall = {.meeting = meeting, .listens = -1, .error = error};
    hrt_net_peer_self(&meeting->seat[0].peer, 0);
    const struct hrt_error own = *error; // Where it is not sound.
    bool met = open_hall(&hall) && wait_for_all(&hall) && find_nodes(&hall);
    if (met && !sound) *error = own, met = false;
    hrt_net_nonce(&meeting->job, sizeof meeting->job);
    const struct hrt_part seats = {meeting->seat, (size_t)meeting->size * sizeof *meeting->seat};
    hrt_net_prove(&meeting->secret, &seats, 1, hall.seats);
    // Answering takes a moment, even if no time is left.
    const double least = hrt_base_now() + 1;
    if (meeting->deadline < least) meeting->deadline = least;
    for (int i = 0; i < hall.count; i++)
        answer(&hall, hall.seated[i].fd, &hall.seated[i].hello, met ? HRT_TCP_GO : HRT_TCP_NO);
    close_hall(&hall);
    return met;
}
