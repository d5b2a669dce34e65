// Lists of steps, the execution of a single step, and the exchange of rows and counts.
#include "runtime/net/steps.h"

#include <assert.h>
#include <string.h>

#include "kernels/add/add.h"
#include "kernels/types.h"

void hrt_net_steps_clear(struct hrt_steps *steps) {
    steps->count = 0;
    steps->hash = 0;
}

int32_t hrt_net_steps_append(struct hrt_steps *steps, const struct hrt_step *step) {
    assert(steps->count < steps->room && step->bytes > 0);
    steps->step[steps->count] = *step;
    return steps->count++;
}

int32_t hrt_net_steps_send(struct hrt_steps *steps, int32_t peer, const void *from, size_t bytes,
                           int32_t after) {
    return hrt_net_steps_append(steps, &(struct hrt_step){.kind = HRT_SEND,
                                                          .peer = peer,
                                                          .round = 1,
                                                          .after = {after, -1},
                                                          .from = from,
                                                          .bytes = bytes});
}

int32_t hrt_net_steps_receive(struct hrt_steps *steps, int32_t peer, void *to, size_t bytes,
                              int32_t after) {
    return hrt_net_steps_append(steps, &(struct hrt_step){.kind = HRT_RECV,
                                                          .peer = peer,
                                                          .round = 1,
                                                          .after = {after, -1},
                                                          .to = to,
                                                          .bytes = bytes});
}

static void add(const struct hrt_step *step) {
    if (step->type == HRT_FLOAT) {
        hk_add_f32(step->to, step->from, (int64_t)(step->bytes / sizeof(float)));
    } else {
        assert(step->type == HRT_DOUBLE);
        hk_add_f64(step->to, step->from, (int64_t)(step->bytes / sizeof(double)));
    }
}

void hrt_net_step_run(const struct hrt_step *step) {
    const int64_t narrow = (int64_t)(step->bytes / sizeof(hk_bf16));
    switch (step->kind) {
    case HRT_COPY:
        memcpy(step->to, step->from, step->bytes);
        break;
    case HRT_ADD:
        add(step);
        break;
    case HRT_NARROW:
        hk_narrow_bf16(step->to, step->from, narrow);
        break;
    case HRT_WIDEN:
        hk_widen_bf16(step->to, step->from, narrow);
        break;
    case HRT_ADD_NARROW:
        hk_add_bf16(step->to, step->from, narrow);
        break;
    case HRT_NARROW_PAIRS:
        hk_round_panels_bf16(step->to, step->from, narrow / HK_PANEL, HK_PANEL);
        break;
    case HRT_SEND:
    case HRT_RECV:
    case HRT_SAME:
        assert(!"a step of the transport");
    }
}

void hrt_net_steps_exchange(struct hrt_steps *steps, const struct hrt_comm *comm, void *recv,
                            const void *send, const struct hrt_exchange *exchange) {
    const int size = comm->size, rank = comm->rank;
    const char *from = send;
    char *to = recv;
    hrt_net_steps_clear(steps);
    for (int i = 1; i < size; i++) {
        const int peer = (rank + size - i) % size;
        const size_t bytes = exchange->recv_bytes[peer];
        if (bytes) hrt_net_steps_receive(steps, peer, to + exchange->recv_offset[peer], bytes, -1);
    }
    for (int i = 1; i < size; i++) {
        const int peer = (rank + i) % size;
        const size_t bytes = exchange->send_bytes[peer];
        if (bytes) hrt_net_steps_send(steps, peer, from + exchange->send_offset[peer], bytes, -1);
    }
    assert(exchange->send_bytes[rank] == exchange->recv_bytes[rank]);
    if (exchange->send_bytes[rank])
        hrt_net_steps_append(steps, &(struct hrt_step){.kind = HRT_COPY,
                                                       .peer = rank,
                                                       .round = 1,
                                                       .after = {-1, -1},
                                                       .to = to + exchange->recv_offset[rank],
                                                       .from = from + exchange->send_offset[rank],
                                                       .bytes = exchange->send_bytes[rank]});
}
