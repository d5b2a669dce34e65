// Seconds of a monotonic clock.
#ifndef HECATE_RUNTIME_BASE_CLOCK_H
#define HECATE_RUNTIME_BASE_CLOCK_H

#include <time.h>

static inline double hrt_base_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#endif
