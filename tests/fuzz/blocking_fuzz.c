// Tables of block sizes (HECATE_BLOCKING).
//
// Promise: an accepted table lies within the bounds, and is written and read back the same.
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/blocking.h"
#include "tests/fuzz/fuzz.h"

static bool within(int value, int least, int most) {
    return value >= least && value <= most;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_hush_errors();
    struct hk_blocking table[HK_PRECISIONS] = {0}, again[HK_PRECISIONS] = {0};
    if (!hk_blocking_read(fuzz_file(0, data, size), table)) return 0;
    for (int i = 0; i < HK_PRECISIONS; i++) {
        const struct hk_blocking *b = &table[i];
        if (!within(b->nn_rows, 1, HK_BLOCK_ROWS_MAX) ||
            !within(b->nt_rows, 1, HK_BLOCK_ROWS_MAX) ||
            !within(b->tn_rows, 1, HK_TURNED_ROWS_MAX) ||
            !within(b->team, HK_TEAM_MIN, HK_TEAM_MAX))
            fuzz_broken("sizes are within their bounds");
    }
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    hk_blocking_write(out, table);
    fclose(out);
    if (!hk_blocking_read(fuzz_file(1, text, length), again))
        fuzz_broken("what is written is read");
    if (memcmp(table, again, sizeof table) != 0) fuzz_broken("it says the same");
    free(text);
    return 0;
}
