// A network of ports with flows that share them: each flow gets its max-min fair part of all ports that it goes
// through (water-filling: Bertsekas and Gallager, Data Networks, section 6.5.2). A fluid model: no packets, no
// windows. A delay before the first byte stands for the costs of a message besides its bytes.
//
// Pure and deterministic: the same calls give the same times.
#ifndef HECATE_PASSES_TIMELINE_NETWORK_H
#define HECATE_PASSES_TIMELINE_NETWORK_H

#include <stdint.h>

enum { HEC_FLOW_PORTS = 4, HEC_FLOW_KINDS = 8 };

struct hec_network;

// capacity [ports]: bytes per microsecond, all positive. `slack`: the part of a port that flows may leave unused when
// they end, before the others get more; 0: they get it at once. Free with hec_network_free.
struct hec_network *hec_network_create(int32_t ports, const double *capacity, double slack);
void hec_network_free(struct hec_network *network);

// Starts a flow of `bytes` at `now`, no earlier than any time the network has seen; its first byte leaves `delay`
// microseconds later. port [ports], 1 .. HEC_FLOW_PORTS, each once. `owner` comes back when it is done; `kind`, below
// HEC_FLOW_KINDS, is for those that share a port with it.
void hec_network_start(struct hec_network *network, double now, const int32_t *port, int32_t ports,
                       double bytes, double delay, int32_t owner, int32_t kind);

// When something happens next if nothing starts before; INFINITY: nothing is under way.
double hec_network_next(struct hec_network *network);

// Lets time pass until `now`: at most that of hec_network_next.
void hec_network_pass(struct hec_network *network, double now);

// The owner of a flow that the last hec_network_pass ended, one at a call; -1:
// there is none any more. `part` [HEC_FLOW_KINDS] becomes the time since its first byte left, divided among the kinds
// of flows that were at its narrowest port, of two at the more crowded one: all flows there count alike.
int32_t hec_network_done(struct hec_network *network, double *part);

// Bytes that have gone through each port, [ports].
const double *hec_network_carried(const struct hec_network *network);

#endif
