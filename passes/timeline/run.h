// A simulation under way: shared by timeline.c and sums.c. Private to this folder.
#ifndef HECATE_PASSES_TIMELINE_RUN_H
#define HECATE_PASSES_TIMELINE_RUN_H

#include "passes/timeline/agenda.h"
#include "passes/timeline/timeline.h"
#include "passes/timeline/traffic.h"

// Transfers of rows: forward there and back, backward likewise, forward's again.
enum rows { ROWS_THERE, ROWS_BACK, ROWS_GRAD_THERE, ROWS_GRAD_BACK, ROWS_AGAIN, ROWS };

// A layer of a set. Devices may be in two iterations at a time: one has begun the next, another ends this one.
struct layer {
    struct hec_traffic traffic[2];
    int32_t *wave[2][ROWS]; // Transfers; -1: not there yet.
    int64_t room[2];
};

enum { LOOPS = 2 }; // Waves, and in one of them recomputation.

struct loop {
    int begin;
    int64_t step, count;
};

struct device {
    double now;
    int at;            // In the script.
    int64_t iteration; // Counted through all steps.
    struct loop loop[LOOPS];
    int depth;
    int32_t waits; // For a transfer; -1: it does not.
    enum hec_spent why;
    double since;
    struct hec_path path; // To now, or to since where it waits.
    int64_t dense_bytes;  // Complete, and not under way.
    int32_t dense_count;  // Sums of this step that it has started.
    bool ended;
};

// New owners behind a step.
struct change {
    int64_t step;
    bool due;
    int32_t transfer[HEC_SITES_MAX]; // -1: nothing moves.
};

struct run {
    const struct hec_timeline_request *request;
    struct hec_arena arena;
    const struct hec_script *script;
    const struct hpl_policy *policy; // The movement's; NULL where no rows are sent.
    struct hec_lanes *lanes;
    bool sums_alone; // Transfers are sums through ports, no single messages.
    struct hec_mover mover[HEC_SITES_MAX];
    struct layer *layer[HEC_SITES_MAX]; // [layers]
    int64_t
        *planned[HEC_SITES_MAX]; // [devices][layers] the iteration that the device has planned, + 1
    struct device *device;
    int32_t devices, ended;
    struct hec_agenda ready;               // Devices that can go on, the earliest first.
    int32_t *sum[2], sums[2], sum_room[2]; // Transfers of a step: dense sums.
    int32_t norm[2], publish[2];
    int32_t *unit
        [2]; // Transfers of an iteration: gathers of dense parameters. [script.units] -1: not there yet.
    int64_t of_iteration[2];              // The iteration of `unit`.
    int64_t of_step[2];                   // The step of `sum`, `norm` and `publish`.
    double *spent;                        // [steps][devices][HEC_SPENT]
    double *end, *body;                   // [steps] of them, and of their gradients
    double *ends;                         // [steps][iterations]
    struct hec_path *path;                // [steps] to the end
    double *imbalance, *replicas, *cross; // [steps] sums over layers and iterations
    double *moved;                        // [steps] chunks that get new owners
    struct change change[2];              // The last two steps'.
    int64_t changed, changes;             // Iterations before the last change; how many there were.
    double *layer_us; // [hec_timeline_layers] sums over devices and steps but the first
    double plan_us[HEC_SITES_MAX];
    bool failed;
};

static inline double hec_devices_of(const struct run *r) {
    return (double)r->devices;
}

static inline int64_t hec_step_of(const struct run *r, const struct device *d) {
    return d->iteration / r->script->iterations;
}

// ---- spent.c: time that passes

// The device has spent time on something.
void hec_run_note(struct run *r, int32_t device, const struct hec_action *a, enum hec_spent spent,
                  double begin, double end);

// The device goes on `us` later, which it spends on that.
void hec_run_pass(struct run *r, int32_t device, const struct hec_action *a, enum hec_spent spent,
                  double us);

// The device comes to the transfer, if it has not yet; -1: there is none.
void hec_run_start(struct run *r, int32_t device, int32_t transfer);

// The device goes on behind this action when its part of the transfer is done.
void hec_run_wait(struct run *r, int32_t device, int32_t transfer, enum hec_spent why);

// ---- sums.c: gradients and parameters that every device has

// Counts gradients as complete; those of a whole bucket start their sum.
void hec_run_dense(struct run *r, int32_t device, const struct hec_action *a);

// Starts or awaits a gather of parameters, with dense = shard.
void hec_run_unit(struct run *r, int32_t device, const struct hec_action *a);

// Starts the sums of the remaining gradients, and waits for all sums.
void hec_run_sums(struct run *r, int32_t device);

// The norm, or the parts of parameters: waits for all devices'.
void hec_run_meet(struct run *r, int32_t device, const struct hec_action *a);

// ---- reshard.c: new owners

// The first placement of a set, if it lasts, and owners as old as the simulation begins with. False: the planner
// refuses.
bool hec_run_place(struct run *r, int set);

// Changes owners, if it is time, and waits for their chunks.
void hec_run_reshard(struct run *r, int32_t device, const struct hec_action *a);

// After the last step: the time of the changes of owners, or of one. False: the planner refuses.
bool hec_run_owners(struct run *r, const struct hec_step_time *step, struct hec_owners *owners);

#endif
