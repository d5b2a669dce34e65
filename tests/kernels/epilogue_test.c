// Epilogues of products: every element of the result is handed over once, when it is finished.
#include <omp.h>

#include "kernels/grouped/grouped.h"
#include "kernels/matmul/matmul.h"
#include "tests/kernels/kernel_case.h"

enum { experts = 5 };

static const int32_t first[experts + 1] = {0, 0, 1, 17, 300, 331}; // One without rows.
static const int64_t rows = 331;

enum form { MATMUL_NN, MATMUL_NT, GROUPED_NN, GROUPED_NT, FORMS };

// The elements that an epilogue sees. It marks them, as one that works in place does.
struct seen {
    const int32_t *first; // NULL: rows are of one matrix.
    real *result, *found;
    int *times;
    int64_t columns;
    int strays; // Blocks that are not those of one expert, or outside of the result.
};

static void look(void *model, int64_t layer, struct hk_block block) {
    struct seen *seen = model;
    bool stray = layer != 7 || block.row < 0 || block.row >= block.row_end ||
                 block.row_end > rows || block.column < 0 || block.column >= block.column_end ||
                 block.column_end > seen->columns;
    for (int e = 0; seen->first && e < experts; e++) {
        stray |= block.row < seen->first[e + 1] && block.row_end > seen->first[e + 1];
    }
    if (stray) {
#pragma omp atomic
        seen->strays++;
        return;
    }
    for (int64_t r = block.row; r < block.row_end; r++) {
        for (int64_t j = block.column; j < block.column_end; j++) {
            const int64_t i = r * seen->columns + j;
#pragma omp atomic
            seen->times[i]++;
            seen->found[i] = seen->result[i];
            seen->result[i] = -1;
        }
    }
}

struct operands {
    const real *a, *c, *chunk[experts];
};

static void compute(enum form form, const struct operands *x, real *out, int64_t n, int64_t k,
                    enum hk_write write, const struct hk_epilogue *epilogue) {
    const struct hk_matmul_dims dims = {.m = rows, .n = n, .k = k};
    const struct hk_grouped_dims grouped = {.experts = experts, .n = n, .k = k};
    switch (form) {
    case MATMUL_NN:
        HK(matmul_nn, out, x->a, x->chunk[0], HK_PANELS, dims, write, epilogue);
        break;
    case MATMUL_NT:
        HK(matmul_nt, out, x->c, x->chunk[0], HK_PANELS, dims, write, epilogue);
        break;
    case GROUPED_NN:
        HK(grouped_nn, out, x->a, x->chunk, 0, first, grouped, write, epilogue);
        break;
    default:
        HK(grouped_nt, out, x->c, x->chunk, 0, first, grouped, write, epilogue);
    }
}

static void check_form(enum form form, const struct operands *x, int64_t n, int64_t k,
                       enum hk_write write) {
    const bool turned = form == MATMUL_NT || form == GROUPED_NT;
    const int64_t columns = turned ? k : n, count = rows * columns;
    real *before = test_reals(count, 9), *want = test_copy(before, count);
    compute(form, x, want, n, k, write, NULL);
    for (int threads = 1; threads <= 3; threads++) {
        omp_set_num_threads(threads);
        struct seen seen = {
            .first = form == GROUPED_NN || form == GROUPED_NT ? first : NULL,
            .result = test_copy(before, count),
            .found = test_nans(count),
            .times = test_ints(count, 1, 0), // All zeros.
            .columns = columns,
        };
        compute(form, x, seen.result, n, k, write, &(struct hk_epilogue){look, &seen, 7});
        assert_int_equal(seen.strays, 0);
        for (int64_t i = 0; i < count; i++) assert_int_equal(seen.times[i], 1);
        assert_same_bits("found", seen.found, want, count);
        for (int64_t i = 0; i < count; i++) assert_true(seen.result[i] == -1);
    }
}

static void check(int64_t n, int64_t k, enum hk_write write) {
    struct operands x = {.a = test_reals(rows * k, 1), .c = test_reals(rows * n, 2)};
    for (int e = 0; e < experts; e++) {
        real *chunk = test_nans(hk_panels_size(k, n));
        HK(panels_pack, chunk, test_reals(k * n, (uint64_t)(10 + e)), k, n);
        x.chunk[e] = chunk;
    }
    for (int form = 0; form < FORMS; form++) check_form((enum form)form, &x, n, k, write);
    test_free_all();
}

// One panel and many, sums of one block of terms and of several, results that are stored and that are added.
static void every_element_is_handed_over_once(void **state) {
    (void)state;
    check(20, 64, HK_STORE);
    check(70, 300, HK_STORE);
    check(700, 100, HK_STORE);
    check(330, 700, HK_ADD);
    check(64, 704, HK_STORE); // Few rows of nt are computed in another way.
}

#if HK_BITS == 32
// The same walk with operands in bf16.
static void results_of_bf16_are_handed_over(void **state) {
    (void)state;
    enum { n = 330, k = 1100 };
    const real *a = test_reals(rows * k, 1);
    hk_bf16 *chunk[experts];
    const hk_bf16 *read[experts];
    for (int e = 0; e < experts; e++) {
        real *panels = test_nans(hk_panels_size(k, n));
        HK(panels_pack, panels, test_reals(k * n, (uint64_t)(10 + e)), k, n);
        read[e] = chunk[e] = (hk_bf16 *)test_nans(hk_panels_size_bf16(k, n));
        hk_round_panels_bf16(chunk[e], panels, k, n);
    }
    const struct hk_grouped_dims dims = {.experts = experts, .n = n, .k = k};
    real *want = test_nans(rows * n);
    hk_grouped_nn_bf16(want, a, read, 0, first, dims, HK_STORE, NULL);
    struct seen seen = {
        .first = first,
        .result = test_nans(rows * n),
        .found = test_nans(rows * n),
        .times = test_ints(rows * n, 1, 0),
        .columns = n,
    };
    const struct hk_epilogue epilogue = {look, &seen, 7};
    hk_grouped_nn_bf16(seen.result, a, read, 0, first, dims, HK_STORE, &epilogue);
    assert_int_equal(seen.strays, 0);
    for (int64_t i = 0; i < rows * n; i++) assert_int_equal(seen.times[i], 1);
    assert_same_bits("found", seen.found, want, rows * n);
    test_free_all();
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_element_is_handed_over_once),
#if HK_BITS == 32
        cmocka_unit_test(results_of_bf16_are_handed_over),
#endif
    };
    return RUN_KERNEL_TESTS(tests);
}
