#include "runtime/base/wait.h"

#include <string.h>

void hrt_wait_count(struct hrt_wait *wait, int room, const char *why, int64_t ns) {
    const struct hrt_wait *last = wait + room - 1;
    while (wait->why && strcmp(wait->why, why) != 0 && wait < last) wait++;
    if (!wait->why) wait->why = why;
    wait->calls++;
    wait->ns += ns;
}
