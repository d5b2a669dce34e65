// Rates by water-filling, where they can have changed.
//
// The port that gives each of its flows least decides about them; then the next one, of what is left (Bertsekas and
// Gallager, Data Networks, section 6.5.2). Rates are found from the smallest on, so flows that come or go change none that is
// smaller than their own: those that have gone had one, and those that come get at least an equal part of each port.
// From the ports of these flows on, larger rates are found anew wherever one can depend on another. The other bundles keep theirs.
#include <assert.h>
#include <math.h>

#include "passes/timeline/bundles.h"

#define ROUNDING 1e-10 // Rates that differ by less may be equal ones.

// ---- what can have changed

// The port's flows may get other rates.
static void reach(struct hec_network *n, int32_t number) {
    struct hec_port *port = &n->port[number];
    if (port->round == n->round) return;
    port->round = n->round;
    port->full = false;
    hec_list_add(&n->reached, number);
}

// The bundle's rate is found anew, and so are those that depend on it.
static void open_bundle(struct hec_network *n, int32_t bundle) {
    struct hec_bundle *b = &n->bundle[bundle];
    if (b->round == n->round) return;
    b->round = n->round;
    n->rate[bundle] = -1;
    hec_list_add(&n->opened, bundle);
    reach(n, b->key[0]);
    if (b->key[1] >= 0) reach(n, b->key[1]);
}

// Opens the bundles that have a key at a port that was reached, but those that are slower than `least`.
static void spread(struct hec_network *n, double least) {
    while (n->spread < n->reached.count) {
        const int32_t number = n->reached.item[n->spread++];
        const struct hec_port *port = &n->port[number];
        for (int32_t i = 0; i < port->keys; i++) {
            const int32_t bundle = port->through[i].bundle;
            if (n->rate[bundle] >= least * (1 - ROUNDING)) open_bundle(n, bundle);
        }
    }
}

// Whether open bundles without a key here go through the port.
static bool has_open(const struct hec_network *n, const struct hec_port *port) {
    for (int32_t i = port->keys; i < port->bundles; i++) {
        if (hec_is_open(n, port->through[i].bundle)) return true;
    }
    return false;
}

// As far as it goes. Bundles without a key at a port change what it has for those that have one there.
static void spread_all(struct hec_network *n, double least) {
    do {
        spread(n, least);
        for (int32_t i = 0; i < n->watched.count; i++) {
            const int32_t number = n->watched.item[i];
            if (n->port[number].round != n->round && has_open(n, &n->port[number]))
                reach(n, number);
        }
    } while (n->spread < n->reached.count);
}

// Opens what flows that have come or gone can change.
static void begin(struct hec_network *n) {
    double least = n->slowest;
    n->round++;
    n->reached.count = n->opened.count = n->spread = 0;
    for (int32_t i = 0; i < n->touched.count; i++) {
        struct hec_port *port = &n->port[n->touched.item[i]];
        if (port->begun && port->capacity < least * port->flows)
            least = port->capacity / port->flows;
        if (port->keys || port->watched >= 0) reach(n, n->touched.item[i]);
        port->begun = port->ended = false;
        port->freed = 0;
    }
    for (int32_t i = 0; i < n->joined.count; i++) {
        open_bundle(n, n->joined.item[i]);
    }
    n->touched.count = n->joined.count = 0;
    n->slowest = INFINITY;
    spread_all(n, least);
}

// ---- filling

// Computes the port's rate for flows that have none, and their number. A bundle that keeps its rate, but would get less
// here, is opened, too.
static void evaluate(struct hec_network *n, struct hec_port *port) {
    double room = port->capacity, most = 0;
    int32_t flows = 0, fastest = -1;
    for (int32_t i = 0; i < port->bundles; i++) {
        const struct hec_through t = port->through[i];
        const double rate = n->rate[t.bundle];
        if (rate < 0) {
            flows += t.flows;
            continue;
        }
        room -= rate * t.flows;
        if (rate <= most) continue;
        most = rate;
        fastest = t.bundle;
    }
    port->left = room > 0 ? room : 0;
    port->open = flows;
    port->without_key = has_open(n, port);
    port->version = n->version;
    if (!flows || most * flows <= port->left * (1 + 4 * ROUNDING)) return;
    if (n->bundle[fastest].round == n->round) return;
    open_bundle(n, fastest);
    n->spread = 0; // Ports may have been gone on from with larger rates.
    spread_all(n, most);
    n->widened = true;
}

// A port bounds flows that have no key there: they get a bundle with a key there, and with that of theirs that seems the narrower one.
static void split(struct hec_network *n, int32_t bundle, int32_t number) {
    const int32_t *keys = n->bundle[bundle].key;
    const struct hec_port *first = &n->port[keys[0]], *second = &n->port[keys[1]];
    const bool turn = first->capacity * second->flows > second->capacity * first->flows;
    const int32_t kept = keys[turn];
    n->port[keys[!turn]].without_key = true;
    const int32_t key[2] = {kept < number ? kept : number, kept < number ? number : kept};
    const int32_t to = hec_bundle_with(n, key, true);
    open_bundle(n, to);
    struct hec_bundle *b = &n->bundle[bundle];
    const double served = hec_served(n, b);
    const int32_t count = b->ahead.count;
    b->ahead.count = 0;
    for (int32_t i = 0; i < count; i++) {
        const struct hec_item item = b->ahead.item[i];
        const struct hec_flow *flow = &n->flow[item.what];
        bool goes = false;
        for (int32_t k = 0; k < flow->ports; k++) goes |= flow->port[k] == number;
        if (goes) {
            hec_bundle_leave(n, bundle, item.what);
            hec_bundle_join(n, to, item.what, item.at - served);
        } else {
            hec_agenda_append(&b->ahead, item);
        }
    }
    hec_agenda_order(&b->ahead);
    b->changed = n->bundle[to].changed = true;
}

// The port leaves the list.
static void unlist(struct hec_network *n, int32_t at) {
    n->share[at] = n->share[--n->shares];
    n->port[n->share[at].port].listed = at;
}

// Flows have got their rate, which the port bears.
static void take_from(struct hec_network *n, int32_t number, int32_t flows, double rate) {
    struct hec_port *port = &n->port[number];
    if (port->full) return;
    const double room = port->left - rate * flows;
    port->left = room > 0 ? room : 0;
    port->open -= flows;
    if (port->open) {
        n->share[port->listed].rate = port->left / port->open;
    } else {
        unlist(n, port->listed);
    }
}

// The port bounds all of its flows whose rates are not found.
static void decide(struct hec_network *n, int32_t number, double rate) {
    struct hec_port *port = &n->port[number];
    port->full = true;
    n->version++;
    for (int32_t i = port->keys; i < port->bundles;) {
        const int32_t bundle = port->through[i].bundle;
        if (hec_is_open(n, bundle)) {
            split(n, bundle, number);
            i = port->keys;
        } else {
            i++;
        }
    }
    for (int32_t i = 0; i < port->keys; i++) {
        const struct hec_through t = port->through[i];
        if (!hec_is_open(n, t.bundle)) continue;
        n->rate[t.bundle] = rate;
        const int32_t *key = n->bundle[t.bundle].key;
        const int32_t other = key[key[0] == number];
        if (other >= 0) take_from(n, other, t.flows, rate);
    }
}

// Lists the ports that have flows whose rates are not found, with what each of these would get there. A port all of whose flows go through
// no other decides at once.
static void list_shares(struct hec_network *n) {
    do {
        n->widened = false;
        n->shares = 0;
        for (int32_t i = 0; i < n->reached.count; i++) {
            struct hec_port *port = &n->port[n->reached.item[i]];
            if (!port->full) evaluate(n, port);
        }
    } while (n->widened);
    if (n->share_room < n->reached.count) {
        n->share_room = 2 * n->reached.count;
        n->share = realloc(n->share, (size_t)n->share_room * sizeof *n->share);
        if (!n->share) abort();
    }
    for (int32_t i = 0; i < n->reached.count; i++) {
        const int32_t number = n->reached.item[i];
        struct hec_port *port = &n->port[number];
        if (port->full || !port->open) continue;
        const double rate = port->left / port->open;
        if (port->alone == port->bundles) {
            decide(n, number, rate);
            continue;
        }
        port->listed = n->shares;
        n->share[n->shares++] = (struct hec_share){rate, number};
    }
}

// The place of the least share; -1: there is none.
static int32_t least_of(const struct hec_network *n) {
    double least = INFINITY;
    int32_t found = -1;
    for (int32_t i = 0; i < n->shares; i++) {
        if (n->share[i].rate >= least) continue;
        least = n->share[i].rate;
        found = i;
    }
    return found;
}

// Ports where flows have no key have been told of no rates found since they were evaluated. But these make their shares only larger: it is
// enough to look when a share seems to be the least.
static void fill(struct hec_network *n) {
    n->version++;
    list_shares(n);
    for (int32_t least; (least = least_of(n)) >= 0;) {
        const struct hec_share share = n->share[least];
        struct hec_port *port = &n->port[share.port];
        if (port->without_key && port->version < n->version) {
            evaluate(n, port);
            if (n->widened) {
                list_shares(n);
            } else if (port->open) {
                n->share[least].rate = port->left / port->open;
            } else {
                unlist(n, least);
            }
            continue;
        }
        unlist(n, least);
        decide(n, share.port, share.rate);
    }
}

void hec_rates_find(struct hec_network *n) {
    begin(n);
    fill(n);
    for (int32_t i = 0; i < n->opened.count; i++) {
        const int32_t bundle = n->opened.item[i];
        struct hec_bundle *b = &n->bundle[bundle];
        const double rate = n->rate[bundle];
        assert(rate >= 0 || !b->flows);
        if (rate == b->rate && !b->changed) continue;
        b->served = hec_served(n, b);
        b->since = n->now;
        b->rate = rate;
        b->changed = false;
        hec_bundle_schedule(n, bundle);
        if (!b->flows) hec_bundle_drop(n, bundle);
    }
    n->stale = false;
}
