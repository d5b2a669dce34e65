// Sums of what all devices have: buckets of gradients, the norm, with dense = states the parts of parameters. With
// dense = shard gathers of parameters, too.
#include <stdlib.h>

#include "passes/timeline/run.h"

// As programs sum (runtime/train/dense.h): `times` over, every device's part of `bytes` goes to it, first
// inside the nodes, then once from each node.
static int32_t sum_transfer(struct run *r, const char *what, double bytes, double times) {
    const struct hec_machine *m = &r->request->setup->costs.machine;
    const double d = hec_devices_of(r), nodes = (double)m->nodes;
    double *sums =
        hec_arena_alloc(&r->arena, (size_t)(r->devices + (int32_t)m->nodes), sizeof *sums);
    for (int32_t i = 0; i < r->devices; i++) sums[i] = times * bytes * (d - 1) / d;
    for (int64_t n = 0; n < m->nodes; n++)
        sums[r->devices + n] = times * bytes * (nodes - 1) / nodes;
    const int32_t transfer = hec_transfer_new(r->lanes, HEC_LANE_DENSE, what, -1);
    const double near_us = m->devices > 1 ? 1e6 * m->intra_latency : 0;
    const double far_us = m->nodes > 1 ? 1e6 * m->inter_latency : 0;
    hec_transfer_loads(r->lanes, transfer, sums, sums, sums + r->devices, sums + r->devices,
                       times * (near_us + far_us));
    return transfer;
}

static void begin_step(struct run *r, int64_t step) {
    const int parity = (int)(step & 1);
    if (r->of_step[parity] == step) return;
    r->of_step[parity] = step;
    r->sums[parity] = 0;
    r->norm[parity] = r->publish[parity] = -1;
}

// The device's next sum of this step; the first device to come makes it.
static void start_sum(struct run *r, int32_t device) {
    struct device *d = &r->device[device];
    const int parity = (int)(hec_step_of(r, d) & 1);
    if (d->dense_count == r->sums[parity]) {
        if (r->sums[parity] == r->sum_room[parity]) {
            r->sum_room[parity] = r->sum_room[parity] ? 2 * r->sum_room[parity] : 64;
            r->sum[parity] =
                realloc(r->sum[parity], (size_t)r->sum_room[parity] * sizeof *r->sum[parity]);
            if (!r->sum[parity]) abort();
        }
        const double times = r->script->states ? 1 : 2;
        r->sum[parity][r->sums[parity]++] =
            sum_transfer(r, "dense gradients", r->script->way * (double)d->dense_bytes, times);
    }
    hec_run_start(r, device, r->sum[parity][d->dense_count++]);
    d->dense_bytes = 0;
}

void hec_run_dense(struct run *r, int32_t device, const struct hec_action *a) {
    struct device *d = &r->device[device];
    begin_step(r, hec_step_of(r, d));
    d->dense_bytes += a->bytes;
    if (r->devices == 1 || d->dense_bytes < r->script->bucket || d->dense_bytes == 0) return;
    start_sum(r, device);
    if (!r->script->shard || d->dense_count < 2) return;
    // The gradients of one bucket travel at a time (runtime/train/dense_units.c).
    hec_run_wait(r, device, r->sum[hec_step_of(r, d) & 1][d->dense_count - 2], HEC_SPENT_DENSE);
}

void hec_run_unit(struct run *r, int32_t device, const struct hec_action *a) {
    const struct device *d = &r->device[device];
    const int parity = (int)(d->iteration & 1);
    if (r->devices == 1) return;
    if (r->of_iteration[parity] != d->iteration) {
        r->of_iteration[parity] = d->iteration;
        for (int i = 0; i < r->script->units; i++) r->unit[parity][i] = -1;
    }
    int32_t *transfer = &r->unit[parity][a->unit];
    if (*transfer < 0) *transfer = sum_transfer(r, "dense parameters", (double)a->bytes, 1);
    if (a->act == HEC_ACT_UNIT)
        hec_run_start(r, device, *transfer);
    else
        hec_run_wait(r, device, *transfer, HEC_SPENT_UNITS);
}

void hec_run_sums(struct run *r, int32_t device) {
    struct device *d = &r->device[device];
    const int parity = (int)(hec_step_of(r, d) & 1);
    begin_step(r, hec_step_of(r, d));
    if (r->devices > 1 && d->dense_bytes > 0) start_sum(r, device);
    if (d->dense_count)
        hec_run_wait(r, device, r->sum[parity][d->dense_count - 1], HEC_SPENT_DENSE);
    d->dense_count = 0;
}

void hec_run_meet(struct run *r, int32_t device, const struct hec_action *a) {
    const int parity = (int)(hec_step_of(r, &r->device[device]) & 1);
    int32_t *known = a->act == HEC_ACT_NORM ? &r->norm[parity] : &r->publish[parity];
    if (r->devices == 1) return;
    if (*known < 0)
        *known = a->act == HEC_ACT_NORM
                     ? sum_transfer(r, "norm", 8, 2)
                     : sum_transfer(r, "parts of parameters", (double)r->script->dense_bytes, 1);
    hec_run_start(r, device, *known);
    hec_run_wait(r, device, *known, a->act == HEC_ACT_NORM ? HEC_SPENT_DENSE : HEC_SPENT_UNITS);
}
