// Transfer schedules: random placements and topologies, each proven by the checker, compared with
// the lower bounds; schedules with one mistake, each caught.
//
// `schedule_test COUNT` proves COUNT random schedules (default 100,000).
#include "tests/plan/check.h"
#include "tests/plan/plan_case.h"

static int32_t cases = 100000;

enum { WAYS = 8, SEGMENTS_MOST = 16, TRANSFERS = CASE_HOLDERS * SEGMENTS_MOST };

struct schedules {
    struct plan_case *c;
    struct hpl_schedule gather, reduce;
    int64_t sent[CASE_DEVICES], received[CASE_DEVICES];
    struct hpl_traffic traffic;
};

static void take(struct schedules *s) {
    memset(s, 0, sizeof *s);
    s->c = case_new();
    s->gather.capacity = s->reduce.capacity = TRANSFERS;
    s->gather.transfer = malloc(TRANSFERS * sizeof *s->gather.transfer);
    s->reduce.transfer = malloc(TRANSFERS * sizeof *s->reduce.transfer);
    assert_non_null(s->gather.transfer);
    assert_non_null(s->reduce.transfer);
    s->traffic = (struct hpl_traffic){.sent = s->sent, .received = s->received};
}

static void drop(struct schedules *s) {
    case_free(s->c);
    free(s->gather.transfer);
    free(s->reduce.transfer);
}

// A random plan: the owners, and replicas with a probability of its own for every expert.
static void draw_plan(struct plan_case *c, uint64_t *state) {
    int32_t holders = 0;
    for (int32_t e = 0; e < c->problem.experts; e++) {
        const int32_t percent = case_number(state, 0, 3) == 0 ? 0 : case_number(state, 0, 100);
        c->plan_first[e] = holders;
        for (int32_t d = 0; d < c->topology.devices; d++) {
            if (c->owner[e] == d || case_number(state, 1, 100) <= percent) {
                c->plan_holder[holders++] = d;
            }
        }
    }
    c->plan_first[c->problem.experts] = holders;
}

static void draw(struct schedules *s, uint64_t seed, int32_t segments) {
    uint64_t state = seed * 77;
    struct plan_case *c = s->c;
    case_draw_topology(c, 20, true, &state);
    const int32_t devices = c->topology.devices, experts = case_number(&state, 1, 12);
    c->problem =
        (struct hpl_problem){.topology = &c->topology, .experts = experts, .owner = c->owner};
    for (int32_t e = 0; e < experts; e++) c->owner[e] = case_number(&state, 0, devices - 1);
    c->plan = (struct hpl_plan){experts, CASE_HOLDERS, c->plan_first, c->plan_holder};
    draw_plan(c, &state);
    if (!c->memory) {
        const size_t bytes = hpl_work_bytes(CASE_EXPERTS, CASE_DEVICES, CASE_DEVICES, CASE_HOLDERS);
        c->memory = malloc(bytes);
        assert_non_null(c->memory);
        c->work = (struct hpl_work){.at = c->memory, .end = (unsigned char *)c->memory + bytes};
    }
    assert_int_equal(
        hpl_schedule_gather(&c->topology, c->owner, &c->plan, segments, &s->gather, &c->work),
        HPL_OK);
    assert_int_equal(hpl_schedule_mirror(&s->gather, &s->reduce, &c->work), HPL_OK);
}

static enum hpl_fault check_gather(struct schedules *s) {
    struct plan_case *c = s->c;
    return hpl_check_gather(&c->topology, c->owner, &c->plan, &s->gather, &s->traffic, &c->work);
}

static enum hpl_fault check_reduce(struct schedules *s) {
    struct plan_case *c = s->c;
    return hpl_check_reduce(&c->topology, c->owner, &c->plan, &s->reduce, &s->traffic, &c->work);
}

static int64_t busiest(const struct schedules *s) {
    int64_t most = 0;
    for (int32_t d = 0; d < s->c->topology.devices; d++) {
        if (s->sent[d] > most) most = s->sent[d];
        if (s->received[d] > most) most = s->received[d];
    }
    return most;
}

// Chunks that must enter nodes, counted without the planner.
static int64_t least_cross(const struct plan_case *c) {
    int64_t sum = 0;
    for (int32_t e = 0; e < c->problem.experts; e++) {
        for (int32_t n = 0; n < c->topology.nodes; n++) {
            bool present = n == c->node[c->owner[e]];
            if (present) continue;
            for (int32_t d = c->first[n]; d < c->first[n + 1]; d++) {
                present = present || case_holds(&c->plan, e, d);
            }
            sum += present;
        }
    }
    return sum;
}

static void random_schedules_are_sound_and_near_the_bound(void **state) {
    (void)state;
    struct schedules s;
    take(&s);
    double worst = 1;
    for (int32_t i = 0; i < cases; i++) {
        const int32_t segments = i % 2 ? 8 : SEGMENTS_MOST;
        draw(&s, (uint64_t)i, segments);
        struct plan_case *c = s.c;
        enum hpl_fault fault = check_reduce(&s);
        const int64_t reduce_cross = s.traffic.cross;
        if (fault == HPL_SOUND) fault = check_gather(&s);
        if (fault != HPL_SOUND) fail_msg("case %d: %s", i, hpl_fault_text(fault));
        struct hpl_schedule_bound bound;
        assert_int_equal(hpl_schedule_bound(&c->topology, c->owner, &c->plan, &bound, &c->work),
                         HPL_OK);
        assert_int_equal(s.traffic.cross, least_cross(c) * segments);
        assert_int_equal(reduce_cross, s.traffic.cross);
        assert_int_equal(bound.cross_chunks, least_cross(c));
        if (bound.busiest == 0) {
            assert_int_equal(s.gather.count, 0);
            continue;
        }
        const double ratio =
            (double)busiest(&s) / segments * HPL_BOUND_PARTS / (double)bound.busiest;
        if (ratio > worst) worst = ratio;
        if (ratio > 1.25) fail_msg("case %d: busiest device at %.3f of its bound", i, ratio);
    }
    print_message("%d schedules sound; busiest device at most %.4f times its bound\n", cases,
                  worst);
    drop(&s);
}

// The bound again, by trying every set of devices: pieces that only they may send, over how many they are.
static double bound_by_sets(const struct plan_case *c) {
    const int32_t devices = c->topology.devices;
    double best = 0;
    for (int32_t d = 0; d < devices; d++) {
        int32_t receives = 0;
        for (int32_t e = 0; e < c->problem.experts; e++) {
            receives += c->owner[e] != d && case_holds(&c->plan, e, d);
        }
        if (receives > best) best = receives;
    }
    for (int32_t set = 1; set < 1 << devices; set++) {
        int32_t must = 0;
        for (int32_t e = 0; e < c->problem.experts; e++) {
            bool all_inside = true;
            int32_t nodes = 0, home_inside = 1, home_size = 0;
            const int32_t home = c->node[c->owner[e]];
            for (int32_t n = 0; n < c->topology.nodes; n++) {
                int32_t size = 0;
                bool inside = true;
                for (int32_t d = c->first[n]; d < c->first[n + 1]; d++) {
                    if (!case_holds(&c->plan, e, d)) continue;
                    size++;
                    inside = inside && (set >> d & 1);
                }
                if (size == 0) continue;
                nodes++;
                all_inside = all_inside && inside;
                if (n == home)
                    home_inside = inside, home_size = size;
                else if (inside)
                    must += size - 1;
            }
            const bool owner_inside = set >> c->owner[e] & 1;
            if (home_size > 1) must += home_inside ? home_size - 1 : owner_inside;
            if (nodes > 1) must += all_inside ? nodes - 1 : home_inside;
        }
        const double level = (double)must / __builtin_popcount((unsigned)set);
        if (level > best) best = level;
    }
    return best;
}

// Without forwarding: sound both ways, all of it from owners, and a chunk for each replica.
static void direct_schedules_come_from_owners(void **state) {
    (void)state;
    const struct hpl_policy *policy = hpl_policy_find("llep");
    struct schedules s;
    take(&s);
    for (int32_t i = 0; i < cases / 100; i++) {
        draw(&s, (uint64_t)i, 4);
        struct plan_case *c = s.c;
        assert_int_equal(
            hpl_schedule_of(policy, &c->topology, c->owner, &c->plan, 4, &s.gather, &c->work),
            HPL_OK);
        assert_int_equal(hpl_schedule_mirror(&s.gather, &s.reduce, &c->work), HPL_OK);
        assert_int_equal(check_gather(&s), HPL_SOUND);
        assert_int_equal(check_reduce(&s), HPL_SOUND);
        assert_int_equal(s.gather.count, 4 * (c->plan.first[c->plan.experts] - c->plan.experts));
        for (int32_t k = 0; k < s.gather.count; k++)
            assert_int_equal(s.gather.transfer[k].from, c->owner[s.gather.transfer[k].expert]);
        if (s.gather.count == 0) continue;
        s.gather.capacity = s.gather.count - 1;
        assert_int_equal(
            hpl_schedule_of(policy, &c->topology, c->owner, &c->plan, 4, &s.gather, &c->work),
            HPL_NO_ROOM);
        s.gather.capacity = TRANSFERS;
    }
    drop(&s);
}

static void the_bound_equals_that_of_all_sets(void **state) {
    (void)state;
    struct schedules s;
    take(&s);
    int32_t compared = 0;
    for (int32_t i = 0; compared < 500; i++) {
        draw(&s, 1000000 + (uint64_t)i, 1);
        struct plan_case *c = s.c;
        if (c->topology.devices > 9) continue;
        struct hpl_schedule_bound bound;
        hpl_schedule_bound(&c->topology, c->owner, &c->plan, &bound, &c->work);
        const double wanted = HPL_BOUND_PARTS * bound_by_sets(c);
        if (!((double)bound.busiest <= wanted + 0.5 && (double)bound.busiest >= wanted - 9)) {
            fail_msg("case %d: bound %lld, by sets %.2f", i, (long long)bound.busiest, wanted);
        }
        compared++;
    }
    drop(&s);
}

// Eight ways to spoil a list. Returns false where the list offers no chance to.
static bool spoil(struct hpl_schedule *list, int32_t kind, bool mirrored, int32_t devices,
                  uint64_t *state) {
    int32_t *end; // The end of a transfer of which each holder has exactly one.
    if (list->count == 0) return false;
    const int32_t i = case_number(state, 0, list->count - 1);
    struct hpl_transfer *t = &list->transfer[i];
    switch (kind) {
    case 0: // Lost.
        memmove(t, t + 1, (size_t)(--list->count - i) * sizeof *t);
        return true;
    case 1: // Twice.
        list->transfer[list->count++] = *t;
        return true;
    case 2: // To another device; in a reduction, from another.
        if (devices < 2) return false;
        end = mirrored ? &t->from : &t->to;
        *end = (*end + case_number(state, 1, devices - 1)) % devices;
        return true;
    case 3: // A transfer of another segment.
        if (list->segments < 2) return false;
        t->segment = (t->segment + case_number(state, 1, list->segments - 1)) % list->segments;
        return true;
    case 4: { // The wrong way round.
        const int32_t from = t->from;
        t->from = t->to;
        t->to = from;
        return true;
    }
    case 5: // In a later round than those behind it.
        if (i + 1 == list->count) return false;
        t->round = list->transfer[list->count - 1].round + 1;
        return true;
    case 6: // All at once.
        if (list->transfer[list->count - 1].round == 1) return false;
        for (int32_t k = 0; k < list->count; k++) list->transfer[k].round = 1;
        return true;
    default: // Before what it depends on.
        for (int32_t k = i - 1; k >= 0; k--) {
            const struct hpl_transfer other = list->transfer[k];
            const bool linked =
                other.expert == t->expert && other.segment == t->segment && other.to == t->from;
            if (!linked) continue;
            list->transfer[k] = *t;
            *t = other;
            return true;
        }
        return false;
    }
}

static void spoilt_schedules_are_caught(void **state) {
    (void)state;
    struct schedules s;
    take(&s);
    int32_t tried[2][WAYS] = {{0}};
    for (int32_t i = 0; i < 16000; i++) {
        const int32_t kind = i % WAYS, mirrored = i / WAYS % 2;
        uint64_t random = (uint64_t)i + 99;
        draw(&s, 5000000 + (uint64_t)i, 4);
        struct hpl_schedule *list = mirrored ? &s.reduce : &s.gather;
        if (!spoil(list, kind, mirrored, s.c->topology.devices, &random)) continue;
        const enum hpl_fault fault = mirrored ? check_reduce(&s) : check_gather(&s);
        if (fault == HPL_SOUND) fail_msg("case %d: spoilt in way %d, but passed", i, kind);
        tried[mirrored][kind]++;
    }
    for (int32_t kind = 0; kind < WAYS; kind++) {
        assert_true(tried[0][kind] > 100);
        assert_true(tried[1][kind] > 100);
    }
    drop(&s);
}

static void nothing_to_move_is_an_empty_schedule(void **state) {
    (void)state;
    struct schedules s;
    take(&s);
    draw(&s, 3, 1);
    for (int32_t e = 0; e <= s.c->problem.experts; e++) s.c->plan_first[e] = e;
    memcpy(s.c->plan_holder, s.c->owner, sizeof s.c->owner);
    struct plan_case *c = s.c;
    assert_int_equal(hpl_schedule_gather(&c->topology, c->owner, &c->plan, 8, &s.gather, &c->work),
                     HPL_OK);
    assert_int_equal(s.gather.count, 0);
    assert_int_equal(check_gather(&s), HPL_SOUND);
    drop(&s);
}

static void bad_arguments_are_refused(void **state) {
    (void)state;
    struct schedules s;
    take(&s);
    draw(&s, 4, 2);
    struct plan_case *c = s.c;
    assert_int_equal(hpl_schedule_gather(&c->topology, c->owner, &c->plan, 0, &s.gather, &c->work),
                     HPL_BAD_ARGUMENT);
    s.gather.capacity = s.gather.count - 1;
    assert_true(s.gather.capacity >= 0);
    assert_int_equal(hpl_schedule_gather(&c->topology, c->owner, &c->plan, 2, &s.gather, &c->work),
                     HPL_NO_ROOM);
    c->owner[0] = c->topology.devices;
    assert_int_equal(hpl_schedule_gather(&c->topology, c->owner, &c->plan, 2, &s.gather, &c->work),
                     HPL_BAD_ARGUMENT);
    drop(&s);
}

int main(int argc, char **argv) {
    if (argc > 1) cases = atoi(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_schedules_are_sound_and_near_the_bound),
        cmocka_unit_test(direct_schedules_come_from_owners),
        cmocka_unit_test(the_bound_equals_that_of_all_sets),
        cmocka_unit_test(spoilt_schedules_are_caught),
        cmocka_unit_test(nothing_to_move_is_an_empty_schedule),
        cmocka_unit_test(bad_arguments_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
