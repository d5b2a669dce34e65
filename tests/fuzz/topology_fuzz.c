// Topology files (HECATE_TOPOLOGY).
//
// Promises: an accepted file puts every rank into a node; a refusal says why.
#include "runtime/base/world.h"
#include "tests/fuzz/fuzz.h"

enum { RANKS = 12 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    int32_t node_of[RANKS];
    int nodes;
    struct hrt_error error = {0};
    if (!hrt_base_topology_read(fuzz_file(0, data, size), RANKS, node_of, &nodes, &error)) {
        if (!*error.text || !error.code) fuzz_broken("a refusal says why");
        return 0;
    }
    for (int r = 0; r < RANKS; r++) {
        if (node_of[r] < 0 || node_of[r] >= nodes) fuzz_broken("every rank is in a node");
    }
    return 0;
}
