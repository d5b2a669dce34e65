// Ranks but 0. They try until the deadline: rank 0 may come later, and a file may be of a run before.
#include "runtime/comm/tcp_meet.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "files/files.h"
#include "runtime/comm/tcp_hello.h"

// Reads where rank 0 is, and its key, behind the secret.
static bool read_file(struct hrt_meeting *meeting, struct hrt_secret *secret, char *host, int *port,
                      struct hrt_error *why) {
    const char *reason;
    char key[2 * HRT_PROOF + 1];
    unsigned long long boot;
    struct hrt_net_peer self;
    FILE *file = hf_input(meeting->place->file, false, &reason);
    if (!file) {
        hrt_fail(why, "%s: %s", meeting->place->file, reason);
        return false;
    }
    const bool read =
        fscanf(file, HRT_TCP_MAGIC " %255s %llu %d %64s", host, &boot, port, key) == 4;
    fclose(file);
    if (!read) hrt_fail(why, "%s is not what rank 0 writes", meeting->place->file);
    const size_t length = strlen(secret->text);
    if (read) snprintf(secret->text + length, sizeof secret->text - length, "%s", key);
    hrt_net_peer_self(&self, 0);
    if (read && self.boot == boot && meeting->tries++ % 2 == 0) memcpy(host, "127.0.0.1", 10);
    return read;
}

// A connection to rank 0. -1: not now, and why.
static int reach(struct hrt_meeting *meeting, struct hrt_secret *secret, struct hrt_error *why) {
    char host[256];
    int port = meeting->place->port;
    const char *reason;
    memcpy(host, meeting->place->host, sizeof host);
    if (!*host && !read_file(meeting, secret, host, &port, why)) return -1;
    if (!hrt_address_find(host, port, &meeting->first, &reason)) {
        hrt_fail(why, "%s: %s", host, reason);
        return -1;
    }
    const int fd = hrt_socket_connect(&meeting->first, hrt_socket_now() + 5);
    if (fd < 0) hrt_fail(why, "%s: %s", hrt_address_text(&meeting->first).text, strerror(errno));
    return fd;
}

static bool say_hello(struct hrt_meeting *meeting, const struct hrt_secret *secret, int fd,
                      struct hrt_tcp_hello *hello) {
    struct hrt_tcp_challenge challenge;
    if (!hrt_socket_receive(fd, &challenge, sizeof challenge, hrt_socket_now() + 5)) return false;
    if (memcmp(challenge.magic, HRT_TCP_MAGIC, sizeof challenge.magic) != 0) return false;
    hrt_nonce(hello->nonce, HRT_NONCE);
    const struct hrt_part parts[] = {{challenge.nonce, HRT_NONCE},
                                     {hello, offsetof(struct hrt_tcp_hello, proof)}};
    return hrt_prove(secret, parts, 2, hello->proof) &&
           hrt_socket_send(fd, hello, sizeof *hello, meeting->deadline);
}

// Takes rank 0's word. False: `error`, or it is not rank 0.
static bool hear(struct hrt_meeting *meeting, const struct hrt_secret *secret, int fd,
                 const struct hrt_tcp_hello *hello, struct hrt_error *error) {
    struct hrt_tcp_verdict verdict;
    const double deadline = meeting->deadline + 5; // Rank 0 tells who is missing.
    const size_t seats = (size_t)meeting->size * sizeof *meeting->seat;
    if (!hrt_socket_receive(fd, &verdict, sizeof verdict, deadline))
        return hrt_fail(error, "rank %d was with rank 0 when that ended", meeting->rank);
    verdict.error.text[sizeof verdict.error.text - 1] = '\0';
    if (verdict.kind == HRT_TCP_REFUSED) {
        *error = verdict.error;
        return false;
    }
    if (verdict.kind == HRT_TCP_GO && !hrt_socket_receive(fd, meeting->seat, seats, deadline))
        return hrt_fail(error, "rank %d was with rank 0 when that ended", meeting->rank);
    const struct hrt_part parts[] = {{hello->nonce, HRT_NONCE},
                                     {&verdict, offsetof(struct hrt_tcp_verdict, proof)},
                                     {meeting->seat, verdict.kind == HRT_TCP_GO ? seats : 0}};
    if (!hrt_proves(secret, parts, 3, verdict.proof))
        return hrt_fail(error, "rank %d: what is at %s is not rank 0 of this run", meeting->rank,
                        hrt_address_text(&meeting->first).text);
    meeting->job = verdict.job;
    meeting->nodes = verdict.nodes;
    if (verdict.kind == HRT_TCP_GO) return true;
    *error = verdict.error;
    *error->text = '\0'; // Rank 0 says it.
    return false;
}

bool hrt_tcp_meet(struct hrt_meeting *meeting, bool sound, struct hrt_error *error) {
    struct hrt_tcp_hello hello;
    struct hrt_error why = {0};
    memset(&hello, 0, sizeof hello);
    memcpy(hello.magic, HRT_TCP_MAGIC, sizeof hello.magic);
    hello.rank = meeting->rank;
    hello.size = meeting->size;
    hello.port = hrt_socket_port(meeting->listens);
    hello.sound = sound;
    if (!sound) hello.error = *error;
    hrt_net_peer_self(&hello.peer, meeting->rank);
    while (hrt_socket_now() < meeting->deadline) {
        struct hrt_secret secret = meeting->secret;
        const int fd = reach(meeting, &secret, &why);
        if (fd >= 0 && say_hello(meeting, &secret, fd, &hello)) {
            const bool met = hear(meeting, &secret, fd, &hello, error);
            meeting->fd[0] = fd;
            if (met) meeting->secret = secret;
            if (met || !*meeting->place->file || !*error->text) return met;
            why = *error;
            memset(error, 0, sizeof *error); // An old file.
        } else if (fd >= 0) {
            hrt_fail(&why, "%s: another program listens there",
                     hrt_address_text(&meeting->first).text);
        }
        if (fd >= 0) close(fd);
        meeting->fd[0] = -1;
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    }
    return hrt_fail(error,
                    "rank %d has tried for %d s to reach rank 0: %s (HECATE_COMM_JOIN=SECONDS "
                    "allows more)",
                    meeting->rank, meeting->seconds, why.text);
}
