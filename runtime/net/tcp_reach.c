#include "runtime/net/tcp_reach.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/net/tcp_hello.h"

// The first words of a rank to another one, which answers with its magic.
struct greeting {
    char magic[8];
    uint64_t job;
    int32_t from, to;
    unsigned char proof[HRT_PROOF];
};

// A connection that is on its way.
struct attempt {
    struct attempt *next;
    int rank, fd; // -1: not now.
    bool greeted; // It waits for the answer.
    double again; // When to try again,
    double until; // and when for the last time.
    int error;    // The error of the last try.
};

struct hrt_reach {
    struct hrt_meeting meeting;
    bool keeps; // The meeting's seats and port.
    struct hrt_door *door;
    int poll; // With the door's descriptor, and those of attempts.
    struct attempt *attempts;
    hrt_reached_fn *reached;
    void *context;
};

static bool proof_of(const struct hrt_reach *reach, struct greeting *greeting, bool check) {
    const struct hrt_part part = {greeting, offsetof(struct greeting, proof)};
    return check ? hrt_net_proves(&reach->meeting.secret, &part, 1, greeting->proof)
                 : hrt_net_prove(&reach->meeting.secret, &part, 1, greeting->proof);
}

// Rank 0 may have seen a rank of its own machine, or itself, at its loopback.
struct hrt_address hrt_net_reach_address(const struct hrt_reach *reach, int rank) {
    const struct hrt_meeting *meeting = &reach->meeting;
    struct hrt_address address = meeting->seat[rank].address;
    const int port = hrt_net_address_port(&address);
    if (meeting->rank > 0 && hrt_net_address_is_loopback(&address)) address = meeting->first;
    hrt_net_address_set_port(&address, port);
    return address;
}

// ---- to others

static void try_again(struct attempt *attempt, int error) {
    if (attempt->fd >= 0) close(attempt->fd);
    attempt->fd = -1;
    attempt->error = error;
    attempt->again = hrt_base_now() + 0.1;
}

static bool greet(const struct hrt_reach *reach, const struct attempt *attempt) {
    struct greeting greeting;
    memset(&greeting, 0, sizeof greeting);
    memcpy(greeting.magic, HRT_TCP_MAGIC, sizeof greeting.magic);
    greeting.job = reach->meeting.job;
    greeting.from = reach->meeting.rank;
    greeting.to = attempt->rank;
    return proof_of(reach, &greeting, false) &&
           hrt_net_socket_send(attempt->fd, &greeting, sizeof greeting, hrt_base_now());
}

// The answer is so short that it comes whole.
static bool hear_answer(const struct attempt *attempt) {
    char magic[8];
    errno = ECONNRESET; // For a connection that ends without a word.
    if (recv(attempt->fd, magic, sizeof magic, 0) != sizeof magic) return false;
    errno = EPROTO;
    return memcmp(magic, HRT_TCP_MAGIC, sizeof magic) == 0;
}

static void watch(const struct hrt_reach *reach, int how, int fd, uint32_t events) {
    struct epoll_event event = {.events = events};
    epoll_ctl(reach->poll, how, fd, &event);
}

static void begin(const struct hrt_reach *reach, struct attempt *attempt) {
    const struct hrt_address address = hrt_net_reach_address(reach, attempt->rank);
    attempt->greeted = false;
    attempt->fd = hrt_net_socket_begin_connect(&address);
    if (attempt->fd < 0) try_again(attempt, errno);
    if (attempt->fd >= 0) watch(reach, EPOLL_CTL_ADD, attempt->fd, EPOLLOUT);
}

// True: it is over, with a connection or without.
static bool go_on(const struct hrt_reach *reach, struct attempt *attempt) {
    struct pollfd way = {.fd = attempt->fd, .events = attempt->greeted ? POLLIN : POLLOUT};
    const double now = hrt_base_now();
    if (attempt->fd < 0 && now > attempt->until) return true;
    if (attempt->fd < 0 && now >= attempt->again) begin(reach, attempt);
    if (attempt->fd < 0 || poll(&way, 1, 0) <= 0) {
        if (now > attempt->until) try_again(attempt, ETIMEDOUT);
        return now > attempt->until;
    }
    if (attempt->greeted && hear_answer(attempt)) return true;
    if (!attempt->greeted)
        attempt->greeted = hrt_net_socket_connected(attempt->fd) && greet(reach, attempt);
    else
        attempt->greeted = false;
    if (!attempt->greeted) try_again(attempt, errno);
    if (attempt->greeted) watch(reach, EPOLL_CTL_MOD, attempt->fd, EPOLLIN);
    return false;
}

static struct attempt **find(struct hrt_reach *reach, int rank) {
    struct attempt **at = &reach->attempts;
    while (*at && (*at)->rank != rank) at = &(*at)->next;
    return at;
}

static void drop(struct attempt **at) {
    struct attempt *attempt = *at;
    *at = attempt->next;
    if (attempt->fd >= 0) close(attempt->fd);
    free(attempt);
}

void hrt_net_reach_ask(struct hrt_reach *reach, int rank, double seconds) {
    if (*find(reach, rank)) return;
    struct attempt *attempt = calloc(1, sizeof *attempt);
    if (!attempt) {
        reach->reached(reach->context, rank, -1, ENOMEM);
        return;
    }
    *attempt = (struct attempt){
        .next = reach->attempts, .rank = rank, .fd = -1, .until = hrt_base_now() + seconds};
    reach->attempts = attempt;
}

// ---- from others

static bool is_of_job(const struct hrt_reach *reach, struct greeting *greeting) {
    const struct hrt_meeting *meeting = &reach->meeting;
    return memcmp(greeting->magic, HRT_TCP_MAGIC, sizeof greeting->magic) == 0 &&
           greeting->job == meeting->job && greeting->to == meeting->rank && greeting->from >= 0 &&
           greeting->from < meeting->size && greeting->from != meeting->rank &&
           proof_of(reach, greeting, true);
}

// One whose connection does not stand hears no answer, and finds this rank's.
static void take_in(struct hrt_reach *reach) {
    struct hrt_visitor visitor;
    while (hrt_net_door_next(reach->door, &visitor)) {
        struct greeting greeting;
        memcpy(&greeting, visitor.said, sizeof greeting);
        if (!is_of_job(reach, &greeting)) {
            hrt_net_door_turn_away(reach->door, visitor.fd);
            continue;
        }
        struct attempt **own = find(reach, greeting.from);
        if (*own && reach->meeting.rank > greeting.from) {
            close(visitor.fd);
            continue;
        }
        if (*own) drop(own);
        hrt_net_socket_send(visitor.fd, HRT_TCP_MAGIC, 8, hrt_base_now());
        reach->reached(reach->context, greeting.from, visitor.fd, 0);
    }
}

// ---- both

void hrt_net_reach_advance(struct hrt_reach *reach) {
    take_in(reach);
    for (struct attempt **at = &reach->attempts; *at;) {
        struct attempt *attempt = *at;
        if (!go_on(reach, attempt)) {
            at = &attempt->next;
            continue;
        }
        const int rank = attempt->rank, fd = attempt->fd, error = attempt->error;
        if (fd >= 0) watch(reach, EPOLL_CTL_DEL, fd, 0);
        attempt->fd = -1;
        drop(at);
        reach->reached(reach->context, rank, fd, fd < 0 ? error : 0);
        at = &reach->attempts; // It may have asked for more.
    }
}

int hrt_net_reach_descriptor(const struct hrt_reach *reach) {
    return reach->poll;
}

bool hrt_net_reach_is_busy(const struct hrt_reach *reach) {
    return reach->attempts;
}

int hrt_net_reach_error(const struct hrt_reach *reach, int rank) {
    const struct attempt *attempt = reach->attempts;
    while (attempt && attempt->rank != rank) attempt = attempt->next;
    return attempt ? attempt->error : 0;
}

struct hrt_door_silence hrt_net_reach_silence(const struct hrt_reach *reach) {
    return hrt_net_door_silence(reach->door);
}

struct hrt_reach *hrt_net_reach_open(const struct hrt_meeting *meeting, hrt_reached_fn *reached,
                                     void *context) {
    struct hrt_reach *reach = calloc(1, sizeof *reach);
    if (!reach) return NULL;
    *reach = (struct hrt_reach){.meeting = *meeting, .reached = reached, .context = context};
    reach->poll = epoll_create1(EPOLL_CLOEXEC);
    reach->door = hrt_net_door_open(meeting->listens, sizeof(struct greeting), NULL, NULL);
    if (reach->poll >= 0 && reach->door) {
        watch(reach, EPOLL_CTL_ADD, hrt_net_door_descriptor(reach->door), EPOLLIN);
        return reach;
    }
    hrt_net_reach_close(reach);
    return NULL;
}

void hrt_net_reach_keep(struct hrt_reach *reach, struct hrt_meeting *meeting,
                        hrt_reached_fn *reached, void *context) {
    reach->keeps = true;
    reach->reached = reached;
    reach->context = context;
    meeting->seat = NULL;
    meeting->listens = -1;
}

void hrt_net_reach_close(struct hrt_reach *reach) {
    if (!reach) return;
    while (reach->attempts) drop(&reach->attempts);
    hrt_net_door_close(reach->door);
    if (reach->poll >= 0) close(reach->poll);
    if (reach->keeps) {
        close(reach->meeting.listens);
        free(reach->meeting.seat);
    }
    free(reach);
}
