// A permutation without a table, and the places of sequences by it.
//
// Source: Black and Rogaway 2002, "Ciphers with Arbitrary Finite Domains": a Feistel network permutes the next power of
// four. An image outside of the domain goes through it again until it falls inside.
#include "runtime/data/order.h"

#include <assert.h>
#include <stdbool.h>

enum { ROUNDS = 6 };

uint64_t hrt_data_permute(struct hrt_stream key, uint64_t count, uint64_t index) {
    assert(index < count);
    int bits = 1; // Bits of each half.
    while (bits < 32 && (count - 1) >> (2 * bits)) bits++;
    const uint64_t mask = ((uint64_t)1 << bits) - 1;
    do { // At most four times in the mean: the domain has less than four times `count`.
        uint64_t left = index >> bits, right = index & mask;
        for (uint64_t round = 0; round < ROUNDS; round++) {
            const uint64_t mixed = left ^ (hrt_draw_bits(key, round << 32 | right) & mask);
            left = right;
            right = mixed;
        }
        index = left << bits | right;
    } while (index >= count);
    return index;
}

int64_t hrt_data_order_place(enum hrt_data_order order, uint64_t seed, int64_t tokens,
                             int64_t positions, int64_t unit, uint64_t sequence) {
    assert(order != HRT_DATA_ORDER_random && tokens >= positions && tokens % unit == 0);
    unsigned __int128 at = sequence;
    uint64_t offset = 0;
    if (order == HRT_DATA_ORDER_shuffle) {
        const uint64_t windows = (uint64_t)(tokens / positions), epoch = sequence / windows;
        const struct hrt_stream offsets = hrt_stream_make(seed, "offset of an epoch", "");
        struct hrt_stream key = hrt_stream_make(seed, "order of an epoch", "");
        key.name = hrt_draw_bits(key, epoch);
        offset = hrt_draw_below(offsets, epoch, (uint64_t)(tokens / unit)) * (uint64_t)unit;
        at = hrt_data_permute(key, windows, sequence % windows);
    }
    return (int64_t)((at * (uint64_t)positions + offset) % (uint64_t)tokens);
}
