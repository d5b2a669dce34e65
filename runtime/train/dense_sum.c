// Sums and gathers in rounds, in the background: a list has the steps of a round, and goes on with the next when they are
// done. A round takes pieces of as many tensors as there is room for; those for one rank are packed into one message.
#include <assert.h>

#include "runtime/device/device.h"
#include "runtime/train/dense_jobs.h"

int64_t hrt_dense_begin(const struct hrt_dense *dense, const struct hrt_dense_piece *piece,
                        int rank, int64_t *count) {
    const int64_t n = piece->tensor->count, ranks = dense->comm->size;
    const int64_t begin = n * rank / ranks, end = n * (rank + 1) / ranks;
    const int64_t low = begin + piece->low < end ? begin + piece->low : end;
    const int64_t high = begin + piece->high < end ? begin + piece->high : end;
    *count = high - low;
    return piece->tensor->offset + low;
}

// Of a round: each is a step or two per rank, which many ranks would have too many of.
static int most_pieces(int64_t ranks) {
    const int64_t most = 2048 / ranks;
    return most > HRT_DENSE_PIECES ? HRT_DENSE_PIECES : most < 4 ? 4 : (int)most;
}

// Takes the next pieces of the job; false: there are none.
static bool take_pieces(struct hrt_dense *dense, struct hrt_dense_job *job) {
    const int64_t room = (int64_t)(dense->stride / dense->element);
    int64_t used = 0;
    dense->pieces = 0;
    while (job->at < job->end && used < room && dense->pieces < most_pieces(dense->comm->size)) {
        const struct hrt_dense_tensor *tensor = &dense->tensor[dense->queue[job->at]];
        const int64_t widest = (tensor->count + dense->comm->size - 1) / dense->comm->size;
        int64_t high = widest;
        if (high - job->low > room - used) high = job->low + room - used;
        dense->piece[dense->pieces++] = (struct hrt_dense_piece){tensor, job->low, high};
        used += high - job->low;
        job->low = high;
        if (high < widest) break;
        job->at++;
        job->low = 0;
    }
    return dense->pieces > 0;
}

static size_t message_bytes(const struct hrt_dense *dense, int rank) {
    int64_t elements = 0, count;
    for (int i = 0; i < dense->pieces; i++) {
        hrt_dense_begin(dense, &dense->piece[i], rank, &count);
        elements += count;
    }
    return (size_t)elements * dense->element;
}

// ---- steps of a round

static char *message_to(const struct hrt_dense *dense, int peer) {
    return dense->sent + (size_t)peer * dense->stride;
}

static char *message_from(const struct hrt_dense *dense, int peer) {
    return dense->received + (size_t)peer * dense->stride;
}

static int32_t append(struct hrt_dense_job *job, enum hrt_step_kind kind, void *to,
                      const void *from, size_t bytes, const int32_t after[2]) {
    const struct hrt_dense *dense = job->dense;
    return hrt_steps_append(
        &job->steps,
        &(struct hrt_step){.kind = kind,
                           .type = dense->element == sizeof(float) ? HRT_FLOAT : HRT_DOUBLE,
                           .peer = dense->comm->rank,
                           .round = 1,
                           .after = {after[0], after[1]},
                           .to = to,
                           .from = from,
                           .bytes = bytes});
}

// Between a message, where the pieces of `rank` lie one behind the other, and the buffer: `kind` brings them to the
// message or, `back`, to the buffer, one after the other and after the step `last`. Returns the last step.
static int32_t list_pieces(struct hrt_dense_job *job, enum hrt_step_kind kind, int rank,
                           char *message, bool back, int32_t last) {
    const struct hrt_dense *dense = job->dense;
    for (int i = 0; i < dense->pieces; i++) {
        int64_t count;
        const int64_t at = hrt_dense_begin(dense, &dense->piece[i], rank, &count);
        const size_t bytes = (size_t)count * dense->element;
        char *place = (char *)job->buffer + (size_t)at * dense->element;
        if (bytes == 0) continue;
        last = append(job, kind, back ? place : message, back ? message : place, bytes,
                      (const int32_t[]){last, -1});
        message += bytes;
    }
    return last;
}

// Everybody's shares of everybody's parts. Receives come first in a list, so that they are posted before anything
// is sent. Peers in an order that begins behind this rank, so that not all send to the same one first.
static void list_shares(struct hrt_dense_job *job) {
    struct hrt_dense *dense = job->dense;
    const int rank = dense->comm->rank, size = dense->comm->size;
    const size_t own = message_bytes(dense, rank);
    for (int i = 1; i < size && own; i++) {
        const int peer = (rank + size - i) % size;
        dense->read[peer] =
            hrt_steps_receive(&job->steps, peer, message_from(dense, peer), own, -1);
    }
    for (int i = 1; i < size; i++) {
        const int peer = (rank + i) % size;
        const size_t bytes = message_bytes(dense, peer);
        char *out = message_to(dense, peer);
        const int32_t packed = list_pieces(job, HRT_COPY, peer, out, false, -1);
        if (bytes) hrt_steps_send(&job->steps, peer, out, bytes, packed);
    }
}

// This rank's part, in the message for itself: rank 0's share, and the others' added to it in the order of ranks.
// Returns the last step.
static int32_t list_sum(struct hrt_dense_job *job) {
    struct hrt_dense *dense = job->dense;
    const int rank = dense->comm->rank;
    const size_t bytes = message_bytes(dense, rank);
    char *sum = message_to(dense, rank);
    int32_t last = -1;
    for (int r = 0; r < dense->comm->size && bytes; r++) {
        const enum hrt_step_kind kind = r == 0 ? HRT_COPY : HRT_ADD;
        if (r == rank) {
            last = list_pieces(job, kind, rank, sum, false, last);
        } else {
            last = append(job, kind, sum, message_from(dense, r), bytes,
                          (const int32_t[]){dense->read[r], last});
            dense->read[r] = last;
        }
    }
    return last;
}

// This rank's part, which the step `last` has completed, to everybody, and theirs to the buffer.
static void list_parts(struct hrt_dense_job *job, int32_t last) {
    struct hrt_dense *dense = job->dense;
    const int rank = dense->comm->rank, size = dense->comm->size;
    const size_t own = message_bytes(dense, rank);
    const int32_t first = job->steps.count;
    for (int i = 1; i < size; i++) {
        const int peer = (rank + size - i) % size;
        const size_t bytes = message_bytes(dense, peer);
        char *in = message_from(dense, peer);
        // In place of the share, once that has been added.
        if (bytes)
            dense->read[peer] = hrt_steps_receive(&job->steps, peer, in, bytes, dense->read[peer]);
    }
    for (int i = 1; i < size && own; i++)
        hrt_steps_send(&job->steps, (rank + i) % size, message_to(dense, rank), own, last);
    for (int32_t i = first; i < job->steps.count; i++) job->steps.step[i].round = 2;
    for (int r = 0; r < size; r++) {
        if (r != rank) list_pieces(job, HRT_COPY, r, message_from(dense, r), true, dense->read[r]);
    }
}

// Lists the next round. False: nothing is left to do.
static bool next_round(struct hrt_steps *steps) {
    struct hrt_dense_job *job = (struct hrt_dense_job *)steps;
    struct hrt_dense *dense = job->dense;
    const int rank = dense->comm->rank;
    char *own = message_to(dense, rank);
    int32_t last;
    hrt_steps_clear(steps);
    if (!take_pieces(dense, job)) return false;
    for (int r = 0; r < dense->comm->size; r++) dense->read[r] = -1;
    if (job->reduce) {
        list_shares(job);
        last = list_sum(job);
        list_pieces(job, HRT_COPY, rank, own, true, last);
    } else {
        last = list_pieces(job, HRT_COPY, rank, own, false, -1);
    }
    if (job->gather) list_parts(job, last);
    return true;
}

// Per rank and round: two messages each way and an add, and each piece is copied to a message and back.
int64_t hrt_dense_room(int64_t ranks) {
    return ranks * (5 + 2 * most_pieces(ranks));
}

void hrt_dense_start(struct hrt_dense *dense, int64_t first, int64_t end, void *buffer, bool reduce,
                     bool gather) {
    assert(dense->jobs <= dense->tensors);
    struct hrt_dense_job *job = &dense->job[dense->jobs];
    *job = (struct hrt_dense_job){.steps = {.step = dense->step,
                                            .room = (int32_t)hrt_dense_room(dense->comm->size),
                                            .on_device = hrt_device_is_apart(dense->device),
                                            .next = next_round},
                                  .dense = dense,
                                  .end = end,
                                  .at = first,
                                  .buffer = buffer,
                                  .reduce = reduce,
                                  .gather = gather};
    dense->jobs++;
    dense->last_sum = hrt_submit(dense->comm, HRT_LANE_DENSE, &job->steps);
}

void hrt_dense_wait(struct hrt_dense *dense, const char *what) {
    hrt_join(dense->comm, dense->last_sum, what);
    dense->jobs = 0;
}
