// Turning a lane: posts messages that may be posted, takes in received ones, runs ready steps. A turning thread
// holds lane->turning and nothing else.
//
// Messages of a lane between two ranks follow one order on both sides, through all lists. So a send that cannot go
// yet holds back those behind it to the same rank, and a receive that cannot be posted all receives behind it.
#include <string.h>

#include "kernels/cpu/observe.h"
#include "runtime/net/net.h"

static void prepare(struct hrt_steps *steps) {
    steps->head = 0;
    steps->left = steps->count;
    steps->here = steps->unheard = 0;
    for (int32_t i = 0; i < steps->count; i++) {
        struct hrt_step *step = &steps->step[i];
        step->posted = 0;
        step->pieces = 0;
        step->done = false;
        steps->here += step->kind != HRT_SEND;
        steps->unheard += step->kind == HRT_SAME;
    }
}

// Lists that have been submitted since. False: none.
static bool take_in(struct hrt_net *own, struct hrt_net_lane *lane) {
    pthread_mutex_lock(&own->lock);
    struct hrt_steps *fresh = lane->inbox;
    lane->inbox = lane->newest = NULL;
    pthread_mutex_unlock(&own->lock);
    if (!fresh) return false;
    struct hrt_steps **last = &lane->first;
    while (*last) last = &(*last)->later;
    *last = fresh;
    for (; fresh; fresh = fresh->later) prepare(fresh);
    return true;
}

static void finish(struct hrt_steps *steps, struct hrt_step *step) {
    step->done = true;
    steps->left--;
    steps->here -= step->kind != HRT_SEND;
    if (step->kind == HRT_SAME && --steps->unheard == 0) steps->heard = hk_clock();
}

static void post(struct hrt_net *own, struct hrt_net_lane *lane, struct hrt_steps *steps,
                 struct hrt_step *step, size_t bytes) {
    const bool send = step->kind == HRT_SEND;
    char *data = send ? (char *)step->from : step->to; // A send only reads.
    hrt_net_post(own, &lane->pieces,
                 (struct hrt_net_piece){.what = send ? HRT_NET_SENT : HRT_NET_RECEIVED,
                                        .peer = step->peer,
                                        .tag = lane->number,
                                        .bytes = (int)bytes,
                                        .steps = steps,
                                        .step = step},
                 data + step->posted);
    step->posted += bytes;
    step->pieces++;
}

static size_t next_piece(const struct hrt_net_lane *lane, const struct hrt_step *step) {
    const size_t left = step->bytes - step->posted;
    return left < lane->piece ? left : lane->piece;
}

// Sends as much as there is room for. True: all.
static bool send_on(struct hrt_net *own, struct hrt_net_lane *lane, struct hrt_steps *steps,
                    struct hrt_step *step) {
    struct hrt_net_flow *flow = &lane->flow[step->peer];
    while (step->posted < step->bytes) {
        const size_t bytes = next_piece(lane, step);
        if (flow->sent + bytes > (flow->got + 2) * flow->half) {
            if (!flow->listening)
                hrt_net_post(own, &lane->pieces,
                             (struct hrt_net_piece){.what = HRT_NET_GOT,
                                                    .peer = step->peer,
                                                    .tag = HRT_LANES + lane->number},
                             NULL);
            flow->listening = true;
            return false;
        }
        flow->sent += bytes;
        post(own, lane, steps, step, bytes);
    }
    return true;
}

static void give_room(struct hrt_net *own, struct hrt_net_lane *lane, int peer) {
    struct hrt_net_flow *flow = &lane->flow[peer];
    for (; flow->given < flow->received / flow->half; flow->given++)
        hrt_net_post(own, &lane->pieces,
                     (struct hrt_net_piece){
                         .what = HRT_NET_GIVEN, .peer = peer, .tag = HRT_LANES + lane->number},
                     NULL);
}

static void take(struct hrt_net *own, struct hrt_net_lane *lane, struct hrt_net_piece piece) {
    struct hrt_net_flow *flow = &lane->flow[piece.peer];
    if (piece.what == HRT_NET_GIVEN) return;
    if (piece.what == HRT_NET_GOT) {
        flow->got++;
        flow->listening = false;
        return;
    }
    if (piece.what == HRT_NET_RECEIVED) {
        flow->received += (uint64_t)piece.bytes;
        give_room(own, lane, piece.peer);
    }
    if (--piece.step->pieces == 0 && piece.step->posted == piece.step->bytes)
        finish(piece.steps, piece.step);
}

static bool is_ready(const struct hrt_steps *steps, const struct hrt_step *step) {
    for (int i = 0; i < 2; i++) {
        if (step->after[i] >= 0 && !steps->step[step->after[i]].done) return false;
    }
    return true;
}

static void run(struct hrt_net *own, const struct hrt_net_lane *lane, struct hrt_steps *steps,
                struct hrt_step *step) {
    if (step->kind != HRT_SAME) {
        own->comm->run(step);
    } else if (memcmp(step->to, step->from, step->bytes) != 0) {
        hrt_net_disagree(own, "ranks %d and %d have planned differently which %s move where",
                         own->rank, step->peer, lane->pieces.name);
    }
    finish(steps, step);
}

// Begins what can begin of a list. `receives`: those of all lists before have been posted.
static void begin(struct hrt_net *own, struct hrt_net_lane *lane, struct hrt_steps *steps,
                  bool *receives, bool runs) {
    for (int32_t i = steps->head; i < steps->count; i++) {
        struct hrt_step *step = &steps->step[i];
        if (step->done) {
            steps->head += i == steps->head;
            continue;
        }
        const bool ready = is_ready(steps, step);
        if (step->kind == HRT_SEND) {
            struct hrt_net_flow *flow = &lane->flow[step->peer];
            if (flow->blocked != lane->scans && (!ready || !send_on(own, lane, steps, step)))
                flow->blocked = lane->scans;
        } else if (step->kind == HRT_RECV) {
            *receives = *receives && (step->posted > 0 || ready);
            while (*receives && step->posted < step->bytes)
                post(own, lane, steps, step, next_piece(lane, step));
        } else if (ready && runs) {
            run(own, lane, steps, step);
        } else if (ready) {
            lane->again = true;
        }
    }
}

// Whether a list has come to its end; one with `next` may go on.
static bool is_over(struct hrt_net_lane *lane, struct hrt_steps *steps, bool runs) {
    if (steps->left > 0 || !steps->next || steps->over) return steps->left == 0;
    lane->again = !runs;
    if (!runs) return false;
    steps->over = !steps->next(steps);
    if (steps->over) hrt_net_steps_clear(steps);
    prepare(steps);
    return steps->over;
}

// Says how far the lane has come. From then on lists that are done are their owners'.
static void publish(struct hrt_net *own, struct hrt_net_lane *lane) {
    uint64_t arrived = 0, done = 0;
    int64_t ended = 0;
    const struct hrt_lists_watch *watch = __atomic_load_n(&own->comm->lists, __ATOMIC_ACQUIRE);
    for (const struct hrt_steps *steps = lane->first;
         steps && steps->here == 0 && (!steps->next || steps->over); steps = steps->later)
        arrived = steps->number;
    while (lane->first && lane->first->left == 0 && (!lane->first->next || lane->first->over)) {
        lane->first->ended = hk_clock();
        if (watch) watch->ended(watch->context, lane->number, lane->first);
        done = lane->first->number;
        lane->first = lane->first->later;
        ended++;
    }
    if (arrived) atomic_store(&lane->arrived, arrived);
    if (done) atomic_store(&lane->done, done);
    if (ended == 0 || !lane->behind) return;
    pthread_mutex_lock(&own->lock);
    own->under_way -= ended;
    pthread_mutex_unlock(&own->lock);
}

// The first message that is left in the order of the list can go on as soon as the other side does its part.
static int awaited(const struct hrt_net_lane *lane) {
    const struct hrt_steps *steps = lane->first;
    for (int32_t i = steps ? steps->head : 0; steps && i < steps->count; i++) {
        const struct hrt_step *step = &steps->step[i];
        const bool message = step->kind == HRT_SEND || step->kind == HRT_RECV;
        if (message && !step->done && is_ready(steps, step)) return step->peer;
    }
    return -1;
}

static void scan(struct hrt_net *own, struct hrt_net_lane *lane, bool runs) {
    bool receives = true;
    lane->again = false;
    lane->scans++;
    for (struct hrt_steps *steps = lane->first; steps; steps = steps->later) {
        begin(own, lane, steps, &receives, runs);
        while (steps->left == 0 && !is_over(lane, steps, runs) && steps->count > 0 && runs)
            begin(own, lane, steps, &receives, runs);
        if (steps->next && !steps->over) break; // The steps that `next` makes go before others.
    }
    publish(own, lane);
    atomic_store(&lane->awaited, awaited(lane));
}

bool hrt_net_turn(struct hrt_net *own, struct hrt_net_lane *lane, bool runs) {
    bool moved = take_in(own, lane);
    const int through = lane->pieces.count > 0 ? hrt_net_advance(own, &lane->pieces) : 0;
    for (int i = 0; i < through; i++) take(own, lane, lane->pieces.through[i]);
    moved |= through > 0 || (runs && lane->again);
    if (!moved) return false;
    scan(own, lane, runs);
    atomic_fetch_add(&own->progress, 1);
    return true;
}
