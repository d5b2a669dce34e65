// Text forms of the planner: topology, plan, loads, schedule, route.
//
// Promise: what was read and printed reads back to the same text; bad text is refused with a line.
#include <stdlib.h>
#include <string.h>

#include "runtime/plan/text.h"
#include "tests/fuzz/fuzz.h"

enum { DEVICES = 16, EXPERTS = 16, HOLDERS = 64, TRANSFERS = 64, TEXT = 1 << 16 };

static char text_once[TEXT], text_twice[TEXT];

struct forms {
    int32_t first[DEVICES + 1], node[DEVICES], speed[DEVICES];
    int32_t plan_first[EXPERTS + 1], holder[HOLDERS];
    uint32_t rows[DEVICES * EXPERTS];
    struct hpl_transfer transfer[TRANSFERS];
    uint32_t route[HOLDERS];
};

// Reads `text` as form number `form` and prints it to `out`. Returns whether it was read.
static bool read_and_print(int form, const char *text, char *out) {
    static struct forms f;
    int32_t line = 0;
    enum hpl_status status = HPL_OK;
    if (form == 0) {
        struct hpl_topology topology;
        const struct hpl_topology_memory memory = {DEVICES, f.first, f.node, f.speed};
        status = hpl_read_topology(text, &memory, &topology, &line);
        if (status == HPL_OK) hpl_print_topology(&topology, out, TEXT);
    } else if (form == 1) {
        struct hpl_plan plan = {0, HOLDERS, f.plan_first, f.holder};
        status = hpl_read_plan(text, EXPERTS, &plan, &line);
        if (status == HPL_OK) hpl_print_plan(&plan, out, TEXT);
    } else if (form == 2) {
        struct hpl_loads loads;
        status = hpl_read_loads(text, f.rows, DEVICES * EXPERTS, &loads, &line);
        if (status == HPL_OK) hpl_print_loads(&loads, out, TEXT);
    } else if (form == 3) {
        struct hpl_schedule schedule = {0, 0, TRANSFERS, f.transfer};
        status = hpl_read_schedule(text, &schedule, &line);
        if (status == HPL_OK) hpl_print_schedule(&schedule, out, TEXT);
    } else {
        static const int32_t first[] = {0, 2, 3}, holder[] = {0, 2, 1};
        const struct hpl_plan plan = {2, 3, (int32_t *)first, (int32_t *)holder};
        int32_t rank;
        status = hpl_read_route(text, &plan, &rank, f.route, &line);
        if (status == HPL_OK) hpl_print_route(&plan, rank, f.route, out, TEXT);
    }
    if (status != HPL_OK && line < 1) fuzz_broken("bad text is refused with its line");
    return status == HPL_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = fuzz_text(data, size);
    for (int form = 0; form < 5; form++) {
        if (!read_and_print(form, text, text_once)) continue;
        if (!read_and_print(form, text_once, text_twice)) fuzz_broken("printed text is read");
        if (strcmp(text_once, text_twice) != 0) fuzz_broken("it says the same");
    }
    free(text);
    return 0;
}
