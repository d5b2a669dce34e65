#include "runtime/net/launch.h"

#include <assert.h>

static bool is_message(const struct hrt_step *step) {
    return step->kind == HRT_SEND || step->kind == HRT_RECV;
}

static bool is_ready(const struct hrt_steps *steps, const struct hrt_step *step) {
    for (int i = 0; i < 2; i++) {
        if (step->after[i] >= 0 && !steps->step[step->after[i]].done) return false;
    }
    return true;
}

static void finish(struct hrt_steps *steps, struct hrt_step *step) {
    step->done = true;
    steps->left--;
}

// Copies and adds that wait for nothing else.
static void run_ready(struct hrt_steps *steps, const struct hrt_launch *launch) {
    for (int32_t i = steps->head; i < steps->count; i++) {
        struct hrt_step *step = &steps->step[i];
        if (step->done || is_message(step) || !is_ready(steps, step)) continue;
        launch->run(launch->context, step);
        finish(steps, step);
    }
}

// The messages of the next round.
static void post_group(struct hrt_steps *steps, const struct hrt_launch *launch) {
    int32_t first = -1, end;
    for (end = steps->head; end < steps->count; end++) {
        const struct hrt_step *step = &steps->step[end];
        if (step->done || !is_message(step)) continue;
        if (first < 0) launch->begin(launch->context);
        if (first < 0) first = end;
        if (step->round != steps->step[first].round) break;
        assert(is_ready(steps, step));
        launch->post(launch->context, step);
    }
    if (first < 0) return;
    assert(end == steps->count || steps->step[end].round > steps->step[first].round);
    launch->end(launch->context);
    for (int32_t i = first; i < end; i++) {
        struct hrt_step *step = &steps->step[i];
        if (!step->done && is_message(step)) finish(steps, step);
    }
}

void hrt_net_launch_steps(struct hrt_steps *steps, const struct hrt_launch *launch) {
    steps->head = 0;
    steps->left = steps->count;
    for (int32_t i = 0; i < steps->count; i++) steps->step[i].done = false;
    while (steps->left > 0) {
        const int32_t left = steps->left;
        run_ready(steps, launch);
        post_group(steps, launch);
        while (steps->head < steps->count && steps->step[steps->head].done) steps->head++;
        assert(steps->left < left); // Steps follow those that they wait for.
        (void)left;
    }
}
