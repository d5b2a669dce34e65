// Rows that cross once to a node. A token's row for several ranks of another node goes once, to one rank there,
// its relay, which copies it to those that need it. Their results come back through the relay as one sum.
//
// The relay of a source in a node has the source's number among those of its own node, modulo the ranks of that one.
// Whether two rows are of one token only their source knows. So it first tells the relay how many rows come, and how
// many pairs they stand for on each rank. The message to a relay has three sections, each at a multiple of 16 bytes:
//
//     place   [pairs] the row of each pair, numbered by first use; pairs in the order in which rows without relays go
//     rows    [rows]
//     gates   [pairs] where rows have weights
//
// Home go the last two: a row is then the sum of its pairs' results, added in their order; gates are each pair's.
#ifndef HECATE_RUNTIME_EXPERTS_RELAY_H
#define HECATE_RUNTIME_EXPERTS_RELAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/net/transport.h"

struct hrt_comm;
struct hrt_experts;
struct hrt_wave;

// Forms of rows on their way.
struct hrt_row_form {
    size_t row, element; // Bytes of a row, of a weight.
    size_t gate,
        stride; // In a message: from a row to its weight, or 0 where it has none; to the next row.
};

// The most that a rank relays: of `sources`, to the `devices` ranks of its node.
struct hrt_experts_relay_sizes {
    int64_t sources, devices;
    int64_t rows, pairs; // In a wave.
};

// A source of this rank's, in a wave.
struct hrt_relayed {
    int32_t source;
    int32_t rows, pairs;
    int32_t *place;
    char *row;
    int64_t first; // The first of its pairs, among those of all sources.
};

enum hrt_experts_relay_phase {
    HRT_RELAY_HEADS, // Sources say how much comes.
    HRT_RELAY_OUT,   // To relays, and to ranks of the own node.
    HRT_RELAY_SPREAD,
    HRT_RELAY_GATHER, // On the way home, and rows of the own node.
    HRT_RELAY_HOME,
    HRT_RELAY_DONE
};

struct hrt_relay {
    struct hrt_steps steps;
    struct hrt_experts *experts;
    bool serves; // False: there is one node, or every row travels for itself.
    bool heard;  // The sources of the wave have said how much comes.
    enum hrt_experts_relay_phase phase;
    struct hrt_row_form form;
    int32_t *node_first; // [nodes + 1] ranks
    // Rows of this rank that cross. Those to a node have the places of its rows among all that are sent.
    int32_t *place;     // [tokens * picks] the row of each pair, numbered from the node's first on
    int32_t *lead_pair; // [tokens * picks] the first pair of each row, by row,
    int32_t *lead_row;  // and its own row.
    int32_t *seen;      // [tokens]
    int32_t *rows;      // [nodes] as they cross
    int32_t *heads;     // [nodes][1 + ranks of the node] told to relays
    int32_t *hears;     // [sources][1 + devices]
    int32_t sources;
    struct hrt_relayed *relayed; // [sources]
    struct hrt_experts_relay_sizes most;
    char *in, *out; // Messages of sources; rows of all their pairs.
};

// Bytes between two rows of what a rank sends, where its messages to relays fit in the place of their rows.
size_t hrt_experts_relay_pitch(size_t gated);

// The sources of this rank and the ranks of its node.
struct hrt_experts_relay_sizes hrt_experts_relay_sizes(const struct hrt_comm *comm);

// Begins to serve; the memory is there.
void hrt_experts_relay_begin(struct hrt_experts *experts);

// Lists the rows of the wave that cross. On the host.
void hrt_experts_relay_list(struct hrt_experts *experts, const struct hrt_wave *wave);

// Fills in the messages to relays, from x [tokens] and weights [tokens * picks], or NULL.
void hrt_experts_relay_pack(struct hrt_experts *experts, const struct hrt_row_form *form,
                            const void *x, const void *weights);

// Starts to bring rows from `sent` to `received` of `experts`, or back.
struct hrt_mark hrt_experts_relay_start(struct hrt_experts *experts,
                                        const struct hrt_row_form *form, bool back);

// Takes the sums from the messages of relays to `result`, of the first pair of each, and the gates of all.
void hrt_experts_relay_unpack(struct hrt_experts *experts, const struct hrt_row_form *form);

#endif
