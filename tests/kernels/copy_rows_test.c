// copy_rows moves rows and weights by number, and touches nothing else. Rows are of values of a weight's size, or of half
// of it; those of a message then begin at multiples of a weight's.
#include "kernels/copy_rows/copy_rows.h"

#include "tests/kernels/kernel_case.h"

enum { tokens = 13, picks = 3, pairs = tokens * picks, places = 50 };

static const int64_t widths[] = {1, 4, 7, 64, 200};

// A message: rows of `row` bytes, each followed by its weight, at multiples of 16; or rows alone.
static struct hk_rows message(real *at, size_t row, bool gated) {
    const size_t gate = (row + sizeof(real) - 1) / sizeof(real) * sizeof(real);
    const size_t stride = gated ? (gate + sizeof(real) + 15) / 16 * 16 : row;
    return (struct hk_rows){.rows = (char *)at,
                            .gates = gated ? (char *)at + gate : NULL,
                            .share = 1,
                            .stride = stride,
                            .gate_stride = stride};
}

static struct hk_rows array(real *rows, real *gates, const int32_t *at, int32_t share, size_t row) {
    return (struct hk_rows){.rows = (char *)rows,
                            .gates = (char *)gates,
                            .at = at,
                            .share = share,
                            .stride = row,
                            .gate_stride = sizeof(real)};
}

static void copy(struct hk_rows to, struct hk_rows from, int64_t count, size_t row) {
    HK_INTS(copy_rows, &to, &from, count, row, sizeof(real));
}

// To a message and from there to other places; of `count` pairs, in the order of `pair`. Rows of `width` values of `size`
// bytes, in arrays that have room for larger ones.
static void check(int64_t width, size_t size, int64_t count, bool gated) {
    const size_t row = (size_t)width * size;
    real *x = test_reals(tokens * width, 1), *weights = test_reals(pairs, 2);
    real *sent = test_nans((pairs + 1) * (width + 5)), *rows = test_reals(places * width, 3);
    real *rows_want = test_copy(rows, places * width), *gates = test_reals(places, 4);
    real *gates_want = test_copy(gates, places);
    int32_t *pair = test_ints(pairs, pairs, 5), *place = test_ints(pairs, 1, 0);
    for (int32_t i = 0; i < pairs; i++) place[i] = (7 * i + 3) % places; // All different.
    for (int64_t i = 0; i < count; i++) {
        memcpy((char *)rows_want + (size_t)place[i] * row,
               (char *)x + (size_t)(pair[i] / picks) * row, row);
        if (gated) gates_want[place[i]] = weights[pair[i]];
    }
    const struct hk_rows out = message(sent, row, gated);
    copy(out, array(x, weights, pair, picks, row), count, row);
    copy(array(rows, gated ? gates : NULL, place, 1, row), out, count, row);
    assert_same_bits("rows", rows, rows_want, places * width);
    assert_same_bits("gates", gates, gates_want, places);
    const size_t used = ((size_t)count * out.stride + sizeof(real) - 1) / sizeof(real);
    for (int64_t i = (int64_t)used; i < (pairs + 1) * (width + 5); i++) assert_true(isnan(sent[i]));
    test_free_all();
}

static void rows_and_weights_go_where_they_belong(void **state) {
    (void)state;
    static const int64_t counts[] = {0, 1, 5, pairs};
    for (int64_t w = 0; w < COUNT(widths); w++) {
        for (int64_t c = 0; c < COUNT(counts); c++) {
            for (int gated = 0; gated < 2; gated++) {
                check(widths[w], sizeof(real), counts[c], gated);
                check(widths[w], sizeof(real) / 2, counts[c], gated);
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_and_weights_go_where_they_belong)};
    return RUN_KERNEL_TESTS(tests);
}
