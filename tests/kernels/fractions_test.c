// fractions against a count, for groups of all sizes and over the iterations of a step.
#include "kernels/fractions/fractions.h"

#include "tests/kernels/kernel_case.h"

enum { sequences = 7, tokens = 5, topk = 2, experts = 6, picks = tokens * topk };

// The fraction of `expert` in the sequences from `first` to before `end`.
static wide fraction(const int32_t *ids, int64_t first, int64_t end, int32_t expert) {
    int64_t count = 0;
    for (int64_t p = first * picks; p < end * picks; p++) count += ids[p] == expert;
    return (wide)count / ((end - first) * picks);
}

static void check(const real *out, int64_t s, const int32_t *ids, int64_t first, int64_t end) {
    for (int32_t e = 0; e < experts; e++) {
        const wide want = fraction(ids, first, end, e);
        assert_near("fractions", s * experts + e, out[s * experts + e], want, EPSILON);
    }
}

static void groups_are_counted_alone(void **state) {
    (void)state;
    const int32_t *ids = test_ints(sequences * picks, experts, 1);
    for (int64_t group = 0; group <= sequences + 1; group++) {
        real *out = test_nans(sequences * experts);
        HK(fractions, out, NULL, ids, sequences, tokens, topk, experts, group, 0);
        for (int64_t s = 0; s < sequences; s++) {
            const int64_t first = group ? s / group * group : 0;
            const int64_t end = group && first + group < sequences ? first + group : sequences;
            check(out, s, ids, first, end);
        }
    }
    test_free_all();
}

// Group by group, and iteration by iteration: f is that of all that came before, too.
static void a_step_is_counted_on(void **state) {
    (void)state;
    enum { iterations = 3 };
    const int32_t *ids = test_ints(iterations * sequences * picks, experts, 2);
    for (int64_t group = 1; group <= sequences; group += 3) {
        int32_t *running = test_ints(experts, 1, 0);
        for (int e = 0; e < experts; e++) running[e] = -99; // An earlier step's.
        for (int64_t i = 0; i < iterations; i++) {
            real *out = test_nans(sequences * experts);
            HK(fractions, out, running, ids + i * sequences * picks, sequences, tokens, topk,
               experts, group, i + 1);
            for (int64_t s = 0; s < sequences; s++) {
                const int64_t last = (s / group + 1) * group;
                check(out, s, ids, 0, i * sequences + (last < sequences ? last : sequences));
            }
        }
    }
    test_free_all();
}

// More top-k choices and experts than a device's block has threads.
static void many_picks_of_many_experts_are_counted(void **state) {
    (void)state;
    enum { long_sequence = 350, all = 2 * long_sequence * topk, many = 600 };
    const int32_t *ids = test_ints(all, many, 3);
    real *out = test_nans(2 * many);
    HK(fractions, out, NULL, ids, 2, long_sequence, topk, many, 0, 0);
    for (int32_t e = 0; e < 2 * many; e++) {
        int64_t count = 0;
        for (int p = 0; p < all; p++) count += ids[p] == e % many;
        assert_near("fractions", e, out[e], (wide)count / all, EPSILON);
    }
    test_free_all();
}

static void outside_of_steps_nothing_is_kept(void **state) {
    (void)state;
    const int32_t *ids = test_ints(sequences * picks, experts, 1);
    int32_t *running = test_ints(experts, 1, 0);
    for (int e = 0; e < experts; e++) running[e] = 1000;
    real *out = test_nans(sequences * experts);
    HK(fractions, out, running, ids, sequences, tokens, topk, experts, 0, 0);
    for (int64_t s = 0; s < sequences; s++) check(out, s, ids, 0, sequences);
    for (int e = 0; e < experts; e++) assert_int_equal(running[e], 1000);
    test_free_all();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(groups_are_counted_alone),
                                       cmocka_unit_test(a_step_is_counted_on),
                                       cmocka_unit_test(many_picks_of_many_experts_are_counted),
                                       cmocka_unit_test(outside_of_steps_nothing_is_kept)};
    return RUN_KERNEL_TESTS(tests);
}
