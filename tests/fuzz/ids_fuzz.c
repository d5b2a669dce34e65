// Files of expert ids (--route=ids:FILE).
//
// Promises: ids that were read are different experts of their layer; a refusal says why.
#include <stdlib.h>

#include "runtime/route/ids_file.h"
#include "tests/fuzz/fuzz.h"

enum { POSITIONS = 3, LAYERS = 2, TOPK_MAX = 2 };

static const struct hrt_ids_layer layer[LAYERS] = {{4, 2}, {3, 1}};

static void check_ids(int32_t ids[LAYERS][POSITIONS * TOPK_MAX]) {
    for (int i = 0; i < LAYERS; i++) {
        for (int64_t k = 0; k < POSITIONS * layer[i].topk; k++) {
            if (ids[i][k] < 0 || ids[i][k] >= layer[i].experts) fuzz_broken("ids are experts");
        }
    }
}

static void read_all(struct hrt_ids_file *file) {
    int32_t ids[LAYERS][POSITIONS * TOPK_MAX];
    int32_t *const to[LAYERS] = {ids[0], ids[1]};
    for (int64_t sequence = 0; sequence <= file->sequences && sequence < 8; sequence++) {
        struct hrt_error error = {0};
        if (hrt_route_ids_file_read(file, sequence, to, &error)) {
            check_ids(ids);
        } else if (!*error.text) {
            fuzz_broken("a refusal says why");
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct hrt_ids_file file;
    struct hrt_error error = {0};
    if (!hrt_route_ids_file_shape(&file, fuzz_file(0, data, size), POSITIONS, LAYERS, layer,
                                  &error)) {
        return 0;
    }
    if (hrt_route_ids_file_open(&file, &error))
        read_all(&file);
    else if (!*error.text || !error.code)
        fuzz_broken("a refusal says why");
    hrt_route_ids_file_close(&file, &error);
    return 0;
}
