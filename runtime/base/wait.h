// Waits of the host for others, counted by their purpose.
#ifndef HECATE_RUNTIME_BASE_WAIT_H
#define HECATE_RUNTIME_BASE_WAIT_H

#include <stdint.h>

struct hrt_wait {
    const char *why; // NULL: a place that is free.
    int64_t calls, ns;
};

// Adds one wait of `ns` nanoseconds to the entry of `why`, which stays in place; where all `room` entries have another
// purpose, to the last one.
void hrt_wait_count(struct hrt_wait *wait, int room, const char *why, int64_t ns);

#endif
