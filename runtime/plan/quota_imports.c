// quota_imports.c: step 1 of policy fssdp, which chunks each node takes from other nodes.
#include "runtime/plan/order.h"
#include "runtime/plan/quota.h"
#include "runtime/plan/tally.h"

enum { SWAPS = 32 }; // At most: many nodes have no time for more.

// How many of the node's imports have rows enough for what is waited for: the more chunks a node gets,
// the fewer of them computation hides.
static int32_t count_paying(const struct hpl_quota *q, int32_t node, int64_t least) {
    const struct hpl_budget *budget = &q->problem->budget;
    const int32_t *import = q->import + (int64_t)node * q->import_limit;
    const uint32_t *rows = q->node_rows + (int64_t)node * q->problem->experts;
    int32_t count = q->imports[node];
    for (; count > 0; count--) {
        const int32_t entries = q->entered[node] + count;
        const int64_t gather = entries > budget->gather_hidden ? budget->gather_rows : 0;
        const int64_t reduce = entries > budget->reduce_hidden ? budget->reduce_rows : 0;
        if (rows[import[count - 1]] >= least + gather + reduce) break;
    }
    return count;
}

// Takes back the imports that do not pay. The node that gets most is waited for: the others may have
// as many.
static void drop_unpaid(struct hpl_quota *q, int64_t least) {
    int32_t most = 0;
    for (int32_t n = 0; n < q->nodes.nodes; n++) {
        const int32_t paying = count_paying(q, n, least);
        if (paying > 0) most = (int32_t)hpl_max(most, q->entered[n] + paying);
    }
    for (int32_t n = 0; n < q->nodes.nodes; n++) {
        const int64_t room = hpl_max(0, most - q->entered[n]);
        q->imports[n] = (int32_t)hpl_min(q->imports[n], room);
    }
}

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
    drop_unpaid(q, least);
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

// ---- even links

static int32_t home_of(const struct hpl_quota *q, int32_t expert) {
    return q->problem->topology->node[q->problem->owner[expert]];
}

// Sets link_out and link_in to the rows that leave each node for experts that it lacks, and that come
// to the owners; ids to the experts by the owner's node, from home_first[n] on.
static void count_links(struct hpl_quota *q) {
    const int32_t experts = q->problem->experts, nodes = q->nodes.nodes;
    hpl_zero_i64(q->link_out, nodes);
    hpl_zero_i64(q->link_in, nodes);
    hpl_zero_i32(q->home_first, nodes + 2);
    for (int32_t e = 0; e < experts; e++) {
        q->home_first[home_of(q, e) + 2]++;
        for (int32_t n = 0; n < nodes; n++) {
            if (*hpl_draft_copies(&q->draft, n, e) != 0) continue;
            q->link_out[n] += q->node_rows[(int64_t)n * experts + e];
            q->link_in[home_of(q, e)] += q->node_rows[(int64_t)n * experts + e];
        }
    }
    for (int32_t n = 0; n < nodes; n++) q->home_first[n + 2] += q->home_first[n + 1];
    for (int32_t e = 0; e < experts; e++) q->ids[q->home_first[home_of(q, e) + 1]++] = e;
}

// An import of a node in place of another.
struct swap {
    int32_t node, at, expert; // import[at] gives way to `expert`.
    int64_t link;             // The busiest of the links that it changes, afterwards.
};

// Looks for a better swap in `node` that brings less to the links of `busy`.
static void look_for_swap(const struct hpl_quota *q, int32_t node, int32_t busy,
                          struct swap *best) {
    const int32_t *import = q->import + (int64_t)node * q->import_limit;
    const uint32_t *rows = q->node_rows + (int64_t)node * q->problem->experts;
    for (int32_t i = q->home_first[busy]; i < q->home_first[busy + 1]; i++) {
        const int32_t e = q->ids[i];
        const int64_t left = q->link_in[busy] - rows[e];
        if (*hpl_draft_copies(&q->draft, node, e) != 0 || left >= best->link) continue;
        for (int32_t k = 0; k < q->imports[node]; k++) {
            const int32_t out = import[k], home = home_of(q, out);
            const int64_t more = q->link_in[home] + rows[out];
            const int64_t own = q->link_out[node] + rows[out] - rows[e];
            const int64_t link = hpl_max(left, hpl_max(more, own));
            if (home != busy && link < best->link) *best = (struct swap){node, k, e, link};
        }
    }
}

// The new import takes its place by rows: most asked first.
static void apply_swap(struct hpl_quota *q, const struct swap *swap) {
    int32_t *import = q->import + (int64_t)swap->node * q->import_limit;
    const uint32_t *rows = q->node_rows + (int64_t)swap->node * q->problem->experts;
    const int32_t out = import[swap->at], e = swap->expert;
    int32_t at = swap->at;
    for (; at + 1 < q->imports[swap->node] && rows[import[at + 1]] > rows[e]; at++)
        import[at] = import[at + 1];
    for (; at > 0 && rows[import[at - 1]] < rows[e]; at--) import[at] = import[at - 1];
    import[at] = e;
    q->link_out[swap->node] += (int64_t)rows[out] - rows[e];
    q->link_in[home_of(q, out)] += rows[out];
    q->link_in[home_of(q, e)] -= rows[e];
    *hpl_draft_copies(&q->draft, swap->node, out) = 0;
    *hpl_draft_copies(&q->draft, swap->node, e) = -1;
}

bool hpl_quota_even_links(struct hpl_quota *q) {
    const int32_t nodes = q->nodes.nodes;
    bool changed = false;
    mark_imports(q, -1);
    count_links(q);
    for (int32_t round = 0; round < SWAPS; round++) {
        int32_t busy = 0;
        int64_t out = 0;
        for (int32_t n = 0; n < nodes; n++) {
            if (q->link_in[n] > q->link_in[busy]) busy = n;
            out = hpl_max(out, q->link_out[n]);
        }
        struct swap best = {.node = -1, .link = q->link_in[busy]};
        if (out >= best.link) break; // It has what most of its rows ask for already.
        for (int32_t n = 0; n < nodes; n++) {
            if (n != busy) look_for_swap(q, n, busy, &best);
        }
        if (best.node < 0) break;
        apply_swap(q, &best);
        changed = true;
    }
    mark_imports(q, 0);
    return changed;
}

// ---- balance

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
