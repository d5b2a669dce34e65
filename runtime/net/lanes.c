// The lanes of several ranks. Wires advance only inside their calls, so a helper thread turns the lanes of what
// moves behind the computation: it posts, tests and adds what is next in them ("a turn"). A thread that waits for
// a lane turns it itself meanwhile. The helper sleeps between two turns, and until the next submit when nothing is
// under way: a thread that waits inside of a transport would take a core from the computation. Where the ranks of
// a machine take all of its cores, a thread that waits turns all lanes, and the helper leaves the core to it.
#include <assert.h>
#include <stdlib.h>
#include <time.h>

#include "runtime/net/net.h"

// A count waits at most for the window of each lane of chunks: on a network of 1 GB/s a millisecond. Inside a node it takes
// larger ones to keep memory busy between two turns of the helper.
static const struct {
    const char *name;
    bool behind;
    size_t piece, near, far; // Windows to ranks of this node, and of others.
} lanes[HRT_LANES] = {
    [HRT_LANE_COUNTS] = {"counts of rows", false, 1 << 20, 4 << 20, 4 << 20},
    [HRT_LANE_ROWS] = {"rows", true, 1 << 20, 4 << 20, 4 << 20},
    [HRT_LANE_GATHER] = {"experts", true, 256 << 10, 4 << 20, 1 << 20},
    [HRT_LANE_ADDED] = {"added experts", true, 256 << 10, 4 << 20, 1 << 20},
    [HRT_LANE_REDUCE] = {"gradients of experts", true, 256 << 10, 4 << 20, 1 << 20},
    [HRT_LANE_DENSE] = {"gradients", true, 256 << 10, 4 << 20, 1 << 20},
    [HRT_LANE_SAVE] = {"parameters", true, 256 << 10, 4 << 20, 1 << 20},
};

bool hrt_net_lanes_open(struct hrt_net *own) {
    bool sound = true;
    for (int i = 0; i < HRT_LANES; i++) {
        struct hrt_net_lane *lane = &own->lane[i];
        lane->number = i;
        lane->behind = lanes[i].behind;
        lane->piece = lanes[i].piece;
        lane->pieces.name = lanes[i].name;
        atomic_init(&lane->awaited, -1);
        lane->flow = calloc((size_t)own->size, sizeof *lane->flow);
        sound = sound && lane->flow;
        pthread_mutex_init(&lane->turning, NULL);
    }
    pthread_mutex_init(&own->lock, NULL);
    pthread_cond_init(&own->work, NULL);
    return sound;
}

void hrt_net_lanes_join(struct hrt_net *own) {
    // Rounds need ranks that pass on, also while these compute.
    own->lane[HRT_LANE_COUNTS].behind |= own->grid.groups > 1;
    for (int i = 0; i < HRT_LANES; i++) {
        struct hrt_net_lane *lane = &own->lane[i];
        for (int r = 0; r < own->size; r++) {
            const bool near = own->node_of[r] == own->node_of[own->rank];
            lane->flow[r].half = (near ? lanes[i].near : lanes[i].far) / 2;
        }
    }
}

void hrt_net_lanes_free(struct hrt_net *own) {
    for (int i = 0; i < HRT_LANES; i++) {
        hrt_net_pieces_free(&own->lane[i].pieces);
        free(own->lane[i].flow);
        pthread_mutex_destroy(&own->lane[i].turning);
    }
    pthread_cond_destroy(&own->work);
    pthread_mutex_destroy(&own->lock);
}

static bool turn(struct hrt_net *own, struct hrt_net_lane *lane, bool runs) {
    if (pthread_mutex_trylock(&lane->turning) != 0) return false; // Somebody does.
    const bool moved = hrt_net_turn(own, lane, runs);
    pthread_mutex_unlock(&lane->turning);
    return moved;
}

static bool turn_all(struct hrt_net *own) {
    bool moved = false;
    for (int i = 0; i < HRT_LANES; i++)
        moved |= own->lane[i].behind && turn(own, &own->lane[i], true);
    return moved;
}

static void *help(void *argument) {
    struct hrt_net *own = argument;
    pthread_mutex_lock(&own->lock);
    for (;;) {
        while (own->under_way == 0 && !own->leave) pthread_cond_wait(&own->work, &own->lock);
        if (own->leave) break;
        pthread_mutex_unlock(&own->lock);
        // Turns again: received data may let other lists go on.
        while (!atomic_load(&own->waiting) && turn_all(own)) {
        }
        nanosleep(&(struct timespec){.tv_nsec = own->interval_ns}, NULL);
        pthread_mutex_lock(&own->lock);
    }
    pthread_mutex_unlock(&own->lock);
    return NULL;
}

void hrt_net_helper_start(struct hrt_net *own) {
    // Without the thread lanes are turned where the program waits: slower, not wrong.
    own->threaded = own->threaded && pthread_create(&own->helper, NULL, help, own) == 0;
}

void hrt_net_helper_stop(struct hrt_net *own) {
    pthread_mutex_lock(&own->lock);
    assert(own->under_way == 0); // Nobody leaves with a list under way.
    own->leave = true;
    pthread_cond_signal(&own->work);
    pthread_mutex_unlock(&own->lock);
    if (own->threaded) pthread_join(own->helper, NULL);
}

void hrt_net_wait(struct hrt_net *own, bool begins) {
    atomic_store(&own->waiting, begins && own->crowded);
}

void hrt_net_help(struct hrt_net *own) {
    if (own->crowded || !own->threaded) turn_all(own);
}

void hrt_net_submit(struct hrt_comm *comm, int number, struct hrt_steps *steps) {
    struct hrt_net *own = comm->own;
    struct hrt_net_lane *lane = &own->lane[number];
    steps->later = NULL;
    steps->over = false;
    pthread_mutex_lock(&own->lock);
    steps->number = ++lane->submitted;
    if (lane->inbox) {
        lane->newest->later = steps;
    } else {
        lane->inbox = steps;
    }
    lane->newest = steps;
    own->under_way += lane->behind;
    if (own->threaded && lane->behind) pthread_cond_signal(&own->work);
    pthread_mutex_unlock(&own->lock);
    turn(own, lane, false);
}

bool hrt_net_reached(struct hrt_comm *comm, const struct hrt_mark *mark) {
    struct hrt_net *own = comm->own;
    struct hrt_net_lane *lane = &own->lane[mark->lane];
    return atomic_load(mark->arrival ? &lane->arrived : &lane->done) >= mark->number;
}

void hrt_net_join(struct hrt_comm *comm, const struct hrt_mark *mark, const char *why) {
    struct hrt_net *own = comm->own;
    struct hrt_net_lane *lane = &own->lane[mark->lane];
    hrt_net_busy(own);
    hrt_net_wait(own, true);
    while (!hrt_net_reached(comm, mark)) {
        const uint64_t before = atomic_load(&own->progress);
        if (pthread_mutex_trylock(&lane->turning) == 0) {
            if (!hrt_net_turn(own, lane, true) && !hrt_net_reached(comm, mark))
                hrt_net_watch(own, &lane->pieces, atomic_load(&lane->awaited), lane->number, why);
            pthread_mutex_unlock(&lane->turning);
        }
        hrt_net_help(own);
        if (atomic_load(&own->progress) != before) {
            hrt_net_busy(own);
        } else {
            hrt_net_nap(own);
        }
    }
    hrt_net_wait(own, false);
    hrt_net_busy(own);
}

// Every byte that was sent has been received, so it is known how much room is given back.
void hrt_net_lanes_drain(struct hrt_net *own) {
    for (int i = 0; i < HRT_LANES; i++) {
        struct hrt_net_lane *lane = &own->lane[i];
        for (int peer = 0; peer < own->size; peer++) {
            struct hrt_net_flow *flow = &lane->flow[peer];
            for (; flow->got < flow->sent / flow->half; flow->got++)
                hrt_net_post(
                    own, &lane->pieces,
                    (struct hrt_net_piece){.what = HRT_NET_GOT, .peer = peer, .tag = HRT_LANES + i},
                    NULL);
        }
        while (lane->pieces.count > 0) {
            if (hrt_net_advance(own, &lane->pieces) == 0) hrt_net_nap(own);
        }
    }
}
