// Preloaded: the clock that only goes forward goes HURRY times as fast.
#define _GNU_SOURCE // RTLD_NEXT
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

int clock_gettime(clockid_t clock, struct timespec *time) {
    int (*real)(clockid_t, struct timespec *);
    *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
    const char *times = getenv("HURRY");
    const int code = real(clock, time);
    if (code != 0 || clock != CLOCK_MONOTONIC || !times) return code;
    const double now = ((double)time->tv_sec + 1e-9 * (double)time->tv_nsec) * atof(times);
    time->tv_sec = (time_t)now;
    time->tv_nsec = (long)(1e9 * (now - (double)time->tv_sec));
    return code;
}
