// Test of lanes, run by mpirun with 1, 2 and 4 ranks, with and without helper thread.
#include "runtime/net/transport.h"

#include <stdatomic.h>
#include <time.h>

#include "runtime/net/all_gather.h"
#include "tests/runtime/ranks_case.h"

static struct hrt_comm comm;

#define CHECK(condition) RANKS_CHECK(&comm, condition)

static bool polls(void) {
    const char *progress = getenv("HECATE_COMM_PROGRESS");
    return progress && strcmp(progress, "poll") == 0;
}

static void rest(long milliseconds) {
    nanosleep(
        &(struct timespec){.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1000000},
        NULL);
}

static int next_rank(void) {
    return (comm.rank + 1) % comm.size;
}

static int rank_before(void) {
    return (comm.rank + comm.size - 1) % comm.size;
}

// ---- rings: rank 0 sends values around; each rank adds its own to them and sends the sums on; rank 0 gets them.
// Each step can only begin after the one before.

enum {
    COUNT = 300000,
    RINGS = 3,
    STEPS = 8
}; // Floats: more than one MPI message, and more than a window.

struct ring {
    struct hrt_steps steps;
    struct hrt_step step[STEPS];
    struct hrt_mark mark;
    float *sum, *in;
};

static void open_ring(struct ring *ring, enum hrt_lane lane) {
    const size_t bytes = COUNT * sizeof(float);
    *ring = (struct ring){.steps = {.room = STEPS}};
    ring->steps.step = ring->step;
    ring->sum = calloc(COUNT, sizeof *ring->sum);
    ring->in = calloc(COUNT, sizeof *ring->in);
    for (int i = 0; i < COUNT; i++) ring->sum[i] = (float)(comm.rank + 1) * (float)(i % 100 + 1);
    int32_t ready = -1;
    if (comm.rank > 0) {
        const int32_t here =
            hrt_net_steps_receive(&ring->steps, rank_before(), ring->in, bytes, -1);
        ready = hrt_net_steps_append(&ring->steps, &(struct hrt_step){.kind = HRT_ADD,
                                                                      .type = HRT_FLOAT,
                                                                      .after = {here, -1},
                                                                      .to = ring->sum,
                                                                      .from = ring->in,
                                                                      .bytes = bytes});
    }
    if (comm.size > 1) hrt_net_steps_send(&ring->steps, next_rank(), ring->sum, bytes, ready);
    if (comm.size > 1 && comm.rank == 0)
        hrt_net_steps_receive(&ring->steps, rank_before(), ring->in, bytes, -1);
    ring->mark = hrt_net_lane_submit(&comm, lane, &ring->steps);
}

static void close_ring(struct ring *ring) {
    const float all = (float)(comm.size * (comm.size + 1) / 2);
    const float mine = (float)((comm.rank + 1) * (comm.rank + 2) / 2); // Sent on by this rank.
    const float expected = comm.rank == 0 ? all : mine;
    CHECK(hrt_net_lane_reached(&comm, ring->mark));
    const float *got = comm.rank == 0 && comm.size > 1 ? ring->in : ring->sum;
    for (int i = 0; i < COUNT; i++) CHECK(got[i] == expected * (float)(i % 100 + 1));
    free(ring->sum);
    free(ring->in);
}

static void open_rings(struct ring *rings) {
    static const enum hrt_lane lanes[RINGS] = {HRT_LANE_GATHER, HRT_LANE_REDUCE, HRT_LANE_GATHER};
    for (int i = 0; i < RINGS; i++) open_ring(&rings[i], lanes[i]);
}

static void lists_are_waited_for_in_any_order(void **state) {
    (void)state;
    struct ring rings[RINGS];
    open_rings(rings);
    for (int i = RINGS - 1; i >= 0; i--) hrt_net_lane_join(&comm, rings[i].mark, "a ring");
    for (int i = 0; i < RINGS; i++) close_ring(&rings[i]);
}

static void lists_finish_behind_the_caller(void **state) {
    (void)state;
    struct ring rings[RINGS];
    open_rings(rings);
    for (int look = 0; look < 600; look++) {
        double left = 0;
        for (int i = 0; i < RINGS; i++) left += !hrt_net_lane_reached(&comm, rings[i].mark);
        if (polls())
            hrt_net_comm_all_reduce(&comm, &left, 1, HRT_DOUBLE); // All leave at the same look.
        if (left == 0) break;
        rest(10);
    }
    for (int i = 0; i < RINGS; i++) close_ring(&rings[i]);
}

// ---- messages

// Byte i of message `number` from rank r.
static unsigned char byte_of(int r, int number, size_t i) {
    return (unsigned char)(i * 7 + i / 251 + (size_t)r * 31 + (size_t)number * 101);
}

static void messages_of_any_length_arrive_in_order(void **state) {
    (void)state;
    enum { MESSAGES = 4 };
    const size_t bytes[MESSAGES] = {1, (13u << 20) + 5, 7, 1u << 20};
    unsigned char *out[MESSAGES], *in[MESSAGES];
    struct hrt_step step[MESSAGES][2];
    struct hrt_steps list[MESSAGES];
    struct hrt_mark mark = {0};
    for (int m = 0; m < MESSAGES && comm.size > 1; m++) {
        list[m] = (struct hrt_steps){.step = step[m], .room = 2};
        out[m] = malloc(bytes[m]);
        in[m] = malloc(bytes[m]);
        for (size_t i = 0; i < bytes[m]; i++) out[m][i] = byte_of(comm.rank, m, i);
        hrt_net_steps_send(&list[m], next_rank(), out[m], bytes[m], -1);
        hrt_net_steps_receive(&list[m], rank_before(), in[m], bytes[m], -1);
        mark = hrt_net_lane_submit(&comm, HRT_LANE_SAVE, &list[m]);
    }
    hrt_net_lane_join(&comm, mark, "messages");
    for (int m = 0; m < MESSAGES && comm.size > 1; m++) {
        for (size_t i = 0; i < bytes[m]; i++) CHECK(in[m][i] == byte_of(rank_before(), m, i));
        free(out[m]);
        free(in[m]);
    }
}

// Rank r sends 3 * (p + 2 r) % 7 elements to p: every count differs, some are 0.
static size_t elements(int from, int to) {
    return (size_t)(3 * (to + 2 * from) % 7);
}

static void exchange_takes_uneven_parts(void **state) {
    (void)state;
    enum { MOST = 64 };
    size_t send_bytes[MOST], send_offset[MOST], recv_bytes[MOST], recv_offset[MOST];
    int out[MOST * 7], in[MOST * 7 + 1];
    size_t sent = 1, received = 0; // Offsets need not start at 0.
    CHECK(comm.size < MOST);
    for (int p = 0; p < comm.size; p++) {
        send_bytes[p] = elements(comm.rank, p) * sizeof *out;
        recv_bytes[p] = elements(p, comm.rank) * sizeof *in;
        send_offset[p] = sent * sizeof *out;
        recv_offset[p] = received * sizeof *in;
        for (size_t i = 0; i < elements(comm.rank, p); i++)
            out[sent++] = comm.rank * 10000 + p * 100 + (int)i;
        received += elements(p, comm.rank);
    }
    in[received] = -1;
    struct hrt_step step[2 * MOST];
    struct hrt_steps steps = {.step = step, .room = 2 * MOST};
    hrt_net_exchange_on(&comm, HRT_LANE_ROWS, &steps, in, out,
                        &(struct hrt_exchange){send_bytes, send_offset, recv_bytes, recv_offset},
                        "a test");
    const int *at = in;
    for (int p = 0; p < comm.size; p++) {
        for (size_t i = 0; i < elements(p, comm.rank); i++)
            CHECK(*at++ == p * 10000 + comm.rank * 100 + (int)i);
    }
    CHECK(*at == -1);
}

// ---- properties

// Ranks 0 and 1 exchange a number on the lane of counts.
static void exchange_number(void) {
    const int peer = 1 - comm.rank, out = comm.rank;
    int in = -1;
    struct hrt_step step[2];
    struct hrt_steps steps = {.step = step, .room = 2};
    hrt_net_steps_receive(&steps, peer, &in, sizeof in, -1);
    hrt_net_steps_send(&steps, peer, &out, sizeof out, -1);
    hrt_net_lane_join(&comm, hrt_net_lane_submit(&comm, HRT_LANE_COUNTS, &steps), "a number");
    CHECK(in == peer);
}

// Rank 1 has not come to a transfer: rank 0 hands MPI a window of it, no more, and counts pass.
static void nobody_is_sent_more_than_a_window(void **state) {
    (void)state;
    const size_t bytes = 64u << 20, window = 4u << 20; // Inside a node.
    if (comm.size == 1) return;
    if (comm.rank < 2) {
        char *data = malloc(bytes);
        struct hrt_step step;
        struct hrt_steps steps = {.step = &step, .room = 1};
        struct hrt_mark mark;
        if (comm.rank == 0) {
            memset(data, 7, bytes);
            hrt_net_steps_send(&steps, 1, data, bytes, -1);
            mark = hrt_net_lane_submit(&comm, HRT_LANE_GATHER, &steps);
        }
        for (int i = 0; i < 10; i++) exchange_number();
        rest(polls() ? 0 : 100);
        exchange_number();
        CHECK(comm.rank != 0 || (!hrt_net_lane_reached(&comm, mark) && step.posted <= window));
        exchange_number();
        if (comm.rank == 1) {
            hrt_net_steps_receive(&steps, 0, data, bytes, -1);
            mark = hrt_net_lane_submit(&comm, HRT_LANE_GATHER, &steps);
        }
        hrt_net_lane_join(&comm, mark, "a test");
        for (size_t i = 0; i < bytes; i += 1000) CHECK(data[i] == 7);
        free(data);
    }
    hrt_net_comm_barrier(&comm);
}

static atomic_bool adds, went_on, waited;

// Takes until the caller has done what it can do meanwhile.
static void add_slowly(const struct hrt_step *step) {
    atomic_store(&adds, true);
    for (int i = 0; i < 500 && !atomic_load(&went_on); i++) rest(10);
    atomic_store(&waited, atomic_load(&went_on));
    hrt_net_step_run(step);
}

// While the helper adds, the caller submits to this lane and to others, asks, and exchanges counts.
static void adds_hold_up_nobody_who_computes(void **state) {
    (void)state;
    if (comm.size == 1 || polls()) return;
    if (comm.rank < 2) {
        double sum = 1, term = 2;
        struct hrt_step step = {.kind = HRT_ADD,
                                .type = HRT_DOUBLE,
                                .after = {-1, -1},
                                .to = &sum,
                                .from = &term,
                                .bytes = sizeof sum};
        struct hrt_steps steps = {.step = &step, .count = 1, .room = 1}, more = {.room = 1};
        struct hrt_step copy = step;
        more.step = &copy;
        more.count = 1;
        comm.run = add_slowly;
        atomic_store(&went_on, false);
        atomic_store(&adds, false);
        const struct hrt_mark first = hrt_net_lane_submit(&comm, HRT_LANE_REDUCE, &steps);
        while (!atomic_load(&adds)) rest(1);
        const struct hrt_mark second = hrt_net_lane_submit(&comm, HRT_LANE_REDUCE, &more);
        CHECK(!hrt_net_lane_reached(&comm, first) && !hrt_net_lane_reached(&comm, second));
        exchange_number();
        atomic_store(&went_on, true);
        hrt_net_lane_join(&comm, second, "adds");
        CHECK(atomic_load(&waited) && sum == 5);
        comm.run = hrt_net_step_run;
    }
    hrt_net_comm_barrier(&comm);
}

// A list that goes on three times; lists submitted after it come after it.
struct counting {
    struct hrt_steps steps;
    struct hrt_step step[2];
    int out, in, rounds;
};

static bool count_on(struct hrt_steps *steps) {
    struct counting *counting = (struct counting *)steps;
    if (counting->rounds > 0) CHECK(counting->in == 10 * counting->rounds + rank_before());
    if (counting->rounds++ == 3) return false;
    hrt_net_steps_clear(steps);
    counting->out = 10 * counting->rounds + comm.rank;
    hrt_net_steps_send(steps, next_rank(), &counting->out, sizeof counting->out, -1);
    hrt_net_steps_receive(steps, rank_before(), &counting->in, sizeof counting->in, -1);
    return true;
}

static void lists_go_on_before_those_behind_them(void **state) {
    (void)state;
    if (comm.size == 1) return;
    struct counting first = {.steps = {.room = 2, .next = count_on}}, second = first;
    first.steps.step = first.step;
    second.steps.step = second.step;
    hrt_net_lane_submit(&comm, HRT_LANE_DENSE, &first.steps);
    hrt_net_lane_join(&comm, hrt_net_lane_submit(&comm, HRT_LANE_DENSE, &second.steps), "counting");
    CHECK(first.rounds == 4 && second.rounds == 4);
}

// Blocks of all ranks, in every grid that they form, some times in a row.
static void blocks_of_all_are_gathered(void **state) {
    enum { AGAIN = 20, ROOM = 64, BLOCK = 3000 };
    static int32_t blocks[ROOM / 2][BLOCK];
    struct hrt_step step[ROOM];
    struct hrt_steps steps = {.step = step, .room = ROOM};
    (void)state;
    CHECK(2 * comm.size <= ROOM);
    for (int again = 0; again < AGAIN * comm.size; again++) {
        const int32_t inside = again % comm.size + 1;
        if (comm.size % inside) continue;
        const struct hpl_grid grid = {inside, comm.size / inside};
        int32_t *own = blocks[hrt_net_gathered_at(&grid, comm.rank, comm.rank)];
        for (int i = 0; i < BLOCK; i++) own[i] = again + 1000 * comm.rank + i;
        hrt_net_steps_all_gather(&steps, &grid, comm.rank, blocks, sizeof *blocks);
        hrt_net_lane_join(&comm, hrt_net_lane_submit(&comm, HRT_LANE_COUNTS, &steps), "blocks");
        for (int r = 0; r < comm.size; r++) {
            const int32_t *block = blocks[hrt_net_gathered_at(&grid, comm.rank, r)];
            for (int i = 0; i < BLOCK; i++) CHECK(block[i] == again + 1000 * r + i);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_are_waited_for_in_any_order),
        cmocka_unit_test(lists_finish_behind_the_caller),
        cmocka_unit_test(messages_of_any_length_arrive_in_order),
        cmocka_unit_test(exchange_takes_uneven_parts),
        cmocka_unit_test(nobody_is_sent_more_than_a_window),
        cmocka_unit_test(adds_hold_up_nobody_who_computes),
        cmocka_unit_test(lists_go_on_before_those_behind_them),
        cmocka_unit_test(blocks_of_all_are_gathered),
    };
    ranks_open(&comm, NULL);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    hrt_net_comm_close(&comm);
    return failed;
}
