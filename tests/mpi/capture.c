// Linked with an emitted program by --wrap=hrt_optimizer_step: with CAPTURE_GRADIENTS=PATH in the
// environment, the gradients of steps 0, 1, 3 and 7 are written to PATH.0, PATH.1, ... like parameters,
// before the optimizer takes them. So what is compared went the whole way of a training.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/params/store.h"
#include "runtime/train/dense.h"
#include "runtime/train/optimizer.h"
#include "runtime/train/state.h"

typeof(hrt_optimizer_step) __real_hrt_optimizer_step, __wrap_hrt_optimizer_step;

static void write_gradients(const struct hrt_state *state, const char *prefix, int64_t step) {
    struct hrt_error error = {0};
    char path[4096];
    if (state->dense)
        hrt_dense_gather(state->dense, state->grads); // Ranks have parts (dense = shard).
    snprintf(path, sizeof path, "%s.%" PRId64, prefix, step);
    const bool written =
        state->comm ? hrt_store_gather(state->program, state->grads, state->comm, path, &error)
                    : hrt_store_save(state->program, state->grads, path, &error);
    if (written) return;
    fprintf(stderr, "capture: %s\n", error.text);
    exit(1);
}

void __wrap_hrt_optimizer_step(const struct hrt_optimizer *optimizer, const struct hrt_state *state,
                               const struct hrt_config *config, int64_t step, double lr,
                               double grad_scale) {
    const char *prefix = getenv("CAPTURE_GRADIENTS");
    if (prefix && (step == 0 || step == 1 || step == 3 || step == 7))
        write_gradients(state, prefix, step);
    __real_hrt_optimizer_step(optimizer, state, config, step, lr, grad_scale);
}
