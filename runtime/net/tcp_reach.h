// Connections between ranks that have met, made when they are asked for. Two ranks have one at most.
//
// Nothing blocks. Either rank may connect, with a greeting that proves that it is of the job, and again until the other
// one answers. Where both do at once, that of the rank which the launcher counts later stands.
#ifndef HECATE_RUNTIME_NET_TCP_REACH_H
#define HECATE_RUNTIME_NET_TCP_REACH_H

#include "runtime/net/door.h"
#include "runtime/net/tcp_meet.h"

struct hrt_reach;

// Called with a rank, as the launcher counts, and a connection that stands, the caller's from then on, also where it
// has one already; or with -1, because of `error`, once it has been tried for too long.
typedef void hrt_reached_fn(void *context, int rank, int fd, int error);

// Reaches ranks of a meeting, whose facts it copies but for the seats and the port, which are the meeting's until
// hrt_net_reach_keep. NULL: out of memory. The caller closes it.
struct hrt_reach *hrt_net_reach_open(const struct hrt_meeting *meeting, hrt_reached_fn *reached,
                                     void *context);
void hrt_net_reach_close(struct hrt_reach *reach); // Also NULL.

// From here on seats and port are its own, and `reached` is called with this context.
void hrt_net_reach_keep(struct hrt_reach *reach, struct hrt_meeting *meeting,
                        hrt_reached_fn *reached, void *context);

// Begins to connect to a rank, for so many seconds at most.
void hrt_net_reach_ask(struct hrt_reach *reach, int rank, double seconds);

// Takes in ranks that connect, and goes on with connections that have been asked for. To be called when the descriptor
// is readable, and once a second at least; while it is busy ten times a second, since failures are tried again.
void hrt_net_reach_advance(struct hrt_reach *reach);
int hrt_net_reach_descriptor(const struct hrt_reach *reach);
bool hrt_net_reach_is_busy(const struct hrt_reach *reach);

// For messages: the address of a rank as this one sees it, the error of the last try to connect to it (0: none), and
// the connections that said nothing.
struct hrt_address hrt_net_reach_address(const struct hrt_reach *reach, int rank);
int hrt_net_reach_error(const struct hrt_reach *reach, int rank);
struct hrt_door_silence hrt_net_reach_silence(const struct hrt_reach *reach);

#endif
