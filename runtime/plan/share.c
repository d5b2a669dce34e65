// share.c: exact shares of the holders, by flow on (expert, holder) pairs.
//
// Sources of one expert and one device are alike, so the network needs no vertex for (source,
// expert): rows that start on a holder's device, or in its node, are what passes free of charge.
// That leaves as many arcs as the plan has holders, a few hundred where the literal form has a
// hundred thousand.
#include "runtime/plan/share.h"

#include "runtime/plan/flow.h"
#include "runtime/plan/tally.h"

// The arrays of a struct hpl_transport, before they are read-only.
struct network {
    int32_t *expert_group, *group_expert, *group_holder, *holder_group;
    int32_t *device_first, *device_holder;
    int64_t *group_near, *holder_near;
    uint32_t *node_rows;
};

static bool take_network(struct network *net, const struct hpl_topology *topology,
                         const struct hpl_plan *plan, struct hpl_work *work) {
    const int32_t holders = plan->first[plan->experts];
    net->expert_group = HPL_TAKE(work, plan->experts + 1, int32_t);
    net->group_expert = HPL_TAKE(work, holders, int32_t);
    net->group_holder = HPL_TAKE(work, holders + 1, int32_t);
    net->holder_group = HPL_TAKE(work, holders, int32_t);
    net->device_first = HPL_TAKE(work, topology->devices + 2, int32_t);
    net->device_holder = HPL_TAKE(work, holders, int32_t);
    net->group_near = HPL_TAKE(work, holders, int64_t);
    net->holder_near = HPL_TAKE(work, holders, int64_t);
    net->node_rows = HPL_TAKE(work, (int64_t)topology->nodes * plan->experts, uint32_t);
    return net->expert_group && net->group_expert && net->group_holder && net->holder_group &&
           net->device_first && net->device_holder && net->group_near && net->holder_near &&
           net->node_rows;
}

// Groups: the holders of an expert ascend and nodes are ranges of devices, so a node's holders of
// an expert follow each other. Returns how many groups there are.
static int32_t form_groups(struct network *net, const struct hpl_topology *topology,
                           const struct hpl_plan *plan, const struct hpl_loads *loads) {
    int32_t groups = 0;
    for (int32_t e = 0; e < plan->experts; e++) {
        net->expert_group[e] = groups;
        int32_t node = -1;
        for (int32_t k = plan->first[e]; k < plan->first[e + 1]; k++) {
            const int32_t d = plan->holder[k];
            if (topology->node[d] != node) {
                node = topology->node[d];
                net->group_expert[groups] = e;
                net->group_holder[groups] = k;
                net->group_near[groups] = net->node_rows[(int64_t)node * plan->experts + e];
                groups++;
            }
            net->holder_group[k] = groups - 1;
            net->holder_near[k] = loads->rows[(int64_t)d * plan->experts + e];
        }
    }
    net->expert_group[plan->experts] = groups;
    net->group_holder[groups] = plan->first[plan->experts];
    return groups;
}

// The holders of every device, by counting.
static void index_devices(struct network *net, int32_t devices, const struct hpl_plan *plan) {
    const int32_t holders = plan->first[plan->experts];
    hpl_zero_i32(net->device_first, devices + 2);
    for (int32_t k = 0; k < holders; k++) net->device_first[plan->holder[k] + 2]++;
    for (int32_t d = 0; d < devices; d++) net->device_first[d + 2] += net->device_first[d + 1];
    for (int32_t k = 0; k < holders; k++) {
        net->device_holder[net->device_first[plan->holder[k] + 1]++] = k;
    }
}

static enum hpl_status check(const struct hpl_topology *topology, const struct hpl_plan *plan,
                             const struct hpl_loads *loads, int32_t slack, const int64_t *rows) {
    if (loads->experts != plan->experts || loads->devices != topology->devices) {
        return HPL_BAD_ARGUMENT;
    }
    if (slack < 0 || slack > HPL_SLACK_MAX) return HPL_BAD_ARGUMENT;
    int64_t sum = 0;
    for (int32_t e = 0; e < plan->experts; e++) {
        if (rows[e] > 0 && plan->first[e] == plan->first[e + 1]) return HPL_BAD_ARGUMENT;
        sum += rows[e];
    }
    return sum > HPL_ROWS_MAX ? HPL_BAD_ARGUMENT : HPL_OK;
}

static enum hpl_status share_with(const struct hpl_topology *topology, const struct hpl_plan *plan,
                                  const struct hpl_loads *loads, int32_t slack, int64_t *share,
                                  struct hpl_level *level, unsigned char *full,
                                  struct hpl_work *work) {
    struct network net;
    int64_t *rows = HPL_TAKE(work, plan->experts, int64_t);
    if (!rows || !take_network(&net, topology, plan, work)) return HPL_NO_ROOM;
    hpl_tally_nodes(topology, loads, net.node_rows);
    hpl_tally_experts(net.node_rows, topology->nodes, plan->experts, rows);
    const enum hpl_status status = check(topology, plan, loads, slack, rows);
    if (status != HPL_OK) return status;

    struct hpl_transport t = {
        .experts = plan->experts,
        .groups = form_groups(&net, topology, plan, loads),
        .devices = topology->devices,
        .expert_group = net.expert_group,
        .group_expert = net.group_expert,
        .group_holder = net.group_holder,
        .holder_group = net.holder_group,
        .holder_device = plan->holder,
        .device_first = net.device_first,
        .device_holder = net.device_holder,
        .group_near = net.group_near,
        .holder_near = net.holder_near,
        .share = share,
    };
    t.full = full;
    t.plain = full != NULL;
    for (int32_t d = 0; full && d < topology->devices; d++) full[d] = 0;
    index_devices(&net, topology->devices, plan);
    if (!hpl_transport_take(&t, work)) return HPL_NO_ROOM;

    int64_t sum = 0;
    for (int32_t e = 0; e < plan->experts; e++) sum += rows[e];
    *level = (struct hpl_level){sum * (1000 + slack), 1000 * hpl_tally_speed(topology)};
    hpl_transport_solve(&t, topology->speed, rows, level);
    hpl_work_count(work, t.steps);
    return HPL_OK;
}

enum hpl_status hpl_share_level(const struct hpl_topology *topology, const struct hpl_plan *plan,
                                const struct hpl_loads *loads, int32_t slack,
                                struct hpl_level *level, unsigned char *full,
                                struct hpl_work *work) {
    const struct hpl_work before = *work;
    int64_t *share = HPL_TAKE(work, plan->first[plan->experts], int64_t);
    const enum hpl_status status =
        share ? share_with(topology, plan, loads, slack, share, level, full, work) : HPL_NO_ROOM;
    *work = before;
    return status;
}

enum hpl_status hpl_share(const struct hpl_topology *topology, const struct hpl_plan *plan,
                          const struct hpl_loads *loads, int32_t slack, int64_t *share,
                          struct hpl_level *level, struct hpl_work *work) {
    const struct hpl_work before = *work;
    const enum hpl_status status =
        share_with(topology, plan, loads, slack, share, level, NULL, work);
    *work = before;
    return status;
}
