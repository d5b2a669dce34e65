// Signs of life. Every rank tells the next one every second that it lives, and listens to the one
// before it: a rank that hangs, or whose machine or network is gone, is noticed by its neighbour
// whether or not anybody waits for it. A thread of its own does this, so a rank may compute for as
// long as it likes. A rank that finds another one lost raises an alarm that all others follow and pass on, so the job
// ends without the launcher's help. A rank that misses its neighbour asks the others first: if none answers, it is the
// one that is lost.
//
// Silence is counted in this thread's own beats, not by the clock: a job that was stopped as a whole
// and goes on (a suspended queue, a laptop's lid) does not take its ranks for lost.
#include "runtime/net/net.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

enum { ALIVE = 1, LEAVES = 2 };

struct hrt_net_heart {
    struct hrt_net *own;
    int before, next;      // It listens to `before`; `next` listens to it.
    int64_t period_ns;     // Between two beats.
    int64_t silent, limit; // Beats without a sign of `before`; so many, and it is lost.
    bool left;             // `before` has said that it leaves.

    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool ends, closing; // Under the lock. Closing: processes may end.
};

// Takes in what has come from the rank before.
static void hear(struct hrt_net_heart *heart) {
    int32_t sign;
    heart->silent++;
    while (!heart->left &&
           heart->own->wire->told(heart->own, HRT_NOTE_SIGN, &heart->before, &sign)) {
        heart->silent = 0;
        heart->left = sign == LEAVES;
    }
}

// False: the message before is still under way.
static bool say(struct hrt_net_heart *heart, int32_t what) {
    return heart->own->wire->tell(heart->own, heart->next, HRT_NOTE_SIGN, what);
}

static void follow(struct hrt_net_heart *heart) {
    int32_t lost;
    int who = -1;
    if (!pthread_equal(pthread_self(), heart->thread)) return;
    if (heart->own->wire->told(heart->own, HRT_NOTE_ALARM, &who, &lost))
        hrt_net_follow(heart->own, lost);
}

// ---- whom a rank waits for

// The rank that lane `asked` waits for; if it waits for none, the rank that this one waits for elsewhere.
static int32_t awaits(const struct hrt_net *own, int32_t asked) {
    const int peer = asked > 0 ? atomic_load(&own->lane[asked - 1].awaited) : -1;
    return peer >= 0 ? asked * own->size + peer : atomic_load(&own->awaits);
}

static void answer_questions(struct hrt_net_heart *heart) {
    const struct hrt_wire *wire = heart->own->wire;
    int32_t asked;
    for (int who = -1; wire->told(heart->own, HRT_NOTE_ASK, &who, &asked); who = -1)
        wire->tell(heart->own, who, HRT_NOTE_ANSWER, awaits(heart->own, asked));
}

// False: no answer.
static bool ask(struct hrt_net_heart *heart, int peer, int32_t lane, int32_t *answer) {
    enum { TRIES = 400 }; // Four seconds: a heart beats once in one.
    const struct hrt_wire *wire = heart->own->wire;
    bool heard = false;
    if (!wire->tell(heart->own, peer, HRT_NOTE_ASK, lane)) return false;
    for (int i = 0; i < TRIES && !heard; i++) {
        heard = wire->told(heart->own, HRT_NOTE_ANSWER, &peer, answer);
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    return heard;
}

static int blame(struct hrt_net_heart *heart, int peer, int lane) {
    const int size = heart->own->size;
    int32_t on = lane + 1;
    for (int i = 0; i < size && peer != heart->own->rank; i++) {
        int32_t answer;
        if (!ask(heart, peer, on, &answer) || answer < 0) return peer;
        peer = answer % size;
        on = answer / size;
    }
    return peer;
}

static void raise_alarm(struct hrt_net_heart *heart, int lost, bool all) {
    enum { TRIES = 100 }; // A second: to a lost rank it may never arrive.
    struct hrt_net *own = heart->own;
    for (int r = 0; r < own->size; r++) {
        if (r != own->rank && (all || hpl_grid_near(&own->grid, own->rank, r)))
            own->wire->tell(own, r, HRT_NOTE_ALARM, lost);
    }
    for (int i = 0; i < TRIES && !own->wire->quiet(own); i++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
}

// Whether any near rank but the silent one answers within four seconds; of two ranks nobody can tell which is lost.
// Meanwhile the others get their answers, since some may ask at the same time.
static bool hears_others(struct hrt_net_heart *heart) {
    enum { TRIES = 400 };
    struct hrt_net *own = heart->own;
    for (int r = 0; r < own->size; r++) {
        if (r != own->rank && r != heart->before && hpl_grid_near(&own->grid, own->rank, r))
            own->wire->tell(own, r, HRT_NOTE_ASK, 0);
    }
    for (int i = 0; i < TRIES && own->size > 2; i++) {
        int32_t answer;
        int who = -1;
        if (own->wire->told(own, HRT_NOTE_ANSWER, &who, &answer)) return true;
        follow(heart);
        answer_questions(heart);
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    return own->size == 2;
}

static _Noreturn void miss(struct hrt_net_heart *heart) {
    if (hears_others(heart)) hrt_net_silent(heart->own, heart->before);
    hrt_net_alone(heart->own);
}

// Sleeps one period, or until the end is asked for. True: go on.
static bool rest(struct hrt_net_heart *heart, bool *closing) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += heart->period_ns;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&heart->lock);
    while (!heart->ends &&
           pthread_cond_timedwait(&heart->wake, &heart->lock, &until) != ETIMEDOUT) {
    }
    const bool goes_on = !heart->ends;
    *closing = heart->closing;
    pthread_mutex_unlock(&heart->lock);
    return goes_on;
}

static void *beat(void *argument) {
    struct hrt_net_heart *heart = argument;
    bool closing;
    while (rest(heart, &closing)) {
        follow(heart);
        say(heart, ALIVE);
        hear(heart);
        answer_questions(heart);
        if (heart->silent >= heart->limit) miss(heart);
        if (!closing) hrt_net_look(heart->own);
    }
    return NULL;
}

// Both say that they leave, so that no message is left behind. One that does not is on its way out
// otherwise, or the end of the transport will tell.
static void take_leave(struct hrt_net_heart *heart) {
    const struct timespec nap = {.tv_nsec = 1000000};
    struct hrt_net *own = heart->own;
    bool said = false;
    for (int tries = 0; tries < 10000 && !(said && heart->left && own->wire->quiet(own)); tries++) {
        said = said || say(heart, LEAVES);
        hear(heart);
        nanosleep(&nap, NULL);
    }
}

struct hrt_net_heart *hrt_net_heart_start(struct hrt_net *own, int timeout) {
    static const struct hrt_net_heart_calls calls = {
        .alarm = raise_alarm, .follow = follow, .blame = blame};
    if (own->size == 1 || !own->many_threads) return NULL;
    struct hrt_net_heart *heart = calloc(1, sizeof *heart);
    if (!heart) hrt_net_fail(own, -1, "watching ranks", "out of memory");
    heart->own = own;
    own->calls = &calls;
    heart->before = (own->rank + own->size - 1) % own->size;
    heart->next = (own->rank + 1) % own->size;
    heart->period_ns = timeout < 5 ? timeout * 200000000L : 1000000000L;
    heart->limit = timeout * 1000000000L / heart->period_ns;
    pthread_condattr_t steady;
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_mutex_init(&heart->lock, NULL);
    pthread_cond_init(&heart->wake, &steady);
    pthread_condattr_destroy(&steady);
    if (pthread_create(&heart->thread, NULL, beat, heart) != 0)
        hrt_net_fail(own, -1, "watching ranks", "no thread");
    return heart;
}

void hrt_net_heart_closing(struct hrt_net_heart *heart) {
    if (!heart) return;
    pthread_mutex_lock(&heart->lock);
    heart->closing = true;
    pthread_mutex_unlock(&heart->lock);
}

void hrt_net_heart_stop(struct hrt_net_heart *heart) {
    if (!heart) return;
    pthread_mutex_lock(&heart->lock);
    heart->ends = true;
    pthread_cond_signal(&heart->wake);
    pthread_mutex_unlock(&heart->lock);
    pthread_join(heart->thread, NULL);
    take_leave(heart);
    pthread_cond_destroy(&heart->wake);
    pthread_mutex_destroy(&heart->lock);
    free(heart);
}
