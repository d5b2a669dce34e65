// A list of steps, as a device is asked for it at once: copies and adds, and groups of messages between them.
//
// A group has all messages of one round (steps.h), so both ranks of a message have it in the group of the same round:
// ranks that walk through their groups in order never wait for each other in a circle, also where a group blocks until
// all its peers have come to theirs, as NCCL's does when it connects them. Rounds of a list's messages ascend, and a
// message waits for those of earlier rounds only.
#ifndef HECATE_RUNTIME_NET_LAUNCH_H
#define HECATE_RUNTIME_NET_LAUNCH_H

#include "runtime/net/steps.h"

// The functions that do the work. `context` is passed on.
struct hrt_launch {
    void *context;
    void (*run)(void *context, const struct hrt_step *step); // A copy or an add.
    void (*begin)(void *context);                            // A group, of one message or more.
    void (*post)(void *context, const struct hrt_step *step);
    void (*end)(void *context);
};

// Asks for all steps of the list, once each. Those before a step in the order of the calls are done when it begins, but
// for other messages of its group. Pure, but for the list's own marks.
void hrt_net_launch_steps(struct hrt_steps *steps, const struct hrt_launch *launch);

#endif
