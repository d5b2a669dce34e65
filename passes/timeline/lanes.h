// Transfers between devices, on lanes: on each device the transfers of one lane follow each other, those of
// different lanes share the links. A transfer is a set of messages, which may wait for each other; a device's part of
// it is done when all that it sends and receives has arrived.
//
// A message needs both of its devices: it leaves when both have come to the transfer on that lane, and the messages
// before it have arrived.
#ifndef HECATE_PASSES_TIMELINE_LANES_H
#define HECATE_PASSES_TIMELINE_LANES_H

#include <stdbool.h>
#include <stdint.h>

#include "passes/cost/machine.h"

enum hec_lane {
    HEC_LANE_COUNTS,
    HEC_LANE_ROWS,
    HEC_LANE_GATHER,
    HEC_LANE_REDUCE,
    HEC_LANE_DENSE,
    HEC_LANE_STATES, // New owners, new copies.
    HEC_LANES
};
extern const char *const hec_lane_names[HEC_LANES];

struct hec_lanes;

// Splits the time up to a moment along the critical path: the computation of devices, and the transfers that they
// waited for. The parts add up to that moment.
enum hec_path_own { HEC_PATH_COMPUTE, HEC_PATH_EXPERTS, HEC_PATH_PLAN, HEC_PATH_OWN };
struct hec_path {
    double own[HEC_PATH_OWN], lane[HEC_LANES];
};

// Links of the machine, as its settings say: a port in and one out of each device, and of each node where there are
// several. A message to another node goes through all four. `sums`: transfers are sums alone (hec_transfer_loads),
// whose times are found several times as fast then. Free with hec_lanes_free.
struct hec_lanes *hec_lanes_create(const struct hec_machine *machine, bool sums);
void hec_lanes_free(struct hec_lanes *lanes);

// ---- building a transfer

// Makes a new transfer; `what`, a string of static storage, and `layer` (-1: none) describe it to people.
int32_t hec_transfer_new(struct hec_lanes *lanes, enum hec_lane lane, const char *what,
                         int32_t layer);

// Adds a message, and returns its number in the transfer. from and to differ. Not where there are sums alone.
int32_t hec_transfer_message(struct hec_lanes *lanes, int32_t transfer, int32_t from, int32_t to,
                             double bytes);

// `message` waits for `before`; both are of the transfer.
void hec_transfer_after(struct hec_lanes *lanes, int32_t transfer, int32_t message, int32_t before);

// `message` goes through the same connection as `before`, between the same devices: it leaves when that one is
// through, and pays no latency of its own.
void hec_transfer_behind(struct hec_lanes *lanes, int32_t transfer, int32_t message,
                         int32_t before);

// Adds the loads between all devices, as sums: [devices] and [nodes] bytes in and out, one stream through each port.
// A device waits for its own and its node's streams. They start when all have come, `delay` microseconds later.
void hec_transfer_loads(struct hec_lanes *lanes, int32_t transfer, const double *sent,
                        const double *got, const double *node_sent, const double *node_got,
                        double delay);

// ---- time

// The device comes to the transfer, which is whole by then, along `path`. Each device comes to each transfer once.
void hec_transfer_start(struct hec_lanes *lanes, int32_t transfer, int32_t device, double now,
                        const struct hec_path *path);
bool hec_transfer_begun(const struct hec_lanes *lanes, int32_t transfer, int32_t device);
bool hec_transfer_done(const struct hec_lanes *lanes, int32_t transfer, int32_t device);

// When something happens next; INFINITY: nothing is under way.
double hec_lanes_next(struct hec_lanes *lanes);

// Lets time pass until `now`: at most that of hec_lanes_next.
void hec_lanes_pass(struct hec_lanes *lanes, double now);

// A device whose part of a transfer has ended, and the path to that.
struct hec_woken {
    int32_t device, transfer;
    struct hec_path path;
};

// The next part that the last hec_lanes_pass, or a start, ended; NULL: there is none any more. Stays until another
// function is called.
const struct hec_woken *hec_lanes_woken(struct hec_lanes *lanes);

// ---- observation

// A device's part of a transfer, from its turn on the lane to its end.
struct hec_part {
    int32_t transfer, device;
    double begin, end;
    double bytes; // Bytes that come to the device.
};

// A message that has arrived.
struct hec_sent {
    int32_t transfer, from, to;
    double begin, end;
};

// Callbacks for parts and for messages between two devices, as they end. Functions may be NULL.
struct hec_lanes_watcher {
    void (*part)(void *context, const struct hec_part *part);
    void (*sent)(void *context, const struct hec_sent *sent);
    void *context;
};
void hec_lanes_observe(struct hec_lanes *lanes, struct hec_lanes_watcher watcher);
enum hec_lane hec_transfer_lane(const struct hec_lanes *lanes, int32_t transfer);
const char *hec_transfer_what(const struct hec_lanes *lanes, int32_t transfer);
int32_t hec_transfer_layer(const struct hec_lanes *lanes, int32_t transfer);

// Bytes so far: out of and into each device, [2 * devices], then of each node, [2 * nodes].
const double *hec_lanes_carried(const struct hec_lanes *lanes);

#endif
