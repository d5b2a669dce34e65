// quota_pack.c: step 3 of policy fssdp, replicas inside one node.
#include "runtime/plan/order.h"
#include "runtime/plan/quota.h"
#include "runtime/plan/tally.h"

// The holder of the expert in the node that has most room; -1 when none has any.
static int32_t roomiest(const struct hpl_quota *q, int32_t node, int32_t expert) {
    const struct hpl_topology *topology = q->problem->topology;
    int32_t best = -1;
    for (int32_t d = topology->first[node]; d < topology->first[node + 1]; d++) {
        if (q->room[d] <= 0 || !hpl_draft_holds(&q->draft, expert, d)) continue;
        if (best < 0 || q->room[d] > q->room[best]) best = d;
    }
    return best;
}

static void put(struct hpl_quota *q, int32_t expert, int32_t device) {
    const int64_t rows = hpl_min(q->rest[expert], q->room[device]);
    q->rest[expert] -= rows;
    q->room[device] -= rows;
}

// Where the next piece of an expert goes. A device's last slot should not close while much of its
// room is left: so a piece that leaves room open goes to a device with another slot, most room
// first; failing that, to the device whose last slot it fills best.
static int32_t place_for(const struct hpl_quota *q, int32_t node, int32_t expert) {
    const struct hpl_topology *topology = q->problem->topology;
    const int64_t rest = q->rest[expert];
    int32_t best = -1;
    int64_t best_waste = 0;
    for (int32_t d = topology->first[node]; d < topology->first[node + 1]; d++) {
        if (q->room[d] <= 0 || !hpl_draft_may_add(&q->draft, expert, d)) continue;
        const bool last = q->draft.slots_left[d] == 1;
        const int64_t waste = last ? hpl_max(q->room[d] - rest, 0) : 0;
        const bool better =
            best < 0 || waste < best_waste || (waste == best_waste && q->room[d] > q->room[best]);
        if (better) best = d, best_waste = waste;
    }
    return best;
}

// Orders a node's experts by the rows that it computes, most first.
static void order_items(struct hpl_quota *q, int32_t node) {
    const int32_t first = q->node_first[node], count = q->node_first[node + 1] - first;
    for (int32_t i = 0; i < count; i++) {
        q->ids[i] = q->item[first + i];
        q->rest[q->ids[i]] = q->item_rows[first + i];
    }
    hpl_order_desc(q->ids, count, q->rest);
    for (int32_t i = 0; i < count; i++) {
        q->item[first + i] = q->ids[i];
        q->item_rows[first + i] = q->rest[q->ids[i]];
    }
}

// Gives the node's holders what they have room for, lightest experts first. Sets ids to those that have
// rows left over, and returns how many they are.
static int32_t fill_holders(struct hpl_quota *q, int32_t node) {
    int32_t over = 0;
    for (int32_t i = q->node_first[node + 1] - 1; i >= q->node_first[node]; i--) {
        const int32_t e = q->item[i];
        q->rest[e] = q->item_rows[i];
        for (int32_t d; q->rest[e] > 0 && (d = roomiest(q, node, e)) >= 0;) put(q, e, d);
        if (q->rest[e] > 0) q->ids[over++] = e;
    }
    return over;
}

// Step 3 for one node, whose experts are ordered: holders take their lightest experts first, so that the rest are
// pieces of heavy ones. From these the lightest go first, whole, and the heaviest, which can be cut
// anywhere, fill the remaining room. Returns the number of experts with rows left over, and adds those
// rows to `out`.
static int32_t pack_node(struct hpl_quota *q, int32_t node, int64_t *out) {
    const struct hpl_topology *topology = q->problem->topology;
    for (int32_t d = topology->first[node]; d < topology->first[node + 1]; d++) {
        q->room[d] = hpl_level_rows(q->level, topology->speed[d]);
    }
    const int32_t over = fill_holders(q, node);
    int32_t short_of = 0;
    hpl_order_desc(q->ids, over, q->rest);
    for (int32_t i = over - 1; i >= 0; i--) {
        const int32_t e = q->ids[i];
        for (int32_t d; q->rest[e] > 0 && (d = place_for(q, node, e)) >= 0;) {
            hpl_draft_add(&q->draft, e, d);
            q->added[q->added_count++] = (struct hpl_pair){e, d};
            put(q, e, d);
        }
        short_of += q->rest[e] > 0;
        *out += q->rest[e];
    }
    return short_of;
}

// Takes replicas back until `to` of them are left.
static void undo(struct hpl_quota *q, int32_t to) {
    while (q->added_count > to) {
        const struct hpl_pair last = q->added[--q->added_count];
        hpl_draft_remove(&q->draft, last.expert, last.device);
    }
}

// Where the expert stands among the node's; it is one of them.
static int32_t item_of(const struct hpl_quota *q, int32_t node, int32_t expert) {
    int32_t i = q->node_first[node];
    while (q->item[i] != expert) i++;
    return i;
}

// Packs a node with all of its imports or, where fewer rows stay out so, without those that save least. True: all fit.
static bool pack_imports(struct hpl_quota *q, int32_t node) {
    const int32_t before = q->added_count, all = q->imports[node];
    const int32_t *import = q->import + (int64_t)node * q->import_limit;
    int64_t out = 0, without = 0;
    int32_t short_of = pack_node(q, node, &out);
    if (short_of == 0) return true;
    while (short_of > 0 && q->imports[node] > 0 && without < out) {
        for (; short_of > 0 && q->imports[node] > 0; short_of--) {
            const int32_t last = --q->imports[node], i = item_of(q, node, import[last]);
            q->without[last] = q->item_rows[i];
            without += q->item_rows[i];
            q->item_rows[i] = 0;
        }
        int64_t more = 0;
        undo(q, before);
        short_of = pack_node(q, node, &more);
    }
    if (short_of == 0 && without < out) return false;
    undo(q, before);
    for (; q->imports[node] < all; q->imports[node]++)
        q->item_rows[item_of(q, node, import[q->imports[node]])] = q->without[q->imports[node]];
    pack_node(q, node, &out);
    return false;
}

bool hpl_quota_pack(struct hpl_quota *q) {
    bool packed = true;
    for (int32_t n = 0; n < q->nodes.nodes; n++) {
        order_items(q, n);
        packed = pack_imports(q, n) && packed;
    }
    return packed;
}
