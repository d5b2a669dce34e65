// Connections of the TCP transport, and frames on them. Only its own files include this.
#ifndef HECATE_RUNTIME_NET_TCP_LINK_H
#define HECATE_RUNTIME_NET_TCP_LINK_H

#include <pthread.h>
#include <stdlib.h>

#include "runtime/net/net.h"
#include "runtime/net/tcp_reach.h"

enum {
    TAGS = HRT_NET_COLLECTIVE + 1,
    NOTES = TAGS,             // And the kind of a note.
    ABORT = TAGS + HRT_NOTES, // With an exit code.
    BYE,                      // The last one.
    NOTES_MOST = 64,          // Under way to a rank.
    EVENTS = 64,
    REACH = -1,          // In place of a rank, of an event.
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
    int fd; // -1: there has been nothing to say.
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
    const struct hrt_net_peer *peer; // [size]
    struct hrt_reach *reach;         // NULL: this rank is alone.
    int32_t *place;                  // [size] Numbers of ranks by those of the launcher.
    int seconds;                     // Limit for making a connection.
    atomic_int losses;               // Connections that are gone.
    atomic_bool damaged;             // The job has to end, because of
    struct damage damage;            // the first of them.
    struct note *note[HRT_NOTES], **note_end[HRT_NOTES];
    struct link link[];
};

static inline void append(struct queue *queue, struct message *message) {
    message->next = NULL;
    *queue->end = message;
    queue->end = &message->next;
}

static inline struct message *take_first(struct queue *queue) {
    struct message *first = queue->first;
    queue->first = first->next;
    if (!queue->first) queue->end = &queue->first;
    return first;
}

static inline void free_message(struct message *message) {
    if (message->kept) free(message->data);
    free(message);
}

static inline void finish(struct message *message) {
    atomic_store_explicit(&message->done, true, memory_order_release);
}

// A message of a tag; without memory for it the program ends.
struct message *hrt_net_tcp_message(uint32_t tag, size_t bytes);

// Fills in the checksums of what is to be sent.
void hrt_net_tcp_seal(struct message *message);

// The functions below are called under tcp->lock. The connection is gone.
void hrt_net_tcp_lose(struct link *link, int error);

// Sends what the connection takes, and asks for one where there is none.
void hrt_net_tcp_flush(struct tcp *tcp, int peer);
void hrt_net_tcp_send_value(struct tcp *tcp, int peer, uint32_t tag, int32_t value);

// Moves what can be moved.
void hrt_net_tcp_advance(struct tcp *tcp);

#endif
