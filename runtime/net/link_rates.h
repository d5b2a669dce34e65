// Rates of the links of a job, measured through the lanes that training uses.
#ifndef HECATE_RUNTIME_NET_LINK_RATES_H
#define HECATE_RUNTIME_NET_LINK_RATES_H

#include "runtime/net/comm.h"

enum { HRT_RATES_BYTES = 8 << 20 };

// Rates of the links inside nodes, or of those between them, in bytes/s of one direction.
struct hrt_link_rates {
    bool known;     // There are such links.
    double latency; // Seconds of a message of 8 bytes: half of a round trip between two ranks.
    double pair;    // Between two ranks, while one sends alone.
    double
        all; // One way: every second rank of a node sends, of a rank; all ranks of a node to the next one, of a node.
    double bandwidth; // All ranks send and receive. Per rank; between nodes, per node.
};

struct hrt_rates {
    struct hrt_link_rates intra, inter;
};

// Measures both; collective, and the same on every rank. Nodes must have equally many ranks. `send` and `receive` have
// HRT_RATES_BYTES each, in the host's memory.
void hrt_net_measure_rates(struct hrt_comm *comm, char *send, char *receive,
                           struct hrt_rates *rates);

// Whether nodes have equally many ranks.
bool hrt_net_rates_even(const struct hrt_comm *comm);

#endif
