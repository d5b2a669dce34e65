// Algorithm 2: every device owns at most its share of all chunks, light experts are spread, heavy
// ones stay where there is room.
#include "runtime/plan/reshard.h"
#include "tests/plan/plan_case.h"

enum { LAYERS = 6, CHUNKS = LAYERS * CASE_EXPERTS };

static void owners_stay_within_their_share(void **state) {
    (void)state;
    struct plan_case *c = case_new();
    int64_t rows[CHUNKS];
    int32_t present[CHUNKS], owner[CHUNKS], again[CHUNKS];
    for (int32_t i = 0; i < 500; i++) {
        uint64_t random = (uint64_t)i;
        case_draw(c, (uint64_t)i);
        const int32_t experts = c->problem.experts, devices = c->topology.devices;
        const int32_t layers = case_number(&random, 1, LAYERS);
        const int32_t overlap = case_number(&random, 0, experts);
        for (int32_t k = 0; k < layers * experts; k++) {
            rows[k] = case_number(&random, 0, 1000);
            present[k] = (int32_t)((int64_t)(k % experts) * devices / experts);
        }
        assert_int_equal(
            hpl_reshard(&c->topology, layers, experts, rows, overlap, present, owner, &c->work),
            HPL_OK);
        int32_t owned[CASE_DEVICES] = {0};
        for (int32_t k = 0; k < layers * experts; k++) {
            assert_true(owner[k] >= 0 && owner[k] < devices);
            owned[owner[k]]++;
        }
        for (int32_t d = 0; d < devices; d++) {
            assert_true(owned[d] <= (layers * experts + devices - 1) / devices);
        }
        memset(c->work.at, 0xa5, (size_t)(c->work.end - c->work.at));
        hpl_reshard(&c->topology, layers, experts, rows, overlap, present, again, &c->work);
        assert_memory_equal(owner, again, (size_t)(layers * experts) * sizeof *owner);
    }
    case_free(c);
}

// Two nodes of two devices, one layer of four experts: by hand.
static void light_experts_are_spread(void **state) {
    (void)state;
    static const int32_t first[] = {0, 2, 4}, node[] = {0, 0, 1, 1}, speed[] = {1, 1, 1, 1};
    const struct hpl_topology topology = {4, 2, first, node, speed};
    const int64_t rows[] = {100, 40, 30, 5};
    const int32_t present[] = {2, 2, 2, 2};
    int32_t owner[4];
    unsigned char memory[8192];
    struct hpl_work work = {memory, memory + sizeof memory};
    assert_int_equal(hpl_reshard(&topology, 1, 4, rows, 1, present, owner, &work), HPL_OK);
    // Light: 40 to node 0, device 0; 30 to node 1, device 2; 5 to node 1 (30 < 40), device 3.
    assert_int_equal(owner[1], 0);
    assert_int_equal(owner[2], 2);
    assert_int_equal(owner[3], 3);
    assert_int_equal(owner[0], 1); // Device 2 and its node are full.
    const int32_t bad[] = {0, 1, 2, 4};
    assert_int_equal(hpl_reshard(&topology, 1, 4, rows, 1, bad, owner, &work), HPL_BAD_ARGUMENT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(owners_stay_within_their_share),
        cmocka_unit_test(light_experts_are_spread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
