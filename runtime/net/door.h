// A port at which ranks come, and others: takes connections in and waits for their first words, of a known length,
// without ever blocking. A stranger costs a place, for a few seconds at most; when there are no more places, one from
// the address that has most of them goes, the oldest first. So frequent connections of one host keep no other host out.
#ifndef HECATE_RUNTIME_NET_DOOR_H
#define HECATE_RUNTIME_NET_DOOR_H

#include "runtime/net/secret.h"
#include "runtime/net/socket.h"

enum {
    HRT_DOOR_ROOM = 256,
    HRT_DOOR_SECONDS = 5
}; // Places, and seconds that each may take for its words.

struct hrt_door;

// Called for a new connection; may fill in `nonce`, which hrt_net_door_next gives back. False: it is turned away.
typedef bool hrt_door_welcome(void *context, int fd, unsigned char nonce[HRT_NONCE]);

// A connection that has sent all of its words: the caller's from then on.
struct hrt_visitor {
    int fd;
    unsigned char nonce[HRT_NONCE];
    void *said; // `bytes` of hrt_net_door_open; until the next call.
};

// Opens a door at the socket `listens`, borrowed, for first words of `bytes`. `welcome` may be NULL. The caller closes
// it. NULL: no memory, or no descriptor.
struct hrt_door *hrt_net_door_open(int listens, size_t bytes, hrt_door_welcome *welcome,
                                   void *context);

// A descriptor that poll finds readable when there is something to do.
int hrt_net_door_descriptor(const struct hrt_door *door);

// Accepts and reads without blocking. True: *visitor is the next one; call again before waiting. To be called once a
// second at least, so that the silent ones go.
bool hrt_net_door_next(struct hrt_door *door, struct hrt_visitor *visitor);

// Closes the connection of a visitor whose words are those of no rank.
void hrt_net_door_turn_away(struct hrt_door *door, int fd);

// "; 3 connections said nothing of a rank, the last one from 10.0.0.7:4242": for a message. Empty: there were none.
struct hrt_door_silence {
    char text[192];
};
struct hrt_door_silence hrt_net_door_silence(const struct hrt_door *door);

// Closes the connections that it still has. Also NULL.
void hrt_net_door_close(struct hrt_door *door);

#endif
