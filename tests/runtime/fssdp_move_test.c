// Test of sparse collectives on random placements, run by mpirun: every holder gets the owner's
// parameters, and the owner the sum of the holders' gradients, with the bits of the schedule's order.
#include <math.h>

#include "runtime/experts/experts.h"
#include "runtime/experts/moves.h"
#include "tests/runtime/ranks_case.h"
#include "tests/runtime/support/moving.h"

static struct hrt_comm comm;

#define CHECK(condition) RANKS_CHECK(&comm, condition)

enum { LAYERS = 3, EXPERTS_MAX = 24, RANKS_MAX = 8 };

static float param_of(int64_t layer, int64_t expert, int64_t i, int step) {
    return (float)(layer * 1000 + expert * 100 + step) + (float)(i % 1000) / 1000;
}

static float grad_of(int rank, int64_t layer, int64_t expert, int64_t i, int step) {
    return sinf((float)(i % 4099 + rank * 7 + expert * 3 + layer) + (float)step) *
           powf(10, (float)((rank * 5 + i) % 7) - 3);
}

// ---- random placements, the same on every rank

// Owners anywhere; periodic policies keep what they have placed, so that what is put there is used.
static void draw_plan(struct moving *m, int64_t layer, uint64_t *sequence, uint32_t density) {
    struct hrt_moving_layer *at = &m->state.fssdp->set[0].layer[layer];
    const int64_t experts = m->set.experts;
    int32_t *owner = m->placement.owner[0] + layer * experts, count = 0;
    for (int32_t e = 0; e < experts; e++) {
        owner[e] = (int32_t)moving_draw(sequence, (uint32_t)comm.size);
        at->placed.first[e] = count;
        for (int32_t r = 0; r < comm.size; r++) {
            if (moving_draw(sequence, 4) < density) at->placed.holder[count++] = r;
        }
        if (count == at->placed.first[e]) at->placed.holder[count++] = owner[e];
    }
    at->placed.first[experts] = count;
}

static bool computes(const struct moving *m, int64_t layer, int64_t expert, int32_t rank) {
    const struct hpl_plan *plan = &m->state.fssdp->set[0].layer[layer].placed;
    for (int32_t k = plan->first[expert]; k < plan->first[expert + 1]; k++) {
        if (plan->holder[k] == rank) return true;
    }
    return false;
}

static bool owns(const struct moving *m, int64_t layer, int64_t expert) {
    return m->placement.owner[0][layer * m->set.experts + expert] == comm.rank;
}

// ---- parameters

static void fill_owned(const struct moving *m, int step) {
    for (int64_t layer = 0; layer < LAYERS; layer++) {
        for (int64_t e = 0; e < m->set.experts; e++) {
            float *chunk = moving_own_chunk(m, layer, e), *grad = moving_own_grad(m, layer, e);
            for (int64_t i = 0; i < m->set.chunk_elements; i++) {
                chunk[i] = owns(m, layer, e) ? param_of(layer, e, i, step) : NAN;
                grad[i] = owns(m, layer, e) ? 1 : NAN;
            }
        }
    }
}

// The values of a rounded copy; any 16 bits will do.
static uint16_t rounded_of(int64_t layer, int64_t expert, int64_t i, int step) {
    return (uint16_t)(layer * 9001 + expert * 997 + i * 7 + step);
}

static void fill_rounded(const struct moving *m, int step) {
    uint16_t *rounded = m->state.rounded;
    for (int64_t layer = 0; layer < LAYERS; layer++) {
        for (int64_t e = 0; e < m->set.experts; e++) {
            for (int64_t i = 0; i < m->set.chunk_elements; i++)
                *rounded++ = owns(m, layer, e) ? rounded_of(layer, e, i, step) : 0xffff;
        }
    }
}

// Where products read rounded copies, those came, and of the parameters only what has none.
static void check_rounded(const struct moving *m, int64_t layer, int step) {
    int64_t n = 0;
    for (int64_t e = 0; e < m->set.experts; e++) {
        if (!computes(m, layer, e, comm.rank)) continue;
        const uint16_t *rounded = moving_rounded(m, layer, n);
        const float *chunk = moving_chunk(m, layer, n++);
        for (int64_t i = 0; i < MOVING_PLAIN; i++) CHECK(chunk[i] == param_of(layer, e, i, step));
        for (int64_t i = MOVING_PLAIN; i < m->set.chunk_elements; i++)
            CHECK(rounded[i] == rounded_of(layer, e, i, step));
    }
}

static void check_params(const struct moving *m, int64_t layer, int step) {
    int64_t n = 0;
    if (m->set.chunk_rounded) {
        check_rounded(m, layer, step);
        return;
    }
    for (int64_t e = 0; e < m->set.experts; e++) {
        if (!computes(m, layer, e, comm.rank)) continue;
        const float *chunk = moving_chunk(m, layer, n++);
        for (int64_t i = 0; i < m->set.chunk_elements; i++)
            CHECK(chunk[i] == param_of(layer, e, i, step));
    }
    for (; n < m->set.experts; n++)
        CHECK(moving_chunk(m, layer, n) == m->state.values[HRT_PARAMETERS]);
}

// ---- gradients

static void add_grads(const struct moving *m, int64_t layer, int step) {
    int64_t n = 0;
    for (int64_t e = 0; e < m->set.experts; e++) {
        if (!computes(m, layer, e, comm.rank)) continue;
        float *grad = moving_grad(m, layer, n++);
        for (int64_t i = 0; i < m->set.chunk_elements; i++) {
            CHECK(owns(m, layer, e) || grad[i] == 0); // Slots come back empty.
            grad[i] += grad_of(comm.rank, layer, e, i, step);
        }
    }
}

// The owner's value of element i after its turn in the schedule, played through with numbers.
static float reduced(const struct moving *m, const struct hpl_schedule *reduce, int64_t layer,
                     int64_t expert, int64_t i, int step) {
    const struct hrt_fssdp *fssdp = m->state.fssdp;
    const int32_t owner = m->placement.owner[0][layer * m->set.experts + expert];
    float part[RANKS_MAX] = {0};
    int32_t segment = 0;
    const struct hrt_piece *piece = fssdp->set[0].grad_piece;
    while ((size_t)i * sizeof(float) >= piece[segment].at + piece[segment].bytes) segment++;
    for (int r = 0; r < comm.size; r++) {
        if (r == owner) part[r] = 1;
        if (computes(m, layer, expert, r)) part[r] += grad_of(r, layer, expert, i, step);
    }
    for (int32_t t = 0; t < reduce->count; t++) {
        const struct hpl_transfer *transfer = &reduce->transfer[t];
        if (transfer->expert != expert || transfer->segment != segment) continue;
        part[transfer->to] += part[transfer->from];
    }
    return part[owner];
}

static void check_sums(const struct moving *m, int64_t layer, int step) {
    struct hrt_fssdp *fssdp = m->state.fssdp;
    const int32_t *owner = m->placement.owner[0] + layer * m->set.experts;
    struct hpl_schedule gather = fssdp->schedule, *reduce = &fssdp->schedule;
    gather.transfer = malloc((size_t)gather.capacity * sizeof *gather.transfer);
    CHECK(hpl_schedule_gather(&fssdp->topology, owner, &fssdp->set[0].layer[layer].plan,
                              fssdp->set[0].slots.segments, &gather,
                              &fssdp->set[0].episode.work) == HPL_OK);
    CHECK(hpl_schedule_mirror(&gather, reduce, &fssdp->set[0].episode.work) == HPL_OK);
    free(gather.transfer);
    const int64_t stride = m->set.chunk_elements > 5000 ? 997 : 1;
    for (int64_t e = 0; e < m->set.experts; e++) {
        if (!owns(m, layer, e)) continue;
        for (int64_t i = 0; i < m->set.chunk_elements; i += stride) {
            const float expected = reduced(m, reduce, layer, e, i, step);
            const float found = moving_own_grad(m, layer, e)[i];
            CHECK(memcmp(&expected, &found, sizeof found) == 0);
        }
    }
}

// ---- iterations

static void forward(struct moving *m, int64_t layer, int step) {
    struct hrt_fssdp *fssdp = m->state.fssdp;
    double before = fssdp->moved.bytes;
    hrt_experts_plan(fssdp, 0, layer);
    hrt_experts_materialize(fssdp, 0, layer, false);
    const bool prefetched = layer > 0 && !m->movement.rematerialize;
    CHECK(!prefetched || fssdp->moved.bytes == before); // Nothing comes twice.
    hrt_experts_route(m->state.experts, 0, layer, NULL, 0);
    hrt_experts_await_counts(m->state.experts, 0, layer);
    hrt_experts_await(fssdp, 0, layer);
    check_params(m, layer, step);
    if (m->movement.rematerialize) {
        hrt_experts_release_params(fssdp, 0, layer);
        return;
    }
    hrt_experts_prefetch(fssdp, 0, layer + 1);
    before = fssdp->moved.bytes;
    hrt_experts_prefetch(fssdp, 0, layer + 1); // Another wave.
    CHECK(fssdp->moved.bytes == before);
    check_params(m, layer, step);
}

static void backward(struct moving *m, int64_t layer, int step) {
    struct hrt_fssdp *fssdp = m->state.fssdp;
    if (m->movement.rematerialize) {
        hrt_experts_await(fssdp, 0, layer);
        check_params(m, layer, step);
    }
    add_grads(m, layer, step); // While those of the layer above still travel.
    hrt_experts_release_grads(fssdp, 0, layer + 1);
    if (layer + 1 < LAYERS) check_sums(m, layer + 1, step);
    hrt_experts_reduce(fssdp, 0, layer);
    hrt_experts_release_params(fssdp, 0, layer);
    if (m->movement.rematerialize) hrt_experts_materialize(fssdp, 0, layer - 1, true);
    if (layer > 0) return;
    hrt_experts_release_grads(fssdp, 0, 0);
    check_sums(m, 0, step);
}

struct shape {
    int64_t experts, chunk;
    uint32_t density; // Quarters of the ranks that hold an expert.
    bool rematerialize;
    int steps;
    bool rounded;
};

static void run(struct shape shape) {
    const struct hpl_movement movement = {.policy = "eplb",
                                          .overlap = shape.experts,
                                          .slots = shape.experts,
                                          .rematerialize = shape.rematerialize,
                                          .window = 2};
    struct moving m;
    uint64_t sequence = (uint64_t)(shape.experts * 1000 + shape.chunk);
    moving_open(&m, &comm, &movement,
                (struct moving_sizes){.experts = shape.experts,
                                      .topk = 1,
                                      .layers = LAYERS,
                                      .chunk = shape.chunk,
                                      .width = 1,
                                      .tokens = 1,
                                      .rounded = shape.rounded});
    for (int step = 0; step < shape.steps; step++) {
        for (int64_t layer = 0; layer < LAYERS; layer++)
            draw_plan(&m, layer, &sequence, shape.density);
        fill_owned(&m, step);
        if (shape.rounded) fill_rounded(&m, step);
        hrt_experts_fssdp_begin(m.state.fssdp, true, 0, 1);
        for (int64_t layer = 0; layer < LAYERS; layer++) forward(&m, layer, step);
        if (shape.rematerialize) hrt_experts_materialize(m.state.fssdp, 0, LAYERS - 1, true);
        for (int64_t layer = LAYERS - 1; layer >= 0; layer--) backward(&m, layer, step);
    }
    moving_close(&m);
}

static void random_placements(void **state) {
    (void)state;
    for (int again = 0; again < 2; again++) {
        for (uint32_t density = 0; density <= 3; density++)
            run((struct shape){EXPERTS_MAX, 300, density, again, 12, false});
    }
}

static void everybody_holds_everything(void **state) {
    (void)state;
    run((struct shape){EXPERTS_MAX, 1000, 4, false, 2, false});
    run((struct shape){EXPERTS_MAX, 1000, 4, true, 2, false});
}

static void fewer_experts_than_ranks(void **state) {
    (void)state;
    run((struct shape){1, 64, 2, true, 8, false});
    run((struct shape){3, 33, 3, false, 8, false}); // Not a whole cache line.
}

static void chunks_of_several_segments(void **state) {
    (void)state;
    run((struct shape){3, 700001, 3, true, 2, false});
}

static void rounded_copies_travel_where_products_read_them(void **state) {
    (void)state;
    run((struct shape){EXPERTS_MAX, 300, 2, true, 6, true});
    run((struct shape){3, 300001, 3, false, 2, true});
}

static void two_segments_that_are_not_equal(void **state) {
    (void)state;
    run((struct shape){2, 263000, 4, false, 3, false}); // A MiB and a bit.
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_placements),
        cmocka_unit_test(everybody_holds_everything),
        cmocka_unit_test(fewer_experts_than_ranks),
        cmocka_unit_test(chunks_of_several_segments),
        cmocka_unit_test(two_segments_that_are_not_equal),
        cmocka_unit_test(rounded_copies_travel_where_products_read_them),
    };
    ranks_open(&comm, getenv("HECATE_TOPOLOGY"));
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    hrt_net_comm_close(&comm);
    return failed;
}
