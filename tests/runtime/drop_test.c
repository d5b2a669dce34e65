// Test of hrt_drop, run by mpirun: every rank knows the picks of all, lets hk_limit drop among them as
// one rank would, and compares what stays of its own.
#include <stdlib.h>

#include "kernels/limit/limit.h"
#include "kernels/route/route.h"
#include "runtime/experts/experts.h"
#include "tests/runtime/mpi_case.h"

enum { EXPERTS = 5, PICKS = 2, TOKENS = 60, RANKS_MAX = 8, PAIRS_MAX = RANKS_MAX * TOKENS * PICKS };

static struct hrt_comm world; // MPI starts once per process.

struct drop_case {
    size_t element;
    enum hk_drop rule;
    double capacity;
    int steps; // Different weights; few of them are equal often.
    bool idle; // The last rank's tokens are nobody's.
};

// The picks of all ranks, rank 0's first: what one rank would have.
struct picks {
    int64_t tokens, first, mine; // All; this rank's first one, and how many it has.
    int32_t ids[PAIRS_MAX], kept[PAIRS_MAX], loads[EXPERTS];
    double weights[PAIRS_MAX];
    float narrow[PAIRS_MAX];
};

static uint64_t draw(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return *state >> 33;
}

// Rank 1 has no tokens, the others fewer, the higher their number.
static int64_t tokens_of(int rank) {
    return rank == 1 ? 0 : TOKENS - 7 * rank;
}

static void make_picks(struct picks *all, const struct drop_case *c) {
    uint64_t state = 77;
    *all = (struct picks){0};
    for (int r = 0; r < world.size; r++) {
        if (r == world.rank) all->first = all->tokens, all->mine = tokens_of(r);
        if (c->idle && r == world.size - 1) continue;
        for (int64_t p = all->tokens * PICKS; p < (all->tokens + tokens_of(r)) * PICKS; p++) {
            const uint64_t drawn = draw(&state) % 12; // Most go to the first ones.
            all->ids[p] = drawn < EXPERTS ? (int32_t)drawn : (int32_t)(drawn % 2);
            all->weights[p] = (double)(draw(&state) % (uint64_t)c->steps) / 7 / c->steps;
            all->narrow[p] = (float)all->weights[p];
            all->loads[all->ids[p]]++;
        }
        all->tokens += tokens_of(r);
    }
}

static void drop_as_one(struct picks *all, const struct drop_case *c) {
    static int32_t first[2][EXPERTS + 1], pair[2][PAIRS_MAX], slot[2][PAIRS_MAX];
    hk_route(first[0], pair[0], slot[0], all->ids, all->tokens, PICKS, EXPERTS);
    if (c->element == sizeof(float)) {
        hk_limit_f32(first[1], pair[1], slot[1], all->narrow, first[0], pair[0], all->tokens, PICKS,
                     EXPERTS, c->capacity, c->rule);
    } else {
        hk_limit_f64(first[1], pair[1], slot[1], all->weights, first[0], pair[0], all->tokens,
                     PICKS, EXPERTS, c->capacity, c->rule);
    }
    for (int64_t p = 0; p < all->tokens * PICKS; p++)
        all->kept[p] = slot[1][p] < 0 ? -1 : all->ids[p];
}

static void drop_together(struct drop_case c) {
    static struct picks all;
    const struct hrt_experts_set set = {.experts = EXPERTS,
                                        .picks = PICKS,
                                        .layers = 1,
                                        .width = 1,
                                        .slots = EXPERTS,
                                        .rows_max = 1,
                                        .limited = true};
    const struct hrt_experts_shape shape = {
        .sets = 1, .set = &set, .tokens = TOKENS, .element = c.element};
    struct hrt_experts *experts;
    struct hrt_error error = {0};
    int32_t kept[TOKENS * PICKS], loads[EXPERTS];
    make_picks(&all, &c);
    drop_as_one(&all, &c);
    RANKS_CHECK(&world, hrt_experts_create(&experts, &shape, &world, &error));
    const bool idle = c.idle && world.rank == world.size - 1;
    const int64_t at = idle ? 0 : all.first * PICKS; // An idle rank's picks are any.
    hrt_experts_idle(experts, idle);
    hrt_drop(experts, 0, 0, kept, loads, all.ids + at,
             c.element == sizeof(float) ? (const void *)(all.narrow + at)
                                        : (const void *)(all.weights + at),
             all.mine, c.capacity, c.rule);
    for (int64_t p = 0; p < all.mine * PICKS; p++)
        RANKS_CHECK(&world, kept[p] == (idle ? -1 : all.kept[at + p]));
    for (int e = 0; e < EXPERTS; e++) RANKS_CHECK(&world, loads[e] == all.loads[e]);
    hrt_experts_destroy(experts);
}

static void the_lowest_weights_go(void **state) {
    (void)state;
    drop_together((struct drop_case){sizeof(float), HK_LOWEST, 1.0, 100000, false});
    drop_together((struct drop_case){sizeof(double), HK_LOWEST, 0.7, 100000, false});
}

static void of_equal_weights_the_last_go(void **state) {
    (void)state;
    drop_together((struct drop_case){sizeof(float), HK_LOWEST, 1.0, 3, false});
    drop_together((struct drop_case){sizeof(double), HK_LOWEST, 0.7, 3, false});
    drop_together((struct drop_case){sizeof(double), HK_LOWEST, 1.0, 1, false});
}

static void by_position_the_last_go(void **state) {
    (void)state;
    drop_together((struct drop_case){sizeof(float), HK_POSITION, 1.1, 3, false});
    drop_together((struct drop_case){sizeof(double), HK_POSITION, 0.001, 100, false});
}

static void with_room_for_all_nothing_goes(void **state) {
    (void)state;
    drop_together((struct drop_case){sizeof(float), HK_LOWEST, 5.0, 100, false});
    drop_together((struct drop_case){sizeof(float), HK_POSITION, 5.0, 100, false});
}

static void an_idle_rank_takes_no_room(void **state) {
    (void)state;
    if (world.size == 1) skip();
    drop_together((struct drop_case){sizeof(float), HK_LOWEST, 1.0, 50, true});
    drop_together((struct drop_case){sizeof(float), HK_POSITION, 1.0, 50, true});
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_lowest_weights_go),
        cmocka_unit_test(of_equal_weights_the_last_go),
        cmocka_unit_test(by_position_the_last_go),
        cmocka_unit_test(with_room_for_all_nothing_goes),
        cmocka_unit_test(an_idle_rank_takes_no_room),
    };
    ranks_open(&world, NULL);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    hrt_comm_close(&world);
    return failed;
}
