// Linked with an emitted program by --wrap: captures intermediate values of a training.
//
//   CAPTURE_GRADIENTS=PATH  the gradients of steps 0, 1, 3 and 7 are written to PATH.0, PATH.1, ... like
//                           parameters, before the optimizer takes them
//   CAPTURE_GAPS=PATH       for each token of each call of a router that chooses (in one process: by
//                           step, iteration and layer) a double: how close its choice was
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/router/router.h"
#include "runtime/params/state.h"
#include "runtime/store/weights.h"
#include "runtime/train/optimizer.h"

typeof(hrt_train_optimizer_step) __real_hrt_train_optimizer_step, __wrap_hrt_train_optimizer_step;

static void write_gradients(struct hrt_state *state, const char *prefix, int64_t step) {
    struct hrt_buffer grads = hrt_params_state_buffer(state, HRT_GRADIENTS);
    grads.kind = HRT_MEANS; // Sums of gradients are where states are.
    struct hrt_error error = {0};
    char path[4096];
    snprintf(path, sizeof path, "%s.%" PRId64, prefix, step);
    const bool written = state->comm ? hrt_store_gather(&grads, state->comm, path, &error)
                                     : hrt_store_save(&grads, path, &error);
    if (written) return;
    fprintf(stderr, "capture: %s\n", error.text);
    exit(1);
}

void __wrap_hrt_train_optimizer_step(const struct hrt_optimizer *optimizer, struct hrt_state *state,
                                     const struct hrt_config *config, int64_t step, double lr,
                                     double grad_scale) {
    const char *prefix = getenv("CAPTURE_GRADIENTS");
    if (prefix && (step == 0 || step == 1 || step == 3 || step == 7))
        write_gradients(state, prefix, step);
    __real_hrt_train_optimizer_step(optimizer, state, config, step, lr, grad_scale);
}

// The smallest of the gaps between neighbours among the topk + 1 best scores, as a share of the better
// one: rounding can exchange two experts of a token only where this is tiny.
static double gap_of(const double *choice, struct hk_router_rule rule) {
    double before = INFINITY, gap = INFINITY;
    bool taken[HK_EXPERTS_MAX] = {false};
    for (int64_t j = 0; j <= rule.topk && j < rule.experts; j++) {
        int64_t best = -1;
        for (int64_t e = 0; e < rule.experts; e++) {
            if (!taken[e] && (best < 0 || choice[e] > choice[best])) best = e;
        }
        taken[best] = true;
        if (j > 0) gap = fmin(gap, (before - choice[best]) / fabs(before));
        before = choice[best];
    }
    return gap;
}

static void write_gap(const double *choice, struct hk_router_rule rule) {
    static FILE *file; // Stays open: the process writes one.
    if (!file) file = fopen(getenv("CAPTURE_GAPS"), "wb");
    const double gap = gap_of(choice, rule);
    if (file && fwrite(&gap, sizeof gap, 1, file) == 1) return;
    perror("capture");
    exit(1);
}

#define WRAP_ROUTER(type, name)                                                                    \
    typeof(name) __real_##name, __wrap_##name;                                                     \
    void __wrap_##name(type *scores, type *weights, int32_t *ids, int32_t *loads,                  \
                       const type *logits, const type *bias, const int32_t *forced,                \
                       int32_t *record, int64_t tokens, struct hk_router_rule rule) {              \
        __real_##name(scores, weights, ids, loads, logits, bias, forced, record, tokens, rule);    \
        if (!record || !getenv("CAPTURE_GAPS")) return;                                            \
        for (int64_t t = 0; t < tokens; t++) {                                                     \
            double choice[HK_EXPERTS_MAX];                                                         \
            for (int64_t e = 0; e < rule.experts; e++)                                             \
                choice[e] = scores[t * rule.experts + e] + (bias ? bias[e] : 0);                   \
            write_gap(choice, rule);                                                               \
        }                                                                                          \
    }

WRAP_ROUTER(float, hk_router_f32)
WRAP_ROUTER(double, hk_router_f64)
