// A transfer schedule under way: spAG, where chunks are received in place and passed on, and spRS,
// where pieces of gradients are received beside, added, and the sums passed on.
//
// Messages between two ranks follow the order of the schedule, so one tag is enough, and whatever comes
// first in the schedule of all that is left can always go on: it waits for nothing behind it. That holds
// with bounded staging too, since receives are posted in that order.
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/observe.h"
#include "runtime/fssdp/moves.h"

enum { TAG_FIRST = 1 << 14, TAG_LAYERS = 1024 }; // Those of others are below.

static struct hrt_transfer *send_at(const struct hrt_move *move, int32_t i) {
    return &move->transfer[move->room - 1 - i];
}

// ---- notices
//
// An empty message goes ahead of the first one to each rank. So whoever waits can tell a rank that is
// late from a transfer that takes its time.

static void post_notices(struct hrt_move *move, struct hrt_comm *comm) {
    for (int i = 0; i < 2 * move->ranks; i++) {
        struct hrt_notice *notice = &move->notice[i];
        const int peer = i % move->ranks;
        if (!notice->wanted) continue;
        if (i < move->ranks) {
            hrt_comm_isend(comm, &notice->request, peer, move->tag, NULL, 0);
        } else {
            hrt_comm_irecv(comm, &notice->request, peer, move->tag, NULL, 0);
        }
    }
    move->hearing = HRT_LISTENING;
}

// Whether those of `from` .. `to` - 1 are through.
static bool are_through(struct hrt_move *move, struct hrt_comm *comm, int from, int to) {
    for (int i = from; i < to; i++) {
        struct hrt_notice *notice = &move->notice[i];
        if (notice->wanted && !hrt_comm_test(comm, &notice->request)) return false;
    }
    return true;
}

static void listen(struct hrt_move *move, struct hrt_comm *comm) {
    if (move->hearing == HRT_UNHEARD) post_notices(move, comm);
    if (move->hearing == HRT_HEARD || !are_through(move, comm, move->ranks, 2 * move->ranks))
        return;
    move->heard = hk_clock();
    move->hearing = HRT_HEARD;
}

// ---- turning it

static void add(char *sum, const char *term, size_t bytes, enum hrt_precision precision) {
    if (precision == HRT_FP64) {
        double *to = (double *)sum;
        const double *from = (const double *)term;
        const int64_t count = (int64_t)(bytes / sizeof *to);
#pragma omp simd
        for (int64_t i = 0; i < count; i++) to[i] += from[i];
    } else {
        float *to = (float *)sum;
        const float *from = (const float *)term;
        const int64_t count = (int64_t)(bytes / sizeof *to);
#pragma omp simd
        for (int64_t i = 0; i < count; i++) to[i] += from[i];
    }
}

static char *room_of(const struct hrt_move *move, int32_t recv) {
    return move->staging ? move->staging + (size_t)(recv % HPL_STAGED) * move->staged
                         : move->transfer[recv].data;
}

static void post_receives(struct hrt_move *move, struct hrt_comm *comm) {
    while (move->posted < move->recvs &&
           (!move->staging || move->posted - move->head < HPL_STAGED)) {
        struct hrt_transfer *recv = &move->transfer[move->posted];
        hrt_comm_irecv(comm, &recv->request, recv->peer, move->tag, room_of(move, move->posted),
                       recv->bytes);
        recv->state = HRT_POSTED;
        move->posted++;
    }
}

// Whether a receive before `i` has still to be added to the same piece.
static bool must_wait(const struct hrt_move *move, int32_t i) {
    for (int32_t k = move->head; k < i; k++) {
        if (move->transfer[k].state != HRT_DONE && move->transfer[k].data == move->transfer[i].data)
            return true;
    }
    return false;
}

static void look_at_receives(struct hrt_move *move, struct hrt_comm *comm) {
    for (int32_t i = move->head; i < move->posted; i++) {
        struct hrt_transfer *recv = &move->transfer[i];
        if (recv->state == HRT_POSTED && hrt_comm_test(comm, &recv->request))
            recv->state = HRT_ARRIVED;
        if (recv->state != HRT_ARRIVED || (move->staging && must_wait(move, i))) continue;
        if (move->staging) add(recv->data, room_of(move, i), recv->bytes, move->precision);
        recv->state = HRT_DONE;
    }
    while (move->head < move->posted && move->transfer[move->head].state == HRT_DONE) move->head++;
}

static void post_sends(struct hrt_move *move, struct hrt_comm *comm) {
    for (int peer = 0; peer < move->ranks; peer++) {
        while (move->queue[peer] >= 0) {
            struct hrt_transfer *send = send_at(move, move->queue[peer]);
            if (send->after >= 0 && move->transfer[send->after].state != HRT_DONE) break;
            hrt_comm_isend(comm, &send->request, peer, move->tag, send->data, send->bytes);
            send->state = HRT_POSTED;
            move->queue[peer] = send->next;
        }
    }
}

static void look_at_sends(struct hrt_move *move, struct hrt_comm *comm) {
    for (int32_t i = move->sent; i < move->sends; i++) {
        struct hrt_transfer *send = send_at(move, i);
        if (send->state == HRT_POSTED && hrt_comm_test(comm, &send->request))
            send->state = HRT_DONE;
    }
    while (move->sent < move->sends && send_at(move, move->sent)->state == HRT_DONE) move->sent++;
}

static bool advance(struct hrt_job *job, struct hrt_comm *comm) {
    struct hrt_move *move = (struct hrt_move *)job;
    int32_t head;
    listen(move, comm);
    do {
        head = move->head;
        post_receives(move, comm);
        look_at_receives(move, comm);
    } while (move->head > head); // What is done makes room for more.
    post_sends(move, comm);
    look_at_sends(move, comm);
    if (move->head < move->recvs || move->sent < move->sends ||
        !are_through(move, comm, 0, move->ranks))
        return false;
    move->ended = hk_clock();
    return true;
}

// The job before it in the list does the work.
static bool has_arrived(struct hrt_job *job, struct hrt_comm *comm) {
    const struct hrt_move *move =
        (const struct hrt_move *)((const char *)job - offsetof(struct hrt_move, arrival));
    (void)comm;
    return move->head == move->recvs;
}

// ---- beginning it

static void enqueue(struct hrt_move *move, int32_t peer, int32_t send) {
    if (move->queue[peer] < 0) {
        move->queue[peer] = send;
    } else {
        send_at(move, move->tail[peer])->next = send;
    }
    move->tail[peer] = send;
}

// Lists this rank's part of a transfer of piece `p`.
static void list(struct hrt_fssdp *fssdp, struct hrt_move *move, const struct hrt_moving *moving,
                 const struct hpl_transfer *transfer, int p) {
    const struct hrt_moving_set *set = &fssdp->set[moving->set];
    const struct hrt_piece *piece = moving->adds ? &set->grad_piece[p] : &set->param_piece[p];
    const int pieces = moving->adds ? set->slots.segments : set->param_pieces;
    int32_t *brought = &move->brought[(int64_t)transfer->expert * pieces + p];
    const struct hrt_transfer listed = {
        .data =
            hrt_chunk(fssdp, moving->set, moving->layer, transfer->expert, piece->kind) + piece->at,
        .bytes = piece->bytes,
        .peer = transfer->to == move->rank ? transfer->from : transfer->to,
        .after = *brought,
        .next = -1,
    };
    assert(move->recvs + move->sends < move->room);
    if (transfer->to == move->rank) {
        const int32_t *node = fssdp->topology.node;
        fssdp->moved.bytes += (double)piece->bytes;
        if (node[transfer->from] != node[move->rank]) fssdp->moved.crossed += (double)piece->bytes;
        move->notice[move->ranks + transfer->from].wanted = true;
        move->transfer[move->recvs] = listed;
        *brought = move->recvs++;
    } else {
        move->notice[transfer->to].wanted = true;
        *send_at(move, move->sends) = listed;
        enqueue(move, transfer->to, move->sends++);
    }
}

static void list_all(struct hrt_fssdp *fssdp, struct hrt_move *move,
                     const struct hrt_moving *moving) {
    const struct hrt_moving_set *set = &fssdp->set[moving->set];
    const int pieces = moving->adds ? set->slots.segments : set->param_pieces;
    memset(move->queue, -1, (size_t)move->ranks * sizeof *move->queue);
    memset(move->brought, -1, (size_t)(set->set->experts * pieces) * sizeof *move->brought);
    memset(move->notice, 0, 2 * (size_t)move->ranks * sizeof *move->notice);
    move->recvs = move->sends = move->head = move->posted = move->sent = 0;
    move->hearing = HRT_UNHEARD;
    for (int32_t i = 0; i < moving->schedule->count; i++) {
        const struct hpl_transfer *transfer = &moving->schedule->transfer[i];
        if (transfer->to != move->rank && transfer->from != move->rank) continue;
        list(fssdp, move, moving, transfer, transfer->segment);
        if (transfer->segment > 0) continue;
        for (int p = set->slots.segments; p < pieces; p++) list(fssdp, move, moving, transfer, p);
    }
}

void hrt_move_start(struct hrt_fssdp *fssdp, struct hrt_move *move,
                    const struct hrt_moving *moving) {
    hrt_move_wait(fssdp, move, -1, "the transfer before it");
    list_all(fssdp, move, moving);
    if (move->recvs + move->sends == 0) return;
    move->layer = moving->layer;
    move->under_way = true;
    move->tag = TAG_FIRST +
                (moving->set * TAG_LAYERS + (int)(moving->layer % TAG_LAYERS)) * HRT_MOVES +
                move->kind;
    move->started = hk_clock();
    hrt_comm_start(fssdp->comm, &move->job);
    hrt_comm_start(fssdp->comm, &move->arrival);
}

// What this rank waited since `from`: for ranks that had not begun, and for the transfer. Its end says
// that all who send to it have.
static void count_wait(struct hrt_fssdp *fssdp, const struct hrt_move *move, int64_t from) {
    const int64_t now = hk_clock();
    const int64_t late = move->heard > from ? move->heard - from : 0;
    fssdp->moved.late += 1e-9 * (double)late;
    fssdp->moved.exposed += 1e-9 * (double)(now - from - late);
}

void hrt_move_wait(struct hrt_fssdp *fssdp, struct hrt_move *move, int64_t layer,
                   const char *what) {
    if (!move->under_way || (layer >= 0 && move->layer != layer)) return;
    const int64_t from = hk_clock();
    hrt_comm_wait(fssdp->comm, &move->job, what);
    hrt_comm_wait(fssdp->comm, &move->arrival, what);
    move->under_way = false;
    count_wait(fssdp, move, from);
    fssdp->moved.seconds += 1e-9 * (double)(move->ended - move->heard);
}

void hrt_move_await(struct hrt_fssdp *fssdp, struct hrt_move *move, int64_t layer,
                    const char *what) {
    if (!move->under_way || move->layer != layer) return;
    const int64_t from = hk_clock();
    hrt_comm_wait(fssdp->comm, &move->arrival, what);
    count_wait(fssdp, move, from);
}

bool hrt_move_create(struct hrt_move *move, const struct hrt_fssdp *fssdp, int index,
                     enum hrt_move_kind kind) {
    const struct hrt_moving_set *set = &fssdp->set[index];
    const int64_t experts = set->set->experts, replicas = set->slots.holders; // At most.
    const int64_t pieces = kind == HRT_MOVE_REDUCE ? set->slots.segments : set->param_pieces;
    const size_t ranks = (size_t)fssdp->comm->size;
    *move = (struct hrt_move){
        .job.advance = advance,
        .arrival.advance = has_arrived,
        .room = (int32_t)(replicas * pieces),
        .transfer = calloc((size_t)(replicas * pieces) + 1, sizeof *move->transfer),
        .queue = malloc(ranks * sizeof *move->queue),
        .tail = malloc(ranks * sizeof *move->tail),
        .brought = malloc((size_t)(experts * pieces) * sizeof *move->brought),
        .notice = calloc(2 * ranks, sizeof *move->notice),
        .precision = fssdp->program->precision,
        .ranks = fssdp->comm->size,
        .rank = fssdp->comm->rank,
        .kind = kind,
    };
    return move->transfer && move->queue && move->tail && move->brought && move->notice;
}

void hrt_move_destroy(struct hrt_move *move) {
    free(move->transfer);
    free(move->queue);
    free(move->tail);
    free(move->brought);
    free(move->notice);
    free(move->staging);
    *move = (struct hrt_move){0};
}
