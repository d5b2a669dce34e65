// Many arrays by one launch: each gets what its own copy, sum or conversion gives, and nothing beside it changes.
#include "kernels/cuda/pieces.h"

#include "kernels/bf16.h"
#include "tests/kernels/kernel_case.h"

enum { ROOM = 9000 };

static const int64_t counts[] = {1, 8, 13, 64, 2048, 4100};

static size_t bytes_of(bool narrow, int64_t count) {
    return (size_t)count * (narrow ? sizeof(hk_bf16) : sizeof(float));
}

// Does to `to` as the kernel has to.
static void expect(enum hkc_pieces_kind kind, char *to, const char *from, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        float *sum = (float *)to + i;
        hk_bf16 *narrow = (hk_bf16 *)to + i;
        if (kind == HKC_PIECES_COPY) *narrow = ((const hk_bf16 *)from)[i];
        if (kind == HKC_PIECES_ADD) *sum += ((const float *)from)[i];
        if (kind == HKC_PIECES_NARROW) *narrow = hk_bf16_round(((const float *)from)[i]);
        if (kind == HKC_PIECES_WIDEN) *sum = hk_bf16_float(((const hk_bf16 *)from)[i]);
    }
}

// `shift` elements behind a multiple of 16 bytes.
static void check(enum hkc_pieces_kind kind, int pieces, int64_t shift) {
    const bool narrow_to = kind == HKC_PIECES_COPY || kind == HKC_PIECES_NARROW;
    const bool narrow_from = kind == HKC_PIECES_COPY || kind == HKC_PIECES_WIDEN;
    struct hkc_piece piece[HKC_PIECES_MOST];
    char *to[HKC_PIECES_MOST], *want[HKC_PIECES_MOST];
    for (int p = 0; p < pieces; p++) {
        const int64_t count = counts[p % COUNT(counts)];
        to[p] = (char *)test_reals(ROOM, (uint64_t)p + 1);
        want[p] = (char *)test_copy((real *)to[p], ROOM);
        const char *from = (const char *)test_reals(ROOM, (uint64_t)p + 500);
        piece[p] = (struct hkc_piece){to[p] + bytes_of(narrow_to, shift),
                                      from + bytes_of(narrow_from, shift), count};
        expect(kind, want[p] + bytes_of(narrow_to, shift), piece[p].from, count);
    }
    hkc_pieces(test_lane(), kind, piece, pieces);
    memset(piece, 0, sizeof piece); // It has been read.
    test_join("pieces");
    for (int p = 0; p < pieces; p++)
        assert_same_bits("piece", (real *)to[p], (real *)want[p], ROOM);
    test_free_all();
}

static void each_piece_gets_its_own(void **state) {
    (void)state;
    for (int kind = HKC_PIECES_COPY; kind <= (int)HKC_PIECES_WIDEN; kind++) {
        check((enum hkc_pieces_kind)kind, 6, 0);
        check((enum hkc_pieces_kind)kind, 6, 1);
        check((enum hkc_pieces_kind)kind, 1, 8);
    }
    check(HKC_PIECES_ADD, 0, 0);
}

static void as_many_as_a_launch_takes(void **state) {
    (void)state;
    check(HKC_PIECES_COPY, HKC_PIECES_MOST, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_piece_gets_its_own),
                                       cmocka_unit_test(as_many_as_a_launch_takes)};
    return RUN_KERNEL_TESTS(tests);
}
