// types.h: the nouns of the planner (docs/planner.md defines each term).
//
// Everything here is plain data in memory that the caller gives. Devices are numbered so that the
// devices of one node follow each other; experts are numbered within one MoE layer.
#ifndef HECATE_RUNTIME_PLAN_TYPES_H
#define HECATE_RUNTIME_PLAN_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Limits that keep every product of two quantities inside 64 bits; checked by hpl_problem_check.
enum {
    HPL_DEVICES_MAX = 4096,
    HPL_EXPERTS_MAX = 4096,
    HPL_SPEED_MAX = 1000,
    HPL_SLACK_MAX = 10000, // Thousandths.
};
#define HPL_ROWS_MAX INT32_MAX // Rows of one layer, all devices together.
#define HPL_PRICE_MAX (INT64_C(1) << 48)

enum hpl_status {
    HPL_OK = 0,
    HPL_BAD_ARGUMENT = 1, // A number out of range or two that contradict each other.
    HPL_NO_ROOM = 2,      // The workspace, or an output array, is too small.
};

// A sentence without a newline for `status`; static storage, never NULL.
const char *hpl_status_text(enum hpl_status status);

// Memory of one call, handed out front to back. Functions of the planner take their arrays and
// give them back before they return, so one workspace serves any number of calls, one at a time.
struct hpl_work {
    unsigned char *at;
    unsigned char *end;
    // Steps of searches are added here: a measure that no clock changes. NULL: not wanted.
    int64_t *steps;
};

// Bytes of workspace with which any function of the planner succeeds for these sizes (hpl_reshard,
// which sees all layers, has its own). `holders` is
// the largest number of (chunk, device) pairs that a plan may have: experts + devices * slots.
size_t hpl_work_bytes(int32_t experts, int32_t devices, int32_t nodes, int32_t holders);

// The devices, the nodes they stand in, and how fast each is.
struct hpl_topology {
    int32_t devices;
    int32_t nodes;
    const int32_t *first; // [nodes + 1]  devices of node n: first[n] .. first[n + 1] - 1
    const int32_t *node;  // [devices]    node of a device
    const int32_t *speed; // [devices]    rows per unit of time, relative; 1 .. HPL_SPEED_MAX
};

// Rows (token, expert) pairs of one layer and one microbatch, by source device. Also a forecast.
struct hpl_loads {
    int32_t devices;
    int32_t experts;
    const uint32_t *rows; // [devices][experts]
};

// A placement: which devices hold which chunk. Canonical: the devices of an expert ascend, so equal
// placements have equal bytes. A sharding is a plan with one holder for each expert.
struct hpl_plan {
    int32_t experts;
    int32_t capacity; // Room in `holder`.
    int32_t *first;   // [experts + 1]  holders of e: holder[first[e]] .. holder[first[e + 1] - 1]
    int32_t *holder;  // [capacity]
};

// The budget of a plan, per layer and iteration.
struct hpl_budget {
    int32_t slots;        // Replicas that a device may hold.
    int32_t entries;      // Chunks that may enter a node (the overlap degree over the network).
    int64_t chunk_bytes;  // Bytes of a chunk; with window_bytes it may lower `entries`.
    int64_t window_bytes; // Bytes that may enter a node within the window; 0: no further limit.
    int32_t slack;        // Thousandths of the mean load given up to keep rows near their source.
    int32_t replica_rows; // Rows that a replica must keep on its device to be worth its bytes, when
                          // balance does not ask for it.
    int32_t import_rows;  // Rows that an entry must keep in its node, likewise.
    // Entries whose parameters, and whose gradients, computation hides. Each further one
    // must keep that many rows more in its node, because it is waited for; 0: it costs nothing.
    int32_t gather_hidden, reduce_hidden;
    int32_t gather_rows, reduce_rows;
};

// Prices for the policies that weigh time; integers in any one unit (picoseconds, say), at most
// HPL_PRICE_MAX.
struct hpl_costs {
    int64_t row_compute; // One row through an expert, forward.
    int64_t row_send;    // One row to another device.
    int64_t chunk_send;  // One chunk to another device; to another node, where chunk_near is given.
    int64_t grad_send;   // A chunk's gradient to another node, where nothing hides it.
    int64_t chunk_near;  // One chunk to another device of the node; 0: as chunk_send.
    int64_t row_cross;   // One row over its node's link; 0: calibration weighs computation alone.
};

// A fraction of rows per unit of speed: the load at which a device of speed s has num * s / den.
struct hpl_level {
    int64_t num;
    int64_t den;
};

#ifdef __cplusplus
}
#endif
#endif
