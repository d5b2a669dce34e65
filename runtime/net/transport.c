// The calls of transport.h: they hand over to the back end.
#define _GNU_SOURCE // The program's name.
#include "runtime/net/transport.h"

#include <errno.h>
#include <stdio.h>

#include "kernels/cpu/observe.h"
#include "runtime/base/error.h"
#include "runtime/net/backend.h"

void hrt_net_executor_describe(const struct hrt_executor *executor, char *text, size_t bytes) {
    executor->describe(text, bytes);
}

_Noreturn void hrt_net_executor_fail(struct hrt_comm *comm, const char *what, const char *why) {
    fflush(stdout);
    fprintf(stderr, "%s: error: rank %d: %s, %s: %s\n", program_invocation_short_name, comm->rank,
            comm->executor->name, what, why);
    hrt_net_comm_abort(comm, HRT_EXIT_FAILED);
}

struct hrt_mark hrt_net_lane_submit(struct hrt_comm *comm, enum hrt_lane lane,
                                    struct hrt_steps *steps) {
    steps->begun = steps->heard = steps->ended = hk_clock();
    if (steps->count == 0 && !steps->next) return (struct hrt_mark){.lane = lane};
    if (steps->on_device && comm->executor)
        comm->executor->submit(comm, lane, steps);
    else
        comm->ops->submit(comm, lane, steps);
    return (struct hrt_mark){
        .lane = lane, .number = steps->number, .on_device = steps->on_device && comm->executor};
}

bool hrt_net_lane_reached(struct hrt_comm *comm, struct hrt_mark mark) {
    return mark.number == 0 || mark.on_device || comm->ops->reached(comm, &mark);
}

void hrt_net_lane_join(struct hrt_comm *comm, struct hrt_mark mark, const char *why) {
    if (mark.number == 0) return;
    if (mark.on_device) {
        comm->executor->order(comm, mark);
        return;
    }
    const int64_t from = hk_clock();
    comm->ops->join(comm, &mark, why);
    hrt_wait_count(comm->wait, HRT_WAITS, why, hk_clock() - from);
}

void hrt_net_exchange_on(struct hrt_comm *comm, enum hrt_lane lane, struct hrt_steps *steps,
                         void *recv, const void *send, const struct hrt_exchange *exchange,
                         const char *why) {
    hrt_net_steps_exchange(steps, comm, recv, send, exchange);
    hrt_net_lane_join(comm, hrt_net_lane_submit(comm, lane, steps), why);
}
