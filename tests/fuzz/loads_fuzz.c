// Files of loads, by both of their readers: --route=trace:FILE (plain) and hecate-replay (plain, and
// compressed by zstd).
//
// Promises: both agree on what a plain file says; a refusal says why.
#include <stdlib.h>
#include <string.h>

#include "runtime/route/loads_file.h"
#include "tests/fuzz/fuzz.h"
#include "tools/replay/replay.h"

static uint32_t experts_of(const uint8_t *data, size_t size) {
    uint32_t experts = 4;
    if (size >= 28) memcpy(&experts, data + 24, sizeof experts);
    return experts;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_hush_errors();
    const char *path = fuzz_file(0, data, size);
    struct loads loads;
    char why[LOADS_WHY] = "";
    const bool replayed = loads_read(&loads, path, why);
    if (!replayed && !*why) fuzz_broken("a refusal says why");

    struct hrt_loads_file file;
    struct hrt_error error = {0};
    if (hrt_route_loads_file_open(&file, path, experts_of(data, size), &error)) {
        if (!hrt_route_loads_file_read(&file, file.shape.iterations, &error))
            fuzz_broken("it is read");
        if (replayed && memcmp(file.row, loads.rows, file.row_bytes) != 0) {
            fuzz_broken("both readers read the same");
        }
    } else if (!*error.text || !error.code) {
        fuzz_broken("a refusal says why");
    }
    hrt_route_loads_file_close(&file, &error);
    if (replayed) loads_free(&loads);
    return 0;
}
