// Bundles: which flows are together, which ports they go through, and when their next flow ends.
#include "passes/timeline/bundles.h"

#include <math.h>

// ---- ends

static void put(struct hec_network *n, int32_t at, const struct hec_item *item) {
    n->ends.item[at] = *item;
    n->bundle[item->what].place = at;
}

// Puts the item at `at` or, where it belongs there, nearer to the first one.
static void rise(struct hec_network *n, int32_t at, const struct hec_item *own) {
    while (at > 0 && hec_item_before(own, &n->ends.item[(at - 1) / 2])) {
        put(n, at, &n->ends.item[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    put(n, at, own);
}

// Or further from it.
static void sink(struct hec_network *n, int32_t at, const struct hec_item *own) {
    const struct hec_item *item = n->ends.item;
    for (;;) {
        int32_t child = 2 * at + 1;
        if (child >= n->ends.count) break;
        if (child + 1 < n->ends.count && hec_item_before(&item[child + 1], &item[child])) child++;
        if (!hec_item_before(&item[child], own)) break;
        put(n, at, &item[child]);
        at = child;
    }
    put(n, at, own);
}

static void place(struct hec_network *n, int32_t at, const struct hec_item *own) {
    if (at > 0 && hec_item_before(own, &n->ends.item[(at - 1) / 2])) {
        rise(n, at, own);
    } else {
        sink(n, at, own);
    }
}

void hec_bundle_schedule(struct hec_network *n, int32_t bundle) {
    struct hec_bundle *b = &n->bundle[bundle];
    int32_t at = b->place;
    if (!b->ahead.count) {
        b->place = -1;
        if (at < 0 || at == --n->ends.count) return;
        const struct hec_item last = n->ends.item[n->ends.count];
        place(n, at, &last);
        return;
    }
    const double end = b->since + (b->ahead.item[0].at - b->served) / b->rate;
    const struct hec_item own = {end > n->now ? end : n->now, b->ahead.item[0].number, bundle};
    if (at < 0) {
        hec_agenda_append(&n->ends, own);
        at = n->ends.count - 1;
    }
    place(n, at, &own);
}

// ---- ports

// Whether flows can fill a port where none of their bundles has a key: a key's flows are no more than it carries.
static bool can_be_full(const struct hec_network *n, const struct hec_port *port) {
    double most[2] = {0, 0};
    for (int k = 0; k < 2; k++) {
        for (int32_t i = 0; i < port->bundles; i++) {
            const int32_t key = n->bundle[port->through[i].bundle].key[k];
            bool counted = false;
            for (int32_t j = 0; j < i && !counted; j++)
                counted = n->bundle[port->through[j].bundle].key[k] == key;
            if (!counted) most[k] += n->port[key].capacity;
        }
    }
    return fmin(most[0], most[1]) > port->capacity;
}

static void watch(struct hec_network *n, int32_t number) {
    struct hec_port *port = &n->port[number];
    const bool watched = port->keys ? port->bundles > port->keys : can_be_full(n, port);
    if (watched == (port->watched >= 0)) return;
    if (watched) {
        port->watched = n->watched.count;
        hec_list_add(&n->watched, number);
    } else {
        const int32_t last = n->watched.item[--n->watched.count];
        n->watched.item[port->watched] = last;
        n->port[last].watched = port->watched;
        port->watched = -1;
    }
}

// A place for the bundle among those that go through the port, at the end of those with a key here or of the others.
static int32_t add_bundle(struct hec_port *port, bool key, int32_t bundle) {
    if (port->bundles == port->room) {
        port->room = port->room ? 2 * port->room : 8;
        port->through = realloc(port->through, (size_t)port->room * sizeof *port->through);
        if (!port->through) abort();
    }
    int32_t at = port->bundles++;
    if (key) {
        port->through[at] = port->through[port->keys];
        at = port->keys++;
    }
    port->through[at] = (struct hec_through){bundle, 0};
    return at;
}

static void remove_bundle(struct hec_port *port, int32_t at) {
    if (at < port->keys) {
        port->through[at] = port->through[--port->keys];
        at = port->keys;
    }
    port->through[at] = port->through[--port->bundles];
}

// So many more flows of the bundle go through the port.
static void pass_through(struct hec_network *n, int32_t number, int32_t bundle, int32_t flows) {
    struct hec_port *port = &n->port[number];
    const int32_t *key = n->bundle[bundle].key;
    const bool own = key[0] == number || key[1] == number;
    const int32_t end = own ? port->keys : port->bundles;
    int32_t i = own ? 0 : port->keys;
    while (i < end && port->through[i].bundle != bundle) i++;
    const bool begins = i == end;
    if (begins) {
        i = add_bundle(port, own, bundle);
        port->alone += key[1] < 0;
    }
    port->through[i].flows += flows;
    const bool ends = port->through[i].flows == 0;
    if (ends) {
        remove_bundle(port, i);
        port->alone -= key[1] < 0;
    }
    if (begins || ends) watch(n, number);
}

// ---- bundles

int32_t hec_bundle_with(struct hec_network *n, const int32_t key[2], bool open) {
    const struct hec_port *port = &n->port[key[0]];
    for (int32_t i = 0; i < port->keys; i++) {
        const struct hec_bundle *b = &n->bundle[port->through[i].bundle];
        if (b->key[0] == key[0] && b->key[1] == key[1] &&
            (hec_is_open(n, port->through[i].bundle) || !open))
            return port->through[i].bundle;
    }
    int32_t bundle = n->bundle_count;
    struct hec_agenda ahead = {0};
    if (n->spare.count) {
        bundle = n->spare.item[--n->spare.count];
        ahead = n->bundle[bundle].ahead;
    } else if (n->bundle_count++ == n->bundle_room) {
        n->bundle_room = n->bundle_room ? 2 * n->bundle_room : 64;
        n->bundle = realloc(n->bundle, (size_t)n->bundle_room * sizeof *n->bundle);
        n->rate = realloc(n->rate, (size_t)n->bundle_room * sizeof *n->rate);
        if (!n->bundle || !n->rate) abort();
    }
    n->rate[bundle] = INFINITY;
    n->bundle[bundle] = (struct hec_bundle){
        .key = {key[0], key[1]}, .rate = INFINITY, .since = n->now, .ahead = ahead, .place = -1};
    return bundle;
}

void hec_bundle_drop(struct hec_network *n, int32_t bundle) {
    hec_list_add(&n->spare, bundle);
}

void hec_flow_keys(const struct hec_network *n, const struct hec_flow *flow, int32_t key[2]) {
    int32_t first = -1, second = -1;
    for (int32_t k = 0; k < flow->ports; k++) {
        const double capacity = n->port[flow->port[k]].capacity;
        if (first < 0 || capacity <= n->port[first].capacity) {
            second = first;
            first = flow->port[k];
        } else if (second < 0 || capacity <= n->port[second].capacity) {
            second = flow->port[k];
        }
    }
    const bool turn = second >= 0 && second < first;
    key[0] = turn ? second : first;
    key[1] = turn ? first : second;
}

void hec_bundle_join(struct hec_network *n, int32_t bundle, int32_t flow, double bytes) {
    struct hec_bundle *b = &n->bundle[bundle];
    const struct hec_flow *f = &n->flow[flow];
    n->flow[flow].bundle = bundle;
    b->flows++;
    for (int32_t k = 0; k < f->ports; k++) pass_through(n, f->port[k], bundle, 1);
    hec_agenda_add(&b->ahead, (struct hec_item){hec_served(n, b) + bytes, f->number, flow});
}

void hec_bundle_leave(struct hec_network *n, int32_t bundle, int32_t flow) {
    const struct hec_flow *f = &n->flow[flow];
    n->bundle[bundle].flows--;
    for (int32_t k = 0; k < f->ports; k++) pass_through(n, f->port[k], bundle, -1);
}
