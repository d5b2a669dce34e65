// Unit test of the compiler of steps: random schedules, compiled for every rank and played through round by round.
#include "runtime/net/steps.h"

#include <string.h>

#include "kernels/bf16.h"
#include "runtime/plan/slots.h"
#include "tests/runtime/support/case.h"

enum { RANKS = 6, EXPERTS = 60, SEGMENTS = 3, PIECES = 4, ROOM = 4096, WORK = 1 << 22 };

// One rank: its values of every piece, and its steps.
struct rank {
    double piece[EXPERTS][PIECES];
    double staging[HRT_STAGED];
    int32_t brought[EXPERTS * PIECES];
    uint64_t heard[RANKS];
    struct hrt_step step[ROOM];
    struct hrt_steps steps;
};

static struct rank ranks[RANKS];

static char *place(const void *context, int32_t expert, int32_t piece, size_t *bytes) {
    struct rank *rank = (struct rank *)context; // One of ranks.
    *bytes = sizeof(double);
    return (char *)&rank->piece[expert][piece];
}

static uint32_t draw(uint64_t *sequence, uint32_t limit) {
    *sequence = *sequence * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*sequence >> 33) % limit;
}

struct drawn {
    int32_t owner[EXPERTS], first[EXPERTS + 1], holder[EXPERTS * RANKS];
    struct hpl_plan plan;
    struct hpl_transfer transfer[2][EXPERTS * RANKS * SEGMENTS];
    struct hpl_schedule gather, reduce;
};

static const int32_t node[RANKS] = {0, 0, 0, 1, 1, 1};

static void draw_schedules(struct drawn *drawn, uint64_t *sequence) {
    static _Alignas(64) unsigned char memory[WORK];
    static const int32_t node_first[] = {0, 3, 6}, speed[RANKS] = {1, 1, 1, 1, 1, 1};
    const struct hpl_topology topology = {
        .devices = RANKS, .nodes = 2, .node = node, .first = node_first, .speed = speed};
    struct hpl_work work = {.at = memory, .end = memory + sizeof memory};
    int32_t count = 0;
    for (int32_t e = 0; e < EXPERTS; e++) {
        drawn->owner[e] = (int32_t)draw(sequence, RANKS);
        drawn->first[e] = count;
        for (int32_t r = 0; r < RANKS; r++) {
            if (r == drawn->owner[e] || draw(sequence, 2)) drawn->holder[count++] = r;
        }
    }
    drawn->first[EXPERTS] = count;
    drawn->plan = (struct hpl_plan){.experts = EXPERTS,
                                    .capacity = EXPERTS * RANKS,
                                    .first = drawn->first,
                                    .holder = drawn->holder};
    const int32_t capacity = EXPERTS * RANKS * SEGMENTS;
    drawn->gather = (struct hpl_schedule){.capacity = capacity, .transfer = drawn->transfer[0]};
    drawn->reduce = (struct hpl_schedule){.capacity = capacity, .transfer = drawn->transfer[1]};
    assert_int_equal(
        hpl_schedule_gather(&topology, drawn->owner, &drawn->plan, SEGMENTS, &drawn->gather, &work),
        HPL_OK);
    assert_int_equal(hpl_schedule_mirror(&drawn->gather, &drawn->reduce, &work), HPL_OK);
}

// Moves parameters, or sums doubles or, in bf16 on their way, pairs of floats.
enum what { MOVES, SUMS, SUMS_NARROW };

static void compile(int32_t r, const struct hpl_schedule *schedule, enum what what) {
    const bool adds = what != MOVES;
    struct rank *rank = &ranks[r];
    rank->steps = (struct hrt_steps){.step = rank->step, .room = ROOM};
    hrt_net_steps_carry(&rank->steps,
                        &(struct hrt_carry){.schedule = schedule,
                                            .rank = r,
                                            .ranks = RANKS,
                                            .experts = EXPERTS,
                                            .pieces = adds ? SEGMENTS : PIECES,
                                            .adds = adds,
                                            .type = what == SUMS ? HRT_DOUBLE : HRT_FLOAT,
                                            .narrow = what == SUMS_NARROW,
                                            .place = place,
                                            .context = rank,
                                            .staging = (char *)rank->staging,
                                            .staged = sizeof(double),
                                            .brought = rank->brought,
                                            .heard = rank->heard},
                        node);
    assert_true(rank->steps.count <= hrt_net_steps_room(schedule->count * 2, RANKS, adds));
}

// The step of `to` that receives what step `s` of `from` sends: as many messages are before both.
static struct hrt_step *match(int32_t from, int32_t s, int32_t to) {
    int32_t before = 0;
    for (int32_t i = 0; i < s; i++)
        before += ranks[from].step[i].kind == HRT_SEND && ranks[from].step[i].peer == to;
    for (int32_t i = 0; i < ranks[to].steps.count; i++) {
        struct hrt_step *step = &ranks[to].step[i];
        if (step->kind == HRT_RECV && step->peer == from && before-- == 0) return step;
    }
    fail_msg("rank %d does not receive what rank %d sends", to, from);
    return NULL;
}

static bool is_sum(const struct hrt_step *step) {
    return step->kind == HRT_ADD || step->kind == HRT_ADD_NARROW;
}

// An executor that asks for all messages of a round at once finds those ready that are not behind steps of its own.
static void check_order(int32_t r) {
    const struct hrt_steps *steps = &ranks[r].steps;
    for (int32_t i = 0; i < steps->count; i++) {
        const struct hrt_step *step = &steps->step[i];
        for (int a = 0; a < 2; a++) {
            const int32_t after = step->after[a];
            assert_true(after < i);
            // A place of staging is used again when it is free, whichever round that is.
            const bool frees = step->kind == HRT_RECV && after >= 0 && is_sum(&steps->step[after]);
            if (after < 0 || frees) continue;
            const bool rounded = steps->step[after].kind == HRT_NARROW;
            const bool here = is_sum(step) || step->kind == HRT_SAME || rounded;
            assert_true(steps->step[after].round < step->round + here);
        }
    }
}

// Runs what is ready, in any order of ranks and as late as `sequence` says.
static void play(uint64_t *sequence) {
    bool moved = true;
    while (moved) {
        moved = false;
        const int32_t begin = (int32_t)draw(sequence, RANKS);
        for (int32_t n = 0; n < RANKS; n++) {
            const int32_t r = (begin + n) % RANKS;
            for (int32_t i = 0; i < ranks[r].steps.count; i++) {
                struct hrt_step *step = &ranks[r].step[i];
                bool ready = !step->done && step->kind != HRT_RECV;
                for (int a = 0; a < 2; a++)
                    ready = ready && (step->after[a] < 0 || ranks[r].step[step->after[a]].done);
                if (!ready) continue;
                if (is_sum(step) && draw(sequence, 4)) { // It takes its time.
                    moved = true;
                    continue;
                }
                if (step->kind == HRT_SEND) {
                    struct hrt_step *there = match(r, i, step->peer);
                    const int32_t free = there->after[0];
                    if (free >= 0 && !ranks[step->peer].step[free].done) continue;
                    assert_int_equal(there->round, step->round);
                    assert_int_equal(there->bytes, step->bytes);
                    memcpy(there->to, step->from, step->bytes);
                    there->done = true;
                } else if (step->kind == HRT_SAME) {
                    assert_memory_equal(step->to, step->from, step->bytes);
                } else {
                    hrt_net_step_run(step);
                }
                step->done = moved = true;
            }
        }
    }
    for (int32_t r = 0; r < RANKS; r++) {
        for (int32_t i = 0; i < ranks[r].steps.count; i++) assert_true(ranks[r].step[i].done);
    }
}

static void compile_all(const struct hpl_schedule *schedule, enum what what) {
    for (int32_t r = 0; r < RANKS; r++) {
        compile(r, schedule, what);
        check_order(r);
        assert_true(ranks[r].steps.count == 0 || ranks[r].steps.hash == ranks[0].steps.hash);
    }
}

static bool holds(const struct drawn *drawn, int32_t expert, int32_t rank) {
    for (int32_t k = drawn->first[expert]; k < drawn->first[expert + 1]; k++) {
        if (drawn->holder[k] == rank) return true;
    }
    return false;
}

static void holders_get_what_owners_have(void **state) {
    (void)state;
    uint64_t sequence = 1;
    static struct drawn drawn;
    for (int again = 0; again < 4; again++) {
        draw_schedules(&drawn, &sequence);
        for (int32_t r = 0; r < RANKS; r++) {
            for (int32_t e = 0; e < EXPERTS; e++) {
                for (int32_t p = 0; p < PIECES; p++)
                    ranks[r].piece[e][p] = drawn.owner[e] == r ? 100 * e + p : -1;
            }
        }
        compile_all(&drawn.gather, MOVES);
        play(&sequence);
        for (int32_t r = 0; r < RANKS; r++) {
            for (int32_t e = 0; e < EXPERTS; e++) {
                for (int32_t p = 0; p < PIECES; p++)
                    assert_true(ranks[r].piece[e][p] == (holds(&drawn, e, r) ? 100 * e + p : -1));
            }
        }
    }
}

static double term(int32_t rank, int32_t expert, int32_t piece) {
    return 1 / (1.0 + rank * 7 + expert * 3 + piece);
}

// For any order of arrival, sums have the bits of adding in the schedule's order.
static void owners_get_sums_in_the_order_of_the_list(void **state) {
    (void)state;
    uint64_t sequence = 2;
    static struct drawn drawn;
    static double expected[RANKS][EXPERTS][SEGMENTS];
    for (int again = 0; again < 4; again++) {
        draw_schedules(&drawn, &sequence);
        for (int32_t r = 0; r < RANKS; r++) {
            for (int32_t e = 0; e < EXPERTS; e++) {
                for (int32_t p = 0; p < SEGMENTS; p++)
                    expected[r][e][p] = ranks[r].piece[e][p] = term(r, e, p);
            }
        }
        for (int32_t i = 0; i < drawn.reduce.count; i++) {
            const struct hpl_transfer *t = &drawn.reduce.transfer[i];
            expected[t->to][t->expert][t->segment] += expected[t->from][t->expert][t->segment];
        }
        compile_all(&drawn.reduce, SUMS);
        play(&sequence);
        for (int32_t e = 0; e < EXPERTS; e++) {
            for (int32_t p = 0; p < SEGMENTS; p++)
                assert_true(ranks[drawn.owner[e]].piece[e][p] == expected[drawn.owner[e]][e][p]);
        }
    }
}

// Two floats in the place of a double.
struct pair {
    float of[2];
};

static struct pair pair_of(int32_t rank, int32_t expert, int32_t piece) {
    const float value = (float)term(rank, expert, piece);
    return (struct pair){{value, -value / 3}};
}

// A rank rounds each piece that it sends, also a sum that it passes on, and none that it keeps.
static void sums_are_rounded_where_they_leave_a_rank(void **state) {
    (void)state;
    uint64_t sequence = 4;
    static struct drawn drawn;
    static struct pair expected[RANKS][EXPERTS][SEGMENTS];
    for (int again = 0; again < 4; again++) {
        draw_schedules(&drawn, &sequence);
        for (int32_t r = 0; r < RANKS; r++) {
            for (int32_t e = 0; e < EXPERTS; e++) {
                for (int32_t p = 0; p < SEGMENTS; p++) {
                    expected[r][e][p] = pair_of(r, e, p);
                    memcpy(&ranks[r].piece[e][p], &expected[r][e][p], sizeof(struct pair));
                }
            }
        }
        for (int32_t i = 0; i < drawn.reduce.count; i++) {
            const struct hpl_transfer *t = &drawn.reduce.transfer[i];
            for (int k = 0; k < 2; k++)
                expected[t->to][t->expert][t->segment].of[k] +=
                    hk_bf16_float(hk_bf16_round(expected[t->from][t->expert][t->segment].of[k]));
        }
        compile_all(&drawn.reduce, SUMS_NARROW);
        play(&sequence);
        for (int32_t e = 0; e < EXPERTS; e++) {
            for (int32_t p = 0; p < SEGMENTS; p++)
                assert_memory_equal(&ranks[drawn.owner[e]].piece[e][p],
                                    &expected[drawn.owner[e]][e][p], sizeof(struct pair));
        }
    }
}

static void another_schedule_has_another_hash(void **state) {
    (void)state;
    uint64_t sequence = 3;
    static struct drawn drawn;
    draw_schedules(&drawn, &sequence);
    compile(0, &drawn.gather, MOVES);
    const uint64_t hash = ranks[0].steps.hash;
    drawn.transfer[0][drawn.gather.count - 1].round++;
    compile(0, &drawn.gather, MOVES);
    assert_true(ranks[0].steps.hash != hash);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(holders_get_what_owners_have),
        cmocka_unit_test(owners_get_sums_in_the_order_of_the_list),
        cmocka_unit_test(sums_are_rounded_where_they_leave_a_rank),
        cmocka_unit_test(another_schedule_has_another_hash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
