// Sums and gathers in rounds, in the background: a list has the steps of a round, and goes on with the next when they
// are done. A round takes pieces of as many tensors as there is room for; those for one rank are packed into one message.
#include <assert.h>

#include "kernels/bf16.h"
#include "runtime/device/device.h"
#include "runtime/params/part.h"
#include "runtime/plan/held.h"
#include "runtime/train/dense_jobs.h"

// Where in its tensor a rank's share of a piece begins, and how many elements it has.
static int64_t begin_of(const struct hrt_train_dense *dense,
                        const struct hrt_train_dense_piece *piece, int rank, int64_t *count) {
    int64_t all;
    const int64_t begin = hrt_params_cut(piece->tensor->count, dense->comm->size, rank, &all);
    const int64_t low = piece->low < all ? piece->low : all;
    *count = (piece->high < all ? piece->high : all) - low;
    return begin + low;
}

// Whether the copy of a tensor in bf16 is gathered alone.
static bool is_copy(const struct hrt_train_dense_job *job,
                    const struct hrt_train_dense_tensor *tensor) {
    return !job->reduce && !job->room && tensor->slot[HRT_DENSE_COPIES] &&
           !tensor->slot[HRT_DENSE_PARAMETERS];
}

// Where this rank has elements of a tensor from `at` on: as a part of its own, or of all.
static char *place_of(const struct hrt_train_dense_job *job,
                      const struct hrt_train_dense_tensor *tensor, int64_t at, bool own) {
    const struct hrt_train_dense *dense = job->dense;
    if (!own && is_copy(job, tensor))
        return tensor->slot[HRT_DENSE_COPIES] + (size_t)at * sizeof(hk_bf16);
    const bool shard = dense->kind == HRT_DENSE_SHARD;
    char *buffer = (char *)job->buffer + (size_t)tensor->offset * dense->element;
    int64_t count;
    if (own && shard)
        at -= hrt_params_cut(tensor->count, dense->comm->size, dense->comm->rank, &count);
    else if (!own && job->room)
        buffer = job->room;
    else if (!own && shard)
        buffer = tensor->slot[job->reduce ? HRT_DENSE_GRADIENTS : HRT_DENSE_PARAMETERS];
    return buffer + (size_t)at * dense->element;
}

// Pieces of a round: each is a step or two per rank, so that many ranks would have too many.
static int most_pieces(int64_t ranks) {
    const int64_t most = 2048 / ranks;
    return most > HRT_DENSE_PIECES ? HRT_DENSE_PIECES : most < 4 ? 4 : (int)most;
}

// Takes the next pieces of the job; false: there are none. Pieces cut no two rows of a panel.
static bool take_pieces(struct hrt_train_dense *dense, struct hrt_train_dense_job *job) {
    size_t left = dense->stride;
    dense->pieces = 0;
    while (job->at < job->end && dense->pieces < most_pieces(dense->comm->size)) {
        const struct hrt_train_dense_tensor *tensor = &dense->tensor[job->queue[job->at]];
        const int64_t widest = hpl_part(tensor->count, dense->comm->size);
        const size_t element = is_copy(job, tensor) ? sizeof(hk_bf16) : dense->element;
        const int64_t room = (int64_t)(left / element) / HPL_PART * HPL_PART;
        const int64_t high = widest - job->low < room ? widest : job->low + room;
        if (high == job->low) break;
        dense->piece[dense->pieces++] =
            (struct hrt_train_dense_piece){tensor, job->low, high, element};
        left -= (size_t)(high - job->low) * element;
        job->low = high;
        if (high < widest) break;
        job->at++;
        job->low = 0;
    }
    assert(dense->pieces > 0 || job->at == job->end);
    return dense->pieces > 0;
}

// Bytes of a rank's share of all pieces, as sums have them.
static size_t share_bytes(const struct hrt_train_dense *dense, int rank) {
    size_t bytes = 0;
    int64_t count;
    for (int i = 0; i < dense->pieces; i++) {
        begin_of(dense, &dense->piece[i], rank, &count);
        bytes += (size_t)count * dense->piece[i].element;
    }
    return bytes;
}

// Bytes of so many of a sum in a message.
static size_t narrowed(const struct hrt_train_dense_job *job, size_t bytes) {
    return job->narrow ? bytes / sizeof(float) * sizeof(hk_bf16) : bytes;
}

static size_t message_bytes(const struct hrt_train_dense_job *job, int rank) {
    return narrowed(job, share_bytes(job->dense, rank));
}

// ---- places of messages
//
// Ranks stand in rows of `width`, one for each node; a column has those of the same place in their nodes. Parts of a
// column lie one behind the other, from row 0 on. Where nodes differ in size, or there is one, or each has one rank,
// all are one row.

static int rows_of(const struct hrt_train_dense *dense) {
    return dense->comm->size / dense->width;
}

static int rank_at(const struct hrt_train_dense *dense, int row, int column) {
    return row * dense->width + column;
}

// Bytes of the parts of a column's first `rows` ranks, as sums have them.
static size_t column_bytes(const struct hrt_train_dense *dense, int column, int rows) {
    size_t bytes = 0;
    for (int row = 0; row < rows; row++) bytes += share_bytes(dense, rank_at(dense, row, column));
    return bytes;
}

static char *message_to(const struct hrt_train_dense *dense, int column) {
    return dense->sent + (size_t)(column * rows_of(dense)) * dense->stride;
}

static char *message_from(const struct hrt_train_dense *dense, int column, int row) {
    return dense->received + (size_t)(column * rows_of(dense) + row) * dense->stride;
}

// This rank's column: sums of its node; and of all ranks, behind what is received.
static char *sums_of_node(const struct hrt_train_dense *dense, int row) {
    const int column = dense->comm->rank % dense->width;
    return message_to(dense, column) + column_bytes(dense, column, row);
}

static char *sums_of_all(const struct hrt_train_dense *dense, int row) {
    const int column = dense->comm->rank % dense->width;
    return dense->received + (size_t)dense->comm->size * dense->stride +
           column_bytes(dense, column, row);
}

// This rank's sum for a row, rounded: in the half of a message to another column that messages in bf16 leave free.
static char *rounded_to(const struct hrt_train_dense *dense, int row) {
    const int other = (dense->comm->rank + 1) % dense->width;
    const size_t half = dense->stride / 2;
    return message_to(dense, other) + (size_t)(rows_of(dense) + row) * half;
}

// Where this rank packs its own share for the node's sums, to add it as it adds messages: on a device one kernel then
// adds all. NULL: its pieces are added from their places. It is room that the sums of node or of all have later.
static char *packed_share(const struct hrt_train_dense_job *job) {
    const struct hrt_train_dense *dense = job->dense;
    const bool adds =
        dense->comm->rank % dense->width > 0; // Else its share is the first, which is copied.
    if (!adds || !job->steps.on_device) return NULL;
    return rows_of(dense) > 1 ? sums_of_all(dense, 0) : sums_of_node(dense, 0);
}

// ---- steps of a round

static int32_t append(struct hrt_train_dense_job *job, enum hrt_step_kind kind, void *to,
                      const void *from, size_t bytes, int32_t first, int32_t second) {
    const struct hrt_train_dense *dense = job->dense;
    return hrt_net_steps_append(
        &job->steps,
        &(struct hrt_step){.kind = kind,
                           .type = dense->element == sizeof(float) ? HRT_FLOAT : HRT_DOUBLE,
                           .peer = dense->comm->rank,
                           .round = 1,
                           .after = {first, second},
                           .to = to,
                           .from = from,
                           .bytes = bytes});
}

// Messages listed from `first` on are of this round.
static void set_round(struct hrt_train_dense_job *job, int32_t first, int32_t round) {
    for (int32_t i = first; i < job->steps.count; i++) job->steps.step[i].round = round;
}

static enum hrt_step_kind copy_to_message(const struct hrt_train_dense_job *job) {
    return job->narrow ? HRT_NARROW : HRT_COPY;
}

static enum hrt_step_kind copy_from_message(const struct hrt_train_dense_job *job) {
    return job->narrow ? HRT_WIDEN : HRT_COPY;
}

static enum hrt_step_kind add_message(const struct hrt_train_dense_job *job) {
    return job->narrow ? HRT_ADD_NARROW : HRT_ADD;
}

static bool converts(enum hrt_step_kind kind) {
    return kind == HRT_NARROW || kind == HRT_WIDEN;
}

// Between a message, or sums, where the pieces of `rank` lie one behind the other, and their places, in this rank's
// part (`own`) or in all: `kind` brings them to the message or, `back`, to the places.
// They come one after the other and after the step `last`. Returns the last step.
static int32_t list_pieces(struct hrt_train_dense_job *job, enum hrt_step_kind kind, int rank,
                           char *message, bool own, bool back, int32_t last) {
    const struct hrt_train_dense *dense = job->dense;
    for (int i = 0; i < dense->pieces; i++) {
        int64_t count;
        const int64_t at = begin_of(dense, &dense->piece[i], rank, &count);
        const struct hrt_train_dense_tensor *tensor = dense->piece[i].tensor;
        const size_t bytes =
            (size_t)count * (converts(kind) ? sizeof(hk_bf16) : dense->piece[i].element);
        char *place = place_of(job, tensor, at, own);
        enum hrt_step_kind of = kind;
        if (bytes == 0) continue;
        if (own && is_copy(job, tensor)) of = tensor->panels ? HRT_NARROW_PAIRS : HRT_NARROW;
        last = append(job, of, back ? place : message, back ? message : place, bytes, last, -1);
        message += bytes;
    }
    return last;
}

// To a message, for all ranks of a column.
static int32_t list_column(struct hrt_train_dense_job *job, enum hrt_step_kind kind, int column,
                           char *message, int32_t last) {
    const struct hrt_train_dense *dense = job->dense;
    for (int row = 0; row < rows_of(dense); row++) {
        const int rank = rank_at(dense, row, column);
        last = list_pieces(job, kind, rank, message, false, false, last);
        message += converts(kind) ? message_bytes(job, rank) : share_bytes(dense, rank);
    }
    return last;
}

// Everybody's shares of everybody's parts, inside the node: to a column what all its ranks have to get. Receives come
// first in a list, so that they are posted before anything is sent. Peers in an order that begins behind this rank, so
// that not all send to the same one first.
static void list_shares(struct hrt_train_dense_job *job) {
    struct hrt_train_dense *dense = job->dense;
    const int width = dense->width, row = dense->comm->rank / width;
    const int column = dense->comm->rank % width, rows = rows_of(dense);
    const size_t own = narrowed(job, column_bytes(dense, column, rows));
    for (int i = 1; i < width && own; i++) {
        const int from = (column + width - i) % width;
        dense->read[from] = hrt_net_steps_receive(&job->steps, rank_at(dense, row, from),
                                                  message_from(dense, from, 0), own, -1);
    }
    if (packed_share(job))
        dense->read[column] = list_column(job, HRT_COPY, column, packed_share(job), -1);
    for (int i = 1; i < width; i++) {
        const int to = (column + i) % width;
        const size_t bytes = narrowed(job, column_bytes(dense, to, rows));
        char *out = message_to(dense, to);
        const int32_t packed = list_column(job, copy_to_message(job), to, out, -1);
        if (bytes) hrt_net_steps_send(&job->steps, rank_at(dense, row, to), out, bytes, packed);
    }
}

// The node's sums of this column: the share of the node's first rank, and the others' added to it in the order of
// ranks. Returns the last step.
static int32_t sum_node(struct hrt_train_dense_job *job, char *sum) {
    struct hrt_train_dense *dense = job->dense;
    const int column = dense->comm->rank % dense->width;
    const size_t bytes = column_bytes(dense, column, rows_of(dense));
    char *packed = packed_share(job);
    int32_t last = -1;
    for (int c = 0; c < dense->width && bytes; c++) {
        if (c == column && packed) {
            last = append(job, HRT_ADD, sum, packed, bytes, dense->read[c], last);
        } else if (c == column) {
            last = list_column(job, c == 0 ? HRT_COPY : HRT_ADD, column, sum, last);
        } else {
            last = append(job, c == 0 ? copy_from_message(job) : add_message(job), sum,
                          message_from(dense, c, 0), narrowed(job, bytes), dense->read[c], last);
            dense->read[c] = last;
        }
    }
    return last;
}

// Rounds a sum of this rank's for a row, once the step `last` has completed it; sets *from to where it then lies.
// Returns the step.
static int32_t round_sum(struct hrt_train_dense_job *job, char **from, int row, size_t bytes,
                         int32_t last) {
    char *rounded = rounded_to(job->dense, row);
    if (!job->narrow || bytes == 0) return last;
    last = append(job, HRT_NARROW, rounded, *from, bytes, last, -1);
    *from = rounded;
    return last;
}

// This rank's part: the sums of the nodes, which the step `last` has completed here, in the order of nodes. Sets
// dense->brought to the steps that brought them. Returns the last step.
static int32_t sum_nodes(struct hrt_train_dense_job *job, int32_t last) {
    struct hrt_train_dense *dense = job->dense;
    const int rows = rows_of(dense), row = dense->comm->rank / dense->width;
    const int column = dense->comm->rank % dense->width;
    const size_t own = share_bytes(dense, dense->comm->rank), in = narrowed(job, own);
    const int32_t first = job->steps.count;
    for (int i = 1; i < rows && own; i++) {
        const int from = (row + rows - i) % rows;
        dense->brought[from] = hrt_net_steps_receive(&job->steps, rank_at(dense, from, column),
                                                     message_from(dense, column, from), in, -1);
    }
    for (int i = 1; i < rows; i++) {
        const int to = (row + i) % rows, peer = rank_at(dense, to, column);
        const size_t bytes = message_bytes(job, peer);
        char *out = sums_of_node(dense, to);
        const int32_t ready = round_sum(job, &out, to, bytes, last);
        if (bytes) hrt_net_steps_send(&job->steps, peer, out, bytes, ready);
    }
    set_round(job, first, 2);
    dense->brought[row] = last;
    for (int r = 0, sum = -1; r < rows && own; r++, sum = last) {
        if (r == row)
            last = append(job, r == 0 ? HRT_COPY : HRT_ADD, sums_of_all(dense, row),
                          sums_of_node(dense, row), own, dense->brought[r], sum);
        else
            last = append(job, r == 0 ? copy_from_message(job) : add_message(job),
                          sums_of_all(dense, row), message_from(dense, column, r), in,
                          dense->brought[r], sum);
    }
    return last;
}

// This rank's part, at `part`, which the step `last` has completed, to the other ranks of its column, and theirs beside
// it.
static void list_rows(struct hrt_train_dense_job *job, const char *part, int32_t last) {
    struct hrt_train_dense *dense = job->dense;
    const int rows = rows_of(dense), row = dense->comm->rank / dense->width;
    const int column = dense->comm->rank % dense->width;
    const size_t own = message_bytes(job, dense->comm->rank);
    const int32_t first = job->steps.count;
    for (int i = 1; i < rows; i++) {
        const int from = (row + rows - i) % rows, peer = rank_at(dense, from, column);
        const size_t bytes = message_bytes(job, peer);
        dense->brought[from] =
            bytes ? hrt_net_steps_receive(&job->steps, peer, sums_of_all(dense, from), bytes, -1)
                  : -1;
    }
    for (int i = 1; i < rows && own; i++)
        hrt_net_steps_send(&job->steps, rank_at(dense, (row + i) % rows, column), part, own, last);
    set_round(job, first, 3);
}

// The parts of this column, this rank's at `part`, each of which the step dense->brought has brought, to the node, and
// the node's to this rank.
static void list_parts(struct hrt_train_dense_job *job, const char *part) {
    struct hrt_train_dense *dense = job->dense;
    const int width = dense->width, rows = rows_of(dense);
    const int row = dense->comm->rank / width, column = dense->comm->rank % width;
    const int32_t first = job->steps.count;
    for (int r = 0; r < rows; r++) { // In the order in which they are sent.
        for (int i = 1; i < width; i++) {
            const int from = (column + width - i) % width, peer = rank_at(dense, row, from);
            const int whose = rank_at(dense, r, from);
            const size_t bytes = message_bytes(job, whose);
            char *in = message_from(dense, from, 0) + column_bytes(dense, from, r);
            // In place of the share, once that has been added.
            if (bytes)
                dense->arrived[whose] =
                    hrt_net_steps_receive(&job->steps, peer, in, bytes, dense->read[from]);
        }
    }
    for (int r = 0; r < rows; r++) {
        const size_t bytes = message_bytes(job, rank_at(dense, r, column));
        for (int i = 1; i < width && bytes; i++)
            hrt_net_steps_send(&job->steps, rank_at(dense, row, (column + i) % width),
                               r == row ? part : sums_of_all(dense, r), bytes, dense->brought[r]);
    }
    set_round(job, first, 4);
}

// Unpacks the received parts, and this rank's at `mine`, into the buffer.
static void unpack_parts(struct hrt_train_dense_job *job, char *mine) {
    struct hrt_train_dense *dense = job->dense;
    const int own = dense->comm->rank, column = own % dense->width;
    // From this rank's part, or from its rounded sum.
    const bool apart = job->room || dense->kind == HRT_DENSE_SHARD || job->narrow;
    for (int c = 0; c < dense->width; c++) {
        char *in = message_from(dense, c, 0);
        for (int row = 0; row < rows_of(dense); row++) {
            const int rank = rank_at(dense, row, c);
            char *part = rank == own ? mine : c == column ? sums_of_all(dense, row) : in;
            const int32_t after = c == column ? dense->brought[row] : dense->arrived[rank];
            if (rank != own || apart)
                list_pieces(job, copy_from_message(job), rank, part, false, true, after);
            in += share_bytes(dense, rank);
        }
    }
}

// This rank's part, at `own`, which the step `last` has completed, to everybody, and theirs to this rank.
static void list_gather(struct hrt_train_dense_job *job, char *own, int32_t last) {
    struct hrt_train_dense *dense = job->dense;
    const int rank = dense->comm->rank, row = rank / dense->width;
    last = round_sum(job, &own, row, message_bytes(job, rank), last);
    dense->brought[row] = last;
    if (rows_of(dense) > 1) list_rows(job, own, last);
    list_parts(job, own);
    unpack_parts(job, own);
}

// Lists the next round. False: nothing is left to do.
static bool next_round(struct hrt_steps *steps) {
    struct hrt_train_dense_job *job = (struct hrt_train_dense_job *)steps;
    struct hrt_train_dense *dense = job->dense;
    const int rank = dense->comm->rank, rows = rows_of(dense), row = rank / dense->width;
    const bool shard = dense->kind == HRT_DENSE_SHARD; // A part has the iterations before.
    int32_t last;
    hrt_net_steps_clear(steps);
    if (!take_pieces(dense, job)) return false;
    char *own = sums_of_all(dense, row);
    for (int r = 0; r < dense->comm->size; r++)
        dense->read[r] = dense->brought[r] = dense->arrived[r] = -1;
    if (job->reduce) {
        list_shares(job);
        last = sum_node(job, rows > 1 ? sums_of_node(dense, 0) : own);
        if (rows > 1) last = sum_nodes(job, last);
        if (!job->narrow || !job->gather) // Else its rounded sum comes to its place, as to others'.
            list_pieces(job, shard ? HRT_ADD : HRT_COPY, rank, own, true, true, last);
    } else {
        last = list_pieces(job, HRT_COPY, rank, own, true, false, -1);
    }
    if (job->gather) list_gather(job, own, last);
    return true;
}

// Per rank and round: two messages each way, an add, two copies, messages between nodes, and a sum that is rounded;
// and each piece is copied to a message and back.
int64_t hrt_train_dense_room(int64_t ranks) {
    return ranks * (11 + 2 * most_pieces(ranks));
}

struct hrt_mark hrt_train_dense_submit(struct hrt_train_dense *dense,
                                       struct hrt_train_dense_job *job, const int64_t *queue,
                                       int64_t tensors, void *buffer, void *room, bool reduce,
                                       bool gather) {
    *job = (struct hrt_train_dense_job){
        .steps = {.step = dense->step,
                  .room = (int32_t)hrt_train_dense_room(dense->comm->size),
                  .on_device = hrt_device_is_apart(dense->device),
                  .next = next_round},
        .dense = dense,
        .queue = queue,
        .end = tensors,
        .buffer = buffer,
        .room = room,
        .reduce = reduce,
        .gather = gather,
        .narrow = reduce && dense->program->gradients_bf16};
    return hrt_net_lane_submit(dense->comm, HRT_LANE_DENSE, &job->steps);
}

void hrt_train_dense_start(struct hrt_train_dense *dense, int64_t first, int64_t end, void *buffer,
                           bool reduce, bool gather) {
    assert(dense->jobs <= dense->tensors);
    dense->last_sum =
        hrt_train_dense_submit(dense, &dense->job[dense->jobs++], dense->queue + first, end - first,
                               buffer, NULL, reduce, gather);
}

void hrt_train_dense_wait(struct hrt_train_dense *dense, const char *what) {
    hrt_net_lane_join(dense->comm, dense->last_sum, what);
    dense->jobs = 0;
}
