// Moves experts to and fro until it is killed, for fssdp_lost.sh. "differ WHAT LAYER LAYERS": in its third
// iteration rank 1 comes to another plan than the others for a layer of so many: WHAT is "plan", "calibrated",
// "rows" or "owners". Then whatever moves of that layer says so.
#include <stdlib.h>

#include "runtime/experts/change_owners.h"
#include "runtime/experts/experts.h"
#include "runtime/experts/moves.h"
#include "tests/runtime/ranks_case.h"
#include "tests/runtime/support/moving.h"

enum { EXPERTS = 6, CHUNK = 300000, PLANTED = 3 }; // A MiB and a bit: two segments.

static struct {
    const char *what; // NULL: nothing.
    int64_t layer, layers;
    int iteration;
    bool planted;
} run = {.layers = 2};

static bool differs(const char *what) {
    return run.what && strcmp(run.what, what) == 0;
}

// Enough rows for some experts that they are worth replicas, or another owner.
static void plant(struct moving *m, uint32_t *counts, int64_t layer) {
    if (run.iteration != PLANTED || layer != run.layer) return;
    for (int i = 0; m->comm->rank == 1 && i < m->comm->size * EXPERTS; i++)
        counts[i] = 1000u >> i % EXPERTS;
    run.planted = true;
}

static void moves(int64_t layer) {
    if (!run.planted || layer != run.layer) return;
    printf("moves\n");
    fflush(stdout);
}

// With no tokens.
static void send_rows(struct hrt_experts *experts, int64_t layer) {
    static float rows[8], gate[8];
    static int32_t first[EXPERTS + 1];
    if (hrt_experts_waves(experts, 0, layer) > 0)
        hrt_experts_dispatch(experts, 0, layer, 0, rows, gate, first, NULL, gate);
}

static void iterate(struct moving *m) {
    struct hrt_fssdp *fssdp = m->state.fssdp;
    struct hrt_experts *experts = m->state.experts;
    run.iteration++;
    hrt_experts_fssdp_begin(fssdp, true, 0, 1);
    for (int64_t layer = 0; layer < run.layers; layer++) {
        hrt_experts_plan(fssdp, 0, layer);
        moves(layer);
        hrt_experts_materialize(fssdp, 0, layer, false);
        hrt_experts_route(experts, 0, layer, NULL, 0);
        hrt_experts_await_counts(experts, 0, layer);
        if (differs("rows") || differs("calibrated"))
            plant(m, (uint32_t *)hrt_experts_counts(experts, 0, layer), layer);
        hrt_experts_calibrate(fssdp, 0, layer);
        if (fssdp->set[0].move[HRT_MOVE_ADDED].under_way) moves(layer);
        hrt_experts_await(fssdp, 0, layer);
        send_rows(experts, layer);
        if (differs("rows") || differs("calibrated")) moves(layer);
        if (differs("plan")) plant(m, fssdp->set[0].layer[layer].window, layer);
    }
    for (int64_t layer = run.layers - 1; layer >= 0; layer--) {
        hrt_experts_reduce(fssdp, 0, layer);
        hrt_experts_release_params(fssdp, 0, layer);
        hrt_experts_release_grads(fssdp, 0, layer);
    }
    if (differs("owners")) plant(m, fssdp->set[0].layer[run.layer].window, run.layer);
    if (hrt_experts_fssdp_end_step(fssdp)) moves(run.layer);
}

int main(int argc, char **argv) {
    static struct hrt_comm comm;
    static struct moving m;
    if (argc == 5 && strcmp(argv[1], "differ") == 0) {
        run.what = argv[2];
        run.layer = atoi(argv[3]);
        run.layers = atoi(argv[4]);
    }
    struct hpl_movement movement = {.overlap = 2,
                                    .slots = 2,
                                    .window = 1,
                                    .calibrate = differs("calibrated") ? HPL_CALIBRATES_ALWAYS
                                                                       : HPL_CALIBRATES_NEVER,
                                    .reshard_every = differs("owners") ? PLANTED : 0};
    strcpy(movement.policy, run.what ? "fssdp" : "fsdp");
    ranks_open(&comm, NULL);
    moving_open(&m, &comm, &movement,
                (struct moving_sizes){.experts = EXPERTS,
                                      .topk = 1,
                                      .layers = run.layers,
                                      .chunk = CHUNK,
                                      .width = 1,
                                      .tokens = 1});
    printf("moving\n");
    fflush(stdout);
    for (;;) iterate(&m);
}
