// The parts that ranks hold, and their bytes, against marks on every element of every rank.
#include "runtime/plan/held.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/base/random.h"

enum { PARAMS = 5, CHUNKS = 12, RANKS = 4, ELEMENTS = 4000, PAGE = 256 };

struct drawn {
    struct hpl_held held;
    struct hpl_held_param param[PARAMS];
    struct hpl_held_set set[2];
    int32_t owner[CHUNKS];
};

static uint64_t drawn_number; // Draws so far.

static int64_t below(int64_t limit) {
    const struct hrt_stream stream = hrt_stream_make(7, "test", "held");
    return (int64_t)(hrt_draw_uniform(stream, drawn_number++) * (double)limit);
}

// Two parameters of no set, one of them in three layers; a set whose experts have owners, with two parameters; and
// a set that every rank has whole.
static void draw(struct drawn *d) {
    const int64_t first = 1 + below(200), other = 1 + below(100), w1 = 1 + below(90),
                  w2 = 1 + below(90);
    const int64_t gap = below(3), begin = first + 3 * other + gap;
    *d = (struct drawn){0};
    d->param[0] = (struct hpl_held_param){0, first, 1, -1, below(2), below(2), false, false};
    d->param[1] = (struct hpl_held_param){first, other, 3, -1, below(2), below(2), false, false};
    d->param[2] = (struct hpl_held_param){0, w1, 2, 0, below(2), below(2), false, false};
    d->param[3] = (struct hpl_held_param){w1, w2, 2, 0, below(2), below(2), false, false};
    d->param[4] = (struct hpl_held_param){0, w1, 1, 1, below(2), below(2), false, false};
    d->set[0] = (struct hpl_held_set){begin, w1 + w2 + gap, CHUNKS, d->owner};
    d->set[1] = (struct hpl_held_set){begin + CHUNKS * (w1 + w2 + gap), w1, 3, NULL};
    // A frozen parameter may have a copy alone; in a set this is the last one.
    d->param[0].copied_only = d->param[0].copied && !d->param[0].trained && below(2);
    d->param[3].copied_only = d->param[3].copied && !d->param[3].trained && below(2);
    for (int i = 0; i < CHUNKS; i++) d->owner[i] = (int32_t)below(RANKS);
    d->held = (struct hpl_held){d->param, d->set, PARAMS, 2, ELEMENTS, 4, RANKS, false, false};
}

static bool has(const struct hpl_held_param *param, int buffer) {
    if (buffer == HPL_PARAMETERS) return !param->copied_only;
    return buffer == HPL_COPIES ? param->copied : param->trained;
}

// Marks every element of a buffer that the rank holds: 1 for a part, 2 where it belongs to a parameter that is there.
static void mark(const struct drawn *d, int rank, int buffer, char *marks) {
    memset(marks, 0, ELEMENTS);
    for (int i = 0; i < PARAMS; i++) {
        const struct hpl_held_param *p = &d->param[i];
        if (p->set >= 0 || !has(p, buffer)) continue;
        memset(marks + p->offset, 2, (size_t)(p->layers * p->elements));
    }
    for (int s = 0; s < 2; s++) {
        const struct hpl_held_set *set = &d->set[s];
        for (int64_t c = 0; c < set->chunks; c++) {
            char *chunk = marks + set->offset + c * set->chunk_elements;
            bool any = false, all = true;
            int64_t most = set->chunk_elements;
            if (set->owner && set->owner[c] != rank) continue;
            for (int i = 0; i < PARAMS; i++) {
                if (d->param[i].set != s) continue;
                any = any || has(&d->param[i], buffer);
                all = all && has(&d->param[i], buffer);
                if (!has(&d->param[i], buffer)) most -= d->param[i].elements;
            }
            // Gradients and states are parts of chunks, parameters the first part, copies are whole.
            if (any && (all || buffer == HPL_COPIES))
                memset(chunk, 1, (size_t)set->chunk_elements);
            else if (any && buffer == HPL_PARAMETERS)
                memset(chunk, 1, (size_t)most);
            for (int i = 0; any && i < PARAMS; i++) {
                if (d->param[i].set == s && has(&d->param[i], buffer))
                    memset(chunk + d->param[i].offset, 2, (size_t)d->param[i].elements);
            }
        }
    }
}

static void check_parts(const struct drawn *d, int rank, int buffer, const char *marks) {
    char walked[ELEMENTS] = {0};
    struct hpl_extent extent = {0};
    while (hpl_held_next(&d->held, rank, (enum hpl_buffer)buffer, &extent)) {
        for (int64_t i = 0; i < extent.count; i++) assert_int_equal(walked[extent.offset + i]++, 0);
    }
    for (int i = 0; i < ELEMENTS; i++) assert_int_equal(walked[i], marks[i] > 0);
}

static int64_t page_bytes(const char *marks, int64_t element) {
    int64_t pages = 0;
    for (int64_t page = 0; page * PAGE < ELEMENTS * element; page++) {
        bool stands = false;
        for (int64_t i = page * PAGE; i < (page + 1) * PAGE && i < ELEMENTS * element; i++)
            stands = stands || marks[i / element];
        pages += stands;
    }
    return pages * PAGE;
}

static void parts_and_bytes_are_those_of_marks(void **state) {
    (void)state;
    char marks[ELEMENTS];
    bool taken[ELEMENTS * 4 / PAGE + 1];
    for (int n = 0; n < 300; n++) {
        struct drawn d;
        draw(&d);
        for (int buffer = 0; buffer < HPL_BUFFERS; buffer++) {
            const int64_t element = buffer == HPL_COPIES ? 2 : 4;
            int64_t most_pages = 0, most = 0;
            for (int rank = 0; rank < RANKS; rank++) {
                int64_t here = 0;
                mark(&d, rank, buffer, marks);
                check_parts(&d, rank, buffer, marks);
                for (int i = 0; i < ELEMENTS; i++) here += marks[i] > (buffer != HPL_PARAMETERS);
                most = here * element > most ? here * element : most;
                most_pages = page_bytes(marks, element) > most_pages ? page_bytes(marks, element)
                                                                     : most_pages;
            }
            assert_int_equal(hpl_held_pages(&d.held, PAGE), sizeof taken);
            assert_int_equal(hpl_held_page_bytes(&d.held, (enum hpl_buffer)buffer, PAGE, taken),
                             most_pages);
            assert_int_equal(hpl_held_bytes(&d.held, (enum hpl_buffer)buffer), most);
        }
    }
}

static void exchange_owners(struct drawn *d) {
    for (int i = CHUNKS - 1; i > 0; i--) {
        const int other = (int)below(i + 1), owner = d->owner[i];
        d->owner[i] = d->owner[other];
        d->owner[other] = owner;
    }
}

static int64_t bytes_of_rank_0(const struct drawn *d, int buffer) {
    char marks[ELEMENTS];
    mark(d, 0, buffer, marks);
    return page_bytes(marks, buffer == HPL_COPIES ? 2 : 4);
}

// Under any owners, with as many chunks for each rank as before, and in one buffer with two more of one set, no rank takes more
// pages than announced.
static void owners_may_change(void **state) {
    (void)state;
    bool taken[ELEMENTS * 4 / PAGE + 1];
    for (int n = 0; n < 300; n++) {
        struct drawn d;
        int64_t told = 0, elsewhere = 0;
        draw(&d);
        d.held.moves = true;
        for (int i = 0; i < CHUNKS; i++) d.owner[i] = i % RANKS;
        for (int buffer = 0; buffer < HPL_BUFFERS; buffer++)
            told += hpl_held_page_bytes(&d.held, (enum hpl_buffer)buffer, PAGE, taken);
        exchange_owners(&d);
        for (int buffer = 0; buffer < HPL_BUFFERS; buffer++)
            elsewhere += bytes_of_rank_0(&d, buffer);
        for (int buffer = 0; buffer < HPL_BUFFERS; buffer++) {
            const int64_t others = elsewhere - bytes_of_rank_0(&d, buffer);
            int32_t before[CHUNKS];
            memcpy(before, d.owner, sizeof before);
            for (int i = 0, more = 0; i < CHUNKS && more < HPL_UNDER_WAY; i++) {
                if (d.owner[i] != 0) d.owner[i] = 0, more++;
            }
            assert_true(others + bytes_of_rank_0(&d, buffer) <= told);
            memcpy(d.owner, before, sizeof before);
        }
    }
}

// A quarter, rounded up to whole parts.
static int64_t quarter(int64_t elements) {
    return (elements + 4 * 128 - 1) / (4 * 128) * 128;
}

static void parts_cover_all_elements_once(void **state) {
    (void)state;
    for (int64_t n = 1; n < 3000; n++) {
        const int64_t part = hpl_part(n, RANKS);
        assert_int_equal(part, quarter(n));
        assert_true(part * RANKS >= n);
    }
}

// Each of four ranks has a quarter of the states of parameters that all have; and all of its own experts.
static void states_may_be_shared(void **state) {
    (void)state;
    struct drawn d;
    draw(&d);
    for (int i = 0; i < PARAMS; i++) d.param[i].trained = true;
    for (int i = 0; i < CHUNKS; i++) d.owner[i] = i % RANKS;
    d.held.states = true;
    const int64_t all = quarter(d.param[0].elements) + 3 * quarter(d.param[1].elements) +
                        3 * quarter(d.param[4].elements);
    const int64_t own = 3 * (d.param[2].elements + d.param[3].elements);
    assert_int_equal(hpl_held_bytes(&d.held, HPL_STATE), 4 * (all + own));
    const int64_t whole = d.param[0].elements + 3 * d.param[1].elements + 3 * d.param[4].elements;
    assert_int_equal(hpl_held_bytes(&d.held, HPL_GRADIENTS), 4 * (whole + own));
}

// A rank has all of a buffer where no expert has an owner and no parameter is frozen.
static void parts_alone_are_used_where_experts_have_owners_or_parameters_are_frozen(void **state) {
    (void)state;
    bool taken[ELEMENTS * 4 / PAGE + 1];
    struct drawn d;
    draw(&d);
    assert_true(hpl_held_in_parts(&d.held));
    d.set[0].owner = NULL;
    assert_false(hpl_held_in_parts(&d.held));
    for (int buffer = 0; buffer < HPL_BUFFERS; buffer++)
        assert_int_equal(hpl_held_page_bytes(&d.held, (enum hpl_buffer)buffer, PAGE, taken),
                         ELEMENTS * (buffer == HPL_COPIES ? 2 : 4));
    d.param[3].frozen = true;
    assert_true(hpl_held_in_parts(&d.held));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_and_bytes_are_those_of_marks),
        cmocka_unit_test(owners_may_change),
        cmocka_unit_test(parts_cover_all_elements_once),
        cmocka_unit_test(parts_alone_are_used_where_experts_have_owners_or_parameters_are_frozen),
        cmocka_unit_test(states_may_be_shared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
