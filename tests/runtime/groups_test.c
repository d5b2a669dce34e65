// Unit test of groups of messages (net/launch.h): lists of real schedules and of new owners, cut into groups as
// executors of devices cut them, on all ranks of a run. Both ranks of a message have it in the same group; and
// hosts that are held in a group until all its ranks are connected, as NCCL holds them (tests/simt/connect.h),
// come to the end of their lists.
//
// `groups_test COUNT` plays COUNT random schedules (default 1,000).
#include "runtime/net/launch.h"

#include "runtime/experts/paths.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/policy.h"
#include "runtime/plan/schedule.h"
#include "runtime/plan/slots.h"
#include "tests/plan/plan_case.h"
#include "tests/simt/connect.h"

enum {
    RANKS = 16,
    EXPERTS = 24,
    SEGMENTS = 8,
    HOLDERS = EXPERTS * RANKS,
    TRANSFERS = HOLDERS * SEGMENTS,
    STEPS = 3 * TRANSFERS,
    MESSAGES = 2 * TRANSFERS,
    CHUNKS = 64,
};

static int32_t cases = 1000;

// A message, as one of its ranks sees it.
struct message {
    bool sends;
    int32_t peer, group, round;
    size_t bytes;
};

// The requests of a rank to its device.
struct asked {
    const struct hrt_steps *steps;
    bool done[STEPS];
    struct message message[MESSAGES];
    int32_t step[MESSAGES];          // Each message's, in its list.
    int32_t messages, groups, first; // The last group's first message.
    int32_t before;                  // Added to rounds: of the lists before this one.
    bool open;
};

static struct asked asked[RANKS];

// ---- cutting

static bool waits(const struct asked *a, const struct hrt_step *step) {
    for (int i = 0; i < 2; i++) {
        if (step->after[i] >= 0 && !a->done[step->after[i]]) return true;
    }
    return false;
}

static void run(void *context, const struct hrt_step *step) {
    struct asked *a = context;
    assert_false(a->open || waits(a, step));
    a->done[step - a->steps->step] = true;
}

static void begin(void *context) {
    struct asked *a = context;
    assert_false(a->open);
    a->open = true;
    a->first = a->messages;
}

static void post(void *context, const struct hrt_step *step) {
    struct asked *a = context;
    assert_true(a->open && a->messages < MESSAGES);
    assert_false(waits(a, step)); // For nothing of this group either: all of it is done at once.
    a->step[a->messages] = (int32_t)(step - a->steps->step);
    a->message[a->messages++] = (struct message){step->kind == HRT_SEND, step->peer, a->groups,
                                                 a->before + step->round, step->bytes};
}

static void end(void *context) {
    struct asked *a = context;
    assert_true(a->open && a->messages > a->first);
    a->open = false;
    a->groups++;
    for (int32_t i = a->first; i < a->messages; i++) a->done[a->step[i]] = true;
}

// One list of a rank; the ranks' other lists on the lane come before it.
static void cut(int32_t rank, struct hrt_steps *steps, int32_t before) {
    struct asked *a = &asked[rank];
    const struct hrt_launch launch = {a, run, begin, post, end};
    memset(a->done, 0, sizeof a->done);
    a->steps = steps;
    a->before = before;
    hrt_net_launch_steps(steps, &launch);
    for (int32_t i = 0; i < steps->count; i++) assert_true(a->done[i]);
}

static void begin_lane(int32_t ranks) {
    for (int32_t r = 0; r < ranks; r++) asked[r].messages = asked[r].groups = 0;
}

// ---- what has to hold

// The next message of `rank` with `peer`, in a direction, from *at on; NULL: there is none.
static const struct message *next_message(int32_t rank, int32_t peer, bool sends, int32_t *at) {
    const struct asked *a = &asked[rank];
    for (; *at < a->messages; ++*at) {
        const struct message *m = &a->message[*at];
        if (m->peer == peer && m->sends == sends) return &a->message[(*at)++];
    }
    return NULL;
}

// Rounds ascend from group to group, and are the same on both sides: so groups are.
static void check_match(int32_t ranks) {
    for (int32_t r = 0; r < ranks; r++) {
        for (int32_t i = 1; i < asked[r].messages; i++) {
            const struct message *m = &asked[r].message[i];
            assert_true(m[0].group == m[-1].group ? m[0].round == m[-1].round
                                                  : m[0].round > m[-1].round);
        }
        for (int32_t to = 0; to < ranks; to++) {
            int32_t here = 0, there = 0;
            const struct message *sent, *received;
            do {
                sent = next_message(r, to, true, &here);
                received = next_message(to, r, false, &there);
                assert_true((sent == NULL) == (received == NULL));
                assert_true(!sent ||
                            (sent->bytes == received->bytes && sent->round == received->round));
            } while (sent);
        }
    }
}

// The events of hosts on a communicator that has connected nobody yet, in all groups.
struct host {
    struct connect_event event[CONNECT_EVENTS * RANKS * RANKS];
    int count, at;
};

static struct host host[RANKS];

static void list_events(int32_t rank, int32_t ranks) {
    bool known[2][RANKS] = {{false}};
    host[rank] = (struct host){.count = 0};
    for (int32_t g = 0, i = 0; g < asked[rank].groups; g++) {
        bool fresh[2][RANKS] = {{false}};
        for (; i < asked[rank].messages && asked[rank].message[i].group == g; i++) {
            const struct message *m = &asked[rank].message[i];
            fresh[m->sends][m->peer] = !known[m->sends][m->peer];
        }
        host[rank].count += connect_events(rank, ranks, fresh[true], fresh[false],
                                           &host[rank].event[host[rank].count]);
        for (int32_t r = 0; r < ranks; r++) {
            known[true][r] = known[true][r] || fresh[true][r];
            known[false][r] = known[false][r] || fresh[false][r];
        }
    }
}

// Words from host to host that nobody has waited for yet.
static int words[RANKS][RANKS][CONNECT_TAGS][CONNECT_EVENTS * RANKS];
static int said[RANKS][RANKS][CONNECT_TAGS], heard[RANKS][RANKS][CONNECT_TAGS];

// Whether a host can go on. `differ` counts connections that its two ranks have in other groups.
static bool go_on(int32_t rank, int *differ) {
    struct host *h = &host[rank];
    if (h->at == h->count) return false;
    const struct connect_event *e = &h->event[h->at];
    if (e->waits) {
        int *at = &heard[e->peer][rank][e->tag];
        if (*at == said[e->peer][rank][e->tag]) return false;
        *differ += words[e->peer][rank][e->tag][(*at)++] != e->channels;
    } else {
        words[rank][e->peer][e->tag][said[rank][e->peer][e->tag]++] = e->channels;
    }
    h->at++;
    return true;
}

// Hosts that do not come to the end.
static int connect_hosts(int32_t ranks, int *differ) {
    int held = 0;
    memset(said, 0, sizeof said);
    memset(heard, 0, sizeof heard);
    *differ = 0;
    for (int32_t r = 0; r < ranks; r++) list_events(r, ranks);
    for (bool moved = true; moved;) {
        moved = false;
        for (int32_t r = 0; r < ranks; r++) {
            while (go_on(r, differ)) moved = true;
        }
    }
    for (int32_t r = 0; r < ranks; r++) held += host[r].at < host[r].count;
    return held;
}

static void check_groups(int32_t ranks, const char *what, int32_t number) {
    int differ;
    check_match(ranks);
    const int held = connect_hosts(ranks, &differ);
    if (held || differ)
        fail_msg("%s %d: %d of %d hosts wait for ever, %d connections differ", what, number, held,
                 ranks, differ);
}

// ---- schedules

struct drawn {
    struct plan_case *c;
    struct hpl_plan plan; // With owners.
    int32_t first[EXPERTS + 1], holder[HOLDERS];
    struct hpl_transfer transfer[2][TRANSFERS];
    struct hpl_schedule gather, reduce;
};

static char buffer[EXPERTS * SEGMENTS]; // Nothing is read or written.

static char *place(const void *context, int32_t expert, int32_t piece, size_t *bytes) {
    (void)context;
    *bytes = (size_t)(1 + expert * 4 * SEGMENTS + piece); // Tells pieces apart.
    return buffer;
}

static void draw_topology(struct plan_case *c, uint64_t *state) {
    const int32_t nodes = case_number(state, 1, 4);
    const int32_t devices = case_number(state, nodes < 2 ? 2 : nodes, RANKS);
    const bool even = case_number(state, 0, 1);
    for (int32_t n = 0; n <= nodes; n++) c->first[n] = devices * n / nodes;
    for (int32_t n = 1; n < nodes && !even; n++)
        c->first[n] = case_number(state, c->first[n - 1] + 1, devices - nodes + n);
    for (int32_t n = 0; n < nodes; n++) {
        for (int32_t d = c->first[n]; d < c->first[n + 1]; d++) {
            c->node[d] = n;
            c->speed[d] = 1;
        }
    }
    c->topology = (struct hpl_topology){devices, nodes, c->first, c->node, c->speed};
}

// Experts, owners and loads, of which a few are heavy; memory for any call.
static void draw_problem(struct plan_case *c, uint64_t *state) {
    draw_topology(c, state);
    const int32_t devices = c->topology.devices, experts = case_number(state, 1, EXPERTS);
    for (int32_t e = 0; e < experts; e++) {
        const int32_t most = case_number(state, 0, 3) ? 60 : 4000;
        c->owner[e] = case_number(state, 0, 2) ? e % devices : case_number(state, 0, devices - 1);
        for (int32_t d = 0; d < devices; d++)
            c->rows[d * experts + e] = (uint32_t)case_number(state, most / 3, most);
    }
    c->loads = (struct hpl_loads){devices, experts, c->rows};
    c->plan = (struct hpl_plan){experts, HOLDERS, c->plan_first, c->plan_holder};
    c->problem = (struct hpl_problem){
        .topology = &c->topology,
        .experts = experts,
        .owner = c->owner,
        .loads = &c->loads,
        .budget = {.slots = case_number(state, 1, experts), .entries = experts},
        .costs = {1, 1, 500},
    };
    free(c->memory);
    const size_t bytes = hpl_work_bytes(experts, devices, c->topology.nodes, HOLDERS);
    c->memory = malloc(bytes);
    assert_non_null(c->memory);
    c->work = (struct hpl_work){.at = c->memory, .end = (unsigned char *)c->memory + bytes};
    assert_int_equal(hpl_problem_check(&c->problem), HPL_OK);
}

// Both schedules of a plan by the policy; false: it refuses the problem.
static bool draw_schedules(struct drawn *d, const struct hpl_policy *policy, uint64_t *state) {
    struct plan_case *c = d->c;
    draw_problem(c, state);
    if (hpl_place(policy, &c->problem, &c->plan, c->share, &c->work) != HPL_OK) return false;
    d->plan = (struct hpl_plan){c->problem.experts, HOLDERS, d->first, d->holder};
    assert_int_equal(hpl_plan_with_owners(&d->plan, &c->plan, c->owner), HPL_OK);
    d->gather = (struct hpl_schedule){.capacity = TRANSFERS, .transfer = d->transfer[0]};
    d->reduce = (struct hpl_schedule){.capacity = TRANSFERS, .transfer = d->transfer[1]};
    assert_int_equal(hpl_schedule_of(policy, &c->topology, c->owner, &d->plan,
                                     case_number(state, 1, SEGMENTS), &d->gather, &c->work),
                     HPL_OK);
    assert_int_equal(hpl_schedule_mirror(&d->gather, &d->reduce, &c->work), HPL_OK);
    return true;
}

// The lists of all ranks, cut. Returns the most groups that one has.
static int32_t cut_schedule(const struct drawn *d, const struct hpl_schedule *schedule, bool adds,
                            int32_t more) {
    static struct hrt_step step[STEPS];
    static int32_t brought[EXPERTS * (SEGMENTS + 2)];
    const int32_t ranks = d->c->topology.devices;
    int32_t most = 0;
    begin_lane(ranks);
    for (int32_t r = 0; r < ranks; r++) {
        struct hrt_steps steps = {.step = step, .room = STEPS, .on_device = true};
        const struct hrt_carry carry = {.schedule = schedule,
                                        .rank = r,
                                        .ranks = ranks,
                                        .experts = d->plan.experts,
                                        .pieces = schedule->segments + more,
                                        .adds = adds,
                                        .type = HRT_FLOAT,
                                        .place = place,
                                        .staging = buffer,
                                        .staged = SIZE_MAX,
                                        .brought = brought};
        hrt_net_steps_carry(&steps, &carry, NULL);
        cut(r, &steps, 0);
        if (asked[r].groups > most) most = asked[r].groups;
    }
    return most;
}

static void schedules_are_cut_alike_and_connect(void **state) {
    (void)state;
    static struct drawn d;
    uint64_t random = 7;
    int32_t relayed = 0, divided = 0, most = 0;
    d.c = case_new();
    for (int32_t i = 0, played = 0; played < cases; i++) {
        if (!draw_schedules(&d, &hpl_policies[i % hpl_policy_count], &random)) continue;
        const int32_t ranks = d.c->topology.devices;
        const int32_t there = cut_schedule(&d, &d.gather, false, case_number(&random, 0, 2));
        check_groups(ranks, "a gather", i);
        const int32_t back = cut_schedule(&d, &d.reduce, true, 0);
        check_groups(ranks, "a reduction", i);
        relayed += there > 1;
        divided += back > there;
        most = back > most ? back : most;
        played++;
    }
    print_message("%d schedules, %d with relays, %d whose sums take more rounds than there is room "
                  "for at a time; at most %d groups\n",
                  cases, relayed, divided, most);
    assert_true(cases < 1000 || (relayed > cases / 10 && divided > cases / 20));
    case_free(d.c);
}

// ---- exchanges

static void exchanges_are_one_group(void **state) {
    (void)state;
    static struct hrt_step step[2 * RANKS + 1];
    uint64_t random = 8;
    for (int32_t i = 0; i < 200; i++) {
        const int32_t ranks = case_number(&random, 2, RANKS);
        size_t bytes[RANKS][RANKS], received[RANKS], offset[RANKS] = {0};
        for (int32_t r = 0; r < ranks; r++) {
            for (int32_t to = 0; to < ranks; to++)
                bytes[r][to] = case_number(&random, 0, 1) ? (size_t)case_number(&random, 1, 99) : 0;
        }
        begin_lane(ranks);
        for (int32_t r = 0; r < ranks; r++) {
            const struct hrt_comm comm = {.rank = r, .size = ranks};
            struct hrt_steps steps = {.step = step, .room = 2 * RANKS + 1};
            for (int32_t from = 0; from < ranks; from++) received[from] = bytes[from][r];
            hrt_net_steps_exchange(&steps, &comm, buffer, buffer,
                                   &(struct hrt_exchange){bytes[r], offset, received, offset});
            cut(r, &steps, 0);
            assert_true(asked[r].groups <= 1);
        }
        check_groups(ranks, "an exchange", i);
    }
}

// ---- new owners

static void new_owners_move_in_the_same_batches(void **state) {
    (void)state;
    enum { BUFFERS = 3, AT_A_TIME = 2 };
    uint64_t random = 9;
    int32_t owner[CHUNKS], next[CHUNKS];
    int64_t order[CHUNKS];
    uint32_t scratch[RANKS];
    for (int32_t i = 0; i < 500; i++) {
        const int32_t ranks = case_number(&random, 2, RANKS), moving = case_number(&random, 1, 100);
        for (int32_t c = 0; c < CHUNKS; c++) {
            owner[c] = next[c] = case_number(&random, 0, ranks - 1);
            if (case_number(&random, 1, 100) <= moving)
                next[c] = case_number(&random, 0, ranks - 1);
        }
        const struct hrt_paths paths = {owner, next, CHUNKS, ranks};
        const int64_t count = hrt_experts_paths_order(&paths, order, scratch);
        bool seen[CHUNKS] = {false};
        int32_t batch = 0;
        begin_lane(ranks);
        for (int64_t at = 0, to; at < count; at = to, batch++) {
            to = hrt_experts_paths_batch(&paths, order, at, count, AT_A_TIME, scratch);
            assert_true(to > at && to <= count);
            for (int32_t r = 0; r < ranks; r++) {
                struct hrt_step step[BUFFERS * AT_A_TIME];
                struct hrt_steps steps = {.step = step, .room = BUFFERS * AT_A_TIME};
                for (int64_t k = at; k < to; k++) {
                    for (size_t b = 1; b <= BUFFERS; b++) {
                        const size_t bytes = (size_t)order[k] * BUFFERS + b;
                        if (owner[order[k]] == r)
                            hrt_net_steps_send(&steps, next[order[k]], buffer, bytes, -1);
                        if (next[order[k]] == r)
                            hrt_net_steps_receive(&steps, owner[order[k]], buffer, bytes, -1);
                    }
                }
                cut(r, &steps, batch);
            }
            for (int64_t k = at; k < to; k++) seen[order[k]] = true;
        }
        for (int32_t c = 0; c < CHUNKS; c++) assert_int_equal(seen[c], owner[c] != next[c]);
        check_groups(ranks, "new owners", i);
    }
}

// ---- the model itself

static void ask(int32_t rank, bool sends, int32_t peer, int32_t group) {
    struct asked *a = &asked[rank];
    a->message[a->messages++] = (struct message){sends, peer, group, group + 1, 4};
    a->groups = group + 1;
}

// Rank 0's chunk in two segments, each of which goes on from the rank that it reaches first. Groups of lists in
// the order of segments, each up to a message that waits: all three hosts are held.
static void groups_that_differ_hold_hosts(void **state) {
    (void)state;
    int differ;
    begin_lane(3);
    ask(0, true, 1, 0);
    ask(0, true, 2, 0);
    ask(1, false, 0, 0);
    ask(1, true, 2, 1);
    ask(1, false, 2, 1);
    ask(2, false, 1, 0);
    ask(2, false, 0, 1);
    ask(2, true, 1, 2);
    assert_int_equal(connect_hosts(3, &differ), 3);
}

// Two ranks that have the same two messages in one group and in two.
static void groups_that_differ_connect_otherwise(void **state) {
    (void)state;
    int differ;
    begin_lane(2);
    ask(0, true, 1, 0);
    ask(0, false, 1, 0);
    ask(1, false, 0, 0);
    ask(1, true, 0, 1);
    connect_hosts(2, &differ);
    assert_true(differ > 0);
}

int main(int argc, char **argv) {
    if (argc > 1) cases = atoi(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(schedules_are_cut_alike_and_connect),
        cmocka_unit_test(exchanges_are_one_group),
        cmocka_unit_test(new_owners_move_in_the_same_batches),
        cmocka_unit_test(groups_that_differ_hold_hosts),
        cmocka_unit_test(groups_that_differ_connect_otherwise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
