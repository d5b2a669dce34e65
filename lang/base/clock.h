// Seconds of a monotonic clock.
#ifndef HECATE_LANG_BASE_CLOCK_H
#define HECATE_LANG_BASE_CLOCK_H

#include <time.h>

static inline double hec_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#endif
