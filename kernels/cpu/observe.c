// The observer of this thread, and the clock.
#include "kernels/cpu/observe.h"

#include <time.h>

_Thread_local const struct hk_observer *hk_observer_;
_Thread_local int64_t hk_epilogue_ns_;
_Thread_local const char *hk_line_;

void hk_observe(const struct hk_observer *observer) {
    hk_observer_ = observer;
}

void hk_line_begin(struct hk_lines *lines, const char *line) {
    if (!lines->begun) lines->outer = hk_line_;
    lines->begun = true;
    hk_line_ = line;
}

int64_t hk_clock(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void hk_call_report(struct hk_call *call) {
    call->end = hk_clock();
    call->epilogue_ns = hk_epilogue_ns_;
    call->line = hk_line_;
    hk_observer_->called(hk_observer_->context, call);
}
