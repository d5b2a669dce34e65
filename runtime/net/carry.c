// From a transfer schedule to the steps of one rank.
//
// The first remaining transfer in the schedule's order can always go on, as no transfer waits for a later one.
// Bounded staging does not change that, since receives take their room in the same order.
#include <assert.h>
#include <string.h>

#include "kernels/bf16.h"
#include "runtime/net/steps.h"

// The list in the making.
struct making {
    struct hrt_steps *steps;
    const struct hrt_carry *carry;
    const int32_t *node;
    struct hrt_carried carried;
    int32_t staged;            // Receives beside so far.
    int32_t added[HRT_STAGED]; // The add that frees each place of staging; -1: it is free.
    int32_t rounded;           // Sends of rounded pieces so far,
    int32_t sent[HRT_STAGED];  // and the one that frees each of their places.
};

// FNV-1a, 32 bits at a time.
static uint64_t hashed(uint64_t hash, uint32_t word) {
    return (hash ^ word) * 0x100000001b3;
}

static uint64_t hash_of(const struct hrt_carry *carry) {
    const struct hpl_schedule *schedule = carry->schedule;
    uint64_t hash = hashed(0xcbf29ce484222325, carry->adds);
    for (int32_t i = 0; i < schedule->count; i++) {
        const struct hpl_transfer *t = &schedule->transfer[i];
        const int32_t word[] = {t->expert, t->segment, t->from, t->to, t->round};
        for (int w = 0; w < 5; w++) hash = hashed(hash, (uint32_t)word[w]);
    }
    return hash;
}

// Tells everybody to whom this rank sends the hash, and hears it from those that send to it.
static void greet(struct making *making) {
    const struct hrt_carry *carry = making->carry;
    struct hrt_steps *steps = making->steps;
    enum { SENDS = 1, RECEIVES = 2 };
    memset(carry->heard, 0, (size_t)carry->ranks * sizeof *carry->heard);
    for (int32_t i = 0; i < carry->schedule->count; i++) {
        const struct hpl_transfer *t = &carry->schedule->transfer[i];
        if (t->from == carry->rank) carry->heard[t->to] |= SENDS;
        if (t->to == carry->rank) carry->heard[t->from] |= RECEIVES;
    }
    for (int32_t peer = 0; peer < carry->ranks; peer++) {
        uint64_t *heard = &carry->heard[peer];
        const uint64_t way = *heard;
        if (way & SENDS) {
            const int32_t send = hrt_net_steps_send(steps, peer, &steps->hash, sizeof *heard, -1);
            steps->step[send].round = 0;
        }
        if (!(way & RECEIVES)) continue;
        const int32_t receive = hrt_net_steps_receive(steps, peer, heard, sizeof *heard, -1);
        steps->step[receive].round = 0;
        hrt_net_steps_append(steps, &(struct hrt_step){.kind = HRT_SAME,
                                                       .peer = peer,
                                                       .after = {receive, -1},
                                                       .to = heard,
                                                       .from = &steps->hash,
                                                       .bytes = sizeof *heard});
    }
}

// Bytes of a piece on its way.
static size_t way_bytes(const struct hrt_carry *carry, size_t bytes) {
    return carry->narrow ? bytes / sizeof(float) * sizeof(hk_bf16) : bytes;
}

// A place of staging, for pieces on their way here or, `leaves`, from here.
static char *place_of(const struct hrt_carry *carry, int32_t place, bool leaves) {
    const size_t each = way_bytes(carry, carry->staged);
    return carry->staging + (size_t)(leaves ? HRT_STAGED + place : place) * each;
}

// Data is received beside `to` and then added; the place is used again once it has been added.
static int32_t receive_and_add(struct making *making, int32_t peer, char *to, size_t bytes,
                               int32_t before) {
    const struct hrt_carry *carry = making->carry;
    const int32_t place = making->staged++ % HRT_STAGED;
    char *beside = place_of(carry, place, false);
    assert(bytes <= way_bytes(carry, carry->staged));
    const int32_t receive =
        hrt_net_steps_receive(making->steps, peer, beside, bytes, making->added[place]);
    making->added[place] = hrt_net_steps_append(
        making->steps, &(struct hrt_step){.kind = carry->narrow ? HRT_ADD_NARROW : HRT_ADD,
                                          .type = carry->type,
                                          .peer = peer,
                                          .after = {receive, before},
                                          .to = to,
                                          .from = beside,
                                          .bytes = bytes});
    return making->added[place];
}

// Data leaves as it lies or, in bf16, from a place beside, which is used again once it has been sent.
static void send_piece(struct making *making, int32_t peer, const char *from, size_t bytes,
                       int32_t before) {
    const struct hrt_carry *carry = making->carry;
    if (!carry->narrow) {
        hrt_net_steps_send(making->steps, peer, from, bytes, before);
        return;
    }
    const int32_t place = making->rounded++ % HRT_STAGED;
    char *beside = place_of(carry, place, true);
    const int32_t rounds = hrt_net_steps_append(
        making->steps, &(struct hrt_step){.kind = HRT_NARROW,
                                          .peer = carry->rank,
                                          .after = {before, making->sent[place]},
                                          .to = beside,
                                          .from = from,
                                          .bytes = bytes});
    making->sent[place] = hrt_net_steps_send(making->steps, peer, beside, bytes, rounds);
}

// This rank's part of a transfer of one piece.
static void carry_piece(struct making *making, const struct hpl_transfer *transfer, int32_t piece) {
    const struct hrt_carry *carry = making->carry;
    struct hrt_steps *steps = making->steps;
    int32_t *brought = &carry->brought[(int64_t)transfer->expert * carry->pieces + piece];
    const int32_t first = steps->count;
    size_t bytes;
    char *at = carry->place(carry->context, transfer->expert, piece, &bytes);
    bytes = way_bytes(carry, bytes);
    if (transfer->from == carry->rank) {
        send_piece(making, transfer->to, at, bytes, *brought);
    } else {
        making->carried.received += bytes;
        if (making->node && making->node[transfer->from] != making->node[carry->rank])
            making->carried.crossed += bytes;
        *brought = carry->adds ? receive_and_add(making, transfer->from, at, bytes, *brought)
                               : hrt_net_steps_receive(steps, transfer->from, at, bytes, *brought);
    }
    for (int32_t i = first; i < steps->count; i++) steps->step[i].round = transfer->round;
}

int64_t hrt_net_steps_room(int64_t transfers, int64_t ranks, bool adds) {
    return transfers * (adds ? 2 : 1) + 3 * ranks;
}

struct hrt_carried hrt_net_steps_carry(struct hrt_steps *steps, const struct hrt_carry *carry,
                                       const int32_t *node) {
    struct making making = {.steps = steps, .carry = carry, .node = node};
    const struct hpl_schedule *schedule = carry->schedule;
    hrt_net_steps_clear(steps);
    steps->hash = hash_of(carry);
    memset(carry->brought, -1,
           (size_t)carry->experts * (size_t)carry->pieces * sizeof *carry->brought);
    memset(making.added, -1, sizeof making.added);
    memset(making.sent, -1, sizeof making.sent);
    if (carry->heard) greet(&making);
    for (int32_t i = 0; i < schedule->count; i++) {
        const struct hpl_transfer *transfer = &schedule->transfer[i];
        if (transfer->to != carry->rank && transfer->from != carry->rank) continue;
        carry_piece(&making, transfer, transfer->segment);
        if (transfer->segment > 0) continue;
        for (int32_t p = schedule->segments; p < carry->pieces; p++)
            carry_piece(&making, transfer, p);
    }
    return making.carried;
}
