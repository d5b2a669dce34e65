// Counts as runtime/experts/experts.c, runtime/train/dense.c, dense_units.c and runtime/net/nccl.c lay out.
#include "passes/cost/under_way.h"

#include <stdlib.h>

#include "ir/accessors.h"
#include "ir/core/setting.h"
#include "ir/target/target.h"
#include "ir/values.h"
#include "passes/base/movement.h"
#include "passes/cost/held.h"
#include "runtime/plan/held.h"

enum { MIB = 1 << 20 };

static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int64_t layers_of(MlirOperation symbol) {
    const int64_t layers = hec_any_layers(symbol);
    return layers > 0 ? layers : 1;
}

// ---- rows

// Bytes of a row on its way to experts; without owners only counts move.
static int64_t row_bytes(MlirOperation set, int64_t element) {
    const MlirOperation dispatch = hec_dispatch_of(set);
    if (!hec_set_owned(set)) return element;
    if (mlirOperationIsNull(dispatch)) return 0;
    const MlirType type = mlirValueGetType(hec_dispatch_rows(dispatch));
    const int64_t width = hec_type_elements(type) / mlirShapedTypeGetDimSize(type, 0);
    return width * (hec_type_is_rounded(type) ? 2 : element);
}

// Messages of a wave, as long as those of the largest set, and results.
struct wave {
    int64_t pairs, rows, sent, received, result;
    int64_t elements; // In a wave's rows.
};

// The runs and counts of a layer's experts, on the host. Replicas, which add some, are left out.
static int64_t tables_bytes(MlirOperation set, int64_t ranks) {
    enum { RUN = 12, COUNT = 4 };
    return (1 + ranks) * hec_set_experts(set) * (RUN + COUNT);
}

// Memory for rows that cross once to a node (runtime/experts/relay.h): lists of a wave's rows, another array of
// each layer, and the rows that a relay receives and hands on. `row`, `gated`: bytes of a row, and of one in a message.
static int64_t relay_bytes(MlirOperation module, MlirOperation set, int64_t row, int64_t gated) {
    enum { NUMBER = sizeof(int32_t), PADDING = 32 };
    const int64_t nodes = hec_setting_count(module, HEC_KEY_cluster_nodes, 1);
    const int64_t devices = hec_module_world(module) / nodes;
    const int64_t tokens = hec_module_batch(module) * hec_module_positions(module);
    const int64_t pairs = tokens * hec_set_topk(set), most = devices * hec_set_wave_rows(set);
    const int64_t sent = (nodes - 1) * tokens, all = smaller((nodes - 1) * pairs, most);
    return pairs * PADDING + (layers_of(set) + 3) * pairs * NUMBER + tokens * NUMBER +
           smaller(sent, all) * row + all * (NUMBER + hec_held_element_bytes(module) + gated);
}

static int64_t rows_bytes(MlirOperation module, struct wave *most) {
    const int64_t element = hec_held_element_bytes(module), ranks = hec_module_world(module);
    const int64_t tokens = hec_module_batch(module) * hec_module_positions(module);
    const bool apart = hec_target_of(module)->apart;
    int64_t bytes = 0, relay = 0;
    HEC_EACH_OF (set, hec_ops_in(hec_module_body(module)), HEC_OP_set) {
        const int64_t pairs = tokens * hec_set_topk(set), row = row_bytes(set, element);
        const int64_t rows = hec_set_owned(set) ? hec_set_wave_rows(set) : 1;
        const int64_t gate = ((row + element - 1) / element * element + element + 15) / 16 * 16;
        most->pairs = larger(most->pairs, pairs);
        most->rows = larger(most->rows, rows);
        most->sent = larger(most->sent, pairs * gate);
        most->received = larger(most->received, rows * gate);
        most->result = larger(most->result, pairs * row);
        most->elements = larger(most->elements, rows * row / element);
        bytes += layers_of(set) * 2 * pairs * (int64_t)sizeof(int32_t);
        bytes += apart ? 0 : layers_of(set) * tables_bytes(set, ranks);
        if (hec_set_owned(set) && hec_rows_cross_once(module))
            relay = larger(relay, relay_bytes(module, set, row, gate));
    }
    return bytes + relay + (2 * most->pairs + most->rows) * (int64_t)sizeof(int32_t) +
           most->pairs * element + most->sent + most->received + most->result;
}

// ---- dense parameters

static bool is_dense(MlirOperation module, MlirOperation param) {
    return !hec_param_has_set(param) &&
           (hec_param_trainable(param) || (hec_shards_dense(module) && hec_param_frozen(param)));
}

// Parts of all ranks, and places for those received, in rounds.
static int64_t sums_bytes(MlirOperation module) {
    enum { ROUND = 4 * MIB, ROUND_APART = 64 * MIB, LINE = 64 };
    const int64_t ranks = hec_module_world(module);
    int64_t elements = 0;
    HEC_EACH (op, hec_ops_in(hec_module_body(module))) {
        if (hec_op_is(op, HEC_OP_param) && is_dense(module, op))
            elements += layers_of(op) * hpl_part(hec_param_elements(op), ranks);
        if (hec_op_is(op, HEC_OP_set) && !hec_set_owned(op))
            elements +=
                layers_of(op) * hec_set_experts(op) * hpl_part(hec_set_chunk_elements(op), ranks);
    }
    const int64_t all = elements * hec_held_element_bytes(module);
    const int64_t round = (hec_target_of(module)->apart ? ROUND_APART : ROUND) / ranks;
    const int64_t stride = ((all < round ? all : round) + LINE) / LINE * LINE;
    return stride * (ranks + ranks + ranks / 2 + 1);
}

// ---- all of it

// NCCL's: lanes, thread blocks of all of them, and a block's buffers for each peer of a node.
static int64_t messages_bytes(int64_t ranks) {
    enum { LANES = 6, BLOCKS = 26, ALONE = 4, BLOCK = 6, PEER = 5, NODE = 8 };
    const int64_t peers = (ranks < NODE ? ranks : NODE) - 1;
    return (LANES * ALONE + BLOCKS * (BLOCK + peers * PEER)) * (int64_t)MIB;
}

struct hec_under_way hec_under_way_of(MlirOperation module) {
    const bool apart = hec_target_of(module)->apart;
    struct hec_under_way u = {.program = apart ? 0 : 12 * (int64_t)MIB};
    struct wave wave = {0};
    if (!hec_module_has_world(module)) return u;
    const int64_t ranks = hec_module_world(module);
    u.rows = rows_bytes(module, &wave);
    u.sums = sums_bytes(module);
    if (hec_shards_dense(module)) u.units = hec_module_unit_bytes(module);
    u.messages = apart && ranks > 1 ? messages_bytes(ranks) : 0;
    // Rows come and go through copies of a wave.
    u.program = apart ? 0
                      : 40 * (int64_t)MIB + ranks * 64 * 1024 +
                            2 * wave.elements * hec_held_element_bytes(module);
    return u;
}
