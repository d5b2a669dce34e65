// Test of hrt_experts_fractions, run by mpirun: every rank knows the top-k choices of all, lets hk_fractions count them
// as one rank would, and compares bits of its own sequences.
#include <stdlib.h>
#include <string.h>

#include "kernels/fractions/fractions.h"
#include "runtime/experts/experts.h"
#include "tests/runtime/ranks_case.h"

enum { EXPERTS = 7, PICKS = 2, POSITIONS = 5, MICROBATCH = 3, RANKS_MAX = 8, ITERATIONS = 2 };
enum { SEQUENCES_MAX = RANKS_MAX * MICROBATCH, ROW = POSITIONS * PICKS };

static struct hrt_comm world; // MPI starts once per process.
static int32_t ids[ITERATIONS][SEQUENCES_MAX * ROW];

static void make_ids(void) {
    uint64_t state = 5;
    for (int64_t p = 0; p < ITERATIONS * SEQUENCES_MAX * ROW; p++) {
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
        ids[p / (SEQUENCES_MAX * ROW)][p % (SEQUENCES_MAX * ROW)] =
            (int32_t)((state >> 33) % EXPERTS);
    }
}

static struct hrt_experts *create(size_t element) {
    const struct hrt_experts_set set = {.experts = EXPERTS,
                                        .picks = PICKS,
                                        .layers = 1,
                                        .width = 1,
                                        .slots = EXPERTS,
                                        .wave_rows = 1};
    const struct hrt_experts_shape shape = {.sets = 1,
                                            .set = &set,
                                            .tokens = MICROBATCH * POSITIONS,
                                            .sequences = MICROBATCH,
                                            .element = element};
    struct hrt_experts *experts;
    struct hrt_error error = {0};
    RANKS_CHECK(&world, hrt_experts_create(&experts, &shape, &world, &error));
    return experts;
}

// `sequences` of all ranks have tokens that count.
static void check(struct hrt_experts *experts, int64_t group, bool per_step, int64_t sequences) {
    int32_t whole[EXPERTS] = {0}, part[EXPERTS] = {0};
    for (int i = 0; i < ITERATIONS; i++) {
        double want[SEQUENCES_MAX * EXPERTS], got[MICROBATCH * EXPERTS];
        const int64_t first = (int64_t)world.rank * MICROBATCH, left = sequences - first;
        const int64_t mine = left < 0 ? 0 : left < MICROBATCH ? left : MICROBATCH;
        hk_fractions_f64(want, per_step ? whole : NULL, ids[i], sequences, POSITIONS, PICKS,
                         EXPERTS, group, i + 1);
        hrt_experts_fractions(experts, 0, 0, got, per_step ? part : NULL, ids[i] + first * ROW,
                              mine ? mine : 1, POSITIONS, group * POSITIONS, i + 1);
        RANKS_CHECK(&world,
                    !memcmp(got, want + first * EXPERTS, (size_t)(mine * EXPERTS) * sizeof *got));
        RANKS_CHECK(&world, !memcmp(whole, part, sizeof whole));
    }
}

static void groups_are_those_of_one_rank(void **state) {
    (void)state;
    const int64_t all = (int64_t)world.size * MICROBATCH;
    struct hrt_experts *experts = create(sizeof(double));
    for (int64_t group = 0; group <= all; group++) {
        check(experts, group, false, all);
        check(experts, group, true, all);
    }
    hrt_experts_destroy(experts);
}

static void tokens_of_nobody_are_not_counted(void **state) {
    (void)state;
    struct hrt_experts *experts = create(sizeof(double));
    const int64_t all = (int64_t)world.size * MICROBATCH;
    for (int64_t sequences = 1; sequences < all; sequences++) {
        hrt_experts_tokens(experts, MICROBATCH * POSITIONS, sequences * POSITIONS);
        for (int64_t group = 0; group <= 4; group++) check(experts, group, group % 2, sequences);
    }
    hrt_experts_destroy(experts);
}

static void floats_are_rounded_once(void **state) {
    (void)state;
    struct hrt_experts *experts = create(sizeof(float));
    for (int64_t group = 0; group < 2; group++) { // Over ranks, and inside of them.
        float want[SEQUENCES_MAX * EXPERTS], got[MICROBATCH * EXPERTS];
        const int64_t first = (int64_t)world.rank * MICROBATCH;
        hk_fractions_f32(want, NULL, ids[0], (int64_t)world.size * MICROBATCH, POSITIONS, PICKS,
                         EXPERTS, group, 0);
        hrt_experts_fractions(experts, 0, 0, got, NULL, ids[0] + first * ROW, MICROBATCH, POSITIONS,
                              group * POSITIONS, 0);
        RANKS_CHECK(&world, !memcmp(got, want + first * EXPERTS, sizeof got));
    }
    hrt_experts_destroy(experts);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_are_those_of_one_rank),
        cmocka_unit_test(tokens_of_nobody_are_not_counted),
        cmocka_unit_test(floats_are_rounded_once),
    };
    make_ids();
    ranks_open(&world, NULL);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    hrt_net_comm_close(&world);
    return failed;
}
