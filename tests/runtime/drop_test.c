// Test of hrt_experts_drop, run by mpirun: every rank knows the top-k choices of all, lets hk_limit drop among them as
// one rank would, and compares what stays of its own.
#include <stdlib.h>

#include "kernels/limit/limit.h"
#include "kernels/route/route.h"
#include "runtime/experts/experts.h"
#include "tests/runtime/ranks_case.h"

enum { EXPERTS = 5, PICKS = 2, TOKENS = 60, RANKS_MAX = 8, PAIRS_MAX = RANKS_MAX * TOKENS * PICKS };

static struct hrt_comm world; // MPI starts once per process.

struct drop_case {
    size_t element;
    enum hk_drop rule;
    double capacity;
    int steps;     // Different weights; few of them are equal often.
    int64_t group; // Tokens; 0: all.
    bool idle;     // The last rank's tokens are nobody's, and most of those of the one before.
};

// The top-k choices of all ranks, rank 0's first, as one rank would have them.
struct picks {
    int64_t tokens, first, mine; // All; this rank's first one, and how many count of its own.
    int32_t ids[PAIRS_MAX], kept[PAIRS_MAX];
    double weights[PAIRS_MAX];
    float narrow[PAIRS_MAX];
};

static uint64_t draw(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return *state >> 33;
}

static void make_picks(struct picks *all, const struct drop_case *c) {
    uint64_t state = 77;
    *all = (struct picks){.tokens = (int64_t)world.size * TOKENS};
    if (c->idle) all->tokens -= TOKENS + TOKENS * 3 / 4;
    all->first = (int64_t)world.rank * TOKENS;
    const int64_t left = all->tokens - all->first;
    all->mine = left < 0 ? 0 : left < TOKENS ? left : TOKENS;
    for (int64_t p = 0; p < PAIRS_MAX; p++) {
        const uint64_t drawn = draw(&state) % 12; // Most go to the first ones.
        all->ids[p] = drawn < EXPERTS ? (int32_t)drawn : (int32_t)(drawn % 2);
        all->weights[p] = (double)(draw(&state) % (uint64_t)c->steps) / 7 / c->steps;
        all->narrow[p] = (float)all->weights[p];
    }
}

static void drop_as_one(struct picks *all, const struct drop_case *c) {
    static int32_t first[2][EXPERTS + 1], pair[2][PAIRS_MAX], slot[2][PAIRS_MAX];
    hk_route(first[0], pair[0], slot[0], all->ids, all->tokens, PICKS, EXPERTS);
    if (c->element == sizeof(float)) {
        hk_limit_f32(first[1], pair[1], slot[1], all->narrow, first[0], pair[0], all->tokens, PICKS,
                     EXPERTS, c->group, c->capacity, c->rule);
    } else {
        hk_limit_f64(first[1], pair[1], slot[1], all->weights, first[0], pair[0], all->tokens,
                     PICKS, EXPERTS, c->group, c->capacity, c->rule);
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
                                        .wave_rows = 1,
                                        .limited = true};
    const struct hrt_experts_shape shape = {
        .sets = 1, .set = &set, .tokens = TOKENS, .element = c.element};
    struct hrt_experts *experts;
    struct hrt_error error = {0};
    int32_t kept[TOKENS * PICKS];
    make_picks(&all, &c);
    drop_as_one(&all, &c);
    RANKS_CHECK(&world, hrt_experts_create(&experts, &shape, &world, &error));
    if (c.idle) hrt_experts_tokens(experts, TOKENS, all.tokens);
    const int64_t at = all.first * PICKS, tokens = c.idle && all.mine ? all.mine : TOKENS;
    hrt_experts_drop(experts, 0, 0, kept, all.ids + at,
                     c.element == sizeof(float) ? (const void *)(all.narrow + at)
                                                : (const void *)(all.weights + at),
                     tokens, c.group, c.capacity, c.rule);
    for (int64_t p = 0; p < tokens * PICKS; p++)
        RANKS_CHECK(&world, kept[p] == (p < all.mine * PICKS ? all.kept[at + p] : -1));
    hrt_experts_destroy(experts);
}

static void the_lowest_weights_go(void **state) {
    (void)state;
    drop_together((struct drop_case){sizeof(float), HK_LOWEST, 1.0, 100000, 0, false});
    drop_together((struct drop_case){sizeof(double), HK_LOWEST, 0.7, 100000, 0, false});
}

static void of_equal_weights_the_last_go(void **state) {
    (void)state;
    drop_together((struct drop_case){sizeof(float), HK_LOWEST, 1.0, 3, 0, false});
    drop_together((struct drop_case){sizeof(double), HK_LOWEST, 0.7, 3, 0, false});
    drop_together((struct drop_case){sizeof(double), HK_LOWEST, 1.0, 1, 0, false});
}

static void by_position_the_last_go(void **state) {
    (void)state;
    drop_together((struct drop_case){sizeof(float), HK_POSITION, 1.1, 3, 0, false});
    drop_together((struct drop_case){sizeof(double), HK_POSITION, 0.001, 100, 0, false});
}

static void with_room_for_all_nothing_goes(void **state) {
    (void)state;
    drop_together((struct drop_case){sizeof(float), HK_LOWEST, 5.0, 100, 0, false});
    drop_together((struct drop_case){sizeof(float), HK_POSITION, 5.0, 100, 0, false});
}

static void an_idle_rank_takes_no_room(void **state) {
    (void)state;
    if (world.size == 1) skip();
    drop_together((struct drop_case){sizeof(float), HK_LOWEST, 1.0, 50, 0, true});
    drop_together((struct drop_case){sizeof(float), HK_POSITION, 1.0, 50, 0, true});
}

// Inside a rank, over ranks, and neither.
static void groups_drop_alone(void **state) {
    (void)state;
    const int64_t groups[] = {1, TOKENS / 4, TOKENS, 2 * TOKENS, TOKENS / 2 * 3, 8 * TOKENS};
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++) {
        drop_together((struct drop_case){sizeof(float), HK_LOWEST, 1.0, 50, groups[g], false});
        drop_together((struct drop_case){sizeof(double), HK_POSITION, 0.7, 50, groups[g], false});
        if (world.size == 1) continue;
        drop_together((struct drop_case){sizeof(double), HK_LOWEST, 0.7, 50, groups[g], true});
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_lowest_weights_go),
        cmocka_unit_test(of_equal_weights_the_last_go),
        cmocka_unit_test(by_position_the_last_go),
        cmocka_unit_test(with_room_for_all_nothing_goes),
        cmocka_unit_test(an_idle_rank_takes_no_room),
        cmocka_unit_test(groups_drop_alone),
    };
    ranks_open(&world, NULL);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    hrt_net_comm_close(&world);
    return failed;
}
