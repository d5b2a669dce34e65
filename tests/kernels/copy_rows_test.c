// copy_rows moves rows and weights by number, and touches nothing else.
#include "kernels/copy_rows/copy_rows.h"

#include "tests/kernels/kernel_case.h"

enum { tokens = 13, picks = 3, pairs = tokens * picks, places = 50 };

static const int64_t widths[] = {1, 4, 7, 64, 200};

// A message: rows of `width`, each followed by its weight; or rows alone.
static struct hk_rows message(real *at, int64_t width, bool gated) {
    const size_t stride = (size_t)(width + gated) * sizeof(real);
    return (struct hk_rows){.rows = (char *)at,
                            .gates = gated ? (char *)(at + width) : NULL,
                            .share = 1,
                            .stride = stride,
                            .gate_stride = stride};
}

static struct hk_rows array(real *rows, real *gates, const int32_t *at, int32_t share,
                            int64_t width) {
    return (struct hk_rows){.rows = (char *)rows,
                            .gates = (char *)gates,
                            .at = at,
                            .share = share,
                            .stride = (size_t)width * sizeof(real),
                            .gate_stride = sizeof(real)};
}

static void copy(struct hk_rows to, struct hk_rows from, int64_t count, int64_t width) {
    HK_INTS(copy_rows, &to, &from, count, (size_t)width * sizeof(real), sizeof(real));
}

// To a message and from there to other places; of `count` pairs, in the order of `pair`.
static void check(int64_t width, int64_t count, bool gated) {
    real *x = test_reals(tokens * width, 1), *weights = test_reals(pairs, 2);
    real *sent = test_nans((pairs + 1) * (width + 1));
    real *rows = test_reals(places * width, 3), *gates = test_reals(places, 4);
    real *rows_want = test_copy(rows, places * width), *gates_want = test_copy(gates, places);
    int32_t *pair = test_ints(pairs, pairs, 5), *place = test_ints(pairs, 1, 0);
    for (int32_t i = 0; i < pairs; i++) place[i] = (7 * i + 3) % places; // All different.
    for (int64_t i = 0; i < count; i++) {
        memcpy(rows_want + place[i] * width, x + pair[i] / picks * width,
               (size_t)width * sizeof *x);
        if (gated) gates_want[place[i]] = weights[pair[i]];
    }
    copy(message(sent, width, gated), array(x, weights, pair, picks, width), count, width);
    copy(array(rows, gated ? gates : NULL, place, 1, width), message(sent, width, gated), count,
         width);
    assert_same_bits("rows", rows, rows_want, places * width);
    assert_same_bits("gates", gates, gates_want, places);
    for (int64_t i = count * (width + gated); i < (pairs + 1) * (width + 1); i++)
        assert_true(isnan(sent[i]));
    test_free_all();
}

static void rows_and_weights_go_where_they_belong(void **state) {
    (void)state;
    static const int64_t counts[] = {0, 1, 5, pairs};
    for (int64_t w = 0; w < COUNT(widths); w++) {
        for (int64_t c = 0; c < COUNT(counts); c++) {
            check(widths[w], counts[c], false);
            check(widths[w], counts[c], true);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_and_weights_go_where_they_belong)};
    return RUN_KERNEL_TESTS(tests);
}
