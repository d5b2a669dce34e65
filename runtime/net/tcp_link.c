// On a connection a frame is a head and its bytes, each with a checksum: TCP does not see words that change places.
// Frames of a tag are in order, so the first that is asked for of a tag is the next that comes.
#include "runtime/net/tcp_link.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/crc32c.h"

_Noreturn static void no_memory(void) {
    fprintf(stderr, "%s: error: out of memory for messages\n", program_invocation_short_name);
    _exit(HRT_EXIT_FAILED);
}

struct message *hrt_net_tcp_message(uint32_t tag, size_t bytes) {
    struct message *message = calloc(1, sizeof *message);
    if (!message) no_memory();
    message->head = (struct head){.tag = tag, .bytes = (uint32_t)bytes};
    return message;
}

static uint32_t sum_of_head(const struct head *head) {
    return hrt_base_crc32c(0, head, offsetof(struct head, own));
}

void hrt_net_tcp_seal(struct message *message) {
    message->head.sum = hrt_base_crc32c(0, message->data, message->head.bytes);
    message->head.own = sum_of_head(&message->head);
}

void hrt_net_tcp_lose(struct link *link, int error) {
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

void hrt_net_tcp_flush(struct tcp *tcp, int peer) {
    struct link *link = &tcp->link[peer];
    if (link->fd < 0 && link->out.first && !link->dead)
        hrt_net_reach_ask(tcp->reach, tcp->peer[peer].launched, tcp->seconds);
    if (link->fd < 0) return;
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
        if (moved < 0) hrt_net_tcp_lose(link, errno);
        if (moved < 0) break;
        message->at += (size_t)moved;
        if (message->at == head + message->head.bytes) sent(link);
    }
    const bool writes = link->out.first != NULL && !link->dead;
    if (link->writes == writes) return;
    link->writes = writes;
    watch(tcp, peer);
}

void hrt_net_tcp_send_value(struct tcp *tcp, int peer, uint32_t tag, int32_t value) {
    struct message *message = hrt_net_tcp_message(tag, sizeof value);
    message->value = value;
    message->data = (char *)&message->value;
    message->owned = true;
    hrt_net_tcp_seal(message);
    tcp->link[peer].notes++;
    append(&tcp->link[peer].out, message);
    hrt_net_tcp_flush(tcp, peer);
}

// ---- receiving

// The rank expects another length for this message: the job is about to end.
static struct message *misfit(struct link *link, struct message *asked) {
    asked->came = link->head.bytes > asked->head.bytes ? -1 : (int)link->head.bytes;
    finish(asked);
    struct message *message = hrt_net_tcp_message(link->head.tag, link->head.bytes);
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
    struct message *message = hrt_net_tcp_message(head.tag, head.bytes);
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
        if (tcp->link[r].fd >= 0 && !tcp->link[r].dead) hrt_net_tcp_send_value(tcp, r, ABORT, code);
    }
    for (int i = 0; i < TRIES && left; i++) {
        left = false;
        for (int r = 0; r < tcp->size; r++) {
            hrt_net_tcp_flush(tcp, r);
            left |= tcp->link[r].fd >= 0 && tcp->link[r].out.first && !tcp->link[r].dead;
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
        if (came == 0) hrt_net_tcp_lose(link, 0);
        if (came < 0 && errno != EAGAIN && errno != EINTR) hrt_net_tcp_lose(link, errno);
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
        if (!link->in) hrt_net_tcp_lose(link, EPROTO);
        if (!link->in) return 0;
        if (link->head.bytes == 0) received(tcp, peer);
    }
    return (size_t)came;
}

void hrt_net_tcp_advance(struct tcp *tcp) {
    struct epoll_event event[EVENTS];
    if (tcp->reach && hrt_net_reach_is_busy(tcp->reach)) hrt_net_reach_advance(tcp->reach);
    const int ready = epoll_wait(tcp->poll, event, EVENTS, 0);
    for (int i = 0; i < ready; i++) {
        const int peer = (int)event[i].data.u32;
        if (peer == REACH) hrt_net_reach_advance(tcp->reach);
        if (peer == REACH) continue;
        if (event[i].events & EPOLLOUT) hrt_net_tcp_flush(tcp, peer);
        size_t came = 0, more = 0;
        do {
            came += more = take(tcp, peer);
        } while (more > 0 && came < MOST);
    }
}
