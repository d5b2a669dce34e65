// On a connection a frame is a head and its bytes, each with a checksum: TCP does not see words that change places.
// Frames of a tag are in order, so the first that is asked for of a tag is the next that comes.
#include "runtime/net/tcp_wire.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/crc32c.h"

enum {
    TAGS = HRT_NET_COLLECTIVE + 1,
    NOTES = TAGS,             // And the kind of a note.
    ABORT = TAGS + HRT_NOTES, // With an exit code.
    BYE,                      // The last one.
    NOTES_MOST = 64,          // Under way to a rank.
    EVENTS = 64,
    MOST = 4 << 20,      // Bytes from a connection before others have their turn.
    AT_ONCE = 128 << 10, // Bytes that are still in a cache when their checksum is computed.
};

struct head {
    uint32_t tag, bytes;
    uint32_t sum; // Checksum of the bytes,
    uint32_t own; // and of what stands before it.
};

// A message that is sent, received, or asked for.
struct message {
    struct message *next;
    struct head head;
    char *data;
    size_t at;     // Bytes that have been moved, those of the head included.
    uint32_t sum;  // Checksum of the data received so far.
    int32_t value; // The data of a message that has no other.
    bool owned;    // Nobody asks for it: it is freed when it is done.
    bool kept;     // Its data is its own.
    atomic_bool done;
    int came;
};

struct queue {
    struct message *first, **end;
};

struct link {
    int fd;
    struct queue out;
    struct queue asked[TAGS], early[TAGS];
    struct head head; // The head being received.
    size_t head_at;
    struct message *in;   // The message being received; NULL: its head has not come.
    struct message scrap; // For data that nobody can take.
    bool writes, bye, dead;
    bool spoilt; // Nothing is taken from it any more.
    int error;
    int notes; // Under way.
    atomic_int *losses;
};

struct note {
    struct note *next;
    int peer;
    int32_t value;
};

// A frame that came otherwise than it was sent.
struct damage {
    int peer;
    bool in_head;
    struct head head; // As it came.
    uint32_t sum;     // Checksum of the received bytes.
};

struct tcp {
    pthread_mutex_t lock; // Guards all fields.
    int poll, size, rank;
    atomic_int losses;    // Connections that are gone.
    atomic_bool damaged;  // The job has to end, because of
    struct damage damage; // the first of them.
    struct note *note[HRT_NOTES], **note_end[HRT_NOTES];
    struct link link[];
};

static void append(struct queue *queue, struct message *message) {
    message->next = NULL;
    *queue->end = message;
    queue->end = &message->next;
}

static struct message *take_first(struct queue *queue) {
    struct message *first = queue->first;
    queue->first = first->next;
    if (!queue->first) queue->end = &queue->first;
    return first;
}

static void free_message(struct message *message) {
    if (message->kept) free(message->data);
    free(message);
}

_Noreturn static void no_memory(void) {
    fprintf(stderr, "%s: error: out of memory for messages\n", program_invocation_short_name);
    _exit(HRT_EXIT_FAILED);
}

static struct message *make(uint32_t tag, size_t bytes) {
    struct message *message = calloc(1, sizeof *message);
    if (!message) no_memory();
    message->head = (struct head){.tag = tag, .bytes = (uint32_t)bytes};
    return message;
}

static uint32_t sum_of_head(const struct head *head) {
    return hrt_base_crc32c(0, head, offsetof(struct head, own));
}

// Fills in the checksums of what is to be sent.
static void seal(struct message *message) {
    message->head.sum = hrt_base_crc32c(0, message->data, message->head.bytes);
    message->head.own = sum_of_head(&message->head);
}

static void lose(struct link *link, int error) {
    if (link->dead || link->bye) return;
    link->dead = true;
    link->error = error;
    atomic_fetch_add(link->losses, 1);
}

static void watch(struct tcp *tcp, int peer) {
    const struct link *link = &tcp->link[peer];
    struct epoll_event event = {.events =
                                    (link->spoilt ? 0 : EPOLLIN) | (link->writes ? EPOLLOUT : 0),
                                .data.u32 = (uint32_t)peer};
    epoll_ctl(tcp->poll, EPOLL_CTL_MOD, link->fd, &event);
}

// ---- sending

static void sent(struct link *link) {
    struct message *message = take_first(&link->out);
    link->notes -= message->owned;
    if (message->owned) {
        free_message(message);
    } else {
        atomic_store_explicit(&message->done, true, memory_order_release);
    }
}

// Sends what the connection takes.
static void flush(struct tcp *tcp, int peer) {
    struct link *link = &tcp->link[peer];
    while (link->out.first && !link->dead) {
        struct message *message = link->out.first;
        struct iovec part[2];
        int parts = 0;
        const size_t head = sizeof message->head,
                     body = message->at > head ? message->at - head : 0;
        if (message->at < head)
            part[parts++] =
                (struct iovec){(char *)&message->head + message->at, head - message->at};
        if (message->head.bytes > body)
            part[parts++] = (struct iovec){message->data + body, message->head.bytes - body};
        const struct msghdr what = {.msg_iov = part, .msg_iovlen = (size_t)parts};
        const ssize_t moved = sendmsg(link->fd, &what, MSG_NOSIGNAL);
        if (moved < 0 && errno == EINTR) continue;
        if (moved < 0 && errno == EAGAIN) break;
        if (moved < 0) lose(link, errno);
        if (moved < 0) break;
        message->at += (size_t)moved;
        if (message->at == head + message->head.bytes) sent(link);
    }
    const bool writes = link->out.first != NULL && !link->dead;
    if (link->writes == writes) return;
    link->writes = writes;
    watch(tcp, peer);
}

static void send_value(struct tcp *tcp, int peer, uint32_t tag, int32_t value) {
    struct message *message = make(tag, sizeof value);
    message->value = value;
    message->data = (char *)&message->value;
    message->owned = true;
    seal(message);
    tcp->link[peer].notes++;
    append(&tcp->link[peer].out, message);
    flush(tcp, peer);
}

// ---- receiving

static void finish(struct message *message) {
    atomic_store_explicit(&message->done, true, memory_order_release);
}

// The rank expects another length for this message: the job is about to end.
static struct message *misfit(struct link *link, struct message *asked) {
    asked->came = link->head.bytes > asked->head.bytes ? -1 : (int)link->head.bytes;
    finish(asked);
    struct message *message = make(link->head.tag, link->head.bytes);
    message->data = malloc(link->head.bytes + 1);
    if (!message->data) no_memory();
    message->kept = message->owned = true;
    return message;
}

// Where the bytes of the frame go whose head has come. NULL: it is none of ours.
static struct message *place(struct link *link) {
    const struct head head = link->head;
    if (head.tag >= TAGS) {
        if (head.bytes != sizeof(int32_t) || head.tag > BYE) return NULL;
        link->scrap = (struct message){.head = head, .data = (char *)&link->scrap.value};
        return &link->scrap;
    }
    if (head.bytes > HRT_NET_PIECE) return NULL;
    if (link->asked[head.tag].first) {
        struct message *asked = take_first(&link->asked[head.tag]);
        return asked->head.bytes == head.bytes ? asked : misfit(link, asked);
    }
    struct message *message = make(head.tag, head.bytes);
    message->data = malloc(head.bytes + 1);
    if (!message->data) no_memory();
    message->kept = true;
    append(&link->early[head.tag], message);
    return message;
}

static void keep_note(struct tcp *tcp, int peer, uint32_t kind, int32_t value) {
    struct note *note = malloc(sizeof *note);
    if (!note) no_memory();
    *note = (struct note){.peer = peer, .value = value};
    *tcp->note_end[kind] = note;
    tcp->note_end[kind] = &note->next;
}

// All that has come on this connection, or will come, is discarded; sends on it still arrive.
static void spoil(struct tcp *tcp, int peer, bool in_head) {
    struct link *link = &tcp->link[peer];
    link->spoilt = true;
    watch(tcp, peer);
    if (atomic_load(&tcp->damaged)) return;
    tcp->damage = (struct damage){.peer = peer, .in_head = in_head, .head = link->head};
    if (!in_head) tcp->damage.sum = link->in->sum;
    atomic_store(&tcp->damaged, true);
}

// Another rank has asked for the end of all and said why. Those that it does not reach hear it from this one, whom they
// would else miss. Waits a second at most.
static _Noreturn void obey(struct tcp *tcp, int32_t code) {
    enum { TRIES = 100 };
    bool left = true;
    for (int r = 0; r < tcp->size; r++) {
        if (r != tcp->rank && !tcp->link[r].dead) send_value(tcp, r, ABORT, code);
    }
    for (int i = 0; i < TRIES && left; i++) {
        left = false;
        for (int r = 0; r < tcp->size; r++) {
            if (r != tcp->rank) flush(tcp, r);
            left |= r != tcp->rank && tcp->link[r].out.first && !tcp->link[r].dead;
        }
        if (left) nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    _exit(code);
}

static void received(struct tcp *tcp, int peer) {
    struct link *link = &tcp->link[peer];
    struct message *message = link->in;
    const uint32_t tag = link->head.tag;
    if (message->sum != link->head.sum) {
        spoil(tcp, peer, false);
        return;
    }
    link->in = NULL;
    link->head_at = 0;
    if (message == &link->scrap) {
        if (tag == ABORT) obey(tcp, message->value);
        if (tag == BYE) link->bye = true;
        if (tag < ABORT) keep_note(tcp, peer, tag - NOTES, message->value);
    } else if (message->owned) {
        free_message(message);
    } else {
        message->came = (int)message->head.bytes;
        finish(message);
    }
}

// Takes what is there. Returns the bytes that came; 0: there is no more.
static size_t take(struct tcp *tcp, int peer) {
    struct link *link = &tcp->link[peer];
    if (link->spoilt) return 0;
    struct message *in = link->in;
    char *to = in ? in->data + in->at : (char *)&link->head + link->head_at;
    const size_t left = in ? in->head.bytes - in->at : sizeof link->head - link->head_at;
    const ssize_t came = left ? recv(link->fd, to, left < AT_ONCE ? left : AT_ONCE, 0) : 0;
    if (left && came <= 0) {
        if (came == 0) lose(link, 0);
        if (came < 0 && errno != EAGAIN && errno != EINTR) lose(link, errno);
        if (link->bye || link->dead) epoll_ctl(tcp->poll, EPOLL_CTL_DEL, link->fd, NULL);
        return 0;
    }
    if (in) {
        in->at += (size_t)came;
        in->sum = hrt_base_crc32c(in->sum, to, (size_t)came);
        if (in->at == in->head.bytes) received(tcp, peer);
    } else {
        link->head_at += (size_t)came;
        if (link->head_at < sizeof link->head) return (size_t)came;
        if (sum_of_head(&link->head) != link->head.own) {
            spoil(tcp, peer, true);
            return 0;
        }
        link->in = place(link);
        if (!link->in) lose(link, EPROTO);
        if (!link->in) return 0;
        if (link->head.bytes == 0) received(tcp, peer);
    }
    return (size_t)came;
}

// Moves what can be moved.
static void advance(struct tcp *tcp) {
    struct epoll_event event[EVENTS];
    const int ready = epoll_wait(tcp->poll, event, EVENTS, 0);
    for (int i = 0; i < ready; i++) {
        const int peer = (int)event[i].data.u32;
        if (event[i].events & EPOLLOUT) flush(tcp, peer);
        size_t came = 0, more = 0;
        do {
            came += more = take(tcp, peer);
        } while (more > 0 && came < MOST);
    }
}

// ---- the transport

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
    struct message *message = make((uint32_t)piece->tag, (size_t)piece->bytes);
    message->data = data;
    *request(pieces, pieces->count) = message;
    const bool sends = piece->what == HRT_NET_SENT || piece->what == HRT_NET_GIVEN;
    if (sends) seal(message);
    pthread_mutex_lock(&tcp->lock);
    if (sends) {
        const bool idle = !link->out.first;
        append(&link->out, message);
        if (idle) flush(tcp, piece->peer);
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
        advance(tcp);
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
    if (told) send_value(tcp, peer, (uint32_t)(NOTES + kind), value);
    pthread_mutex_unlock(&tcp->lock);
    return told;
}

static bool tcp_told(struct hrt_net *own, int kind, int *peer, int32_t *value) {
    struct tcp *tcp = own->wire_own;
    pthread_mutex_lock(&tcp->lock);
    advance(tcp);
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
    advance(tcp);
    for (int r = 0; r < tcp->size; r++) left += !tcp->link[r].dead && tcp->link[r].notes > 0;
    pthread_mutex_unlock(&tcp->lock);
    return left == 0;
}

// Says a last word to all, and waits a second at most until it has left.
static void say_last(struct hrt_net *own, uint32_t tag, int32_t value) {
    enum { TRIES = 100 };
    struct tcp *tcp = own->wire_own;
    pthread_mutex_lock(&tcp->lock);
    for (int r = 0; r < tcp->size; r++) {
        if (r != tcp->rank && !tcp->link[r].dead) send_value(tcp, r, tag, value);
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
    advance(tcp);
    for (int r = 0; r < tcp->size; r++)
        done = done && (r == tcp->rank || tcp->link[r].bye || tcp->link[r].dead);
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
        if (r == tcp->rank) continue;
        close(link->fd);
        free_queue(&link->out);
        for (int t = 0; t < TAGS; t++) free_queue(&link->early[t]);
    }
    for (int k = 0; k < HRT_NOTES; k++) {
        for (struct note *next, *note = tcp->note[k]; note; note = next) {
            next = note->next;
            free(note);
        }
    }
    close(tcp->poll);
    pthread_mutex_destroy(&tcp->lock);
    free(tcp);
}

bool hrt_net_tcp_wire_open(struct hrt_net *own, const int *fd) {
    struct tcp *tcp = calloc(1, sizeof *tcp + (size_t)own->size * sizeof(struct link));
    if (!tcp) return false;
    tcp->poll = epoll_create1(EPOLL_CLOEXEC);
    tcp->size = own->size;
    tcp->rank = own->rank;
    pthread_mutex_init(&tcp->lock, NULL);
    for (int k = 0; k < HRT_NOTES; k++) tcp->note_end[k] = &tcp->note[k];
    for (int r = 0; r < own->size; r++) {
        struct link *link = &tcp->link[r];
        link->out.end = &link->out.first;
        for (int t = 0; t < TAGS; t++) {
            link->asked[t].end = &link->asked[t].first;
            link->early[t].end = &link->early[t].first;
        }
        link->fd = fd[r];
        link->losses = &tcp->losses;
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)r};
        if (r != own->rank) epoll_ctl(tcp->poll, EPOLL_CTL_ADD, fd[r], &event);
    }
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
