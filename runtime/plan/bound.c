// bound.c: lower bounds by counting; bound.h has the argument.
#include "runtime/plan/bound.h"

#include "runtime/plan/draft.h"
#include "runtime/plan/order.h"
#include "runtime/plan/tally.h"

enum { SETS_MAX = 48, UNIT = 1000 };

struct bounds {
    const struct hpl_problem *problem;
    struct hpl_draft draft;
    uint32_t *node_rows;
    int64_t *rows;        // [experts]
    int32_t *heavy;       // [experts] most rows first
    unsigned char *in;    // [experts] the set X
    int64_t set_rows;     // Rows of X.
    int64_t *device_most; // [devices] rows of X that a device could compute, speed aside
    int64_t *node_most;   // [nodes]
    int64_t *key;         // [devices]
    int32_t *order;       // [devices]
};

static bool take_arrays(struct bounds *b, struct hpl_work *work) {
    const int32_t experts = b->problem->experts, devices = b->problem->topology->devices;
    const int32_t nodes = b->problem->topology->nodes;
    b->node_rows = HPL_TAKE(work, (int64_t)nodes * experts, uint32_t);
    b->rows = HPL_TAKE(work, experts, int64_t);
    b->heavy = HPL_TAKE(work, experts, int32_t);
    b->in = HPL_TAKE(work, experts, unsigned char);
    b->device_most = HPL_TAKE(work, devices, int64_t);
    b->node_most = HPL_TAKE(work, nodes, int64_t);
    b->key = HPL_TAKE(work, devices, int64_t);
    b->order = HPL_TAKE(work, devices, int32_t);
    return b->node_rows && b->rows && b->heavy && b->in && b->device_most && b->node_most &&
           b->key && b->order;
}

// For the set X: the rows of it that each device and node could compute.
static void weigh_set(struct bounds *b) {
    const struct hpl_topology *topology = b->problem->topology;
    const int32_t experts = b->problem->experts;
    b->set_rows = 0;
    for (int32_t e = 0; e < experts; e++) b->set_rows += b->in[e] ? b->rows[e] : 0;
    for (int32_t d = 0; d < topology->devices; d++) {
        int32_t slots = b->draft.slots_left[d];
        b->device_most[d] = 0;
        for (int32_t i = 0; i < experts; i++) {
            const int32_t e = b->heavy[i];
            if (!b->in[e]) continue;
            const bool held = hpl_draft_holds(&b->draft, e, d);
            if (held || slots > 0) b->device_most[d] += b->rows[e];
            slots -= !held;
        }
    }
    for (int32_t n = 0; n < topology->nodes; n++) {
        int32_t entries = b->draft.entries_left[n];
        b->node_most[n] = 0;
        for (int32_t i = 0; i < experts; i++) {
            const int32_t e = b->heavy[i];
            if (!b->in[e]) continue;
            const bool present = *hpl_draft_copies(&b->draft, n, e) > 0;
            if (present || entries > 0) b->node_most[n] += b->rows[e];
            entries -= !present;
        }
    }
}

// Whether X's rows fit when no device exceeds `load`.
static bool set_fits(const struct bounds *b, int64_t load) {
    const struct hpl_topology *topology = b->problem->topology;
    int64_t fit = 0;
    for (int32_t n = 0; n < topology->nodes; n++) {
        int64_t node = 0;
        for (int32_t d = topology->first[n]; d < topology->first[n + 1]; d++) {
            const int64_t can = (int64_t)((__int128)load * topology->speed[d]);
            node += hpl_min(can, UNIT * b->device_most[d]);
        }
        fit += hpl_min(node, UNIT * b->node_most[n]);
    }
    return fit >= UNIT * b->set_rows;
}

// Raises `load` to the least at which X fits.
static void raise(struct bounds *b, int64_t *load) {
    weigh_set(b);
    if (set_fits(b, *load)) return;
    int64_t low = *load, high = UNIT * b->set_rows; // One device of speed one could do it all.
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (set_fits(b, middle))
            high = middle;
        else
            low = middle;
    }
    *load = low; // `low` is too little, so any plan's load exceeds it.
}

// Steps through 1, 2, 3, ... and from SETS_MAX / 2 on in growing strides.
static int32_t next_size(int32_t size) {
    return size < SETS_MAX / 2 ? size + 1 : size + size / 8;
}

static void try_heaviest(struct bounds *b, int64_t *load) {
    for (int32_t size = 1; size <= b->problem->experts; size = next_size(size)) {
        for (int32_t i = 0; i < b->problem->experts; i++) b->in[b->heavy[i]] = i < size;
        raise(b, load);
    }
}

// Experts held by the most loaded devices or nodes, the load being what they hold.
static void try_holders(struct bounds *b, bool nodes, int64_t *load) {
    const struct hpl_topology *topology = b->problem->topology;
    const int32_t count = nodes ? topology->nodes : topology->devices;
    const int32_t experts = b->problem->experts;
    for (int32_t i = 0; i < count; i++) b->key[i] = 0, b->order[i] = i;
    for (int32_t e = 0; e < experts; e++) {
        const int32_t owner = b->problem->owner[e];
        b->key[nodes ? topology->node[owner] : owner] += b->rows[e];
    }
    hpl_order_desc(b->order, count, b->key);
    for (int32_t size = 1; size < count; size = next_size(size)) {
        for (int32_t i = 0; i < count; i++) b->key[b->order[i]] = i < size;
        for (int32_t e = 0; e < experts; e++) {
            const int32_t owner = b->problem->owner[e];
            b->in[e] = b->key[nodes ? topology->node[owner] : owner] != 0;
        }
        raise(b, load);
    }
}

static int64_t least_load(struct bounds *b) {
    const int64_t speed = hpl_tally_speed(b->problem->topology);
    int64_t sum = 0;
    for (int32_t e = 0; e < b->problem->experts; e++) {
        sum += b->rows[e];
        b->heavy[e] = e;
    }
    hpl_order_desc(b->heavy, b->problem->experts, b->rows);
    int64_t load = UNIT * sum / speed;
    try_heaviest(b, &load);
    try_holders(b, true, &load);
    try_holders(b, false, &load);
    return load;
}

// Rows of node n for experts that it does not have and, of those, could not import.
static int64_t leaves_node(struct bounds *b, int32_t n) {
    const uint32_t *rows = b->node_rows + (int64_t)n * b->problem->experts;
    int32_t count = 0;
    for (int32_t e = 0; e < b->problem->experts; e++) {
        b->rows[e] = rows[e];
        if (*hpl_draft_copies(&b->draft, n, e) == 0) b->heavy[count++] = e;
    }
    hpl_order_desc(b->heavy, count, b->rows);
    int64_t sum = 0;
    for (int32_t i = b->draft.entries_left[n]; i < count; i++) sum += rows[b->heavy[i]];
    return sum;
}

static int64_t least_cross(struct bounds *b, int64_t level) {
    const struct hpl_topology *topology = b->problem->topology;
    int64_t sum = 0, leaves[2] = {0};
    for (int32_t n = 0; n < topology->nodes; n++) {
        const int64_t rows = leaves_node(b, n);
        if (n < 2) leaves[n] = rows;
        sum += rows;
    }
    if (topology->nodes != 2) return sum;
    sum = 0;
    for (int32_t n = 0; n < 2; n++) { // Rows that come in add to the node's own work.
        int64_t own = 0, can = 0;
        for (int32_t e = 0; e < b->problem->experts; e++) {
            own += b->node_rows[(int64_t)n * b->problem->experts + e];
        }
        for (int32_t d = topology->first[n]; d < topology->first[n + 1]; d++) {
            can += (int64_t)((__int128)level * topology->speed[d] / UNIT) + 1;
        }
        sum += hpl_max(leaves[n], own + leaves[1 - n] - can);
    }
    return sum;
}

// The exact optimum of a plan to which nothing can be added.
static enum hpl_status fixed_load(const struct hpl_problem *problem, int64_t *load,
                                  struct hpl_work *work) {
    int64_t *share = HPL_TAKE(work, problem->present->first[problem->experts], int64_t);
    struct hpl_level level;
    if (!share) return HPL_NO_ROOM;
    const enum hpl_status status =
        hpl_share(problem->topology, problem->present, problem->loads, 0, share, &level, work);
    if (status == HPL_OK) *load = (int64_t)((__int128)level.num * UNIT / level.den);
    return status;
}

enum hpl_status hpl_bound(const struct hpl_problem *problem, int64_t level, struct hpl_bound *bound,
                          struct hpl_work *work) {
    const struct hpl_work before = *work;
    struct bounds b = {.problem = problem};
    enum hpl_status status = hpl_draft_begin(&b.draft, problem, work);
    if (status == HPL_OK && !take_arrays(&b, work)) status = HPL_NO_ROOM;
    if (status == HPL_OK) {
        hpl_tally_nodes(problem->topology, problem->loads, b.node_rows);
        hpl_tally_experts(b.node_rows, problem->topology->nodes, problem->experts, b.rows);
        bound->load = least_load(&b);
        bound->cross = least_cross(&b, level);
        int32_t slots = 0;
        for (int32_t d = 0; d < problem->topology->devices; d++) slots += b.draft.slots_left[d];
        if (slots == 0 && problem->present) status = fixed_load(problem, &bound->load, work);
    }
    *work = before;
    return status;
}
