// How NCCL connects ranks: the words and waits of each host when messages of a group are the first ones between their
// ranks, in one direction, on a communicator (as ncclTransportP2pSetup does, NCCL 2.28). Hosts are inside ncclGroupEnd
// meanwhile. A word stays until the rank that it is for waits for it.
#ifndef HECATE_TESTS_SIMT_CONNECT_H
#define HECATE_TESTS_SIMT_CONNECT_H

#include <stdbool.h>

struct connect_event {
    bool waits; // For what `peer` says; else says something to it.
    int peer;
    int tag;      // Below CONNECT_TAGS: only words with the tag that is waited for count.
    int channels; // That it is about. Both sides have to mean as many, or NCCL reports an error.
};

enum {
    CONNECT_TAGS = 4,  // In each phase: one for a rank ahead, one for a rank behind.
    CONNECT_EVENTS = 8 // For each rank, at most.
};

// Writes the events of a group on `rank` of `size`, and returns how many there are. `sends`, `receives`: [size] whether
// it sends to, or receives from, a rank to which it is not connected in that direction.
static inline int connect_events(int rank, int size, const bool *sends, const bool *receives,
                                 struct connect_event *event) {
    enum { BEHIND, AHEAD };
    int count = 0;
    for (int phase = 0; phase < 2; phase++) { // First who they are, then that they are ready.
        for (int i = 1; i < size; i++) {
            const int from = (rank - i + size) % size, to = (rank + i) % size, tag = 2 * phase;
            const bool gets = receives[from], puts = sends[to];
            if (from == to) {
                const int both = phase == 0 ? gets + puts : gets || puts;
                if (!both) continue;
                event[count++] = (struct connect_event){false, to, tag + AHEAD, both};
                event[count++] = (struct connect_event){true, to, tag + AHEAD, both};
                continue;
            }
            if (gets) event[count++] = (struct connect_event){false, from, tag + BEHIND, 1};
            if (puts) event[count++] = (struct connect_event){false, to, tag + AHEAD, 1};
            if (puts) event[count++] = (struct connect_event){true, to, tag + BEHIND, 1};
            if (gets) event[count++] = (struct connect_event){true, from, tag + AHEAD, 1};
        }
    }
    return count;
}

#endif
