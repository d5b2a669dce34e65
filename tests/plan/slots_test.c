// No plan of any policy needs more slots than are announced, and announced bytes follow from slots.
#include "runtime/plan/slots.h"

#include <string.h>

#include "runtime/plan/policy.h"
#include "runtime/plan/schedule.h"
#include "tests/plan/plan_case.h"

static struct hpl_slots slots_of(const struct plan_case *c, const struct hpl_policy *policy) {
    int32_t owned[CASE_DEVICES] = {0}, most = 0;
    for (int32_t e = 0; e < c->problem.experts; e++) {
        if (++owned[c->problem.owner[e]] > most) most = owned[c->problem.owner[e]];
    }
    return hpl_slots_of(&(struct hpl_slots_request){.policy = policy,
                                                    .experts = c->problem.experts,
                                                    .devices = c->topology.devices,
                                                    .layers = 3,
                                                    .owned = most,
                                                    .slots = c->problem.budget.slots,
                                                    .param_bytes = 1000,
                                                    .grad_bytes = 2000});
}

// Copies on the device that it does not own. Periodic policies change owners, to any holder: there
// all copies count.
static int32_t replicas_on(const struct plan_case *c, const struct hpl_plan *plan, int32_t device,
                           bool all) {
    int32_t count = 0;
    for (int32_t e = 0; e < plan->experts; e++) {
        for (int32_t k = plan->first[e]; k < plan->first[e + 1]; k++)
            count += plan->holder[k] == device && (all || c->problem.owner[e] != device);
    }
    return count;
}

static void no_plan_needs_more_slots(void **state) {
    (void)state;
    struct plan_case *c = case_new();
    int32_t placed = 0;
    for (uint64_t i = 0; i < 300; i++) {
        case_draw(c, i);
        for (int32_t p = 0; p < hpl_policy_count; p++) {
            const struct hpl_policy *policy = &hpl_policies[p];
            const struct hpl_slots slots = slots_of(c, policy);
            if (hpl_place(policy, &c->problem, &c->plan, c->share, &c->work) != HPL_OK) continue;
            placed++;
            const bool moves = policy->when == HPL_WHEN_PERIODIC && slots.replicas > 0;
            assert_true(c->plan.first[c->plan.experts] <= slots.holders);
            for (int32_t d = 0; d < c->topology.devices; d++) {
                const int32_t replicas = replicas_on(c, &c->plan, d, moves);
                if (policy->replicas == HPL_REPLICAS_NONE) continue; // Its copies are owners.
                assert_true(replicas <= slots.replicas || c->topology.devices == 1);
            }
        }
    }
    assert_true(placed > 1000);
    case_free(c);
}

static void bytes_follow_from_slots(void **state) {
    (void)state;
    struct hpl_slots_request request = {.policy = hpl_policy_find("fssdp"),
                                        .experts = 64,
                                        .devices = 32,
                                        .layers = 12,
                                        .slots = 4,
                                        .param_bytes = 4718592,
                                        .grad_bytes = 9437184};
    struct hpl_slots slots = hpl_slots_of(&request);
    assert_int_equal(slots.replicas, 4);
    assert_int_equal(slots.holders, 64 + 32 * 4);
    assert_int_equal(slots.segments, 36);
    assert_int_equal(slots.params, 12 * 4 * 4718592);
    assert_int_equal(slots.grad_layers, 2);
    assert_int_equal(slots.grads, 2 * 4 * 9437184);
    assert_int_equal(slots.staging, HPL_STAGED * (9437184 / 36));
    request.for_step = true; // Every layer's gradients stay.
    assert_int_equal(hpl_slots_of(&request).grads, 12 * 4 * 9437184);
    assert_int_equal(hpl_slots_of(&request).params, 12 * 4 * 4718592);
    request.for_step = false;
    request.rematerialize = true;
    assert_int_equal(hpl_slots_of(&request).params, 4 * 4718592);
    request.layers = 1; // Nothing travels while another layer's gradients are added to.
    assert_int_equal(hpl_slots_of(&request).grads, 4 * 9437184);
    request.slots = 100; // More than there are experts.
    assert_int_equal(hpl_slots_of(&request).replicas, 64);
    request.slots = 0;
    slots = hpl_slots_of(&request);
    assert_int_equal(slots.params + slots.grads + slots.staging, 0);
    request.slots = 4;
    static const struct {
        int64_t bytes;
        int32_t segments;
    } cut[] = {{0, 1}, {16383, 1}, {32768, 2}, {65536, 4}, {1 << 20, 4}, {(1 << 20) + 1, 5}};
    for (size_t i = 0; i < sizeof cut / sizeof *cut; i++) {
        request.grad_bytes = cut[i].bytes;
        request.param_bytes = cut[i].bytes / 2;
        assert_int_equal(hpl_slots_of(&request).segments, cut[i].segments);
        request.grad_bytes = cut[i].bytes / 100; // As adapters have it.
        request.param_bytes = cut[i].bytes;
        assert_int_equal(hpl_slots_of(&request).segments, cut[i].segments);
    }
    request.grad_bytes = (int64_t)1 << 30;
    assert_int_equal(hpl_slots_of(&request).segments, HPL_SEGMENTS_MAX);
    request.devices = 1;
    assert_int_equal(hpl_slots_of(&request).replicas, 0);
}

static void replicas_pay_with_rows(void **state) {
    (void)state;
    // 100 rows of 8 bytes, four times, are as many bytes as 1,200 of parameters and 2,000 of gradient.
    assert_int_equal(hpl_paying_rows(1200, 2000, 8), 100);
    assert_int_equal(hpl_paying_rows(1200, 2001, 8), 101);
    assert_int_equal(hpl_paying_rows(0, 0, 8), 1);
    assert_int_equal(hpl_paying_rows((int64_t)1 << 40, 0, 1), HPL_ROWS_MAX);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_plan_needs_more_slots),
        cmocka_unit_test(bytes_follow_from_slots),
        cmocka_unit_test(replicas_pay_with_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
