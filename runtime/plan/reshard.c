// reshard.c: the paper's algorithm 2.
#include "runtime/plan/reshard.h"

#include "runtime/plan/order.h"
#include "runtime/plan/work.h"

struct reshard {
    const struct hpl_topology *topology;
    int32_t experts;
    const int64_t *rows;
    int32_t overlap;
    int32_t *free;       // [devices] chunks that a device may still own
    int32_t *node_free;  // [nodes]
    int64_t *node_speed; // [nodes]
    int64_t *load;       // [devices] in the present layer
    int64_t *node_load;  // [nodes]
    int32_t *order;      // [layers]
    int64_t *layer_key;  // [layers]
    int32_t *heavy;      // [layers][experts] most rows first
};

size_t hpl_reshard_work_bytes(int32_t layers, int32_t experts, int32_t devices, int32_t nodes) {
    return 4096 + 32 * (size_t)layers * (size_t)experts + 32 * (size_t)layers +
           128 * ((size_t)devices + (size_t)nodes);
}

static bool take_arrays(struct reshard *r, int32_t layers, struct hpl_work *work) {
    const int32_t devices = r->topology->devices, nodes = r->topology->nodes;
    r->free = HPL_TAKE(work, devices, int32_t);
    r->node_free = HPL_TAKE(work, nodes, int32_t);
    r->node_speed = HPL_TAKE(work, nodes, int64_t);
    r->load = HPL_TAKE(work, devices, int64_t);
    r->node_load = HPL_TAKE(work, nodes, int64_t);
    r->order = HPL_TAKE(work, layers, int32_t);
    r->layer_key = HPL_TAKE(work, layers, int64_t);
    r->heavy = HPL_TAKE(work, (int64_t)layers * r->experts, int32_t);
    return r->free && r->node_free && r->node_speed && r->load && r->node_load && r->order &&
           r->layer_key && r->heavy;
}

// Whether a/b is less than c/d, or equal and `fewer`.
static bool lighter(int64_t a, int64_t b, int64_t c, int64_t d, bool fewer) {
    const __int128 left = (__int128)a * d, right = (__int128)c * b;
    return left < right || (left == right && fewer);
}

static int32_t lightest_node(const struct reshard *r) {
    int32_t best = -1;
    for (int32_t n = 0; n < r->topology->nodes; n++) {
        if (r->node_free[n] == 0) continue;
        if (best < 0 || lighter(r->node_load[n], r->node_speed[n], r->node_load[best],
                                r->node_speed[best], r->node_free[n] < r->node_free[best])) {
            best = n;
        }
    }
    return best;
}

static int32_t lightest_device(const struct reshard *r, int32_t node) {
    const int32_t *speed = r->topology->speed;
    int32_t best = -1;
    for (int32_t d = r->topology->first[node]; d < r->topology->first[node + 1]; d++) {
        if (r->free[d] == 0) continue;
        if (best < 0 ||
            lighter(r->load[d], speed[d], r->load[best], speed[best], r->free[d] < r->free[best])) {
            best = d;
        }
    }
    return best;
}

static void assign(struct reshard *r, int32_t device, int64_t rows) {
    const int32_t node = r->topology->node[device];
    r->free[device]--;
    r->node_free[node]--;
    r->load[device] += rows;
    r->node_load[node] += rows;
}

// Steps 1 and 2: orders of experts in each layer, and of the layers by their heaviest light expert.
static void order_all(struct reshard *r, int32_t layers) {
    for (int32_t l = 0; l < layers; l++) {
        int32_t *heavy = r->heavy + (int64_t)l * r->experts;
        const int64_t *rows = r->rows + (int64_t)l * r->experts;
        for (int32_t e = 0; e < r->experts; e++) heavy[e] = e;
        hpl_order_desc(heavy, r->experts, rows);
        r->layer_key[l] = r->overlap < r->experts ? rows[heavy[r->overlap]] : 0;
        r->order[l] = l;
    }
    hpl_order_desc(r->order, layers, r->layer_key);
}

static void place_light(struct reshard *r, int32_t layer, int32_t *owner) {
    const int64_t base = (int64_t)layer * r->experts;
    hpl_zero_i64(r->load, r->topology->devices);
    hpl_zero_i64(r->node_load, r->topology->nodes);
    for (int32_t i = r->overlap; i < r->experts; i++) {
        const int32_t e = r->heavy[base + i];
        const int32_t device = lightest_device(r, lightest_node(r));
        owner[base + e] = device;
        assign(r, device, r->rows[base + e]);
    }
}

// Step 3: the present owner if it has room, else the device of its node, else of all, with most.
static int32_t home_for(const struct reshard *r, int32_t present) {
    const struct hpl_topology *topology = r->topology;
    if (r->free[present] > 0) return present;
    const int32_t node = topology->node[present];
    const bool near = r->node_free[node] > 0;
    const int32_t from = near ? topology->first[node] : 0;
    const int32_t to = near ? topology->first[node + 1] : topology->devices;
    int32_t best = from;
    for (int32_t d = from; d < to; d++) {
        if (r->free[d] > r->free[best]) best = d;
    }
    return best;
}

static void count_free(struct reshard *r, int32_t layers) {
    const struct hpl_topology *topology = r->topology;
    const int64_t chunks = (int64_t)layers * r->experts;
    const int32_t each = (int32_t)((chunks + topology->devices - 1) / topology->devices);
    for (int32_t n = 0; n < topology->nodes; n++) r->node_free[n] = 0, r->node_speed[n] = 0;
    for (int32_t d = 0; d < topology->devices; d++) {
        r->free[d] = each;
        r->node_free[topology->node[d]] += each;
        r->node_speed[topology->node[d]] += topology->speed[d];
    }
}

enum hpl_status hpl_reshard(const struct hpl_topology *topology, int32_t layers, int32_t experts,
                            const int64_t *rows, int32_t overlap, const int32_t *present,
                            int32_t *owner, struct hpl_work *work) {
    if (layers < 1 || experts < 1 || experts > HPL_EXPERTS_MAX || overlap < 0) {
        return HPL_BAD_ARGUMENT;
    }
    for (int64_t i = 0; i < (int64_t)layers * experts; i++) {
        if (present[i] < 0 || present[i] >= topology->devices || rows[i] < 0) {
            return HPL_BAD_ARGUMENT;
        }
    }
    const struct hpl_work before = *work;
    struct reshard r = {.topology = topology,
                        .experts = experts,
                        .rows = rows,
                        .overlap = (int32_t)hpl_min(overlap, experts)};
    const bool taken = take_arrays(&r, layers, work);
    if (taken) {
        count_free(&r, layers);
        order_all(&r, layers);
        for (int32_t i = 0; i < layers; i++) place_light(&r, r.order[i], owner);
        for (int32_t l = 0; l < layers; l++) {
            for (int32_t i = 0; i < r.overlap; i++) {
                const int64_t at = (int64_t)l * experts + r.heavy[(int64_t)l * experts + i];
                owner[at] = home_for(&r, present[at]);
                assign(&r, owner[at], 0);
            }
        }
    }
    *work = before;
    return taken ? HPL_OK : HPL_NO_ROOM;
}
