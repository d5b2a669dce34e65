// Where documents begin; and that attention within documents is that of each by itself, to the bit, on processors.
#include "kernels/documents/documents.h"

#include "kernels/sdpa/sdpa.h"
#include "tests/kernels/kernel_case.h"

static void a_document_ends_with_its_token(void **state) {
    (void)state;
    static const int32_t ids[] = {5, 7, 7, 1, 2, 7, 7, 3, 4, 5};
    static const int32_t begins[] = {0, 0, 2, 3, 3, 0, 1, 2, 2, 2};
    int32_t *from = test_ints(10, 50, 1), *found = test_ints(10, 50, 2);
    for (int i = 0; i < 10; i++) from[i] = ids[i];
    HK_INTS(documents, found, from, 2, 5, 7, 0);
    for (int i = 0; i < 10; i++) assert_int_equal(found[i], begins[i]);
    HK_INTS(documents, found, from, 2, 5, 8, 0);
    for (int i = 0; i < 10; i++) assert_int_equal(found[i], 0);
    test_free_all();
}

// Longer ones than what a device looks at at once, one of them without an end for some of that.
static void documents_may_be_long(void **state) {
    (void)state;
    enum { sequences = 3, positions = 1100, all = sequences * positions };
    int32_t *ids = test_ints(all, 90, 1), *found = test_ints(all, 50, 2);
    for (int i = positions + 300; i < positions + 900; i++) ids[i] = 1;
    HK_INTS(documents, found, ids, sequences, positions, 7, 0);
    for (int i = 0, begin = 0; i < all; i++) {
        if (i % positions == 0) begin = 0;
        assert_int_equal(found[i], begin);
        if (ids[i] == 7) begin = i % positions + 1;
    }
    test_free_all();
}

#ifndef HK_TARGET_CUDA
static void a_sequence_may_go_on(void **state) {
    (void)state;
    enum { positions = 40 };
    int32_t *ids = test_ints(positions, 5, 1);
    int32_t *whole = test_ints(positions, 50, 2), *found = test_ints(positions, 50, 3);
    HK_INTS(documents, whole, ids, 1, positions, 3, 0);
    for (int first = 0, count = 1; first < positions; first += count, count = count % 4 + 1) {
        if (count > positions - first) count = positions - first;
        HK_INTS(documents, found + first, ids + first, 1, count, 3, first);
    }
    assert_memory_equal(found, whole, sizeof *found * positions);
    test_free_all();
}

enum { batch = 2, positions = 150, heads = 4, groups = 2, width = 16, vwidth = 12 };
enum {
    q_row = heads * width,
    k_row = groups * width,
    v_row = groups * vwidth,
    out_row = heads * vwidth,
    rows = batch * positions,
    lse_row = heads * positions,
};

static const struct hk_sdpa_dims dims = {.batch = batch,
                                         .positions = positions,
                                         .heads = heads,
                                         .groups = groups,
                                         .width = width,
                                         .vwidth = vwidth,
                                         .causal = true,
                                         .scale = 0.25};

// A document of `count` rows from `first` on of sequence `s`, as a call of its own.
static void check_document(const real *const in[4], const real *const got[5], const real *sinks,
                           struct hk_sdpa_dims d, int64_t s, int64_t first, int64_t count) {
    const int64_t row = s * positions + first;
    const real *q = in[0] + row * q_row, *k = in[1] + row * k_row, *v = in[2] + row * v_row;
    real *out = test_nans(count * out_row), *lse = test_nans(heads * count);
    real *dq = test_nans(count * q_row), *dk = test_nans(count * k_row);
    real *dv = test_nans(count * v_row);
    d.batch = 1, d.positions = count, d.begins = NULL;
    HK(sdpa, out, lse, q, k, v, sinks, d);
    HK(sdpa_grad, dq, dk, dv, in[3] + row * out_row, q, k, v, out, lse, d);
    assert_same_bits("out", got[0] + row * out_row, out, count * out_row);
    for (int64_t h = 0; h < heads; h++)
        assert_same_bits("lse", got[1] + s * lse_row + h * positions + first, lse + h * count,
                         count);
    assert_same_bits("dq", got[2] + row * q_row, dq, count * q_row);
    assert_same_bits("dk", got[3] + row * k_row, dk, count * k_row);
    assert_same_bits("dv", got[4] + row * v_row, dv, count * v_row);
}

// Documents of 1 position, of few, of more than a block of keys; and a sequence that is one document.
static void documents_attend_by_themselves(void **state) {
    (void)state;
    static const int64_t ends[] = {1, 2, 9, 90, 91, 150};
    for (int masked = 0; masked < 2; masked++) {
        const real *in[] = {test_reals(rows * q_row, 1), test_reals(rows * k_row, 2),
                            test_reals(rows * v_row, 3), test_reals(rows * out_row, 4)};
        const real *sinks = masked ? test_reals(heads, 5) : NULL;
        int32_t *begins = test_ints(rows, 1, 6);
        for (int64_t i = 0; i < rows; i++) begins[i] = 0;
        for (int64_t e = 0; e + 1 < COUNT(ends); e++) {
            for (int64_t t = ends[e]; t < ends[e + 1]; t++) begins[t] = (int32_t)ends[e];
        }
        struct hk_sdpa_dims d = dims;
        d.begins = begins;
        if (masked) d.window = 20, d.chunk = 33, d.cap = 0.5;
        real *out = test_nans(rows * out_row), *lse = test_nans(batch * lse_row);
        real *dq = test_nans(rows * q_row), *dk = test_nans(rows * k_row);
        real *dv = test_nans(rows * v_row);
        HK(sdpa, out, lse, in[0], in[1], in[2], sinks, d);
        HK(sdpa_grad, dq, dk, dv, in[3], in[0], in[1], in[2], out, lse, d);
        const real *const got[] = {out, lse, dq, dk, dv};
        for (int64_t e = 0; e < COUNT(ends); e++) {
            const int64_t first = e ? ends[e - 1] : 0;
            check_document(in, got, sinks, d, 0, first, ends[e] - first);
        }
        check_document(in, got, sinks, d, 1, 0, positions);
        test_free_all();
    }
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_document_ends_with_its_token),
        cmocka_unit_test(documents_may_be_long),
#ifndef HK_TARGET_CUDA
        cmocka_unit_test(a_sequence_may_go_on),
        cmocka_unit_test(documents_attend_by_themselves),
#endif
    };
    return RUN_KERNEL_TESTS(tests);
}
