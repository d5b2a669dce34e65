// The plan and route of a layer, the rows of a wave, and the state that the files of runtime/experts work on. Nobody
// else includes this.
#ifndef HECATE_RUNTIME_EXPERTS_LAYER_H
#define HECATE_RUNTIME_EXPERTS_LAYER_H

#include "kernels/runs/runs.h"
#include "runtime/device/device.h"
#include "runtime/experts/experts.h"
#include "runtime/experts/relay.h"
#include "runtime/net/transport.h"
#include "runtime/plan/grid.h"
#include "runtime/plan/types.h"

// The plan and the route of one layer. In memory of both are the arrays that the host writes once the counts of a route
// are there, and that the kernel which copies rows reads until those of the next are: on a device with separate memory
// that is when it has done all before.
struct hrt_experts_layer {
    const struct hrt_experts_set *set;
    struct hpl_plan plan;
    int64_t tokens;
    uint32_t *count; // [ranks][experts] rows of each source
    bool divided;    // The fields below are from the last route.
    int64_t waves;
    int32_t *sends; // [ranks + 1] the first of `send` for each rank; behind them their number.
    int32_t here;   // Experts on this rank.
    struct hk_run
        *send; // In memory of both, [holders]: own rows for each, by the holder's rank, and their
               // places among all rows of that rank.
    struct hk_run
        *recv; // In memory of both, [ranks][here]: rows of each source, numbered as they lie here.
    int32_t *
        start; // In memory of both, [slots + 1]: the first row of each expert here; behind them all.
    int32_t *pair; // On the device, [tokens * picks]: own rows, by expert, then ascending.
    int32_t *slot; // On the device, [tokens * picks]: where a pair is in `pair`; -1: dropped.
    int32_t
        *summed; // Where a relay serves, as `slot`, but -1 where another pair's result has the sum.
    int32_t *running; // [experts] choices of a step so far, for a device with separate memory.
    // Since hrt_experts_forget: rows that each rank has had to compute, and the most waves.
    int64_t *computed; // [ranks]
    int64_t most_waves;
};

// The rows of one wave that this rank sends and receives, by peer. Row i of the sent ones is own row
// send[i], of pair pair[i]; row i of the received ones has place recv[i] in the wave. Rows from a rank to itself are
// in both, in the same order.
struct hrt_wave {
    const struct hrt_experts_layer *layer; // NULL: holds nothing.
    int64_t wave, begin, end;              // The rows begin .. end - 1 of every rank.
    int32_t *send, *pair, *recv;           // On the device, [tokens * picks] twice and [wave_rows].
    int32_t *send_first, *recv_first;      // [ranks + 1]
};

// Arrays of a device with separate memory where groups of tokens lie on several ranks: those that the host reads, in
// memory of both, and those that the device limits with.
struct hrt_experts_copies {
    int32_t *ids, *kept;                         // [tokens * picks]
    char *weights;                               // [tokens * picks]
    char *fractions;                             // [sequences][experts]
    int32_t *kept_first, *kept_pair, *kept_slot; // On the device, as hk_limit has them.
};

struct hrt_experts {
    struct hrt_comm *comm;
    struct hrt_device *device;
    void *there, *both; // Where all that is of the device, or of both, lies.
    struct hrt_experts_bytes bytes_taken;
    struct hrt_experts_copies copies;
    struct hrt_experts_shape shape;   // With a copy of the sets.
    struct hrt_experts_layer **layer; // [sets][layers]
    struct hrt_wave wave;
    struct hrt_steps steps; // Steps of an exchange.
    // Rows of `wave` are on their way home, with gates or without, up to the mark: `returns`, and the messages in
    // `sent` and `received`, are taken.
    bool returning, returning_gates;
    struct hrt_steps returns;
    struct hrt_mark returned;
    struct hrt_relay relay; // In place of `steps` and `returns` where it serves.
    int64_t *total;         // [ranks] rows of all sources
    int32_t *first;         // In memory of both, [experts + 1]: own rows of each begin here
    int32_t *cursor;        // [ranks]
    uint32_t *to;           // [holders] this rank's quotas
    uint32_t *here;         // [ranks][slots] the quotas for this rank's holders
    uint32_t *row;          // [holders] quotas of one source
    uint32_t *before, *sum; // [holders] quotas of ranks before this one; of all
    uint32_t *mine;         // [experts]
    struct hpl_grid grid;   // In which ranks tell each other
    uint32_t *heard;        // [ranks][experts + 2] the word, and counts, by hrt_net_gathered_at.
    size_t *bytes[2], *offset[2]; // [ranks] of an exchange: sent and received ones.
    // On the device.
    char *sent, *received; // [tokens * picks][width + 1], [wave_rows][width + 1]
    char *result;          // [tokens * picks][width] given back, in the order of `pair`
    char *result_gate;     // [tokens * picks]
    int64_t each, all;     // As hrt_experts_tokens.
    uint64_t
        word; // The compared word, how often it was compared, and the function to call where ranks differ.
    int64_t compared;
    struct hrt_experts_layer *routed; // The device counts its rows, in `first`; NULL: none.
    // The layer whose top-k choices, and those that were kept, are in `copies`; NULL: of none.
    struct hrt_experts_layer *dropped;
    bool telling; // A message is on its way, up to the mark `told`: `steps` and `heard` are taken.
    uint32_t *told_counts; // [ranks][told_size] where its counts belong; NULL: it has words alone.
    int64_t told_size;
    struct hrt_mark told;
    hrt_differ_fn *differ;
    void *differ_context;
    int64_t *counts; // [ranks * sequences][experts] top-k choices of a group.
    // For hrt_experts_drop, where a set is limited.
    int64_t *digits; // [experts][256] top-k choices by a digit of their weights
    uint64_t *least; // [experts]
    int64_t *room;   // [experts]
};

// Bytes of a row; from a row of a message to its weight, which lies at a multiple of its size; and of both, padded so
// that rows lie at multiples of 16: NCCL and the kernels that copy move what lies so in vectors.
static inline size_t hrt_row_bytes(const struct hrt_experts_shape *shape,
                                   const struct hrt_experts_set *set) {
    return (size_t)set->width * (set->bf16 ? sizeof(uint16_t) : shape->element);
}

static inline size_t hrt_gate_offset(const struct hrt_experts_shape *shape,
                                     const struct hrt_experts_set *set) {
    const size_t element = shape->element;
    return (hrt_row_bytes(shape, set) + element - 1) / element * element;
}

static inline size_t hrt_gated_bytes(const struct hrt_experts_shape *shape,
                                     const struct hrt_experts_set *set) {
    return (hrt_gate_offset(shape, set) + shape->element + 15) / 16 * 16;
}

// Bytes between two rows of `sent`, where messages to relays begin; and where the first row would lie, so that those to
// ranks of this node lie one behind the other, `stride` apart.
static inline size_t hrt_experts_pitch(const struct hrt_experts *experts) {
    return hrt_experts_relay_pitch(hrt_gated_bytes(&experts->shape, experts->wave.layer->set));
}

static inline size_t hrt_experts_sent_near(const struct hrt_experts *experts, size_t stride) {
    const struct hrt_relay *relay = &experts->relay;
    if (!relay->serves) return 0;
    const int32_t first = experts->wave.send_first[relay->node_first[experts->comm->node]];
    return (size_t)first * (hrt_experts_pitch(experts) - stride);
}

static inline struct hrt_experts_layer *hrt_layer(const struct hrt_experts *experts, int set,
                                                  int64_t layer) {
    return &experts->layer[set][layer];
}

// This rank's tokens among those of an iteration, which are numbered over the ranks.
struct hrt_part {
    int64_t first, own, each, all;
};

// Arrays of a call with `tokens` tokens.
struct hrt_part hrt_experts_part_of(const struct hrt_experts *experts, int64_t tokens);

// Whether groups of `group` tokens (0: one of all) lie each on one rank. The same on every rank.
bool hrt_experts_group_is_alone(const struct hrt_part *part, int64_t group);

// Tells all ranks mine [size]: count [ranks][size] is that of each of them.
void hrt_experts_gather_counts(struct hrt_experts *experts, const uint32_t *mine, uint32_t *count,
                               int64_t size);

// Waits for all work of the device: for arrays that hrt_experts_see asked for, and the counts of a route with them.
void hrt_experts_join(struct hrt_experts *experts);

// Waits for the counts of the last route, also those that the device has not counted yet, and for words under way.
void hrt_experts_settle(struct hrt_experts *experts);

// The host's view of an array of `bytes`: the array itself, or `copy`, in memory of both, which a device with separate
// memory is only asked to bring: the host then waits for all of them at once.
const void *hrt_experts_see(struct hrt_experts *experts, void *copy, const void *array,
                            size_t bytes);

// Where the host writes an array of the device, before hrt_experts_show hands it over.
static inline void *hrt_experts_here(const struct hrt_experts *experts, void *copy, void *array) {
    return hrt_device_is_apart(experts->device) ? copy : array;
}
void hrt_experts_show(struct hrt_experts *experts, void *array, const void *copy, size_t bytes);

// Sorts the layer's pairs by their experts, `ids` [tokens, picks]; their rows begin at `first` [experts + 1].
void hrt_experts_sort_pairs(struct hrt_experts *experts, struct hrt_experts_layer *layer,
                            int32_t *first, const int32_t *ids, int64_t tokens);

// Prepares experts->wave for a wave of the layer.
const struct hrt_wave *hrt_experts_wave_of(struct hrt_experts *experts,
                                           const struct hrt_experts_layer *layer, int64_t wave);

// Where each expert's rows of that wave begin: first [slots + 1], of the device.
void hrt_experts_wave_starts(struct hrt_experts *experts, int32_t *first);

#endif
