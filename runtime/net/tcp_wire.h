// The transport over TCP (struct hrt_wire, net.h): a connection between every two ranks that have something to say to
// each other, from then on.
//
// The caller moves all that can be moved, on all connections; there is no thread of its own. Data goes from and to
// where the caller has it; bytes that come before they are asked for are kept, and lanes bound their number.
#ifndef HECATE_RUNTIME_NET_TCP_WIRE_H
#define HECATE_RUNTIME_NET_TCP_WIRE_H

#include "runtime/net/net.h"

extern const struct hrt_wire hrt_net_tcp_wire;

struct hrt_meeting;

// Takes over the connections of a meeting whose mesh stands, and its `reach`, which makes others. own->peer is set.
// False: no memory; they are then the meeting's.
bool hrt_net_tcp_wire_open(struct hrt_net *own, struct hrt_meeting *meeting);

#endif
