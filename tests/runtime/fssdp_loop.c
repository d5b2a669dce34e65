// Moves experts to and fro until it is killed, for fssdp_lost.sh. Argument "differ": rank 1 comes to
// expect other loads than the others.
#include "runtime/experts/experts.h"
#include "runtime/fssdp/moves.h"
#include "tests/runtime/mpi_case.h"
#include "tests/runtime/support/moving.h"

enum { EXPERTS = 6, LAYERS = 2, CHUNK = 300000 }; // A MiB and a bit: two segments.

static void iterate(struct moving *m) {
    struct hrt_fssdp *fssdp = m->state.fssdp;
    hrt_fssdp_begin(fssdp, true);
    for (int64_t layer = 0; layer < LAYERS; layer++) {
        hrt_plan(fssdp, 0, layer);
        hrt_materialize(fssdp, 0, layer, false);
        hrt_route(m->state.experts, 0, layer, NULL, 0);
        hrt_await(fssdp, 0, layer);
    }
    for (int64_t layer = LAYERS - 1; layer >= 0; layer--) {
        hrt_reduce(fssdp, 0, layer);
        hrt_release_params(fssdp, 0, layer);
        hrt_release_grads(fssdp, 0, layer);
    }
}

// Enough rows for expert 0 that it is worth replicas.
static void differ(struct moving *m) {
    uint32_t *counts = m->state.fssdp->set[0].layer[1].window;
    for (int r = 0; r < m->comm->size; r++) counts[r * EXPERTS] = 1000;
}

int main(int argc, char **argv) {
    const bool differs = argc > 1 && strcmp(argv[1], "differ") == 0;
    static struct hrt_comm comm;
    static struct moving m;
    const struct hrt_movement movement = {
        .policy = differs ? "quota" : "fsdp", .overlap = EXPERTS, .slots = 2, .window = 1};
    ranks_open(&comm, NULL);
    moving_open(&m, &comm, &movement,
                (struct moving_sizes){.experts = EXPERTS,
                                      .topk = 1,
                                      .layers = LAYERS,
                                      .chunk = CHUNK,
                                      .width = 1,
                                      .tokens = 1});
    printf("moving\n");
    fflush(stdout);
    for (int i = 0;; i++) {
        iterate(&m);
        if (differs && i == 2 && comm.rank == 1) differ(&m);
    }
}
