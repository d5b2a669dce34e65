// The sum over ranks in the order of ranks: rank r adds up the r-th part of everybody's data, then
// all parts go to everybody. Each rank sends and receives 2 (size - 1) / size of the data, the least
// possible; MPI's own reduction promises no order.
//
// Little data goes to all ranks at once, which add it up alike: the same bits with one wait less.
// Much data goes in rounds, so that scratch is bounded.
#include "runtime/net/net.h"

#include <string.h>

enum { SMALL = 4096, BLOCK = 256 }; // Bytes of data; elements.

// Receives before sends: a missing message tells more than a stuck one.
static int first_awaited(const struct hrt_net_pieces *pieces) {
    for (int i = 0; i < pieces->count; i++) {
        if (pieces->of[i].what == HRT_NET_RECEIVED) return pieces->of[i].peer;
    }
    return pieces->of[0].peer;
}

void hrt_net_finish(struct hrt_net *own, const char *what) {
    struct hrt_net_pieces *pieces = &own->collective;
    hrt_net_busy(own);
    hrt_net_help(own);
    while (pieces->count > 0) {
        if (hrt_net_advance(own, pieces) > 0) {
            hrt_net_busy(own);
        } else {
            hrt_net_help(own);
            hrt_net_watch(own, pieces, first_awaited(pieces), -1, what);
            hrt_net_nap(own);
        }
    }
}

// sum[i] = term 0 [i] + term 1 [i] + ..., i < count. Term r lies at scratch + r * stride, that of
// `rank` in sum itself.
#define DEFINE_ADD_UP(name, type)                                                                  \
    static void name(type *sum, const char *scratch, size_t stride, int rank, int size,            \
                     int64_t count) {                                                              \
        for (int64_t begin = 0; begin < count; begin += BLOCK) {                                   \
            const int64_t block = count - begin < BLOCK ? count - begin : BLOCK;                   \
            type all[BLOCK];                                                                       \
            for (int r = 0; r < size; r++) {                                                       \
                const type *term = (const type *)(scratch + stride * (size_t)r);                   \
                term = (r == rank ? sum : term) + begin;                                           \
                if (r == 0) {                                                                      \
                    memcpy(all, term, (size_t)block * sizeof *all);                                \
                } else {                                                                           \
                    for (int64_t i = 0; i < block; i++) all[i] += term[i];                         \
                }                                                                                  \
            }                                                                                      \
            memcpy(sum + begin, all, (size_t)block * sizeof *all);                                 \
        }                                                                                          \
    }

DEFINE_ADD_UP(add_up_float, float)
DEFINE_ADD_UP(add_up_double, double)
DEFINE_ADD_UP(add_up_int64, int64_t)

// Adds up `count` elements of `mine` and of the other ranks' at scratch + r * stride, in place.
static void add_up(struct hrt_net *own, char *mine, size_t stride, int64_t count,
                   enum hrt_number type) {
    void *sum = mine;
    switch (type) {
    case HRT_FLOAT:
        add_up_float(sum, own->scratch, stride, own->rank, own->size, count);
        break;
    case HRT_DOUBLE:
        add_up_double(sum, own->scratch, stride, own->rank, own->size, count);
        break;
    case HRT_INT64:
        add_up_int64(sum, own->scratch, stride, own->rank, own->size, count);
        break;
    }
}

static void post(struct hrt_net *own, bool send, int peer, char *data, size_t bytes) {
    if (bytes > 0) hrt_net_start(own, send, peer, data, bytes);
}

// Exchanges with every other rank r: `send[r]` there, `recv[r]` from there. Peers in an order that
// begins behind this rank, so that not all send to the same one first.
struct part {
    char *data;
    size_t bytes;
};

static void exchange(struct hrt_net *own, struct part (*recv)(struct hrt_net *, int, void *),
                     struct part (*send)(struct hrt_net *, int, void *), void *context) {
    for (int i = 1; i < own->size; i++) {
        const int from = (own->rank + own->size - i) % own->size;
        const struct part in = recv(own, from, context);
        post(own, false, from, in.data, in.bytes);
    }
    for (int i = 1; i < own->size; i++) {
        const int to = (own->rank + i) % own->size;
        const struct part out = send(own, to, context);
        post(own, true, to, out.data, out.bytes);
    }
    hrt_net_finish(own, "all_reduce");
}

// One round: `count` elements at `data`, cut into one part for each rank.
struct round {
    char *data;
    int64_t count;
    size_t element, stride; // Bytes; `stride` between the ranks' parts in scratch.
};

static struct part part_of(struct hrt_net *own, int rank, void *context) {
    const struct round *round = context;
    const int64_t begin = round->count * rank / own->size;
    const int64_t end = round->count * (rank + 1) / own->size;
    return (struct part){round->data + (size_t)begin * round->element,
                         (size_t)(end - begin) * round->element};
}

static struct part own_part(struct hrt_net *own, int rank, void *context) {
    (void)rank;
    return part_of(own, own->rank, context);
}

// Where another rank's share of this rank's part arrives.
static struct part scratch_part(struct hrt_net *own, int rank, void *context) {
    const struct round *round = context;
    return (struct part){own->scratch + round->stride * (size_t)rank,
                         part_of(own, own->rank, context).bytes};
}

static struct part whole(struct hrt_net *own, int rank, void *context) {
    (void)own, (void)rank;
    const struct round *round = context;
    return (struct part){round->data, (size_t)round->count * round->element};
}

static struct part scratch_whole(struct hrt_net *own, int rank, void *context) {
    const struct round *round = context;
    return (struct part){own->scratch + round->stride * (size_t)rank,
                         whole(own, rank, context).bytes};
}

static void reduce(struct hrt_net *own, struct round *round, enum hrt_number type) {
    const size_t bytes = (size_t)round->count * round->element;
    if (bytes <= SMALL && bytes <= round->stride) {
        exchange(own, scratch_whole, whole, round);
        add_up(own, round->data, round->stride, round->count, type);
        return;
    }
    exchange(own, scratch_part, part_of, round);
    const struct part mine = part_of(own, own->rank, round);
    add_up(own, mine.data, round->stride, (int64_t)(mine.bytes / round->element), type);
    exchange(own, part_of, own_part, round);
}

void hrt_net_all_reduce(struct hrt_comm *comm, void *data, int64_t count, enum hrt_number type) {
    struct hrt_net *own = comm->own;
    const size_t element = type == HRT_FLOAT ? sizeof(float) : 8;
    // Scratch takes `stride` bytes of every rank.
    const size_t stride = HRT_NET_SCRATCH / (size_t)own->size / 64 * 64;
    const int64_t most = (int64_t)(stride / element) * own->size;
    for (int64_t begin = 0; begin < count; begin += most) {
        struct round round = {.data = (char *)data + (size_t)begin * element,
                              .count = count - begin < most ? count - begin : most,
                              .element = element,
                              .stride = stride};
        reduce(own, &round, type);
    }
}
