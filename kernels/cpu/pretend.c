// The waits of kernels that only pretend to compute.
#include "kernels/cpu/pretend.h"

#include <errno.h>
#include <string.h>
#include <time.h>

const struct hk_pretence *hk_pretence_;

void hk_pretend(const struct hk_pretence *pretence) {
    hk_pretence_ = pretence;
}

static int64_t predicted_ns(const struct hk_pretence *pretence, const struct hk_work *work) {
    const double rate =
        work->kind == HK_KIND_ATTENTION ? pretence->attention_flops : pretence->product_flops;
    const double arithmetic = work->kind == HK_KIND_PASS ? 0 : work->flops / rate;
    const double memory = work->bytes / pretence->bytes;
    return (int64_t)(1e9 * (pretence->call_s + (arithmetic > memory ? arithmetic : memory)));
}

// A sleep ends late by what the scheduler takes. The next ones are shorter by that, so that a step
// takes the time that its kernels add up to.
static void wait_ns(int64_t ns) {
    static _Thread_local int64_t late;
    const int64_t due = hk_clock() + ns - late;
    struct timespec until = {due / 1000000000, due % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {
    }
    late = hk_clock() - due;
}

bool hk_pretend_call(const char *name, const struct hk_work *work) {
    if (strncmp(name, "router", strlen("router")) == 0) return false; // Its gradient is as small.
    wait_ns(predicted_ns(hk_pretence_, work));
    return true;
}
