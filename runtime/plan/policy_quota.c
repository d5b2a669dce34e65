// quota: replicas under budgets, topology first (ours; docs/planner.md).
//
//   1. imports   each node takes the chunks of other nodes that most of its own rows ask for
//   2. nodes     how many rows of each expert every node computes: exact shares, nodes as devices
//   3. packing   inside a node, chunks whose rows do not fit on their holders get replicas where
//                there is most room. When slots run out, the import that saves least is dropped and
//                2 and 3 are done again, so entries and slots are chosen together
//   4. keeping   slots that are left take the chunks that most rows of their own device ask for:
//                those rows stay, and the many paths they open absorb what the forecast missed
//
// After the gate, the same function calibrates: `present` is the plan made before, and only what
// slots and entries are left is spent, on the exact counts.
#include "runtime/plan/draft.h"
#include "runtime/plan/order.h"
#include "runtime/plan/policies.h"
#include "runtime/plan/tally.h"

enum { LEVEL_ROUNDS = 14 };

struct pair {
    int32_t expert;
    int32_t device;
};

// Everything between the steps. Arrays of a node's experts lie at node_first[n].
struct quota {
    const struct hpl_problem *problem;
    struct hpl_draft draft;
    uint32_t *node_rows; // [nodes][experts] rows that start in a node

    int32_t import_limit;  // Entries of a node, at most.
    int32_t *import;       // [nodes][import_limit] most asked first
    int32_t *imports;      // [nodes] how many of them are taken
    int32_t *best_imports; // [nodes] how many gave the least load
    int32_t *short_of;     // [nodes] experts that packing left over

    struct hpl_topology nodes; // Nodes as devices.
    struct hpl_plan where;     // Which node has which expert.
    int64_t *share;            // [where's holders]
    struct hpl_level level;
    bool raised; // The level is higher than the mean and the slack alone ask for.

    int32_t *node_first; // [nodes + 1]
    int32_t *item;       // experts of a node
    int64_t *item_rows;  // rows of each that the node computes

    int64_t *rest; // [experts] rows not yet placed, while packing a node
    int64_t *room; // [devices]
    int32_t *ids;  // [experts]

    struct pair *added; // Replicas added by packing, so that it can be undone.
    int32_t added_count;
};

static bool take_arrays(struct quota *q, struct hpl_work *work) {
    const struct hpl_topology *topology = q->problem->topology;
    const int32_t nodes = topology->nodes, experts = q->problem->experts;
    const int64_t where = experts + (int64_t)nodes * experts;
    q->node_rows = HPL_TAKE(work, (int64_t)nodes * experts, uint32_t);
    q->import = HPL_TAKE(work, (int64_t)nodes * q->import_limit, int32_t);
    q->imports = HPL_TAKE(work, nodes, int32_t);
    q->best_imports = HPL_TAKE(work, nodes, int32_t);
    q->short_of = HPL_TAKE(work, nodes, int32_t);
    q->where.capacity = (int32_t)where;
    q->where.first = HPL_TAKE(work, experts + 1, int32_t);
    q->where.holder = HPL_TAKE(work, where, int32_t);
    q->share = HPL_TAKE(work, where, int64_t);
    q->node_first = HPL_TAKE(work, nodes + 2, int32_t);
    q->item = HPL_TAKE(work, where, int32_t);
    q->item_rows = HPL_TAKE(work, where, int64_t);
    q->rest = HPL_TAKE(work, experts, int64_t);
    q->room = HPL_TAKE(work, topology->devices, int64_t);
    q->ids = HPL_TAKE(work, experts, int32_t);
    int64_t slots = 0;
    for (int32_t d = 0; d < topology->devices; d++) slots += q->draft.slots_left[d];
    q->added = HPL_TAKE(work, slots, struct pair);
    return q->node_rows && q->import && q->imports && q->best_imports && q->short_of &&
           q->where.first && q->where.holder && q->share && q->node_first && q->item &&
           q->item_rows && q->rest && q->room && q->ids && q->added;
}

// Nodes as devices, each a node of its own.
static bool take_nodes(struct quota *q, struct hpl_work *work) {
    const struct hpl_topology *topology = q->problem->topology;
    int32_t *first = HPL_TAKE(work, topology->nodes + 1, int32_t);
    int32_t *speed = HPL_TAKE(work, topology->nodes, int32_t);
    if (!first || !speed) return false;
    for (int32_t n = 0; n <= topology->nodes; n++) first[n] = n;
    for (int32_t n = 0; n < topology->nodes; n++) {
        speed[n] = 0;
        for (int32_t d = topology->first[n]; d < topology->first[n + 1]; d++) {
            speed[n] += topology->speed[d];
        }
    }
    q->nodes = (struct hpl_topology){topology->nodes, topology->nodes, first, first, speed};
    return true;
}

// Step 1: by the rows that would otherwise leave the node, if those are at least `least`.
static void choose_imports(struct quota *q, int64_t least) {
    const int32_t experts = q->problem->experts;
    for (int32_t n = 0; n < q->nodes.nodes; n++) {
        int32_t *import = q->import + (int64_t)n * q->import_limit;
        const uint32_t *rows = q->node_rows + (int64_t)n * experts;
        int32_t count = 0;
        for (int32_t e = 0; e < experts; e++) q->rest[e] = rows[e];
        for (int32_t e = 0; e < experts; e++) {
            if (rows[e] < least || *hpl_draft_copies(&q->draft, n, e) > 0) continue;
            count = hpl_order_insert(import, count, q->draft.entries_left[n], e, q->rest);
        }
        q->imports[n] = count;
    }
}

// Which node has which expert, by owners, present replicas and imports: CSR by expert. Nodes come
// in ascending order, and every node's imports are marked while its column is written.
static void form_where(struct quota *q) {
    const int32_t experts = q->problem->experts, nodes = q->nodes.nodes;
    for (int32_t n = 0; n < nodes; n++) { // A mark of -1 stands for one import.
        for (int32_t i = 0; i < q->imports[n]; i++) {
            *hpl_draft_copies(&q->draft, n, q->import[(int64_t)n * q->import_limit + i]) = -1;
        }
    }
    hpl_zero_i32(q->where.first, experts + 1);
    for (int32_t n = 0; n < nodes; n++) {
        const int32_t *copies = hpl_draft_copies(&q->draft, n, 0);
        for (int32_t e = 0; e < experts; e++) q->where.first[e + 1] += copies[e] != 0;
    }
    for (int32_t e = 0; e < experts; e++) {
        q->where.first[e + 1] += q->where.first[e];
        q->ids[e] = q->where.first[e];
    }
    for (int32_t n = 0; n < nodes; n++) {
        int32_t *copies = hpl_draft_copies(&q->draft, n, 0);
        for (int32_t e = 0; e < experts; e++) {
            if (copies[e] != 0) q->where.holder[q->ids[e]++] = n;
            if (copies[e] < 0) copies[e] = 0;
        }
    }
    q->where.experts = experts;
}

// The same by node, with the rows the node computes.
static void form_items(struct quota *q) {
    const int32_t experts = q->problem->experts, nodes = q->nodes.nodes;
    hpl_zero_i32(q->node_first, nodes + 2);
    for (int32_t k = 0; k < q->where.first[experts]; k++) q->node_first[q->where.holder[k] + 2]++;
    for (int32_t n = 0; n < nodes; n++) q->node_first[n + 2] += q->node_first[n + 1];
    for (int32_t e = 0; e < experts; e++) {
        for (int32_t k = q->where.first[e]; k < q->where.first[e + 1]; k++) {
            const int32_t at = q->node_first[q->where.holder[k] + 1]++;
            q->item[at] = e;
            q->item_rows[at] = q->share[k];
        }
    }
}

// Step 2.
static enum hpl_status share_nodes(struct quota *q, struct hpl_work *work) {
    form_where(q);
    const struct hpl_loads loads = {q->nodes.nodes, q->problem->experts, q->node_rows};
    const enum hpl_status status = hpl_share(&q->nodes, &q->where, &loads, q->problem->budget.slack,
                                             q->share, &q->level, work);
    if (status != HPL_OK) return status;
    int64_t rows = 0;
    for (int32_t k = 0; k < q->where.first[q->problem->experts]; k++) rows += q->share[k];
    q->raised = (__int128)q->level.num * 1000 * hpl_tally_speed(&q->nodes) >
                (__int128)rows * (1000 + q->problem->budget.slack) * q->level.den;
    form_items(q);
    return HPL_OK;
}

// The holder of the expert in the node that has most room; -1 when none has any.
static int32_t roomiest(const struct quota *q, int32_t node, int32_t expert) {
    const struct hpl_topology *topology = q->problem->topology;
    int32_t best = -1;
    for (int32_t d = topology->first[node]; d < topology->first[node + 1]; d++) {
        if (q->room[d] <= 0 || !hpl_draft_holds(&q->draft, expert, d)) continue;
        if (best < 0 || q->room[d] > q->room[best]) best = d;
    }
    return best;
}

static void put(struct quota *q, int32_t expert, int32_t device) {
    const int64_t rows = hpl_min(q->rest[expert], q->room[device]);
    q->rest[expert] -= rows;
    q->room[device] -= rows;
}

// Where the next piece of an expert goes. A device's last slot should not close while much of its
// room is left: so a piece that leaves room open goes to a device with another slot, most room
// first; failing that, to the device whose last slot it fills best.
static int32_t place_for(const struct quota *q, int32_t node, int32_t expert) {
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

// Step 3 for one node: holders take their lightest experts first, so that what is left over are
// pieces of heavy ones. Of those the lightest go first, whole, and the heaviest, which can be cut
// anywhere, fill what room is left. Returns how many experts have rows left over, 0 on success.
static int32_t pack_node(struct quota *q, int32_t node, struct hpl_level level) {
    const struct hpl_topology *topology = q->problem->topology;
    int32_t count = 0;
    for (int32_t i = q->node_first[node]; i < q->node_first[node + 1]; i++) {
        q->rest[q->item[i]] = q->item_rows[i];
        q->ids[count++] = q->item[i];
    }
    hpl_order_desc(q->ids, count, q->rest);
    for (int32_t d = topology->first[node]; d < topology->first[node + 1]; d++) {
        q->room[d] = hpl_level_rows(level, topology->speed[d]);
    }
    for (int32_t i = count - 1; i >= 0; i--) {
        const int32_t e = q->ids[i];
        for (int32_t d; q->rest[e] > 0 && (d = roomiest(q, node, e)) >= 0;) put(q, e, d);
    }
    int32_t short_of = 0;
    hpl_order_desc(q->ids, count, q->rest);
    for (int32_t i = count - 1; i >= 0; i--) {
        const int32_t e = q->ids[i];
        for (int32_t d; q->rest[e] > 0 && (d = place_for(q, node, e)) >= 0;) {
            hpl_draft_add(&q->draft, e, d);
            q->added[q->added_count++] = (struct pair){e, d};
            put(q, e, d);
        }
        short_of += q->rest[e] > 0;
    }
    return short_of;
}

static void undo(struct quota *q, int32_t to) {
    while (q->added_count > to) {
        const struct pair last = q->added[--q->added_count];
        hpl_draft_remove(&q->draft, last.expert, last.device);
    }
}

// Packs a node at the least level at which it can be packed, by bisection up to 16 times the level.
static struct hpl_level pack_higher(struct quota *q, int32_t node) {
    const int32_t before = q->added_count;
    struct hpl_level low = q->level, high = {16 * q->level.num, q->level.den};
    for (int32_t i = 0; i < LEVEL_ROUNDS; i++) {
        const struct hpl_level middle = {(low.num + high.num) / 2, low.den};
        if (pack_node(q, node, middle) == 0)
            high = middle;
        else
            low = middle;
        undo(q, before);
    }
    pack_node(q, node, high);
    return high;
}

// Steps 1 and 2. Imports that save too little to be worth their bytes are taken all the same when
// nodes cannot be balanced without them.
static enum hpl_status choose_and_share(struct quota *q, struct hpl_work *work) {
    const int64_t least = hpl_max(q->problem->budget.import_rows, 1);
    choose_imports(q, least);
    const enum hpl_status status = share_nodes(q, work);
    if (status != HPL_OK || least == 1 || !q->raised) return status;
    choose_imports(q, 1);
    return share_nodes(q, work);
}

// Step 3 for all nodes. Sets the load that the fullest device is packed to, in thousandths of a
// row at speed one, and in `short_of` what each node could not place at the level of step 2.
static int64_t pack_nodes(struct quota *q, bool *packed) {
    struct hpl_level worst = q->level;
    *packed = true;
    for (int32_t n = 0; n < q->nodes.nodes; n++) {
        const int32_t before = q->added_count;
        q->short_of[n] = pack_node(q, n, q->level);
        if (q->short_of[n] == 0) continue;
        *packed = false;
        undo(q, before);
        const struct hpl_level level = pack_higher(q, n);
        if (level.num > worst.num) worst = level;
    }
    return (int64_t)((__int128)worst.num * 1000 / worst.den);
}

// Lets every node that could not be packed take as many imports less as it had experts left over.
static bool drop_imports(struct quota *q) {
    bool dropped = false;
    for (int32_t n = 0; n < q->nodes.nodes; n++) {
        if (q->short_of[n] == 0 || q->imports[n] == 0) continue;
        q->imports[n] = (int32_t)hpl_max(0, q->imports[n] - q->short_of[n]);
        dropped = true;
    }
    return dropped;
}

// Steps 1 to 3: packs with all imports, and while that fails with ever fewer; then stays with the
// number that gave the least load.
static enum hpl_status pack(struct quota *q, struct hpl_work *work) {
    enum hpl_status status = choose_and_share(q, work);
    int64_t best = INT64_MAX;
    for (;;) {
        if (status != HPL_OK) return status;
        bool packed = false;
        const int64_t load = pack_nodes(q, &packed);
        const bool better = load < best;
        if (better) {
            best = load;
            for (int32_t n = 0; n < q->nodes.nodes; n++) q->best_imports[n] = q->imports[n];
        }
        if (packed && better) return HPL_OK;
        undo(q, 0);
        if (packed || !drop_imports(q)) break;
        status = share_nodes(q, work);
    }
    for (int32_t n = 0; n < q->nodes.nodes; n++) q->imports[n] = q->best_imports[n];
    status = share_nodes(q, work);
    bool packed = false;
    if (status == HPL_OK) pack_nodes(q, &packed);
    return status;
}

// Step 4.
static void keep_rows(struct quota *q) {
    const struct hpl_topology *topology = q->problem->topology;
    const int32_t experts = q->problem->experts;
    const int64_t least = hpl_max(q->problem->budget.replica_rows, 1);
    for (int32_t d = 0; d < topology->devices; d++) {
        const int32_t n = topology->node[d];
        const uint32_t *rows = q->problem->loads->rows + (int64_t)d * experts;
        int32_t count = 0;
        for (int32_t e = 0; e < experts; e++) q->rest[e] = rows[e];
        for (int32_t i = q->node_first[n]; i < q->node_first[n + 1]; i++) {
            const int32_t e = q->item[i];
            if (rows[e] < least || *hpl_draft_copies(&q->draft, n, e) == 0) continue;
            if (hpl_draft_holds(&q->draft, e, d)) continue;
            count = hpl_order_insert(q->ids, count, q->draft.slots_left[d], e, q->rest);
        }
        for (int32_t i = 0; i < count; i++) hpl_draft_add(&q->draft, q->ids[i], d);
    }
}

static enum hpl_status place(const struct hpl_problem *problem, struct hpl_plan *plan,
                             int64_t *share, struct hpl_work *work) {
    (void)share;
    const struct hpl_work before = *work;
    struct quota q = {.problem = problem};
    enum hpl_status status = hpl_draft_begin(&q.draft, problem, work);
    if (status == HPL_OK) {
        for (int32_t n = 0; n < problem->topology->nodes; n++) {
            q.import_limit = (int32_t)hpl_max(q.import_limit, q.draft.entries_left[n]);
        }
        status = take_arrays(&q, work) && take_nodes(&q, work) ? HPL_OK : HPL_NO_ROOM;
    }
    if (status == HPL_OK) {
        hpl_tally_nodes(problem->topology, problem->loads, q.node_rows);
        status = pack(&q, work);
    }
    if (status == HPL_OK) {
        keep_rows(&q);
        status = hpl_draft_finish(&q.draft, plan);
    }
    *work = before;
    return status;
}

const struct hpl_policy hpl_policy_quota = {
    .name = "quota",
    .summary = "Replicas under budgets of slots, entries and bytes, exact quotas, topology first",
    .when = HPL_WHEN_FORECAST,
    .split = HPL_SPLIT_QUOTA,
    .place = place,
};
