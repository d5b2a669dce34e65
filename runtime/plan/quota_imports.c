// quota_imports.c: step 1 of policy quota, which chunks each node takes from other nodes.
#include "runtime/plan/order.h"
#include "runtime/plan/quota.h"
#include "runtime/plan/tally.h"

void hpl_quota_choose_imports(struct hpl_quota *q, int64_t least) {
    const int32_t experts = q->problem->experts;
    for (int32_t n = 0; n < q->nodes.nodes; n++) {
        int32_t *import = q->import + (int64_t)n * q->import_limit;
        const uint32_t *rows = q->node_rows + (int64_t)n * experts;
        const int32_t *copies = hpl_draft_copies(&q->draft, n, 0);
        const int32_t limit = q->draft.entries_left[n];
        int32_t count = 0;
        int64_t more_than = least - 1; // Rows that an import must exceed to be worth a look.
        for (int32_t e = 0; e < experts; e++) {
            if (rows[e] <= more_than || copies[e] > 0) continue;
            q->rest[e] = rows[e];
            count = hpl_order_insert(import, count, limit, e, q->rest);
            if (count == limit) more_than = limit > 0 ? q->rest[import[count - 1]] : INT64_MAX;
        }
        q->imports[n] = count;
        q->locked[n] = 0;
    }
}

// While imports are exchanged, a mark of -1 among the copies stands for one.
static void mark_imports(struct hpl_quota *q, int32_t mark) {
    for (int32_t n = 0; n < q->nodes.nodes; n++) {
        const int32_t *import = q->import + (int64_t)n * q->import_limit;
        for (int32_t i = 0; i < q->imports[n]; i++) {
            *hpl_draft_copies(&q->draft, n, import[i]) = mark;
        }
    }
}

// Sets `room` to what each node can compute beyond its own rows of experts present, and `rest` to
// the rows of each expert that start in nodes without it..
static void count_rest(struct hpl_quota *q) {
    const int32_t experts = q->problem->experts, nodes = q->nodes.nodes;
    int64_t sum = 0;
    for (int32_t e = 0; e < experts; e++) q->rest[e] = 0;
    for (int32_t n = 0; n < nodes; n++) {
        const uint32_t *rows = q->node_rows + (int64_t)n * experts;
        const int32_t *copies = hpl_draft_copies(&q->draft, n, 0);
        int64_t own = 0;
        for (int32_t e = 0; e < experts; e++) {
            sum += rows[e];
            if (copies[e] != 0)
                own += rows[e];
            else
                q->rest[e] += rows[e];
        }
        q->room[n] = -own;
    }
    const struct hpl_level level = {sum * (1000 + q->problem->budget.slack),
                                    1000 * hpl_tally_speed(&q->nodes)};
    for (int32_t n = 0; n < nodes; n++) q->room[n] += hpl_level_rows(level, q->nodes.speed[n]);
}

static void put(struct hpl_quota *q, int32_t expert, int32_t node) {
    const int64_t rows = hpl_min(q->rest[expert], q->room[node]);
    q->rest[expert] -= rows;
    q->room[node] -= rows;
}

// Gives an expert's rest to the nodes that have it, most room first.
static void fill_present(struct hpl_quota *q, int32_t expert) {
    while (q->rest[expert] > 0) {
        int32_t best = -1;
        for (int32_t n = 0; n < q->nodes.nodes; n++) {
            if (q->room[n] <= 0 || *hpl_draft_copies(&q->draft, n, expert) == 0) continue;
            if (best < 0 || q->room[n] > q->room[best]) best = n;
        }
        if (best < 0) return;
        put(q, expert, best);
    }
}

// The node with most room that lacks the expert and may still change an import; -1 for none.
static int32_t node_for(const struct hpl_quota *q, int32_t expert) {
    int32_t best = -1;
    for (int32_t n = 0; n < q->nodes.nodes; n++) {
        if (*hpl_draft_copies(&q->draft, n, expert) != 0 || q->room[n] <= 0) continue;
        if (q->locked[n] >= q->draft.entries_left[n]) continue;
        if (best < 0 || q->room[n] > q->room[best]) best = n;
    }
    return best;
}

// Makes the expert an import of the node, in place of the one that saves least if entries are
// used up. Imports made for balance are locked, and stand in front.
static void exchange(struct hpl_quota *q, int32_t expert, int32_t node) {
    int32_t *import = q->import + (int64_t)node * q->import_limit;
    if (q->imports[node] == q->draft.entries_left[node]) {
        const int32_t out = import[--q->imports[node]];
        const int64_t rows = q->node_rows[(int64_t)node * q->problem->experts + out];
        *hpl_draft_copies(&q->draft, node, out) = 0;
        q->room[node] += rows;
        q->rest[out] += rows;
        fill_present(q, out);
    }
    for (int32_t i = q->imports[node]++; i > q->locked[node]; i--) import[i] = import[i - 1];
    import[q->locked[node]++] = expert;
    *hpl_draft_copies(&q->draft, node, expert) = -1;
    put(q, expert, node);
}

// Rows of an expert that few nodes have may be more than those nodes can compute. Lets nodes with
// room have it too, until all rows fit or no import may change any more.
static void spread(struct hpl_quota *q) {
    const int32_t experts = q->problem->experts;
    for (int32_t e = 0; e < experts; e++) q->ids[e] = e;
    hpl_order_desc(q->ids, experts, q->rest);
    for (int32_t i = experts - 1; i >= 0; i--) fill_present(q, q->ids[i]);
    for (bool changed = true; changed;) {
        changed = false;
        hpl_order_desc(q->ids, experts, q->rest);
        for (int32_t i = 0; i < experts && q->rest[q->ids[i]] > 0; i++) {
            const int32_t e = q->ids[i];
            for (int32_t n; q->rest[e] > 0 && (n = node_for(q, e)) >= 0;) {
                exchange(q, e, n);
                changed = true;
            }
        }
    }
}

void hpl_quota_spread_imports(struct hpl_quota *q) {
    mark_imports(q, -1);
    count_rest(q);
    spread(q);
    mark_imports(q, 0);
}
