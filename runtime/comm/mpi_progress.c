// Transfers in the background: MPI advances only inside its calls, so a helper thread calls it while
// the caller computes. It sleeps between two tests, and altogether when nothing is under way; one
// that waits inside MPI would take a core from the computation.
#include "runtime/comm/mpi_backend.h"

#include <assert.h>
#include <time.h>

// Under the lock: gives every job its turn and takes out those that have finished.
static void advance_jobs(struct hrt_mpi *own) {
    own->in_job = true;
    for (struct hrt_job **at = &own->jobs; *at;) {
        struct hrt_job *job = *at;
        if (job->advance(job, own->comm)) {
            *at = job->next;
            job->done = true; // From here on its memory is the caller's.
            own->progress++;
        } else {
            at = &job->next;
        }
    }
    own->in_job = false;
}

// Under the lock.
static void advance(struct hrt_mpi *own) {
    if (own->background.count > 0)
        own->progress += (uint64_t)hrt_mpi_advance(own, &own->background);
    advance_jobs(own);
}

// Under the lock: whether anything has moved since the caller last asked.
static bool has_moved(struct hrt_mpi *own) {
    const bool moved = own->progress != own->seen;
    own->seen = own->progress;
    return moved;
}

static void *help(void *argument) {
    struct hrt_mpi *own = argument;
    pthread_mutex_lock(&own->lock);
    for (;;) {
        while (own->background.count == 0 && !own->jobs && !own->leave)
            pthread_cond_wait(&own->work, &own->lock);
        if (own->leave) break;
        uint64_t before;
        do { // What has arrived may be what a job waited for to go on.
            before = own->progress;
            advance(own);
        } while (own->progress != before);
        pthread_mutex_unlock(&own->lock);
        nanosleep(&(struct timespec){.tv_nsec = own->interval_ns}, NULL);
        pthread_mutex_lock(&own->lock);
    }
    pthread_mutex_unlock(&own->lock);
    return NULL;
}

void hrt_mpi_helper_start(struct hrt_mpi *own) {
    pthread_mutexattr_t again; // A job's calls take the lock that its thread holds.
    pthread_mutexattr_init(&again);
    pthread_mutexattr_settype(&again, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&own->lock, &again);
    pthread_mutexattr_destroy(&again);
    pthread_cond_init(&own->work, NULL);
    // Without the thread transfers advance in hrt_mpi_test and in collectives: slower, not wrong.
    own->threaded = own->threaded && pthread_create(&own->helper, NULL, help, own) == 0;
}

void hrt_mpi_helper_stop(struct hrt_mpi *own) {
    pthread_mutex_lock(&own->lock);
    assert(own->background.count == 0 && !own->jobs); // Nobody leaves with a message under way.
    own->leave = true;
    pthread_cond_signal(&own->work);
    pthread_mutex_unlock(&own->lock);
    if (own->threaded) pthread_join(own->helper, NULL);
    pthread_cond_destroy(&own->work);
    pthread_mutex_destroy(&own->lock);
}

static void start(struct hrt_mpi *own, struct hrt_request *request, bool send) {
    const struct hrt_mpi_post post = {
        .comm = own->messages,
        .send = send,
        .peer = request->peer,
        .tag = request->tag,
        .data = request->data,
        .bytes = request->bytes,
        .message = request,
    };
    pthread_mutex_lock(&own->lock);
    hrt_mpi_start(own, &own->background, &post);
    if (own->threaded) pthread_cond_signal(&own->work);
    pthread_mutex_unlock(&own->lock);
}

void hrt_mpi_send_behind(struct hrt_comm *comm, struct hrt_request *request) {
    start(comm->own, request, true);
}

void hrt_mpi_receive_behind(struct hrt_comm *comm, struct hrt_request *request) {
    start(comm->own, request, false);
}

bool hrt_mpi_test(struct hrt_comm *comm, struct hrt_request *request) {
    struct hrt_mpi *own = comm->own;
    pthread_mutex_lock(&own->lock);
    if (own->in_job) { // Whoever turns the jobs has just looked, and waits for nothing.
        request->done = request->pieces == 0;
        pthread_mutex_unlock(&own->lock);
        return request->done;
    }
    advance(own);
    request->done = request->pieces == 0;
    const bool moved = has_moved(own);
    pthread_mutex_unlock(&own->lock);
    if (request->done || moved) {
        hrt_mpi_busy(own);
    } else {
        hrt_mpi_watch(own, &(struct hrt_mpi_piece){request, request->peer}, 1, "a transfer");
    }
    return request->done;
}

void hrt_mpi_job_start(struct hrt_comm *comm, struct hrt_job *job) {
    struct hrt_mpi *own = comm->own;
    struct hrt_job **last = &own->jobs;
    pthread_mutex_lock(&own->lock);
    assert(!own->in_job);
    while (*last) last = &(*last)->next;
    *last = job;
    advance(own);
    if (own->threaded) pthread_cond_signal(&own->work);
    pthread_mutex_unlock(&own->lock);
}

bool hrt_mpi_job_finished(struct hrt_comm *comm, struct hrt_job *job) {
    struct hrt_mpi *own = comm->own;
    pthread_mutex_lock(&own->lock);
    const bool done = job->done;
    pthread_mutex_unlock(&own->lock);
    return done;
}

void hrt_mpi_job_wait(struct hrt_comm *comm, struct hrt_job *job, const char *what) {
    struct hrt_mpi *own = comm->own;
    hrt_mpi_busy(own);
    for (;;) {
        pthread_mutex_lock(&own->lock);
        advance(own);
        const bool done = job->done, moved = has_moved(own);
        if (!done && !moved && own->background.count > 0)
            hrt_mpi_watch(own, own->background.of, own->background.count, what);
        pthread_mutex_unlock(&own->lock);
        if (done) break;
        if (moved) hrt_mpi_busy(own);
        if (!moved) hrt_mpi_nap(own);
    }
    hrt_mpi_busy(own);
}

void hrt_mpi_help(struct hrt_mpi *own) {
    if (own->threaded) return;
    pthread_mutex_lock(&own->lock);
    advance(own);
    pthread_mutex_unlock(&own->lock);
}
