// The sum over ranks in the order of ranks: rank r adds up the r-th part of everybody's data, then
// all parts go to everybody. Each rank sends and receives 2 (size - 1) / size of the data, the least
// possible; MPI's own reduction promises no order.
//
// Little data goes to all ranks, which add it up alike: the same bits with fewer waits. Sums of whole numbers have the
// same bits in any order, so many ranks add those up inside their groups first. Much data goes in rounds, so that
// scratch is bounded.
#include "runtime/net/net.h"

#include <string.h>

#include "runtime/net/all_gather.h"

enum { SMALL = 4096, BLOCK = 256 }; // Bytes of data; elements.

// Receives before sends: a missing message tells more than a stuck one.
static int first_awaited(const struct hrt_net_pieces *pieces) {
    for (int i = 0; i < pieces->count; i++) {
        if (pieces->of[i].what == HRT_NET_RECEIVED) return pieces->of[i].peer;
    }
    return pieces->of[0].peer;
}

static void finish(struct hrt_net *own, const char *what) {
    struct hrt_net_pieces *pieces = &own->collective;
    hrt_net_busy(own);
    hrt_net_wait(own, true);
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
    hrt_net_wait(own, false);
}

// Runs the steps of own->telling, messages alone, round by round.
static void run_rounds(struct hrt_net *own, const char *what) {
    const struct hrt_steps *steps = &own->telling;
    for (int32_t i = 0; i < steps->count; i++) {
        const struct hrt_step *step = &steps->step[i];
        const bool sends = step->kind == HRT_SEND;
        hrt_net_start(own, sends, step->peer, sends ? (char *)step->from : step->to, step->bytes);
        if (i + 1 == steps->count || step[1].round > step->round) finish(own, what);
    }
}

void hrt_net_tell_all(struct hrt_net *own, void *blocks, size_t bytes, const char *what) {
    hrt_net_steps_all_gather(&own->telling, &own->grid, own->rank, blocks, bytes);
    run_rounds(own, what);
}

// The terms of a sum, but for this rank's.
struct terms {
    const char *at;
    size_t stride;
    const struct hpl_grid *grid; // They lie as in hrt_net_gathered_at; NULL: in the order of ranks.
};

static const char *term_of(const struct terms *terms, int rank, int of) {
    const size_t place = terms->grid ? hrt_net_gathered_at(terms->grid, rank, of) : (size_t)of;
    return terms->at + terms->stride * place;
}

// sum[i] = term 0 [i] + term 1 [i] + ..., i < count. Term r is terms[r], that of `rank` is in sum itself.
#define DEFINE_ADD_UP(name, type)                                                                  \
    static void name(type *sum, const struct terms *terms, int rank, int size, int64_t count) {    \
        for (int64_t begin = 0; begin < count; begin += BLOCK) {                                   \
            const int64_t block = count - begin < BLOCK ? count - begin : BLOCK;                   \
            type all[BLOCK];                                                                       \
            for (int r = 0; r < size; r++) {                                                       \
                const type *term = (const type *)term_of(terms, rank, r);                          \
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

// Adds up `count` elements of `mine` and of the other ranks' terms, in place.
static void add_up(const struct hrt_net *own, char *mine, const struct terms *terms, int64_t count,
                   enum hrt_number type) {
    void *sum = mine;
    switch (type) {
    case HRT_FLOAT:
        add_up_float(sum, terms, own->rank, own->size, count);
        break;
    case HRT_DOUBLE:
        add_up_double(sum, terms, own->rank, own->size, count);
        break;
    case HRT_INT64:
        add_up_int64(sum, terms, own->rank, own->size, count);
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
    finish(own, "all_reduce");
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

static void reduce(struct hrt_net *own, struct round *round, enum hrt_number type) {
    const size_t bytes = (size_t)round->count * round->element;
    if (bytes <= SMALL && bytes <= round->stride) {
        const struct terms terms = {own->scratch, bytes, &own->grid};
        const size_t place = hrt_net_gathered_at(&own->grid, own->rank, own->rank);
        memcpy(own->scratch + place * bytes, round->data, bytes);
        hrt_net_tell_all(own, own->scratch, bytes, "all_reduce");
        add_up(own, round->data, &terms, round->count, type);
        return;
    }
    exchange(own, scratch_part, part_of, round);
    const struct part mine = part_of(own, own->rank, round);
    const struct terms terms = {own->scratch, round->stride, NULL};
    add_up(own, mine.data, &terms, (int64_t)(mine.bytes / round->element), type);
    exchange(own, part_of, own_part, round);
}

// ---- whole numbers, over the grid

// Inside the group each rank has a part of the numbers. With `terms` all send it their terms of that part, [inside];
// without it sends all of them its part.
static void exchange_parts(struct hrt_net *own, int64_t *data, int64_t count, int64_t *terms) {
    const int inside = own->grid.inside, number = own->rank % inside, first = own->rank - number;
    const int64_t begin = count * number / inside, mine = count * (number + 1) / inside - begin;
    for (int i = 0; i < 2 * inside; i++) {
        const int other = (number + 1 + i) % inside;
        const int64_t from = count * other / inside, its = count * (other + 1) / inside - from;
        const bool sends = i >= inside, own_part = sends == !terms;
        int64_t *at = data + (own_part ? begin : from);
        if (terms && !sends) at = terms + other * mine;
        if (other != number)
            post(own, sends, first + other, (char *)at, 8 * (size_t)(own_part ? mine : its));
    }
    finish(own, "all_reduce");
}

static void add_terms(int64_t *sum, const int64_t *terms, int64_t count) {
    for (int64_t i = 0; i < count; i++) sum[i] += terms[i];
}

// Each rank adds up a part of its group's, then that of all groups.
static void reduce_over_grid(struct hrt_net *own, int64_t *data, int64_t count) {
    const struct hpl_grid *grid = &own->grid;
    const int number = own->rank % grid->inside;
    const int64_t begin = count * number / grid->inside;
    const int64_t mine = count * (number + 1) / grid->inside - begin;
    int64_t *terms = (int64_t *)own->scratch;
    exchange_parts(own, data, count, terms);
    for (int i = 0; i < grid->inside; i++) {
        if (i != number) add_terms(data + begin, terms + i * mine, mine);
    }
    memcpy(terms, data + begin, 8 * (size_t)mine);
    if (mine > 0) {
        hrt_net_steps_gather_across(&own->telling, grid, own->rank, terms, 8 * (size_t)mine);
        run_rounds(own, "all_reduce");
    }
    for (int g = 1; g < grid->groups; g++) add_terms(data + begin, terms + g * mine, mine);
    exchange_parts(own, data, count, NULL);
}

static void reduce_numbers(struct hrt_net *own, int64_t *data, int64_t count) {
    const struct hpl_grid *grid = &own->grid;
    const int64_t terms = grid->groups > grid->inside ? grid->groups : grid->inside;
    const int64_t most = (HRT_NET_SCRATCH / 8 / terms - 1) * grid->inside;
    for (int64_t begin = 0; begin < count; begin += most)
        reduce_over_grid(own, data + begin, count - begin < most ? count - begin : most);
}

void hrt_net_all_reduce(struct hrt_comm *comm, void *data, int64_t count, enum hrt_number type) {
    struct hrt_net *own = comm->own;
    const size_t element = type == HRT_FLOAT ? sizeof(float) : 8;
    if (type == HRT_INT64 && own->grid.groups > 1 && count > SMALL / 8) {
        reduce_numbers(own, data, count);
        return;
    }
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
