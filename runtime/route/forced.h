// Forced routing and records of routing: --route, --record-ids, --record-loads.
//
// Which experts a token is forced to depends on (seed, global sequence, layer, position) alone, so
// neither ranks nor microbatches change it. A layer here is one router of the model: those of the
// first set in the order of its layers, then those of the second, ...
#ifndef HECATE_RUNTIME_ROUTE_FORCED_H
#define HECATE_RUNTIME_ROUTE_FORCED_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/error.h"
#include "runtime/device/device.h"
#include "runtime/net/comm.h"
#include "runtime/program.h"
#include "runtime/route/ids_file.h"
#include "runtime/route/loads_file.h"
#include "runtime/route/spread.h"

enum hrt_route_kind {
    HRT_ROUTE_MODEL,    // The routers' own choice.
    HRT_ROUTE_BALANCED, // Every expert as often as every other.
    HRT_ROUTE_ZIPF,     // The r-th expert of a layer in proportion to r^-S; the order is random.
    HRT_ROUTE_TRACE,    // In proportion to a file of loads: step and layer modulo the file's.
    HRT_ROUTE_IDS,      // As a file of ids says.
};

struct hrt_route_request {
    const char *route;                     // As typed; NULL: model.
    const char *record_ids, *record_loads; // NULL: none.
    uint64_t seed;
    int64_t from, drawn; // Steps that were taken before, and the sequences that they drew.
    int64_t ids_begun,
        loads_begun; // The step before which each record began, which goes on behind `from`; -1: it begins.
    int64_t steps, batch, iterations; // Steps of the run; sequences of a call; calls of a step.
    struct hrt_device *device;        // Where model and arena lie; NULL: on the host.
};

struct hrt_route_layer {
    struct hrt_spread spread;
    struct hrt_routing *routing; // In the model.
    const int32_t *loads;        // In the arena, [experts].
    struct hrt_stream stream;
    int64_t *mass;   // [experts]
    int32_t *ids;    // [batch, positions, topk]: forced, and recorded. The device's, too.
    int32_t *count;  // [experts], scratch.
    int64_t counted; // Where its experts begin among those of all sets and layers.
};

struct hrt_route {
    const struct hrt_program *program;
    struct hrt_comm *comm;
    struct hrt_device *device;
    enum hrt_route_kind kind;
    bool records_ids, records_loads;
    bool lost_ids, lost_loads; // This rank could not write its part.
    int64_t batch, iterations;
    int layers;
    struct hrt_route_layer *layer;
    struct hrt_ids_layer *shape; // [layers]
    struct hrt_ids_file ids, record;
    struct hrt_loads_file trace, loads; // `loads` is open on rank 0 only.
    int64_t *count; // [layers][ranks][iterations][experts] of the step; when recording loads.
    int64_t counts;
    double *popularity; // Scratch, the most experts of a layer.
    int32_t *order;     // Scratch, positions.
    int32_t **sequence; // Scratch, layers.
    int64_t filled_step,
        filled_first;    // The step and the first sequence whose ids the layers hold; -1: none.
    int64_t steps;       // Taken.
    int64_t from, drawn; // As struct hrt_route_request has them.
    int64_t ids_begun, loads_begun; // For each record: the step before which it began.
};

// Reads the value of --route, opens the files, and prepares `model` and `arena` for it. False: a usage
// error for words that are none, and for a model without experts; or a file's fault.
// Call hrt_route_close in either case. All pointers are borrowed until then.
bool hrt_route_open(struct hrt_route *route, const struct hrt_route_request *request,
                    const struct hrt_program *program, struct hrt_comm *comm, void *model,
                    void *arena, struct hrt_error *error);

// Whether routers choose in all steps, and nobody looks at their ids: every forward asks for the same.
bool hrt_route_is_free(const struct hrt_route *route);

// Sets the model's routing for a forward over the sequences first .. first + batch - 1 of step
// `step`. It stays until the next call or the end of the step.
bool hrt_route_force(struct hrt_route *route, int64_t step, int64_t first, struct hrt_error *error);

// Whether the routes of all experts are known before a step. False: a usage error.
bool hrt_route_check_known(const struct hrt_route *route, struct hrt_error *error);

// Counts the rows that this rank will send to each expert in `calls` calls of step `step`, and sets `count`
// [sets][layers][experts] to their mean, rounded to the nearest. The first call begins with sequence `first`,
// each next one `stride` sequences later. The ids of the first call stay for its hrt_route_force. False: a file's
// fault; `count` is then 0 or incomplete.
bool hrt_route_count(struct hrt_route *route, int64_t step, int64_t first, int64_t stride,
                     int64_t calls, uint32_t *count, struct hrt_error *error);

// Records what that forward, call `iteration` of its step, has chosen. A record that cannot be written is warned of
// once, and left unfinished: it only watches.
void hrt_route_record(struct hrt_route *route, int64_t iteration, int64_t first);

// Ends a step: the routers are free again (evaluation, samples), loads are written. Call it on all ranks.
void hrt_route_end_step(struct hrt_route *route);

// Marks complete records as complete. Call once, after the last step, on all ranks.
void hrt_route_finish(struct hrt_route *route);

// Closes the files and frees. May be called on a zeroed struct.
void hrt_route_close(struct hrt_route *route);

#endif
