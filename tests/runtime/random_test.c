// Unit test of runtime/base/random.
#include "runtime/base/random.h"

#include <math.h>

#include "kernels/noise/philox.h"
#include "tests/runtime/support/case.h"

// The known-answer vectors of the Random123 distribution (tests/kat_vectors, philox4x32 10).
static void philox_gives_the_known_answers(void **state) {
    (void)state;
    static const struct {
        struct hk_philox counter;
        uint32_t key[2];
        struct hk_philox expected;
    } known[] = {
        {{{0, 0, 0, 0}}, {0, 0}, {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}}},
        {{{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}},
         {0xffffffff, 0xffffffff},
         {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}}},
        {{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}},
         {0xa4093822, 0x299f31d0},
         {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const struct hk_philox got =
            hk_philox4x32(known[i].counter, known[i].key[0], known[i].key[1]);
        assert_memory_equal(&got, &known[i].expected, sizeof got);
    }
}

static void seed_purpose_object_and_index_all_matter(void **state) {
    (void)state;
    const struct hrt_stream stream = hrt_stream_make(7, "init", "wq");
    const uint64_t bits = hrt_draw_bits(stream, 5);
    assert_true(bits == hrt_draw_bits(hrt_stream_make(7, "init", "wq"), 5));
    assert_true(bits != hrt_draw_bits(hrt_stream_make(8, "init", "wq"), 5));
    assert_true(bits != hrt_draw_bits(hrt_stream_make(7 + (1ull << 32), "init", "wq"), 5));
    assert_true(bits != hrt_draw_bits(hrt_stream_make(7, "data", "wq"), 5));
    assert_true(bits != hrt_draw_bits(hrt_stream_make(7, "init", "wk"), 5));
    assert_true(bits != hrt_draw_bits(hrt_stream_make(7, "initw", "q"), 5));
    assert_true(bits != hrt_draw_bits(stream, 6));
    assert_true(bits != hrt_draw_bits(stream, 5 + (1ull << 32)));
}

// Bounds are five standard errors of the sample.
static void uniform_numbers_are_uniform(void **state) {
    (void)state;
    enum { DRAWS = 100000, BINS = 10 };
    const struct hrt_stream stream = hrt_stream_make(1, "test", "");
    int bin[BINS] = {0}, below[3] = {0};
    for (uint64_t i = 0; i < DRAWS; i++) {
        const double u = hrt_draw_uniform(stream, i);
        assert_true(u >= 0 && u < 1);
        bin[(int)(u * BINS)]++;
        const uint64_t drawn = hrt_draw_below(stream, DRAWS + i, 3);
        assert_true(drawn < 3);
        below[drawn]++;
    }
    for (int i = 0; i < BINS; i++) assert_true(abs(bin[i] - DRAWS / BINS) < 5 * sqrt(9000));
    for (int i = 0; i < 3; i++) assert_true(abs(below[i] - DRAWS / 3) < 5 * sqrt(DRAWS * 2 / 9.0));
    assert_true(hrt_draw_below(stream, 0, 1) == 0);
}

static void normal_numbers_are_normal(void **state) {
    (void)state;
    enum { BLOCKS = 50000, LANES = 4 };
    const struct hrt_stream stream = hrt_stream_make(1, "test", "");
    double sum[LANES][5] = {0}, product = 0;
    for (uint64_t i = 0; i < BLOCKS; i++) {
        double normal[LANES];
        hrt_draw_normals(stream, i, normal);
        for (int k = 0; k < LANES; k++) {
            for (int power = 1; power <= 4; power++) sum[k][power] += pow(normal[k], power);
        }
        product += normal[0] * normal[1];
    }
    const double error = 5 / sqrt(BLOCKS); // Variances of x, x^2, x^3, x^4: 1, 2, 15, 96.
    for (int k = 0; k < LANES; k++) {
        assert_true(fabs(sum[k][1] / BLOCKS) < error);
        assert_true(fabs(sum[k][2] / BLOCKS - 1) < error * sqrt(2));
        assert_true(fabs(sum[k][3] / BLOCKS) < error * sqrt(15));
        assert_true(fabs(sum[k][4] / BLOCKS - 3) < error * sqrt(96));
    }
    assert_true(fabs(product / BLOCKS) < error);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(philox_gives_the_known_answers),
        cmocka_unit_test(seed_purpose_object_and_index_all_matter),
        cmocka_unit_test(uniform_numbers_are_uniform),
        cmocka_unit_test(normal_numbers_are_normal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
