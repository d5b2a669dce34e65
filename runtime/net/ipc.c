// The executor for ranks of one machine, which may share a GPU: copies by its copy engines into memory that processes map
// from each other (ipc.h), and kernels that add.
//
// A lane has a stream that sends and one for all other steps. Each takes its messages in the order of the list, copies and adds
// as soon as the messages that they wait for, and waits for the other stream where a step has to follow one of the other's. All
// ranks list the messages of a lane in one order. So of all messages that are left, nothing stands before the first one in
// this order, on neither side, and it goes through: nothing waits in a circle, however few places a ring has.
#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/launchers.h"
#include "runtime/device/pages.h"
#include "runtime/net/backend.h"
#include "runtime/net/device_step.h"
#include "runtime/net/ipc.h"

static bool open_ipc(struct hrt_comm *comm, struct hrt_device *device, struct hrt_error *error) {
    struct hrt_ipc *ipc = calloc(1, sizeof *ipc);
    if (!ipc) return hrt_fail(error, "out of memory");
    ipc->comm = comm;
    ipc->device = device;
    comm->executor = &hrt_executor_ipc;
    comm->executor_own = ipc;
    return hrt_ipc_take(ipc, error);
}

static void join_ipc(struct hrt_comm *comm) {
    struct hrt_ipc *ipc = comm->executor_own;
    hrt_ipc_meet(ipc);
    ipc->device->look = hrt_ipc_look;
    ipc->device->look_context = ipc;
}

static void close_ipc(struct hrt_comm *comm) {
    struct hrt_ipc *ipc = comm->executor_own;
    ipc->device->look = NULL;
    hrt_ipc_part(ipc);
    free(ipc);
    comm->executor = NULL;
    comm->executor_own = NULL;
}

// ---- pieces

static void check_value(const struct hrt_ipc *ipc, const char *what, CUresult result) {
    char why[64];
    if (result == CUDA_SUCCESS) return;
    snprintf(why, sizeof why, "the driver refuses it, CUresult %d", (int)result);
    hrt_net_executor_fail(ipc->comm, what, why);
}

static CUdeviceptr ready_of(const struct hrt_ipc_end *end, uint64_t piece) {
    return end->device_words + offsetof(struct hrt_ipc_words, ready) +
           piece % HRT_IPC_PLACES * sizeof(uint32_t);
}

static CUdeviceptr taken_of(const struct hrt_ipc_end *end) {
    return end->device_words + offsetof(struct hrt_ipc_words, taken);
}

static char *place_of(const struct hrt_ipc *ipc, const struct hrt_ipc_end *end) {
    return end->place + end->pieces % HRT_IPC_PLACES * ipc->piece;
}

// Waits until the place has been emptied of the piece before.
static void send_piece(const struct hrt_ipc *ipc, cudaStream_t stream, struct hrt_ipc_end *end,
                       const char *from, size_t bytes, bool last) {
    const uint64_t number = end->pieces;
    if (number >= HRT_IPC_PLACES)
        check_value(ipc, "a wait of a send",
                    ipc->wait(stream, taken_of(end), (uint32_t)(number - HRT_IPC_PLACES + 1),
                              CU_STREAM_WAIT_VALUE_GEQ)); // Modulo 2^32, as the counts are.
    hrt_ipc_check(ipc->comm, "a send",
                  hrt_device_pages_copy(place_of(ipc, end), from, bytes, stream));
    check_value(ipc, "the token of a send",
                ipc->write(stream, ready_of(end, number), hrt_ipc_token(number, bytes, last),
                           CU_STREAM_WRITE_VALUE_DEFAULT));
    end->pieces++;
}

static void receive_piece(struct hrt_ipc *ipc, cudaStream_t stream, struct hrt_ipc_end *end,
                          char *to, size_t bytes, bool last) {
    const uint64_t number = end->pieces;
    const uint32_t token = hrt_ipc_token(number, bytes, last);
    hrt_ipc_expect(ipc, end, token);
    check_value(ipc, "a wait of a receive",
                ipc->wait(stream, ready_of(end, number), token, CU_STREAM_WAIT_VALUE_EQ));
    hrt_ipc_check(ipc->comm, "a receive",
                  hrt_device_pages_copy(to, place_of(ipc, end), bytes, stream));
    check_value(
        ipc, "the count of a receive",
        ipc->write(stream, taken_of(end), (uint32_t)number + 1, CU_STREAM_WRITE_VALUE_DEFAULT));
    end->pieces++;
}

// The stream of a step.
static enum hrt_ipc_way way_of(const struct hrt_step *step) {
    return step->kind == HRT_SEND ? HRT_IPC_OUT : HRT_IPC_IN;
}

static void move(struct hrt_ipc *ipc, struct hrt_ipc_lane *lane, const struct hrt_step *step) {
    const enum hrt_ipc_way way = way_of(step);
    struct hrt_ipc_end *end = &lane->end[way][step->peer];
    cudaStream_t stream = lane->side[way].work.stream;
    for (size_t at = 0; at < step->bytes; at += ipc->piece) {
        const size_t left = step->bytes - at;
        const bool last = left <= ipc->piece;
        const size_t bytes = last ? left : ipc->piece;
        if (way == HRT_IPC_OUT) {
            send_piece(ipc, stream, end, (const char *)step->from + at, bytes, last);
        } else {
            receive_piece(ipc, stream, end, (char *)step->to + at, bytes, last);
        }
    }
}

// ---- lists

static bool is_message(const struct hrt_step *step) {
    return step->kind == HRT_SEND || step->kind == HRT_RECV;
}

// Puts each copy and add behind the last message that it waits for, and no later in the list: a copy for another rank
// must not wait for data that others send only after it. Afterwards `pieces` is the first of those behind a message,
// and the next one behind the same message, steps->head the first that waits for none; `done` says that a step of the
// other stream follows.
static void sort(struct hrt_steps *steps) {
    for (int32_t i = 0; i < steps->count; i++) {
        struct hrt_step *step = &steps->step[i];
        size_t last = 0; // Number, from 1, of the last message that it waits for.
        for (int k = 0; k < 2; k++) {
            if (step->after[k] < 0) continue;
            struct hrt_step *before = &steps->step[step->after[k]];
            if (before->posted > last) last = before->posted;
            if (way_of(before) != way_of(step)) before->done = true;
        }
        step->posted = is_message(step) ? (size_t)i + 1 : last;
        step->pieces = -1;
        step->done = false;
    }
    steps->head = -1;
    for (int32_t i = steps->count - 1; i >= 0; i--) {
        struct hrt_step *step = &steps->step[i];
        if (is_message(step)) continue;
        int32_t *first = step->posted ? &steps->step[step->posted - 1].pieces : &steps->head;
        step->pieces = *first;
        *first = i;
    }
}

static void follow(const struct hrt_ipc *ipc, cudaStream_t stream, cudaEvent_t event) {
    hrt_ipc_check(ipc->comm, "an event", cudaStreamWaitEvent(stream, event, 0));
}

// An event behind a step that others follow: `posted` is its number from here on. Those of a list are used again by the next
// one, when all waits for them have been asked for.
static void mark_step(const struct hrt_ipc *ipc, struct hrt_ipc_side *side, struct hrt_step *step) {
    if (side->used == side->step.count) {
        cudaEvent_t event;
        hrt_ipc_check(ipc->comm, "an event",
                      cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
        if (!hrt_ipc_keep(&side->step, event))
            hrt_net_executor_fail(ipc->comm, "an event", "out of memory");
    }
    step->posted = side->used++;
    hrt_ipc_check(ipc->comm, "an event",
                  cudaEventRecord(side->step.event[step->posted], side->work.stream));
}

static void ask_for(struct hrt_ipc *ipc, struct hrt_ipc_lane *lane, const struct hrt_steps *steps,
                    struct hrt_step *step) {
    struct hrt_ipc_side *side = &lane->side[way_of(step)];
    for (int k = 0; k < 2; k++) {
        if (step->after[k] < 0) continue;
        const struct hrt_step *before = &steps->step[step->after[k]];
        if (way_of(before) == way_of(step)) continue;
        follow(ipc, side->work.stream, lane->side[way_of(before)].step.event[before->posted]);
    }
    if (is_message(step)) {
        move(ipc, lane, step);
    } else {
        hrt_ipc_check(ipc->comm, "a copy or a sum", hrt_net_device_step(&side->work, step));
    }
    if (step->done) mark_step(ipc, side, step);
}

static void launch(struct hrt_ipc *ipc, struct hrt_ipc_lane *lane, struct hrt_steps *steps) {
    sort(steps);
    for (int way = 0; way < HRT_IPC_WAYS; way++) lane->side[way].used = 0;
    for (int32_t k = steps->head; k >= 0; k = steps->step[k].pieces)
        ask_for(ipc, lane, steps, &steps->step[k]);
    for (int32_t i = 0; i < steps->count; i++) {
        if (!is_message(&steps->step[i])) continue;
        ask_for(ipc, lane, steps, &steps->step[i]);
        for (int32_t k = steps->step[i].pieces; k >= 0; k = steps->step[k].pieces)
            ask_for(ipc, lane, steps, &steps->step[k]);
    }
}

static cudaEvent_t done_of(const struct hrt_ipc_side *side, uint64_t number) {
    return side->done[number % HRT_IPC_EVENTS];
}

static void record_done(const struct hrt_ipc *ipc, struct hrt_ipc_lane *lane) {
    lane->submitted++;
    for (int way = 0; way < HRT_IPC_WAYS; way++)
        hrt_ipc_check(ipc->comm, "an event",
                      cudaEventRecord(done_of(&lane->side[way], lane->submitted),
                                      lane->side[way].work.stream));
}

static void submit(struct hrt_comm *comm, enum hrt_lane number, struct hrt_steps *steps) {
    struct hrt_ipc *ipc = comm->executor_own;
    struct hrt_ipc_lane *lane = &ipc->lane[number];
    assert(hrt_ipc_moves(number));
    hrt_ipc_check(comm, "an event", cudaEventRecord(lane->begun, ipc->device->lane->stream));
    for (int way = 0; way < HRT_IPC_WAYS; way++)
        follow(ipc, lane->side[way].work.stream, lane->begun);
    do {
        if (steps->count == 0) continue;
        launch(ipc, lane, steps);
        record_done(ipc, lane);
        // Lists that go on use memory again: each follows all steps of those before it.
        for (int way = 0; steps->next && way < HRT_IPC_WAYS; way++)
            follow(ipc, lane->side[!way].work.stream, done_of(&lane->side[way], lane->submitted));
    } while (steps->next && steps->next(steps));
    steps->number = lane->submitted;
}

// A list so old that its event has been used again is done when the one that has it is.
static void order(struct hrt_comm *comm, struct hrt_mark mark) {
    struct hrt_ipc *ipc = comm->executor_own;
    struct hrt_ipc_lane *lane = &ipc->lane[mark.lane];
    const uint64_t oldest =
        lane->submitted > HRT_IPC_EVENTS ? lane->submitted - HRT_IPC_EVENTS + 1 : 1;
    const uint64_t number = mark.number > oldest ? mark.number : oldest;
    if (number <= lane->ordered) return;
    for (int way = 0; way < HRT_IPC_WAYS; way++)
        follow(ipc, ipc->device->lane->stream, done_of(&lane->side[way], number));
    lane->ordered = number;
}

static void describe(char *text, size_t bytes) {
    snprintf(text, bytes, "CUDA IPC");
}

const struct hrt_executor hrt_executor_ipc = {
    .name = "CUDA IPC",
    .describe = describe,
    .open = open_ipc,
    .join = join_ipc,
    .bytes = hrt_ipc_bytes,
    .submit = submit,
    .order = order,
    .close = close_ipc,
};
