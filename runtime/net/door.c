#include "runtime/net/door.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "runtime/base/clock.h"

enum { AT_ONCE = 64, LISTENING = HRT_DOOR_ROOM }; // Events of one call; the one of the port.

struct guest {
    int fd; // -1: nobody.
    double since;
    size_t at; // Bytes of its words that have come.
    struct hrt_address from;
    unsigned char nonce[HRT_NONCE];
};

struct hrt_door {
    int listens, poll;
    size_t bytes;
    hrt_door_welcome *welcome;
    void *context;
    int64_t silent; // Visitors that left, or were put out, before their message was complete.
    struct hrt_address last;
    struct guest guest[HRT_DOOR_ROOM];
    char said[]; // [HRT_DOOR_ROOM + 1][bytes], the last of the visitor.
};

static char *words_of(struct hrt_door *door, int place) {
    return door->said + (size_t)place * door->bytes;
}

static bool watch(const struct hrt_door *door, int fd, int place) {
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)place};
    return epoll_ctl(door->poll, EPOLL_CTL_ADD, fd, &event) == 0;
}

static void dismiss(struct hrt_door *door, struct guest *guest) {
    door->silent++;
    door->last = guest->from;
    close(guest->fd); // Which takes it out of the poll.
    guest->fd = -1;
}

static bool is_older(const struct guest *a, const struct guest *b) {
    return a->since < b->since;
}

// Chooses, among all places, the guest that leaves when one is needed.
static struct guest *find_crowder(struct hrt_door *door) {
    struct guest *found = NULL;
    int most = 0;
    for (int i = 0; i < HRT_DOOR_ROOM; i++) {
        struct guest *guest = &door->guest[i];
        int count = 0;
        if (guest->fd < 0) continue;
        for (int k = 0; k < HRT_DOOR_ROOM; k++)
            count += door->guest[k].fd >= 0 &&
                     hrt_net_address_same_host(&door->guest[k].from, &guest->from);
        if (found && (count < most || (count == most && !is_older(guest, found)))) continue;
        found = guest;
        most = count;
    }
    return found;
}

static struct guest *find_place(struct hrt_door *door) {
    for (int i = 0; i < HRT_DOOR_ROOM; i++) {
        if (door->guest[i].fd < 0) return &door->guest[i];
    }
    struct guest *guest = find_crowder(door);
    dismiss(door, guest);
    return guest;
}

// False: nobody else has come.
static bool let_in(struct hrt_door *door) {
    int fd = hrt_net_socket_accept(door->listens);
    if (fd < 0 && (errno == EMFILE || errno == ENFILE)) {
        struct guest *crowder = find_crowder(door);
        if (crowder) dismiss(door, crowder);
        fd = hrt_net_socket_accept(door->listens);
    }
    if (fd < 0) return errno == ECONNABORTED || errno == EINTR;
    struct guest *guest = find_place(door);
    *guest = (struct guest){.fd = fd, .since = hrt_base_now(), .from = hrt_net_socket_peer(fd)};
    const bool welcome = !door->welcome || door->welcome(door->context, fd, guest->nonce);
    if (welcome && watch(door, fd, (int)(guest - door->guest))) return true;
    close(fd);
    guest->fd = -1;
    return true;
}

// Takes in what a guest says. True: that is all.
static bool listen_to(struct hrt_door *door, int place) {
    struct guest *guest = &door->guest[place];
    if (guest->fd < 0) return false; // It has gone since the poll.
    char *words = words_of(door, place);
    const ssize_t came = recv(guest->fd, words + guest->at, door->bytes - guest->at, 0);
    if (came < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (came <= 0) dismiss(door, guest);
    if (came <= 0) return false;
    guest->at += (size_t)came;
    return guest->at == door->bytes;
}

static void hand_over(struct hrt_door *door, int place, struct hrt_visitor *visitor) {
    struct guest *guest = &door->guest[place];
    visitor->fd = guest->fd;
    visitor->said = words_of(door, HRT_DOOR_ROOM);
    memcpy(visitor->said, words_of(door, place), door->bytes);
    memcpy(visitor->nonce, guest->nonce, HRT_NONCE);
    epoll_ctl(door->poll, EPOLL_CTL_DEL, guest->fd, NULL);
    guest->fd = -1;
}

static void dismiss_silent(struct hrt_door *door) {
    const double now = hrt_base_now();
    for (int i = 0; i < HRT_DOOR_ROOM; i++) {
        struct guest *guest = &door->guest[i];
        if (guest->fd >= 0 && now - guest->since > HRT_DOOR_SECONDS) dismiss(door, guest);
    }
}

struct hrt_door *hrt_net_door_open(int listens, size_t bytes, hrt_door_welcome *welcome,
                                   void *context) {
    struct hrt_door *door = calloc(1, sizeof *door + (HRT_DOOR_ROOM + 1) * bytes);
    if (!door) return NULL;
    door->listens = listens;
    door->bytes = bytes;
    door->welcome = welcome;
    door->context = context;
    for (int i = 0; i < HRT_DOOR_ROOM; i++) door->guest[i].fd = -1;
    door->poll = epoll_create1(EPOLL_CLOEXEC);
    if (door->poll >= 0 && watch(door, listens, LISTENING)) return door;
    hrt_net_door_close(door);
    return NULL;
}

int hrt_net_door_descriptor(const struct hrt_door *door) {
    return door->poll;
}

// Words of guests come before new connections: a rank among many strangers is heard before it may have to go.
bool hrt_net_door_next(struct hrt_door *door, struct hrt_visitor *visitor) {
    struct epoll_event event[AT_ONCE];
    dismiss_silent(door);
    const int ready = epoll_wait(door->poll, event, AT_ONCE, 0);
    bool knocks = false;
    for (int i = 0; i < ready; i++) {
        const int place = (int)event[i].data.u32;
        knocks |= place == LISTENING;
        if (place == LISTENING || !listen_to(door, place)) continue;
        hand_over(door, place, visitor);
        return true;
    }
    for (int i = 0; i < AT_ONCE && knocks; i++) knocks = let_in(door);
    return false;
}

void hrt_net_door_turn_away(struct hrt_door *door, int fd) {
    door->silent++;
    door->last = hrt_net_socket_peer(fd);
    close(fd);
}

struct hrt_door_silence hrt_net_door_silence(const struct hrt_door *door) {
    struct hrt_door_silence silence = {0};
    int64_t count = door->silent;
    struct hrt_address last = door->last;
    for (int i = 0; i < HRT_DOOR_ROOM; i++) {
        if (door->guest[i].fd >= 0) count++, last = door->guest[i].from;
    }
    if (count == 1)
        snprintf(silence.text, sizeof silence.text,
                 "; a connection from %s said nothing that a rank says",
                 hrt_net_address_text(&last).text);
    if (count > 1)
        snprintf(silence.text, sizeof silence.text,
                 "; %lld connections said nothing that a rank says, the last one from %s",
                 (long long)count, hrt_net_address_text(&last).text);
    return silence;
}

void hrt_net_door_close(struct hrt_door *door) {
    if (!door) return;
    for (int i = 0; i < HRT_DOOR_ROOM; i++) {
        if (door->guest[i].fd >= 0) close(door->guest[i].fd);
    }
    if (door->poll >= 0) close(door->poll);
    free(door);
}
