// Ranks but 0. They try until the deadline: rank 0 may come later, and a file may be of a run before. As soon as rank 0
// has been reached, its clock counts.
#include "runtime/net/tcp_meet.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/net/rendezvous.h"
#include "runtime/net/tcp_hello.h"

// Reads where rank 0 is, and its key, behind the secret.
static bool read_file(struct hrt_meeting *meeting, struct hrt_secret *secret, char host[256],
                      int *port, struct hrt_error *why) {
    struct hrt_rendezvous what;
    struct hrt_net_peer self;
    if (!hrt_net_rendezvous_read(meeting->place->file, &what, why)) return false;
    const size_t length = strlen(secret->text);
    snprintf(secret->text + length, sizeof secret->text - length, "%s", what.key);
    memcpy(host, what.host, sizeof what.host);
    *port = what.port;
    hrt_net_peer_self(&self, 0);
    if (self.boot == what.boot && meeting->tries++ % 2 == 0) memcpy(host, "127.0.0.1", 10);
    return true;
}

// A connection to rank 0. -1: not now, and why; HRT_EXIT_USAGE: never.
static int reach(struct hrt_meeting *meeting, struct hrt_secret *secret, struct hrt_error *why) {
    char host[256];
    int port = meeting->place->port;
    const char *reason;
    memcpy(host, meeting->place->host, sizeof host);
    *why = (struct hrt_error){0};
    if (!*host && !read_file(meeting, secret, host, &port, why)) return -1;
    if (!hrt_net_address_find(host, port, &meeting->first, &reason)) {
        hrt_fail(why, "%s: %s", host, reason);
        return -1;
    }
    const int fd = hrt_net_socket_connect(&meeting->first, hrt_base_now() + 5);
    if (fd < 0)
        hrt_fail(why, "%s: %s", hrt_net_address_text(&meeting->first).text, strerror(errno));
    return fd;
}

// Sets `until` to when rank 0 has told everybody. False: it is no rank 0, and why.
static bool say_hello(struct hrt_meeting *meeting, const struct hrt_secret *secret, int fd,
                      struct hrt_tcp_hello *hello, double *until, struct hrt_error *why) {
    struct hrt_tcp_challenge challenge;
    const struct hrt_address_text at = hrt_net_address_text(&meeting->first);
    const bool came = hrt_net_socket_receive(fd, &challenge, sizeof challenge, hrt_base_now() + 5);
    if (!came && errno == ETIMEDOUT)
        return hrt_fail(why, "%s: a program listens there and says nothing", at.text);
    if (!came || memcmp(challenge.magic, HRT_TCP_MAGIC, sizeof challenge.magic) != 0)
        return hrt_fail(why, "%s: another program listens there", at.text);
    const double left = 1e-3 * challenge.left_ms, most = meeting->seconds;
    *until = hrt_base_now() + (left < 0 ? 0 : left < most ? left : most) + 2;
    hrt_net_nonce(hello->nonce, HRT_NONCE);
    const struct hrt_part parts[] = {{challenge.nonce, HRT_NONCE},
                                     {hello, offsetof(struct hrt_tcp_hello, proof)}};
    return (hrt_net_prove(secret, parts, 2, hello->proof) &&
            hrt_net_socket_send(fd, hello, sizeof *hello, *until)) ||
           hrt_fail(why, "%s: %s", at.text, strerror(errno));
}

enum word {
    GO,
    OVER,  // `error`; without text where rank 0 says it.
    LEFT,  // It has closed the connection, and said nothing.
    AGAIN, // It was not reached.
};

static enum word fail_to_hear(const struct hrt_meeting *meeting, struct hrt_error *error) {
    if (errno != ETIMEDOUT) return LEFT;
    hrt_fail(error, "rank %d is with rank 0 at %s, which says nothing any more", meeting->rank,
             hrt_net_address_text(&meeting->first).text);
    return OVER;
}

// Takes rank 0's word.
static enum word hear(struct hrt_meeting *meeting, const struct hrt_secret *secret, int fd,
                      const struct hrt_tcp_hello *hello, double until, struct hrt_error *error) {
    struct hrt_tcp_verdict verdict;
    const size_t seats = (size_t)meeting->size * sizeof *meeting->seat;
    if (!hrt_net_socket_receive(fd, &verdict, sizeof verdict, until))
        return fail_to_hear(meeting, error);
    verdict.error.text[sizeof verdict.error.text - 1] = '\0';
    if (verdict.kind == HRT_TCP_REFUSED) {
        *error = verdict.error;
        return OVER;
    }
    if (verdict.kind == HRT_TCP_GO && !hrt_net_socket_receive(fd, meeting->seat, seats, until))
        return fail_to_hear(meeting, error);
    const struct hrt_part parts[] = {{hello->nonce, HRT_NONCE},
                                     {&verdict, offsetof(struct hrt_tcp_verdict, proof)}};
    const struct hrt_part all = {meeting->seat, seats};
    if (!hrt_net_proves(secret, parts, 2, verdict.proof) ||
        (verdict.kind == HRT_TCP_GO && !hrt_net_proves(secret, &all, 1, verdict.seats))) {
        hrt_fail(error, "rank %d: the process at %s is not rank 0 of this run", meeting->rank,
                 hrt_net_address_text(&meeting->first).text);
        return OVER;
    }
    meeting->job = verdict.job;
    meeting->nodes = verdict.nodes;
    meeting->deadline = hrt_base_now() + 1e-3 * verdict.left_ms;
    if (verdict.kind == HRT_TCP_GO) return GO;
    *error = verdict.error;
    *error->text = '\0'; // Rank 0 says it.
    return OVER;
}

// One attempt.
static enum word attempt(struct hrt_meeting *meeting, struct hrt_tcp_hello *hello,
                         struct hrt_error *error, struct hrt_error *why) {
    struct hrt_secret secret = meeting->secret;
    double until = 0;
    enum word word = AGAIN;
    const int fd = reach(meeting, &secret, why);
    if (fd >= 0 && say_hello(meeting, &secret, fd, hello, &until, why))
        word = hear(meeting, &secret, fd, hello, until, error);
    if (word == GO) {
        meeting->fd[0] = fd;
        meeting->secret = secret;
    } else if (fd >= 0) {
        close(fd);
    }
    return word;
}

bool hrt_net_tcp_meet(struct hrt_meeting *meeting, bool sound, struct hrt_error *error) {
    enum { TRIES = 10 }; // To find rank 0 again, which may have had no place among strangers.
    struct hrt_tcp_hello hello;
    struct hrt_error why = {0};
    int tries = 0;
    memset(&hello, 0, sizeof hello);
    memcpy(hello.magic, HRT_TCP_MAGIC, sizeof hello.magic);
    hello.rank = meeting->rank;
    hello.size = meeting->size;
    hello.port = hrt_net_socket_port(meeting->listens);
    hello.sound = sound;
    if (!sound) hello.error = *error;
    hrt_net_peer_self(&hello.peer, meeting->rank);
    for (; hrt_base_now() < meeting->deadline; hrt_net_socket_rest(0.1)) {
        struct hrt_error over = {0};
        const enum word word = attempt(meeting, &hello, &over, &why);
        if (word == GO) return true;
        if (word == OVER && *meeting->place->file && *over.text) { // An old file.
            why = over;
            continue;
        }
        const bool vain = word == AGAIN && why.code == HRT_EXIT_USAGE;
        if (word == OVER || vain) {
            *error = vain ? why : over;
            return false;
        }
        if (word == LEFT) tries = TRIES;
        if (word == LEFT) hrt_fail(&why, "it takes nobody in");
        if (word == AGAIN && tries > 0 && --tries == 0)
            return hrt_fail(error, "rank %d was with rank 0 when that ended", meeting->rank);
    }
    return hrt_fail(error,
                    "rank %d has tried for %d s to reach rank 0: %s (HECATE_COMM_JOIN=SECONDS "
                    "allows more)",
                    meeting->rank, meeting->seconds, why.text);
}
