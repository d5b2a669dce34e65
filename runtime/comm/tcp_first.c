// Rank 0, to whom all others come.
#include "runtime/comm/tcp_meet.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/files.h"
#include "runtime/comm/tcp_hello.h"

// Who has connected and not proven anything yet, or has a seat.
struct guest {
    int fd; // -1: nobody.
    bool seated;
    struct hrt_tcp_challenge challenge;
    struct hrt_tcp_hello hello;
    size_t at; // Bytes of the hello that have come.
};

enum { STRANGERS = 64 };

struct hall {
    struct hrt_meeting *meeting;
    int listens;
    int room, seated;
    struct guest *guest; // [room]
    struct pollfd *poll; // [room + 1]
    char refused[256];   // The last one that was, and why; empty: nobody.
    struct hrt_error *error;
};

// ---- where others find this rank

static bool write_file(struct hall *hall) {
    struct hrt_meeting *meeting = hall->meeting;
    const char *path = meeting->place->file, *why;
    unsigned char key[HRT_PROOF];
    char host[256] = "", hex[2 * HRT_PROOF + 1];
    struct hf_replacement file;
    struct hrt_net_peer self;
    hrt_net_peer_self(&self, 0);
    hrt_nonce(key, sizeof key);
    for (int i = 0; i < HRT_PROOF; i++) snprintf(hex + 2 * i, 3, "%02x", key[i]);
    const size_t length = strlen(meeting->secret.text);
    if (length + sizeof hex > sizeof meeting->secret.text)
        return hrt_fail_usage(hall->error, "the secret is too long");
    memcpy(meeting->secret.text + length, hex, sizeof hex);
    gethostname(host, sizeof host - 1);
    unlink(path); // Of a run before.
    if (!hf_replace_begin(&file, path, &why))
        return hrt_fail(hall->error, "cannot write %s: %s", path, why);
    const bool written =
        fchmod(fileno(file.file), 0600) == 0 && // It holds a key.
        fprintf(file.file, HRT_TCP_MAGIC " %s %llu %d %s\n", host, (unsigned long long)self.boot,
                hrt_socket_port(hall->listens), hex) > 0;
    if (hf_replace_end(&file, written, &why)) return true;
    return hrt_fail(hall->error, "cannot write %s: %s", path, why);
}

static bool listen_for_all(struct hall *hall) {
    const struct hrt_place *place = hall->meeting->place;
    const bool local =
        strcmp(place->host, "localhost") == 0 || strncmp(place->host, "127.", 4) == 0;
    struct hrt_address address;
    const char *why;
    const char *host = *place->host ? place->host : "0.0.0.0";
    if (!hrt_address_find(host, place->port, &address, &why))
        return hrt_fail(hall->error, "rank 0's address, %s: %s", host, why);
    hall->listens = hrt_socket_listen(&address, local);
    if (hall->listens < 0)
        return hrt_fail(hall->error, "rank 0 cannot listen at %s: %s",
                        hrt_address_text(&address).text, strerror(errno));
    return *place->host || write_file(hall);
}

// ---- guests

static void leave(struct guest *guest) {
    if (guest->fd >= 0) close(guest->fd);
    guest->fd = -1;
    guest->seated = false;
    guest->at = 0;
}

// Answers. Of an error of one guest nobody else needs to know.
static void answer(struct hall *hall, struct guest *guest, enum hrt_tcp_verdict_kind kind) {
    const struct hrt_meeting *meeting = hall->meeting;
    struct hrt_tcp_verdict verdict;
    const double deadline = hrt_socket_now() + 5;
    const size_t seats = kind == HRT_TCP_GO ? (size_t)meeting->size * sizeof *meeting->seat : 0;
    memset(&verdict, 0, sizeof verdict);
    memcpy(verdict.magic, HRT_TCP_MAGIC, sizeof verdict.magic);
    verdict.kind = kind;
    verdict.nodes = meeting->nodes;
    verdict.job = meeting->job;
    if (kind == HRT_TCP_NO) verdict.error = *hall->error;
    if (kind == HRT_TCP_REFUSED) {
        verdict.error.code = HRT_EXIT_FAILED;
        snprintf(verdict.error.text, sizeof verdict.error.text, "rank 0 refuses %s", hall->refused);
    }
    const struct hrt_part parts[] = {{guest->hello.nonce, HRT_NONCE},
                                     {&verdict, offsetof(struct hrt_tcp_verdict, proof)},
                                     {meeting->seat, seats}};
    hrt_prove(&meeting->secret, parts, 3, verdict.proof);
    if (hrt_socket_send(guest->fd, &verdict, sizeof verdict, deadline))
        hrt_socket_send(guest->fd, meeting->seat, seats, deadline);
}

static void refuse(struct hall *hall, struct guest *guest, const char *why) {
    const struct hrt_address from = hrt_socket_peer(guest->fd);
    snprintf(hall->refused, sizeof hall->refused, "the process at %s: %s",
             hrt_address_text(&from).text, why);
    answer(hall, guest, HRT_TCP_REFUSED);
    leave(guest);
}

static void let_in(struct hall *hall) {
    const struct hrt_meeting *meeting = hall->meeting;
    const int fd = hrt_socket_accept(hall->listens);
    if (fd < 0) return;
    struct guest *guest = hall->guest;
    while (guest < hall->guest + hall->room && guest->fd >= 0) guest++;
    if (guest == hall->guest + hall->room) { // Strangers have all places: the first of them goes.
        guest = hall->guest;
        while (guest->seated) guest++;
        leave(guest);
    }
    guest->fd = fd;
    memcpy(guest->challenge.magic, HRT_TCP_MAGIC, sizeof guest->challenge.magic);
    hrt_nonce(guest->challenge.nonce, HRT_NONCE);
    if (!hrt_socket_send(fd, &guest->challenge, sizeof guest->challenge, hrt_socket_now())) {
        leave(guest);
    } else if (!*meeting->secret.text && !hrt_socket_is_near(fd, meeting->place->subnet)) {
        refuse(hall, guest,
               "it is on another machine, and there is no secret (HECATE_SECRET, or "
               "HECATE_SECRET_FILE; or HECATE_SUBNET=NET/BITS)");
    }
}

// Gives a guest that has said who it is its seat. False: an error of all.
static bool seat(struct hall *hall, struct guest *guest) {
    struct hrt_meeting *meeting = hall->meeting;
    const struct hrt_tcp_hello *hello = &guest->hello;
    const struct hrt_part parts[] = {{guest->challenge.nonce, HRT_NONCE},
                                     {hello, offsetof(struct hrt_tcp_hello, proof)}};
    if (memcmp(hello->magic, HRT_TCP_MAGIC, sizeof hello->magic) != 0) {
        leave(guest);
        return true;
    }
    if (!hrt_proves(&meeting->secret, parts, 2, hello->proof)) {
        refuse(hall, guest, "it has another secret");
        return true;
    }
    const int rank = hello->rank;
    guest->hello.peer.host[sizeof guest->hello.peer.host - 1] = '\0';
    guest->hello.error.text[sizeof guest->hello.error.text - 1] = '\0';
    guest->seated = true; // Whatever comes of it, it hears.
    if (hello->size != meeting->size)
        return hrt_fail_usage(
            hall->error, "rank %d (process %lld on %s) is one of %d ranks, rank 0 one of %d", rank,
            (long long)hello->peer.process, hello->peer.host, hello->size, meeting->size);
    if (rank < 0 || rank >= meeting->size) {
        refuse(hall, guest, "it has a number that no rank has");
        return true;
    }
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
    place->address = hrt_socket_peer(guest->fd);
    hrt_address_set_port(&place->address, hello->port);
    meeting->fd[rank] = guest->fd;
    hall->seated++;
    return true;
}

// Something has come from a guest. False: an error of all.
static bool listen_to(struct hall *hall, struct guest *guest) {
    char *to = (char *)&guest->hello + guest->at;
    const size_t left = sizeof guest->hello - guest->at;
    const ssize_t came = recv(guest->fd, to, guest->seated ? 0 : left, 0);
    if (guest->seated)
        return hrt_fail(
            hall->error, "rank %d (process %lld on %s) has ended before all ranks had come",
            guest->hello.rank, (long long)guest->hello.peer.process, guest->hello.peer.host);
    if (came < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (came <= 0) leave(guest);
    if (came <= 0) return true;
    guest->at += (size_t)came;
    return guest->at < sizeof guest->hello || seat(hall, guest);
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
                    "%s %s%s not come within %d s (HECATE_COMM_JOIN=SECONDS allows more)%s%s",
                    missing == 1 ? "rank" : "ranks", list,
                    missing > 16   ? " and more have"
                    : missing == 1 ? " has"
                                   : " have",
                    meeting->seconds, *hall->refused ? "; refused: " : "", hall->refused);
}

static bool wait_for_all(struct hall *hall) {
    const struct hrt_meeting *meeting = hall->meeting;
    while (hall->seated < meeting->size - 1) {
        const double left = meeting->deadline - hrt_socket_now();
        if (left <= 0) return tell_who_is_missing(hall);
        for (int i = 0; i < hall->room; i++)
            hall->poll[i] = (struct pollfd){.fd = hall->guest[i].fd, .events = POLLIN};
        hall->poll[hall->room] = (struct pollfd){.fd = hall->listens, .events = POLLIN};
        if (poll(hall->poll, (nfds_t)hall->room + 1, (int)(1000 * left) + 1) <= 0) continue;
        for (int i = 0; i < hall->room; i++) {
            if (hall->poll[i].revents && !listen_to(hall, &hall->guest[i])) return false;
        }
        if (hall->poll[hall->room].revents) let_in(hall);
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
        sound = hrt_topology_read(meeting->topology, meeting->size, node_of, &nodes, hall->error);
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

bool hrt_tcp_meet_as_first(struct hrt_meeting *meeting, bool sound, struct hrt_error *error) {
    struct hall hall = {.meeting = meeting, .listens = -1, .error = error};
    const struct hrt_place *place = meeting->place;
    hall.room = meeting->size + STRANGERS;
    hall.guest = calloc((size_t)hall.room, sizeof *hall.guest);
    hall.poll = calloc((size_t)hall.room + 1, sizeof *hall.poll);
    for (int i = 0; hall.guest && i < hall.room; i++) hall.guest[i].fd = -1;
    hrt_net_peer_self(&meeting->seat[0].peer, 0);
    bool met = (hall.guest && hall.poll) || hrt_fail(error, "out of memory");
    const struct hrt_error own = *error; // Where it is not sound.
    const bool listens = met && (meeting->size == 1 || listen_for_all(&hall));
    met = listens && wait_for_all(&hall) && find_nodes(&hall);
    if (met && !sound) *error = own, met = false;
    hrt_nonce(&meeting->job, sizeof meeting->job);
    for (int i = 0; hall.guest && i < hall.room; i++) {
        if (hall.guest[i].seated) answer(&hall, &hall.guest[i], met ? HRT_TCP_GO : HRT_TCP_NO);
        if (hall.guest[i].fd >= 0 && !hall.guest[i].seated) leave(&hall.guest[i]);
    }
    if (hall.listens >= 0) close(hall.listens);
    if (listens && *place->file) unlink(place->file);
    free(hall.guest);
    free(hall.poll);
    return met;
}
