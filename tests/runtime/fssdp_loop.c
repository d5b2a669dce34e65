// Moves experts to and fro until it is killed, for fssdp_lost.sh.
#include "runtime/experts/experts.h"
#include "runtime/fssdp/run.h"
#include "tests/runtime/mpi_case.h"
#include "tests/runtime/support/moving.h"

enum { EXPERTS = 6, LAYERS = 2, CHUNK = 300000 }; // A MiB and a bit: two segments.

static void iterate(struct moving *m) {
    struct hrt_fssdp *fssdp = m->state.fssdp;
    int32_t loads[EXPERTS];
    hrt_fssdp_begin(fssdp, true);
    for (int64_t layer = 0; layer < LAYERS; layer++) {
        hrt_plan(fssdp, 0, layer);
        hrt_materialize(fssdp, 0, layer, false);
        hrt_route(m->state.experts, 0, layer, loads, NULL, 0);
        hrt_await(fssdp, 0, layer);
    }
    for (int64_t layer = LAYERS - 1; layer >= 0; layer--) {
        hrt_reduce(fssdp, 0, layer);
        hrt_release_params(fssdp, 0, layer);
        hrt_release_grads(fssdp, 0, layer);
    }
}

int main(void) {
    static struct hrt_comm comm;
    static struct moving m;
    const struct hrt_movement movement = {.policy = "fsdp", .overlap = EXPERTS, .window = 1};
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
    for (;;) iterate(&m);
}
