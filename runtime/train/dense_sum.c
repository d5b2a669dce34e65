// Sums and gathers in rounds, in the background: a list has the messages of a round; when they are there they are
// added up or copied, and the list goes on with the next. A round takes pieces of as many tensors as there is room for.
#include <assert.h>
#include <string.h>

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

// Takes the next pieces of the job; false: there are none.
static bool take_pieces(struct hrt_dense *dense, struct hrt_dense_job *job) {
    const int64_t room = (int64_t)(dense->stride / dense->element);
    int64_t used = 0;
    dense->pieces = 0;
    while (job->at < job->end && used < room && dense->pieces < HRT_DENSE_PIECES) {
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

// Copies the pieces of `rank` out of the buffer into a message, or back.
static void pack(const struct hrt_dense *dense, char *buffer, int rank, char *message) {
    for (int i = 0; i < dense->pieces; i++) {
        int64_t count;
        const int64_t at = hrt_dense_begin(dense, &dense->piece[i], rank, &count);
        const size_t bytes = (size_t)count * dense->element;
        memcpy(message, buffer + (size_t)at * dense->element, bytes);
        message += bytes;
    }
}

static void unpack(const struct hrt_dense *dense, char *buffer, int rank, const char *message) {
    for (int i = 0; i < dense->pieces; i++) {
        int64_t count;
        const int64_t at = hrt_dense_begin(dense, &dense->piece[i], rank, &count);
        const size_t bytes = (size_t)count * dense->element;
        memcpy(buffer + (size_t)at * dense->element, message, bytes);
        message += bytes;
    }
}

// Receives come first in a list, so that they are posted before anything is sent.
static void receive_all(struct hrt_dense *dense, struct hrt_dense_job *job, bool parts) {
    const int rank = dense->comm->rank, size = dense->comm->size;
    for (int i = 1; i < size; i++) {
        const int peer = (rank + size - i) % size;
        const size_t bytes = message_bytes(dense, parts ? peer : rank);
        char *in = dense->received + (size_t)peer * dense->stride;
        if (bytes) hrt_steps_receive(&job->steps, peer, in, bytes, -1);
    }
}

// Everybody's shares of everybody's parts. Peers in an order that begins behind this rank, so that not
// all send to the same one first.
static void list_shares(struct hrt_dense *dense, struct hrt_dense_job *job) {
    const int rank = dense->comm->rank, size = dense->comm->size;
    receive_all(dense, job, false);
    for (int i = 1; i < size; i++) {
        const int peer = (rank + i) % size;
        const size_t bytes = message_bytes(dense, peer);
        char *out = dense->sent + (size_t)peer * dense->stride;
        pack(dense, job->buffer, peer, out);
        if (bytes) hrt_steps_send(&job->steps, peer, out, bytes, -1);
    }
}

// This rank's part to everybody.
static void list_parts(struct hrt_dense *dense, struct hrt_dense_job *job) {
    const int rank = dense->comm->rank, size = dense->comm->size;
    const size_t bytes = message_bytes(dense, rank);
    char *out = dense->sent + (size_t)rank * dense->stride;
    receive_all(dense, job, true);
    pack(dense, job->buffer, rank, out);
    for (int i = 1; i < size && bytes; i++)
        hrt_steps_send(&job->steps, (rank + i) % size, out, bytes, -1);
}

// mine[i] = term of rank 0 [i] + term of rank 1 [i] + ..., where this rank's term is `mine` itself.
#define DEFINE_ADD_UP(name, type)                                                                  \
    static void name(type *mine, const char *received, size_t stride, int rank, int size,          \
                     int64_t count) {                                                              \
        for (int64_t i = 0; i < count; i++) {                                                      \
            type sum = rank == 0 ? mine[i] : ((const type *)received)[i];                          \
            for (int r = 1; r < size; r++)                                                         \
                sum += r == rank ? mine[i] : ((const type *)(received + stride * (size_t)r))[i];   \
            mine[i] = sum;                                                                         \
        }                                                                                          \
    }

DEFINE_ADD_UP(add_up_float, float)
DEFINE_ADD_UP(add_up_double, double)

static void add_up(struct hrt_dense *dense, char *buffer) {
    const int rank = dense->comm->rank, size = dense->comm->size;
    const char *received = dense->received;
    for (int i = 0; i < dense->pieces; i++) {
        int64_t count;
        const int64_t at = hrt_dense_begin(dense, &dense->piece[i], rank, &count);
        char *mine = buffer + (size_t)at * dense->element;
        if (dense->element == sizeof(float)) {
            add_up_float((float *)mine, received, dense->stride, rank, size, count);
        } else {
            add_up_double((double *)mine, received, dense->stride, rank, size, count);
        }
        received += (size_t)count * dense->element;
    }
}

static void take_parts(struct hrt_dense *dense, char *buffer) {
    for (int r = 0; r < dense->comm->size; r++) {
        if (r == dense->comm->rank) continue;
        unpack(dense, buffer, r, dense->received + (size_t)r * dense->stride);
    }
}

// Goes on with what has arrived. False: nothing is left to do.
static bool next_messages(struct hrt_steps *steps) {
    struct hrt_dense_job *job = (struct hrt_dense_job *)steps;
    struct hrt_dense *dense = job->dense;
    hrt_steps_clear(steps);
    if (job->started && job->gathering) {
        take_parts(dense, job->buffer);
    } else if (job->started) {
        add_up(dense, job->buffer);
    }
    if (job->started && !job->gathering && job->gather) {
        job->gathering = true;
        list_parts(dense, job);
        return true;
    }
    job->started = take_pieces(dense, job);
    if (!job->started) return false;
    job->gathering = !job->reduce;
    if (job->reduce) {
        list_shares(dense, job);
    } else {
        list_parts(dense, job);
    }
    return true;
}

void hrt_dense_start(struct hrt_dense *dense, int64_t first, int64_t end, void *buffer, bool reduce,
                     bool gather) {
    assert(dense->jobs <= dense->tensors);
    struct hrt_dense_job *job = &dense->job[dense->jobs];
    *job = (struct hrt_dense_job){
        .steps = {.step = dense->step, .room = 2 * dense->comm->size, .next = next_messages},
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
