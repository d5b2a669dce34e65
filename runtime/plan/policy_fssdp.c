// fssdp: replicas under budgets, topology first (ours; docs/planner.md).
//
//   1. imports   each node takes the chunks of other nodes that most of its own rows ask for
//   2. nodes     how many rows of each expert every node computes: exact shares, nodes as devices
//   3. packing   inside a node, chunks whose rows do not fit on their holders get replicas where
//                there is most room. When slots run out, the import that saves least is dropped and
//                2 and 3 are done again, so entries and slots are chosen together
//   4. keeping   slots that are left take the chunks that most rows of their own device ask for:
//                those rows stay, and the many paths they open absorb what the forecast missed
//   5. exchange  where packing failed all the same, replicas give way to others as long as that
//                lowers the load
//
// After the gate, the same function calibrates: `present` is the plan made before, and only what
// slots and entries are left is spent, on the exact counts.
#include "runtime/plan/draft.h"
#include "runtime/plan/order.h"
#include "runtime/plan/policies.h"
#include "runtime/plan/quota.h"
#include "runtime/plan/tally.h"

static bool take_arrays(struct hpl_quota *q, struct hpl_work *work) {
    const struct hpl_topology *topology = q->problem->topology;
    const int32_t nodes = topology->nodes, experts = q->problem->experts;
    // Every node's copy of an expert is the owner or takes a slot, now or later.
    const int64_t where = experts + topology->devices * hpl_min(q->problem->budget.slots, experts);
    q->node_rows = HPL_TAKE(work, (int64_t)nodes * experts, uint32_t);
    q->import = HPL_TAKE(work, (int64_t)nodes * q->import_limit, int32_t);
    q->imports = HPL_TAKE(work, nodes, int32_t);
    q->entered = HPL_TAKE(work, nodes, int32_t);
    q->locked = HPL_TAKE(work, nodes, int32_t);
    q->without = HPL_TAKE(work, q->import_limit, int64_t);
    q->where.capacity = (int32_t)where;
    q->where.first = HPL_TAKE(work, experts + 1, int32_t);
    q->where.holder = HPL_TAKE(work, where, int32_t);
    q->share = HPL_TAKE(work, where, int64_t);
    q->link_in = HPL_TAKE(work, nodes, int64_t);
    q->link_out = HPL_TAKE(work, nodes, int64_t);
    q->home_first = HPL_TAKE(work, nodes + 2, int32_t);
    q->node_first = HPL_TAKE(work, nodes + 2, int32_t);
    q->item = HPL_TAKE(work, where, int32_t);
    q->item_rows = HPL_TAKE(work, where, int64_t);
    q->rest = HPL_TAKE(work, experts, int64_t);
    q->room = HPL_TAKE(work, topology->devices, int64_t);
    q->ids = HPL_TAKE(work, experts, int32_t);
    int64_t slots = 0;
    for (int32_t d = 0; d < topology->devices; d++) slots += q->draft.slots_left[d];
    q->added = HPL_TAKE(work, slots, struct hpl_pair);
    return q->node_rows && q->import && q->imports && q->entered && q->locked && q->without &&
           q->where.first && q->where.holder && q->share && q->link_in && q->link_out &&
           q->home_first && q->node_first && q->item && q->item_rows && q->rest && q->room &&
           q->ids && q->added;
}

// Nodes as devices, each a node of its own.
static bool take_nodes(struct hpl_quota *q, struct hpl_work *work) {
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

// Which node has which expert, by owners, present replicas and imports: CSR by expert. Nodes come
// in ascending order, and every node's imports are marked while its column is written.
static void form_where(struct hpl_quota *q) {
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
static void form_items(struct hpl_quota *q) {
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
static enum hpl_status share_nodes(struct hpl_quota *q, struct hpl_work *work) {
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

// Steps 1 and 2. Imports that save too little to be worth their bytes are taken all the same when
// nodes cannot be balanced without them, and then spread.
static enum hpl_status choose_and_share(struct hpl_quota *q, struct hpl_work *work) {
    const int64_t least = hpl_max(q->problem->budget.import_rows, 1);
    hpl_quota_choose_imports(q, least);
    enum hpl_status status = share_nodes(q, work);
    if (status == HPL_OK && !q->raised && hpl_quota_even_links(q)) {
        status = share_nodes(q, work);
        if (status == HPL_OK && q->raised) { // Balance first.
            hpl_quota_choose_imports(q, least);
            status = share_nodes(q, work);
        }
    }
    if (status == HPL_OK && least > 1 && q->raised) {
        hpl_quota_choose_imports(q, 1);
        status = share_nodes(q, work);
    }
    if (status == HPL_OK && q->raised) {
        hpl_quota_spread_imports(q);
        status = share_nodes(q, work);
    }
    return status;
}

// Steps 1 to 3.
static enum hpl_status pack(struct hpl_quota *q, struct hpl_work *work) {
    const enum hpl_status status = choose_and_share(q, work);
    if (status == HPL_OK) q->strained = !hpl_quota_pack(q);
    return status;
}

// Step 4.
static void keep_rows(struct hpl_quota *q) {
    const struct hpl_topology *topology = q->problem->topology;
    const int32_t experts = q->problem->experts;
    const int64_t least = hpl_max(q->problem->budget.replica_rows, 1);
    for (int32_t d = 0; d < topology->devices; d++) {
        const int32_t n = topology->node[d];
        const uint32_t *rows = q->problem->loads->rows + (int64_t)d * experts;
        int32_t count = 0;
        for (int32_t i = q->node_first[n]; i < q->node_first[n + 1]; i++) {
            const int32_t e = q->item[i];
            if (rows[e] < least || *hpl_draft_copies(&q->draft, n, e) == 0) continue;
            if (hpl_draft_holds(&q->draft, e, d)) continue;
            q->rest[e] = rows[e];
            count = hpl_order_insert(q->ids, count, q->draft.slots_left[d], e, q->rest);
        }
        for (int32_t i = 0; i < count; i++) hpl_draft_add(&q->draft, q->ids[i], d);
    }
}

// An entry needs a slot somewhere in its node.
static void limit_entries(struct hpl_quota *q) {
    const struct hpl_topology *topology = q->problem->topology;
    for (int32_t n = 0; n < topology->nodes; n++) {
        int64_t slots = 0;
        for (int32_t d = topology->first[n]; d < topology->first[n + 1]; d++) {
            slots += q->draft.slots_left[d];
        }
        q->draft.entries_left[n] = (int32_t)hpl_min(q->draft.entries_left[n], slots);
        q->import_limit = (int32_t)hpl_max(q->import_limit, q->draft.entries_left[n]);
    }
}

// Chunks of other nodes that are in each node already, with replicas of `present`.
static void count_entered(struct hpl_quota *q) {
    const struct hpl_topology *topology = q->problem->topology;
    hpl_zero_i32(q->entered, topology->nodes);
    for (int32_t e = 0; e < q->problem->experts; e++) {
        for (int32_t n = 0; n < topology->nodes; n++) {
            q->entered[n] +=
                *hpl_draft_copies(&q->draft, n, e) > 0 && topology->node[q->problem->owner[e]] != n;
        }
    }
}

enum hpl_status hpl_place_fssdp(const struct hpl_problem *problem, struct hpl_plan *plan,
                                int64_t *share, struct hpl_work *work) {
    (void)share;
    struct hpl_quota q = {.problem = problem};
    enum hpl_status status = hpl_draft_begin(&q.draft, problem, work);
    if (status == HPL_OK) {
        limit_entries(&q);
        status = take_arrays(&q, work) && take_nodes(&q, work) ? HPL_OK : HPL_NO_ROOM;
    }
    if (status == HPL_OK) {
        hpl_tally_nodes(problem->topology, problem->loads, q.node_rows);
        count_entered(&q);
        status = pack(&q, work);
    }
    if (status == HPL_OK) {
        if (q.strained) status = hpl_quota_mend(&q, work);
        keep_rows(&q);
    }
    return status == HPL_OK ? hpl_draft_finish(&q.draft, plan) : status;
}
