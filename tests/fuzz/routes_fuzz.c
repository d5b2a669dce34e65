// Routes of rollout engines, for `hecate-data routes`: an array of NumPy, or a value of a JSON record.
//
// Promises: a refusal says why, and leaves nothing; the shape is the one that was asked
// for, and every id is there.
#include <jansson.h>

#include "tests/fuzz/fuzz.h"
#include "tools/prepare/routes.h"

enum { LAYERS = 2, TOPK = 2 };

static void check_routes(const struct routes *routes) {
    if (routes->layers != LAYERS || routes->topk != TOPK) fuzz_broken("the shape is as asked for");
    const int64_t ids = routes->sequences * routes->tokens * LAYERS * TOPK;
    // Every id is looked at: the sanitizer sees that it is there.
    for (int64_t i = 0; i < ids; i++) (void)*(volatile const int32_t *)&routes->id[i];
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size) {
    struct hrt_error error = {0};
    struct routes routes = {0};
    if (routes_of_npy(input, size, LAYERS, TOPK, &routes, &error))
        check_routes(&routes);
    else if (!*error.text || routes.id)
        fuzz_broken("a refusal says why, and leaves nothing");
    routes_free(&routes);
    json_t *value = json_loadb((const char *)input, size, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    error = (struct hrt_error){0};
    // Twice: the second is added behind the first.
    if (value && routes_add(&routes, value, LAYERS, TOPK, &error)) {
        const int64_t tokens = routes.tokens;
        check_routes(&routes);
        if (!routes_add(&routes, value, LAYERS, TOPK, &error) || routes.tokens != 2 * tokens)
            fuzz_broken("the same value can be added twice");
        check_routes(&routes);
    } else if (value && !*error.text) {
        fuzz_broken("a refusal says why, and leaves nothing");
    }
    routes_free(&routes);
    json_decref(value);
    return 0;
}
