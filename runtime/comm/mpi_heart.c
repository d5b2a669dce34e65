// Signs of life. Every rank tells the next one every second that it lives, and listens to the one
// before it: a rank that hangs, or whose machine or network is gone, is noticed by its neighbour
// whether or not anybody waits for it. A thread of its own does this, so a rank may compute for as
// long as it likes. Whoever finds a rank lost raises an alarm that all others follow, so that the job
// ends without the launcher's help.
//
// Silence is counted in this thread's own beats, not by the clock: a job that was stopped as a whole
// and goes on (a suspended queue, a laptop's lid) does not take its ranks for lost.
#include "runtime/comm/mpi_backend.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

enum { ALIVE = 1, LEAVES = 2 };
enum { SIGN_TAG, ALARM_TAG, ASK_TAG, ANSWER_TAG };

struct hrt_mpi_heart {
    struct hrt_mpi *own;
    MPI_Comm comm;
    int before, next;      // Whom it listens to, and who listens to it.
    int64_t period_ns;     // Between two beats.
    int64_t silent, limit; // Beats without a sign of `before`; so many, and it is lost.
    MPI_Request send, recv;
    char out, in; // ALIVE or LEAVES.
    bool left;    // `before` has said that it leaves.
    MPI_Request alarm;
    int32_t lost; // Of the alarm.
    MPI_Request question, answer;
    int32_t asked, answered; // A lane + 1; as own->awaits.

    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool ends, closing; // Under the lock. Closing: processes may end.
};

static void check(struct hrt_mpi_heart *heart, int code, int peer) {
    if (code != MPI_SUCCESS) hrt_mpi_fail(heart->own, code, peer, "a sign of life");
}

static void listen(struct hrt_mpi_heart *heart) {
    check(heart,
          MPI_Irecv(&heart->in, 1, MPI_BYTE, heart->before, SIGN_TAG, heart->comm, &heart->recv),
          heart->before);
}

// Takes in what has come from the rank before.
static void hear(struct hrt_mpi_heart *heart) {
    int came = 1;
    heart->silent++;
    while (!heart->left) {
        check(heart, MPI_Test(&heart->recv, &came, MPI_STATUS_IGNORE), heart->before);
        if (!came) return;
        heart->silent = 0;
        heart->left = heart->in == LEAVES;
        if (!heart->left) listen(heart);
    }
}

// True: said. False: what was said before is still under way.
static bool say(struct hrt_mpi_heart *heart, char what) {
    int gone = 1;
    check(heart, MPI_Test(&heart->send, &gone, MPI_STATUS_IGNORE), heart->next);
    if (!gone) return false;
    heart->out = what;
    check(heart,
          MPI_Isend(&heart->out, 1, MPI_BYTE, heart->next, SIGN_TAG, heart->comm, &heart->send),
          heart->next);
    return true;
}

static void await_alarm(struct hrt_mpi_heart *heart) {
    check(heart,
          MPI_Irecv(&heart->lost, 1, MPI_INT32_T, MPI_ANY_SOURCE, ALARM_TAG, heart->comm,
                    &heart->alarm),
          -1);
}

static void follow(struct hrt_mpi_heart *heart) {
    if (!pthread_equal(pthread_self(), heart->thread)) return;
    int raised;
    check(heart, MPI_Test(&heart->alarm, &raised, MPI_STATUS_IGNORE), -1);
    if (raised) hrt_mpi_follow(heart->own, heart->lost);
}

// ---- whom a rank waits for

static void listen_to_questions(struct hrt_mpi_heart *heart) {
    check(heart,
          MPI_Irecv(&heart->asked, 1, MPI_INT32_T, MPI_ANY_SOURCE, ASK_TAG, heart->comm,
                    &heart->question),
          -1);
}

// Of a lane: whom its own list waits for; else whom this rank waits for, and so has not come to that list.
static int32_t awaits(const struct hrt_mpi *own, int32_t asked) {
    const int peer = asked > 0 ? atomic_load(&own->lane[asked - 1].awaited) : -1;
    return peer >= 0 ? asked * own->size + peer : atomic_load(&own->awaits);
}

static void answer_questions(struct hrt_mpi_heart *heart) {
    for (;;) {
        int came, gone;
        MPI_Status status;
        check(heart, MPI_Test(&heart->answer, &gone, MPI_STATUS_IGNORE), -1);
        if (!gone) return;
        check(heart, MPI_Test(&heart->question, &came, &status), -1);
        if (!came) return;
        heart->answered = awaits(heart->own, heart->asked);
        check(heart,
              MPI_Isend(&heart->answered, 1, MPI_INT32_T, status.MPI_SOURCE, ANSWER_TAG,
                        heart->comm, &heart->answer),
              status.MPI_SOURCE);
        listen_to_questions(heart);
    }
}

// False: no answer.
static bool ask(struct hrt_mpi_heart *heart, int peer, int32_t lane, int32_t *answer) {
    enum { TRIES = 400 };           // Four seconds: a heart beats once in one.
    static int32_t question, heard; // MPI may come back to them when nobody waits any longer.
    MPI_Request request[2];
    int done = 0;
    question = lane;
    if (MPI_Irecv(&heard, 1, MPI_INT32_T, peer, ANSWER_TAG, heart->comm, &request[0]) !=
            MPI_SUCCESS ||
        MPI_Isend(&question, 1, MPI_INT32_T, peer, ASK_TAG, heart->comm, &request[1]) !=
            MPI_SUCCESS)
        return false;
    for (int i = 0; i < TRIES && !done; i++) {
        if (MPI_Testall(2, request, &done, MPI_STATUSES_IGNORE) != MPI_SUCCESS) return false;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    *answer = heard;
    return done;
}

static int blame(struct hrt_mpi_heart *heart, int peer, int lane) {
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

static void raise_alarm(struct hrt_mpi_heart *heart, int lost) {
    enum { TRIES = 100 }; // A second: to a lost rank it may never arrive.
    static int32_t rank;  // Outlives this call.
    const int size = heart->own->size;
    MPI_Request *request = malloc((size_t)size * sizeof *request);
    rank = lost;
    int count = 0, gone = 0;
    for (int r = 0; request && r < size; r++) {
        if (r == heart->own->rank) continue;
        if (MPI_Isend(&rank, 1, MPI_INT32_T, r, ALARM_TAG, heart->comm, &request[count]) ==
            MPI_SUCCESS)
            count++;
    }
    for (int i = 0; i < TRIES && !gone; i++) {
        if (MPI_Testall(count, request, &gone, MPI_STATUSES_IGNORE) != MPI_SUCCESS) break;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
}

// Sleeps one period, or until the end is asked for. True: go on.
static bool rest(struct hrt_mpi_heart *heart, bool *closing) {
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
    struct hrt_mpi_heart *heart = argument;
    bool closing;
    while (rest(heart, &closing)) {
        follow(heart);
        say(heart, ALIVE);
        hear(heart);
        answer_questions(heart);
        if (heart->silent >= heart->limit) hrt_mpi_silent(heart->own, heart->before);
        if (!closing) hrt_mpi_look(heart->own);
    }
    return NULL;
}

// Both say that they leave, so that no message is left behind. One that does not is on its way out
// otherwise, or MPI_Finalize will tell.
static void take_leave(struct hrt_mpi_heart *heart) {
    const struct timespec nap = {.tv_nsec = 1000000};
    int gone = 0;
    bool said = false;
    for (int tries = 0; tries < 10000 && !(gone && heart->left); tries++) {
        said = said || say(heart, LEAVES);
        if (said) check(heart, MPI_Test(&heart->send, &gone, MPI_STATUS_IGNORE), heart->next);
        hear(heart);
        nanosleep(&nap, NULL);
    }
}

struct hrt_mpi_heart *hrt_mpi_heart_start(struct hrt_mpi *own, int timeout) {
    static const struct hrt_mpi_heart_calls calls = {
        .alarm = raise_alarm, .follow = follow, .blame = blame};
    int provided;
    MPI_Query_thread(&provided);
    if (own->size == 1 || provided != MPI_THREAD_MULTIPLE) return NULL;
    struct hrt_mpi_heart *heart = calloc(1, sizeof *heart);
    if (!heart) hrt_mpi_fail(own, MPI_ERR_NO_MEM, -1, "watching ranks");
    heart->own = own;
    own->calls = &calls;
    heart->before = (own->rank + own->size - 1) % own->size;
    heart->next = (own->rank + 1) % own->size;
    heart->period_ns = timeout < 5 ? timeout * 200000000L : 1000000000L;
    heart->limit = timeout * 1000000000L / heart->period_ns;
    heart->send = MPI_REQUEST_NULL;
    MPI_Comm_dup(own->collectives, &heart->comm);
    listen(heart);
    await_alarm(heart);
    heart->answer = MPI_REQUEST_NULL;
    listen_to_questions(heart);
    pthread_condattr_t steady;
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_mutex_init(&heart->lock, NULL);
    pthread_cond_init(&heart->wake, &steady);
    pthread_condattr_destroy(&steady);
    if (pthread_create(&heart->thread, NULL, beat, heart) != 0)
        hrt_mpi_fail(own, MPI_ERR_NO_MEM, -1, "watching ranks");
    return heart;
}

void hrt_mpi_heart_closing(struct hrt_mpi_heart *heart) {
    if (!heart) return;
    pthread_mutex_lock(&heart->lock);
    heart->closing = true;
    pthread_mutex_unlock(&heart->lock);
}

void hrt_mpi_heart_stop(struct hrt_mpi_heart *heart) {
    if (!heart) return;
    pthread_mutex_lock(&heart->lock);
    heart->ends = true;
    pthread_cond_signal(&heart->wake);
    pthread_mutex_unlock(&heart->lock);
    pthread_join(heart->thread, NULL);
    MPI_Cancel(&heart->alarm);
    MPI_Wait(&heart->alarm, MPI_STATUS_IGNORE);
    MPI_Cancel(&heart->question);
    MPI_Wait(&heart->question, MPI_STATUS_IGNORE);
    MPI_Wait(&heart->answer, MPI_STATUS_IGNORE);
    take_leave(heart);
    pthread_cond_destroy(&heart->wake);
    pthread_mutex_destroy(&heart->lock);
    if (heart->left) MPI_Comm_free(&heart->comm);
    if (heart->left) free(heart); // Else MPI still writes into it.
}
