// gradients FILE [one]: the gradients of one step of the emitted program that this is linked with, in
// place of its training program: over sequences that follow from their global numbers, with
// parameters of seed 1. Rank 0 writes them to FILE like parameters. `one` sends every token to the
// first experts, which takes several waves.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/comm/backend.h"
#include "runtime/comm/comm.h"
#include "runtime/experts/experts.h"
#include "runtime/params/init.h"
#include "runtime/params/store.h"
#include "runtime/train/ranks.h"
#include "runtime/train/state.h"

enum { ITERATIONS = 2 };

static void fail(const char *text) {
    fprintf(stderr, "gradients: %s\n", text);
    exit(1);
}

// Any sequence will do, if only it is the same wherever it runs.
static void draw(const struct hrt_state *state, int64_t sequence, int64_t at) {
    const struct hrt_program *p = state->program;
    uint64_t token = (uint64_t)sequence * 7919 + 1;
    for (int64_t t = 0; t < p->positions; t++) {
        state->ids[at * p->positions + t] = (int32_t)(token % (uint64_t)p->vocabulary);
        token = token * UINT64_C(6364136223846793005) + 1442695040888963407;
        token ^= token >> 29;
        const int32_t next = (int32_t)(token % (uint64_t)p->vocabulary);
        state->targets[at * p->positions + t] = next % 5 ? next : -1; // Some count nothing.
    }
}

// Forces the first `topk` experts of the first set on every token.
static void force(const struct hrt_state *state) {
    const struct hrt_program *p = state->program;
    const struct hrt_set *set = &p->set[p->load[0].set];
    const int64_t pairs = p->batch * p->positions * set->topk;
    int32_t *ids = malloc((size_t)pairs * sizeof *ids);
    if (!ids) fail("out of memory");
    for (int64_t i = 0; i < pairs; i++) ids[i] = (int32_t)(i % set->topk);
    struct hrt_routing *routing = (void *)((char *)state->model + p->load[0].routing_offset);
    for (int64_t layer = 0; layer < set->layers; layer++) routing[layer].forced = ids;
}

static void compute(const struct hrt_state *state, const struct hrt_comm *comm, int64_t batch) {
    const struct hrt_program *p = state->program;
    const int64_t sequences = ITERATIONS * batch * comm->size;
    const double scale = 1 / (double)(sequences * p->positions), share = 1.0 / ITERATIONS;
    for (int64_t i = 0; i < ITERATIONS; i++) {
        for (int64_t b = 0; b < batch; b++)
            draw(state, (i * comm->size + comm->rank) * batch + b, b);
        p->forward(state->model, batch, state->ids, state->targets, scale, share);
        p->backward(state->model, batch, state->ids, state->targets, scale, share);
    }
}

// The emitted main's; the library has another one.
int hrt_main(int argc, char **argv, const struct hrt_program *emitted) {
    struct hrt_program program = *emitted;
    struct hrt_comm comm;
    struct hrt_error error = {0};
    struct hrt_state state;
    if (argc < 2) fail("gradients FILE [one]");
    const struct hrt_comm_backend *backend = program.backend ? program.backend : &hrt_comm_self;
    if (!backend->open(&comm, NULL, &error)) fail(error.text);
    program.rank = comm.rank;
    if (!hrt_state_create(&state, &program, false, &error) ||
        !hrt_ranks_join(&state, &comm, &error))
        fail(error.text);
    hrt_init_params(&program, state.params, 1);
    const bool one = argc > 2 && strcmp(argv[2], "one") == 0;
    if (one) force(&state);
    compute(&state, &comm, program.batch);
    if (one && program.owned && hrt_waves(state.experts, program.load[0].set, 0) < 2)
        fail("one wave, where several were wanted");
    hrt_ranks_sum_gradients(&state);
    if (!hrt_store_gather(&program, state.grads, &comm, argv[1], &error)) fail(error.text);
    hrt_comm_close(&comm);
    return 0;
}
