// Sums and gathers in rounds, in the background: a job posts the messages of a round, adds up or copies
// when they are there, and posts the next. A round takes pieces of as many tensors as there is room for.
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

static void post(struct hrt_dense *dense, int peer, const char *out, size_t out_bytes,
                 size_t in_bytes) {
    struct hrt_request *send = &dense->request[peer];
    struct hrt_request *receive = &dense->request[dense->comm->size + peer];
    char *in = dense->received + (size_t)peer * dense->stride;
    send->done = receive->done = true;
    if (in_bytes) hrt_comm_irecv(dense->comm, receive, peer, HRT_DENSE_TAG, in, in_bytes);
    if (out_bytes) hrt_comm_isend(dense->comm, send, peer, HRT_DENSE_TAG, out, out_bytes);
}

// Everybody's shares of everybody's parts. Peers in an order that begins behind this rank, so that not
// all send to the same one first.
static void post_shares(struct hrt_dense *dense, char *buffer) {
    const int rank = dense->comm->rank, size = dense->comm->size;
    const size_t mine = message_bytes(dense, rank);
    for (int i = 1; i < size; i++) {
        const int peer = (rank + i) % size;
        char *out = dense->sent + (size_t)peer * dense->stride;
        pack(dense, buffer, peer, out);
        post(dense, peer, out, message_bytes(dense, peer), mine);
    }
}

// This rank's part to everybody.
static void post_parts(struct hrt_dense *dense, char *buffer) {
    const int rank = dense->comm->rank, size = dense->comm->size;
    char *out = dense->sent + (size_t)rank * dense->stride;
    const size_t mine = message_bytes(dense, rank);
    pack(dense, buffer, rank, out);
    for (int i = 1; i < size; i++) {
        const int peer = (rank + i) % size;
        post(dense, peer, out, mine, message_bytes(dense, peer));
    }
}

static bool have_arrived(struct hrt_dense *dense) {
    bool all = true;
    for (int r = 0; r < dense->comm->size; r++) {
        if (r == dense->comm->rank) continue;
        for (int way = 0; way < 2; way++) {
            struct hrt_request *request = &dense->request[way * dense->comm->size + r];
            all &= request->done || hrt_comm_test(dense->comm, request);
        }
    }
    return all;
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
static bool next_messages(struct hrt_dense *dense, struct hrt_dense_job *job) {
    if (job->started && job->gathering) {
        take_parts(dense, job->buffer);
    } else if (job->started) {
        add_up(dense, job->buffer);
    }
    if (job->started && !job->gathering && job->gather) {
        job->gathering = true;
        post_parts(dense, job->buffer);
        return true;
    }
    job->started = take_pieces(dense, job);
    if (!job->started) return false;
    job->gathering = !job->reduce;
    if (job->reduce) {
        post_shares(dense, job->buffer);
    } else {
        post_parts(dense, job->buffer);
    }
    return true;
}

static bool advance(struct hrt_job *turned, struct hrt_comm *comm) {
    struct hrt_dense_job *job = (struct hrt_dense_job *)turned;
    struct hrt_dense *dense = job->dense;
    (void)comm;
    if (dense->turn != job->number) return false;
    while (!job->started || have_arrived(dense)) {
        if (next_messages(dense, job)) continue;
        dense->turn++;
        return true;
    }
    return false;
}

void hrt_dense_start(struct hrt_dense *dense, int64_t first, int64_t end, void *buffer, bool reduce,
                     bool gather) {
    assert(dense->jobs <= dense->tensors);
    struct hrt_dense_job *job = &dense->job[dense->jobs];
    *job = (struct hrt_dense_job){.job = {.advance = advance},
                                  .dense = dense,
                                  .number = dense->jobs++,
                                  .first = first,
                                  .end = end,
                                  .at = first,
                                  .buffer = buffer,
                                  .reduce = reduce,
                                  .gather = gather};
    hrt_comm_start(dense->comm, &job->job);
}

void hrt_dense_wait(struct hrt_dense *dense, const char *what) {
    for (int64_t i = 0; i < dense->jobs; i++) hrt_comm_wait(dense->comm, &dense->job[i].job, what);
    dense->jobs = dense->turn = 0;
}
