// A transfer schedule under way: spAG, where chunks are received in place and passed on, and spRS,
// where pieces of gradients are received beside, added, and the sums passed on.
#include <stdlib.h>

#include "kernels/cpu/observe.h"
#include "runtime/experts/experts.h"
#include "runtime/experts/moves.h"

// Where the pieces of a layer's chunks lie on this rank.
struct layer_of {
    const struct hrt_fssdp *fssdp;
    int set;
    int64_t layer;
    const struct hrt_piece *piece;
};

static char *place(const void *context, int32_t expert, int32_t number, size_t *bytes) {
    const struct layer_of *of = context;
    const struct hrt_piece *piece = &of->piece[number];
    *bytes = piece->bytes;
    return hrt_experts_chunk(of->fssdp, of->set, of->layer, expert, piece->kind) + piece->at;
}

void hrt_experts_move_start(struct hrt_fssdp *fssdp, int set, int64_t layer,
                            enum hrt_move_kind kind, const struct hpl_schedule *schedule) {
    static const enum hrt_lane lane[HRT_MOVES] = {[HRT_MOVE_GATHER] = HRT_LANE_GATHER,
                                                  [HRT_MOVE_ADDED] = HRT_LANE_ADDED,
                                                  [HRT_MOVE_REDUCE] = HRT_LANE_REDUCE};
    struct hrt_moving_set *moving = &fssdp->set[set];
    struct hrt_move *move = &moving->move[kind];
    const bool adds = kind == HRT_MOVE_REDUCE;
    hrt_experts_agree(fssdp->state->experts);
    hrt_experts_move_wait(fssdp, move, -1, "the transfer before it");
    const struct hrt_carry carry = {
        .schedule = schedule,
        .rank = fssdp->comm->rank,
        .ranks = fssdp->comm->size,
        .experts = (int32_t)moving->set->experts,
        .pieces = adds ? moving->slots.segments : moving->param_pieces,
        .adds = adds,
        .type = fssdp->program->precision == HRT_FP64 ? HRT_DOUBLE : HRT_FLOAT,
        .narrow = adds && fssdp->program->gradients_bf16,
        .place = place,
        .context =
            &(struct layer_of){fssdp, set, layer, adds ? moving->grad_piece : moving->param_piece},
        .staging = move->staging,
        .staged = move->staged,
        .brought = move->brought,
        .heard = move->heard,
    };
    const struct hrt_carried carried =
        hrt_net_steps_carry(&move->steps, &carry, fssdp->topology.node);
    if (move->steps.count == 0) return;
    fssdp->moved.bytes += (double)carried.received;
    fssdp->moved.crossed += (double)carried.crossed;
    if (adds) fssdp->moved.gradients += (double)carried.received;
    move->set = set;
    move->layer = layer;
    move->under_way = true;
    move->mark = hrt_net_lane_submit(fssdp->comm, lane[kind], &move->steps);
}

// Counts the time that this rank waited since `from`: for ranks that had not begun, and for the transfer. A complete
// transfer proves that all its senders have begun.
static void count_wait(struct hrt_fssdp *fssdp, const struct hrt_move *move, int64_t from) {
    const int64_t now = hk_clock(), heard = move->steps.heard;
    const int64_t late = heard > from ? heard - from : 0;
    fssdp->moved.late += 1e-9 * (double)late;
    fssdp->moved.exposed += 1e-9 * (double)(now - from - late);
    fssdp->set[move->set].layer[move->layer].moved.exposed += 1e-9 * (double)(now - from - late);
}

void hrt_experts_move_wait(struct hrt_fssdp *fssdp, struct hrt_move *move, int64_t layer,
                           const char *what) {
    if (!move->under_way || (layer >= 0 && move->layer != layer)) return;
    const int64_t from = hk_clock();
    hrt_net_lane_join(fssdp->comm, move->mark, what);
    move->under_way = false;
    count_wait(fssdp, move, from);
    fssdp->moved.seconds += 1e-9 * (double)(move->steps.ended - move->steps.heard);
}

void hrt_experts_move_await(struct hrt_fssdp *fssdp, struct hrt_move *move, int64_t layer,
                            const char *what) {
    if (!move->under_way || move->layer != layer) return;
    const int64_t from = hk_clock();
    hrt_net_lane_join(fssdp->comm, hrt_arrival(move->mark), what);
    count_wait(fssdp, move, from);
}

bool hrt_experts_move_create(struct hrt_move *move, const struct hrt_fssdp *fssdp, int index,
                             enum hrt_move_kind kind) {
    const struct hrt_moving_set *set = &fssdp->set[index];
    const bool adds = kind == HRT_MOVE_REDUCE;
    const int64_t experts = set->set->experts, replicas = set->slots.holders; // At most.
    const int64_t pieces = adds ? set->slots.segments : set->param_pieces;
    const int64_t room = hrt_net_steps_room(replicas * pieces, fssdp->comm->size, adds);
    *move = (struct hrt_move){
        .steps = {.step = calloc((size_t)room, sizeof(struct hrt_step)), .room = (int32_t)room},
        .brought = malloc((size_t)(experts * pieces) * sizeof *move->brought),
    };
    move->steps.on_device = hrt_device_is_apart(&fssdp->state->device);
    if (!move->steps
             .on_device) // Else words are compared before anything moves, and these are the host's.
        move->heard = malloc((size_t)fssdp->comm->size * sizeof *move->heard);
    return move->steps.step && move->brought && (move->heard || move->steps.on_device);
}

void hrt_experts_move_destroy(struct hrt_move *move, struct hrt_device *device) {
    free(move->steps.step);
    free(move->brought);
    free(move->heard);
    device->backend->give(device, HRT_OF_DEVICE, move->staging, HPL_STAGED * move->staged);
    *move = (struct hrt_move){0};
}
