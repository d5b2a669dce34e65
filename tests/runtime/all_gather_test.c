// Unit test of gathering a block of every rank: the lists of all ranks, up to thousands, are played against each other
// in any order, and their messages counted.
#include "runtime/net/all_gather.h"

#include <stdlib.h>
#include <string.h>

#include "tests/runtime/support/case.h"

// A cluster, whose first node has a rank of the second one where `odd`; the messages and rounds of a rank.
struct cluster {
    int32_t devices, nodes, messages, rounds;
    bool odd;
};

struct rank {
    struct hrt_steps steps;
    uint32_t *blocks;
};

struct play {
    struct hpl_grid grid;
    int32_t ranks;
    struct rank *rank;
    uint64_t sequence;
};

static uint32_t draw(struct play *play, uint32_t limit) {
    play->sequence = play->sequence * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(play->sequence >> 33) % limit;
}

static uint32_t block_of(int32_t rank) {
    return 1000003u * (uint32_t)(rank + 1);
}

static void open_rank(struct play *play, int32_t r) {
    struct rank *rank = &play->rank[r];
    const int32_t room = 2 * hpl_grid_messages(&play->grid);
    rank->steps = (struct hrt_steps){.step = calloc((size_t)room + 1, sizeof *rank->steps.step),
                                     .room = room};
    rank->blocks = calloc((size_t)play->ranks, sizeof *rank->blocks);
    assert_true(rank->steps.step && rank->blocks);
    rank->blocks[hrt_net_gathered_at(&play->grid, r, r)] = block_of(r);
    hrt_net_steps_all_gather(&rank->steps, &play->grid, r, rank->blocks, sizeof *rank->blocks);
}

static void close_play(struct play *play) {
    for (int32_t r = 0; r < play->ranks; r++) {
        free(play->rank[r].steps.step);
        free(play->rank[r].blocks);
    }
    free(play->rank);
}

// The receive of `to` that takes the next message of `from`.
static struct hrt_step *receive_of(struct play *play, int32_t from, int32_t to) {
    struct hrt_steps *steps = &play->rank[to].steps;
    for (int32_t i = 0; i < steps->count; i++) {
        struct hrt_step *step = &steps->step[i];
        if (step->kind == HRT_RECV && step->peer == from && !step->done) return step;
    }
    fail_msg("rank %d does not receive what rank %d sends", to, from);
    return NULL;
}

static bool is_ready(const struct hrt_steps *steps, const struct hrt_step *step) {
    for (int a = 0; a < 2; a++) {
        if (step->after[a] >= 0 && !steps->step[step->after[a]].done) return false;
    }
    return true;
}

// Sends what is ready. False: nothing.
static bool go_on(struct play *play, int32_t r) {
    struct hrt_steps *steps = &play->rank[r].steps;
    bool moved = false;
    for (int32_t i = 0; i < steps->count; i++) {
        struct hrt_step *step = &steps->step[i];
        if (step->done || step->kind == HRT_RECV || !is_ready(steps, step)) continue;
        if (draw(play, 3) == 0) return true; // Later.
        struct hrt_step *there = receive_of(play, r, step->peer);
        assert_int_equal(there->bytes, step->bytes);
        assert_int_equal(there->round, step->round);
        memcpy(there->to, step->from, step->bytes);
        step->done = there->done = moved = true;
    }
    return moved;
}

static void check(struct play *play, const struct cluster *cluster) {
    for (int32_t r = 0; r < play->ranks; r++) {
        const struct hrt_steps *steps = &play->rank[r].steps;
        int32_t sends = 0, rounds = 0;
        for (int32_t i = 0; i < steps->count; i++) {
            assert_true(steps->step[i].done);
            sends += steps->step[i].kind == HRT_SEND;
            assert_true(hpl_grid_near(&play->grid, r, steps->step[i].peer));
            assert_true(hpl_grid_near(&play->grid, steps->step[i].peer, r));
            if (steps->step[i].round > rounds) rounds = steps->step[i].round;
        }
        assert_int_equal(sends, cluster->messages);
        assert_int_equal(steps->count, 2 * cluster->messages);
        assert_int_equal(rounds, cluster->rounds);
        for (int32_t of = 0; of < play->ranks; of++) {
            const size_t at = hrt_net_gathered_at(&play->grid, r, of);
            assert_true(at < (size_t)play->ranks);
            assert_true(play->rank[r].blocks[at] == block_of(of));
        }
    }
}

static void gather(const struct cluster *cluster) {
    struct play play = {.ranks = cluster->devices, .sequence = 1};
    int32_t *node = calloc((size_t)cluster->devices, sizeof *node);
    play.rank = calloc((size_t)cluster->devices, sizeof *play.rank);
    assert_true(node && play.rank);
    for (int32_t d = cluster->odd; d < cluster->devices; d++)
        node[d] = (d - cluster->odd) * cluster->nodes / cluster->devices;
    play.grid = hpl_grid_of(cluster->devices, cluster->nodes, node);
    assert_int_equal(hpl_grid_messages(&play.grid), cluster->messages);
    for (int32_t r = 0; r < play.ranks; r++) open_rank(&play, r);
    for (bool moved = true; moved;) {
        const int32_t begin = (int32_t)draw(&play, (uint32_t)play.ranks);
        moved = false;
        for (int32_t n = 0; n < play.ranks; n++) moved |= go_on(&play, (begin + n) % play.ranks);
    }
    check(&play, cluster);
    close_play(&play);
    free(node);
}

// Messages that each rank sends; rounds, the one inside the group included.
static void all_ranks_have_all_blocks(void **state) {
    static const struct cluster cluster[] = {
        {.devices = 1, .nodes = 1, .messages = 0, .rounds = 0},
        {.devices = 8, .nodes = 1, .messages = 7, .rounds = 1},
        {.devices = 32, .nodes = 4, .messages = 31, .rounds = 1}, // Directly.
        {.devices = 40, .nodes = 5, .messages = 3 + 7, .rounds = 4},
        {.devices = 72, .nodes = 1, .messages = 71, .rounds = 1},
        {.devices = 100, .nodes = 3, .messages = 7, .rounds = 7}, // Unlike nodes.
        {.devices = 128, .nodes = 16, .messages = 7, .rounds = 7, .odd = true},
        {.devices = 288, .nodes = 4, .messages = 2 + 71, .rounds = 3},
        {.devices = 1024, .nodes = 128, .messages = 7 + 7, .rounds = 8},
        {.devices = 1024, .nodes = 1024, .messages = 10, .rounds = 10},
        {.devices = 4096, .nodes = 512, .messages = 9 + 7, .rounds = 10},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cluster / sizeof *cluster; i++) gather(&cluster[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_ranks_have_all_blocks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
