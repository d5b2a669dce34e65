// The operations of the transport on connections (tcp_link.h).
#include "runtime/net/tcp_wire.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "runtime/net/tcp_link.h"

static struct message **request(const struct hrt_net_pieces *pieces, int i) {
    return (struct message **)pieces->request + i;
}

// Gives a message that has begun to come, or has come, to the receive that asks for it now.
static void claim(struct link *link, struct message *message) {
    const uint32_t tag = message->head.tag;
    struct message *early = take_first(&link->early[tag]);
    if (early->head.bytes != message->head.bytes) {
        message->came = early->head.bytes > message->head.bytes ? -1 : (int)early->head.bytes;
        finish(message);
        early->owned = true;
        if (link->in != early) free_message(early);
        return;
    }
    if (early->at > 0) memcpy(message->data, early->data, early->at);
    message->at = early->at;
    message->sum = early->sum;
    if (link->in == early) {
        link->in = message;
    } else {
        message->came = (int)message->head.bytes;
        finish(message);
    }
    free_message(early);
}

static void tcp_post(struct hrt_net *own, struct hrt_net_pieces *pieces,
                     const struct hrt_net_piece *piece, void *data) {
    struct tcp *tcp = own->wire_own;
    struct link *link = &tcp->link[piece->peer];
    struct message *message = hrt_net_tcp_message((uint32_t)piece->tag, (size_t)piece->bytes);
    message->data = data;
    *request(pieces, pieces->count) = message;
    const bool sends = piece->what == HRT_NET_SENT || piece->what == HRT_NET_GIVEN;
    if (sends) hrt_net_tcp_seal(message);
    pthread_mutex_lock(&tcp->lock);
    if (sends) {
        const bool idle = !link->out.first;
        append(&link->out, message);
        if (idle) hrt_net_tcp_flush(tcp, piece->peer);
    } else if (link->early[piece->tag].first && !link->spoilt) {
        claim(link, message);
    } else {
        append(&link->asked[piece->tag], message);
    }
    pthread_mutex_unlock(&tcp->lock);
}

// Ends the job because of a connection that is gone; without one nothing.
static void check(struct hrt_net *own, int peer, const char *what) {
    struct tcp *tcp = own->wire_own;
    pthread_mutex_lock(&tcp->lock);
    const bool dead = peer != own->rank && tcp->link[peer].dead;
    const int error = tcp->link[peer].error;
    pthread_mutex_unlock(&tcp->lock);
    if (dead) hrt_net_fail(own, peer, what, error ? strerror(error) : "its connection has ended");
}

static const char *name_of(const struct hrt_net *own, uint32_t tag) {
    if (tag < HRT_NET_COLLECTIVE) return own->lane[tag % HRT_LANES].pieces.name;
    return tag == HRT_NET_COLLECTIVE ? own->collective.name : "heartbeats";
}

// Ends the job where a frame was damaged.
static void check_damage(struct hrt_net *own) {
    struct tcp *tcp = own->wire_own;
    char what[128] = "its head";
    if (!atomic_load(&tcp->damaged)) return;
    pthread_mutex_lock(&tcp->lock);
    const struct damage damage = tcp->damage;
    pthread_mutex_unlock(&tcp->lock);
    if (!damage.in_head)
        snprintf(what, sizeof what, "%u bytes of %s, whose checksum is %08x instead of %08x",
                 damage.head.bytes, name_of(own, damage.head.tag), damage.sum, damage.head.sum);
    hrt_net_damaged(own, damage.peer, what);
}

static int tcp_test(struct hrt_net *own, struct hrt_net_pieces *pieces) {
    struct tcp *tcp = own->wire_own;
    if (pthread_mutex_trylock(&tcp->lock) == 0) {
        hrt_net_tcp_advance(tcp);
        pthread_mutex_unlock(&tcp->lock);
    }
    check_damage(own);
    int finished = 0;
    for (int i = 0; i < pieces->count; i++) {
        struct message *message = *request(pieces, i);
        if (!atomic_load_explicit(&message->done, memory_order_acquire)) continue;
        pieces->came[finished] = message->came;
        pieces->finished[finished++] = i;
        free(message);
    }
    const bool losses = finished == 0 && atomic_load(&tcp->losses) > 0;
    for (int i = 0; i < pieces->count && losses; i++)
        check(own, pieces->of[i].peer, "exchanging data");
    return finished;
}

static bool tcp_tell(struct hrt_net *own, int peer, int kind, int32_t value) {
    struct tcp *tcp = own->wire_own;
    pthread_mutex_lock(&tcp->lock);
    const bool told = tcp->link[peer].notes < NOTES_MOST && !tcp->link[peer].dead;
    if (told) hrt_net_tcp_send_value(tcp, peer, (uint32_t)(NOTES + kind), value);
    pthread_mutex_unlock(&tcp->lock);
    return told;
}

static bool tcp_told(struct hrt_net *own, int kind, int *peer, int32_t *value) {
    struct tcp *tcp = own->wire_own;
    pthread_mutex_lock(&tcp->lock);
    if (kind == HRT_NOTE_SIGN && tcp->reach) hrt_net_reach_advance(tcp->reach); // Once a second.
    hrt_net_tcp_advance(tcp);
    struct note **at = &tcp->note[kind];
    while (*at && *peer >= 0 && (*at)->peer != *peer) at = &(*at)->next;
    struct note *note = *at;
    if (note) {
        *peer = note->peer;
        *value = note->value;
        *at = note->next;
        if (!*at) tcp->note_end[kind] = at;
    }
    pthread_mutex_unlock(&tcp->lock);
    free(note);
    if (kind == HRT_NOTE_SIGN) check_damage(own);
    if (kind == HRT_NOTE_SIGN && !note) check(own, *peer, "a heartbeat");
    return note != NULL;
}

static bool tcp_quiet(struct hrt_net *own) {
    struct tcp *tcp = own->wire_own;
    int left = 0;
    pthread_mutex_lock(&tcp->lock);
    hrt_net_tcp_advance(tcp);
    for (int r = 0; r < tcp->size; r++) left += !tcp->link[r].dead && tcp->link[r].notes > 0;
    pthread_mutex_unlock(&tcp->lock);
    return left == 0;
}

// Says a last word, and waits a second at most until it has left. A farewell goes along connections that there are.
static void say_last(struct hrt_net *own, uint32_t tag, int32_t value) {
    enum { TRIES = 100 };
    struct tcp *tcp = own->wire_own;
    pthread_mutex_lock(&tcp->lock);
    for (int r = 0; r < tcp->size; r++) {
        const bool heard = r != tcp->rank && (tag != BYE || tcp->link[r].fd >= 0);
        if (heard && !tcp->link[r].dead) hrt_net_tcp_send_value(tcp, r, tag, value);
    }
    pthread_mutex_unlock(&tcp->lock);
    for (int i = 0; i < TRIES && !tcp_quiet(own); i++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
}

static void tcp_abort(struct hrt_net *own, int exit_code) {
    say_last(own, ABORT, exit_code);
}

// Whether all others have said their last word, or are gone.
static bool all_are_done(struct tcp *tcp) {
    bool done = true;
    pthread_mutex_lock(&tcp->lock);
    hrt_net_tcp_advance(tcp);
    for (int r = 0; r < tcp->size; r++)
        done = done && (tcp->link[r].fd < 0 || tcp->link[r].bye || tcp->link[r].dead);
    pthread_mutex_unlock(&tcp->lock);
    return done;
}

static void free_queue(struct queue *queue) {
    while (queue->first) free_message(take_first(queue));
}

static void tcp_close(struct hrt_net *own) {
    enum { TRIES = 2000 };
    struct tcp *tcp = own->wire_own;
    say_last(own, BYE, 0);
    for (int i = 0; i < TRIES && !all_are_done(tcp); i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    for (int r = 0; r < tcp->size; r++) {
        struct link *link = &tcp->link[r];
        if (link->fd >= 0) close(link->fd);
        free_queue(&link->out);
        for (int t = 0; t < TAGS; t++) free_queue(&link->early[t]);
    }
    for (int k = 0; k < HRT_NOTES; k++) {
        for (struct note *next, *note = tcp->note[k]; note; note = next) {
            next = note->next;
            free(note);
        }
    }
    hrt_net_reach_close(tcp->reach);
    close(tcp->poll);
    pthread_mutex_destroy(&tcp->lock);
    free(tcp->place);
    free(tcp);
}

static void connected(struct tcp *tcp, int peer, int fd) {
    struct link *link = &tcp->link[peer];
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)peer};
    link->fd = fd;
    epoll_ctl(tcp->poll, EPOLL_CTL_ADD, fd, &event);
    hrt_net_tcp_flush(tcp, peer);
}

// hrt_reached_fn.
static void reached(void *context, int rank, int fd, int error) {
    struct tcp *tcp = context;
    struct link *link = &tcp->link[tcp->place[rank]];
    if (fd < 0) {
        hrt_net_tcp_lose(link, error);
    } else if (link->fd >= 0 || link->dead) {
        close(fd);
    } else {
        connected(tcp, tcp->place[rank], fd);
    }
}

static void take_over(struct tcp *tcp, struct hrt_meeting *meeting) {
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)REACH};
    tcp->seconds = meeting->seconds;
    tcp->place = meeting->number_of;
    tcp->reach = meeting->reach;
    for (int r = 0; r < tcp->size; r++) {
        if (meeting->fd[r] >= 0) connected(tcp, tcp->place[r], meeting->fd[r]);
    }
    meeting->number_of = NULL;
    if (!tcp->reach) return;
    hrt_net_reach_keep(tcp->reach, meeting, reached, tcp);
    epoll_ctl(tcp->poll, EPOLL_CTL_ADD, hrt_net_reach_descriptor(tcp->reach), &event);
}

bool hrt_net_tcp_wire_open(struct hrt_net *own, struct hrt_meeting *meeting) {
    struct tcp *tcp = calloc(1, sizeof *tcp + (size_t)own->size * sizeof(struct link));
    if (!tcp) return false;
    tcp->poll = epoll_create1(EPOLL_CLOEXEC);
    tcp->size = own->size;
    tcp->rank = own->rank;
    tcp->peer = own->peer;
    pthread_mutex_init(&tcp->lock, NULL);
    for (int k = 0; k < HRT_NOTES; k++) tcp->note_end[k] = &tcp->note[k];
    for (int r = 0; r < own->size; r++) {
        struct link *link = &tcp->link[r];
        link->out.end = &link->out.first;
        for (int t = 0; t < TAGS; t++) {
            link->asked[t].end = &link->asked[t].first;
            link->early[t].end = &link->early[t].first;
        }
        link->fd = -1;
        link->losses = &tcp->losses;
    }
    take_over(tcp, meeting);
    own->wire_own = tcp;
    return true;
}

const struct hrt_wire hrt_net_tcp_wire = {
    .request = sizeof(struct message *),
    .post = tcp_post,
    .test = tcp_test,
    .tell = tcp_tell,
    .told = tcp_told,
    .quiet = tcp_quiet,
    .abort = tcp_abort,
    .close = tcp_close,
};
