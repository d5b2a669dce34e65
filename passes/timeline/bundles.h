// Flows in bundles: shared by network.c, bundles.c and rates.c. Private to this folder.
//
// A flow's rate is the part that one of its ports, the one that bounds it, gives each of its flows. Flows that two
// ports can bound, and the same two, are a bundle. It has one rate, found once for all of them, and its first flow to
// end is the one that has least left, for any future rates: each has had the same number of bytes since the bundle
// began.
//
// These two ports are the bundle's keys. Flows go through other ports, too; where those can be full they are watched.
// When one of them bounds flows after all, these get a bundle that has a key there.
#ifndef HECATE_PASSES_TIMELINE_BUNDLES_H
#define HECATE_PASSES_TIMELINE_BUNDLES_H

#include "passes/timeline/agenda.h"
#include "passes/timeline/network.h"

// Time that flows have been at a port until a moment: of each kind, where those at a time share it evenly; and of all,
// each by itself.
struct hec_shared {
    double part[HEC_FLOW_KINDS], crowd;
};

struct hec_flow {
    int32_t port[HEC_FLOW_PORTS], ports, owner, kind;
    int32_t key[2];           // hec_flow_keys.
    struct hec_shared met[2]; // At these ports, when its first byte left.
    int32_t bundle;           // Once its first byte has left.
    int64_t number;           // In the order of starts.
    double bytes;
};

struct hec_bundle {
    int32_t key[2];       // Ports, the smaller first; key[1] = -1: its flows go through one port.
    int32_t flows;        // With those that have ended and still have their part of ports.
    double rate;          // The rate of each flow; INFINITY: not found yet.
    double served, since; // Bytes that each has had until then.
    struct hec_agenda ahead; // Flows under way, by what `served` is when they are done.
    int32_t place;           // In hec_network.ends; -1: no flow is under way.
    bool changed;            // Flows have come, or gone to another one, since rates were found.
    int64_t round;           // The last one in which its rate was found anew.
};

// Flows of a bundle that go through a port.
struct hec_through {
    int32_t bundle, flows;
};

struct hec_port {
    double capacity;
    struct hec_through *through; // Bundles: first those that have a key here.
    int32_t bundles, keys, room; // All of them, those with a key here.
    int32_t alone;               // Bundles that have no other key.
    int32_t flows;
    int32_t watched;          // Place in hec_network.watched; -1: it is not.
    struct hec_shared shared; // Until `settled`; of flows that have a key here,
    double settled;
    int32_t present[HEC_FLOW_KINDS], all; // which are so many now.
    bool begun, ended;                    // Flows have, since rates were found,
    double freed;                         // which had so much.
    // While rates are found:
    int64_t round, version; // the round that has reached it last; when it was evaluated;
    bool full;              // it has decided;
    double left;            // its rate left for flows without one,
    int32_t open;           // how many these are,
    bool without_key;       // whether some have no key here;
    int32_t listed;         // its place in hec_network.share.
};

// The rate that a port would give each of its flows that have none yet.
struct hec_share {
    double rate;
    int32_t port;
};

struct hec_list {
    int32_t *item, count, room;
};

struct hec_network {
    int32_t ports;
    struct hec_port *port;
    double *carried; // [ports] bytes
    double slack, now;
    int64_t started;
    struct hec_flow *flow;
    int32_t flow_count, flow_room;
    struct hec_bundle *bundle;
    double *rate; // [bundles] the bundle's next rate; negative: it is being found.
    int32_t bundle_count, bundle_room;
    struct hec_list vacant, spare; // Places of flows, of bundles.
    struct hec_agenda ends;        // Bundles, by the end of their first flow.
    struct hec_agenda later;       // Flows whose first byte has not left.
    struct hec_list ended;  // Flows that were done at `now`: those before ended_at have been told,
    int32_t ended_at, gone; // those before `gone` have no part of ports any more.

    // Since rates were found.
    struct hec_list touched; // Ports where flows have begun or ended.
    struct hec_list
        freed; // Ports where flows have ended; nobody has looked yet whether that is enough to find rates.
    struct hec_list joined; // Bundles.
    double slowest;         // Rate of flows that have gone.
    bool stale;             // Rates have to be found.

    struct hec_list watched; // Ports that may bound flows which have no key there.

    // While rates are found, of this round:
    struct hec_list reached, opened; // ports and bundles whose rates may change,
    int32_t spread;                  // of the ports, those before it have been gone on from;
    bool widened;                    // they have become more while ports were evaluated;
    struct hec_share *share;         // ports that have not decided;
    int32_t shares, share_room;
    int64_t round, version; // the round; how many ports have decided, of all rounds.
};

static inline void hec_list_add(struct hec_list *list, int32_t item) {
    if (list->count == list->room) {
        list->room = list->room ? 2 * list->room : 64;
        list->item = realloc(list->item, (size_t)list->room * sizeof *list->item);
        if (!list->item) abort(); // As the arenas of the compiler do.
    }
    list->item[list->count++] = item;
}

static inline bool hec_is_open(const struct hec_network *network, int32_t bundle) {
    return network->rate[bundle] < 0;
}

// The bytes that each flow of the bundle has had until now.
static inline double hec_served(const struct hec_network *network,
                                const struct hec_bundle *bundle) {
    const double passed = network->now - bundle->since;
    return passed > 0 ? bundle->served + bundle->rate * passed : bundle->served;
}

// ---- bundles.c

// The bundle with these keys, key[0] < key[1] or key[1] = -1; a new one without flows if there is none, or none that is
// open where `open`. May move bundles in memory.
int32_t hec_bundle_with(struct hec_network *network, const int32_t key[2], bool open);

// The ports that are most likely to bound the flow: the narrowest.
void hec_flow_keys(const struct hec_network *network, const struct hec_flow *flow, int32_t key[2]);

// The flow, with so many bytes to go, becomes one of the bundle's; or takes its part of ports from it.
void hec_bundle_join(struct hec_network *network, int32_t bundle, int32_t flow, double bytes);
void hec_bundle_leave(struct hec_network *network, int32_t bundle, int32_t flow);

// A bundle without flows goes.
void hec_bundle_drop(struct hec_network *network, int32_t bundle);

// The bundle's next end is found anew.
void hec_bundle_schedule(struct hec_network *network, int32_t bundle);

// ---- rates.c

// Finds the rates of all flows under way, anew where they can have changed.
void hec_rates_find(struct hec_network *network);

#endif
