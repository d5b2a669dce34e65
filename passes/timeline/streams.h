// Sums through ports, where nothing else travels: a volley of streams, one through each port, begins at all ports
// together. Streams at one port share it evenly, and ports do not depend on each other, so all ends are known at once,
// until another volley begins. network.h would say the same, flow by flow.
//
// Pure and deterministic: the same calls give the same times.
#ifndef HECATE_PASSES_TIMELINE_STREAMS_H
#define HECATE_PASSES_TIMELINE_STREAMS_H

#include <stdint.h>

struct hec_streams;

// Ports: one out of each device, one into each; the same of nodes, of `of_node` devices each. capacity [ports]: bytes
// per microsecond, all positive, borrowed. At most `volleys` volleys are under way at a time. Free with
// hec_streams_free.
struct hec_streams *hec_streams_create(int32_t devices, int32_t of_node, int32_t volleys,
                                       const double *capacity);
void hec_streams_free(struct hec_streams *streams);

// Begins volley number 0 .. volleys - 1, which is not under way, at `begin`, no earlier than any time that has passed.
// bytes [ports].
void hec_streams_start(struct hec_streams *streams, int32_t volley, double begin,
                       const double *bytes);

// When something happens next if nothing starts before; INFINITY: nothing is under way.
double hec_streams_next(const struct hec_streams *streams);

// Lets time pass until `now`: at most that of hec_streams_next.
void hec_streams_pass(struct hec_streams *streams, double now);

// The next device whose streams, and those of its node, of a volley have ended by the time that has passed; *volley
// becomes that volley, part [volleys] the time that its last stream to end waited for those of each other one.
// -1: there is none any more.
int32_t hec_streams_done(struct hec_streams *streams, int32_t *volley, double *part);

#endif
