// Transfers in the background: MPI advances only inside its calls, so a helper thread calls it while
// the caller computes. It sleeps between two tests, and altogether when nothing is under way; one
// that waits inside MPI would take a core from the computation.
#include "runtime/comm/mpi_own.h"

#include <assert.h>
#include <time.h>

// Under the lock.
static void advance(struct hrt_mpi *own) {
    if (own->background.count > 0)
        own->progress += (uint64_t)hrt_mpi_advance(own, &own->background);
}

static void *help(void *argument) {
    struct hrt_mpi *own = argument;
    pthread_mutex_lock(&own->lock);
    for (;;) {
        while (own->background.count == 0 && !own->leave) pthread_cond_wait(&own->work, &own->lock);
        if (own->leave) break;
        advance(own);
        pthread_mutex_unlock(&own->lock);
        nanosleep(&(struct timespec){.tv_nsec = own->interval_ns}, NULL);
        pthread_mutex_lock(&own->lock);
    }
    pthread_mutex_unlock(&own->lock);
    return NULL;
}

void hrt_mpi_helper_start(struct hrt_mpi *own) {
    pthread_mutex_init(&own->lock, NULL);
    pthread_cond_init(&own->work, NULL);
    // Without the thread transfers advance in hrt_mpi_test and in collectives: slower, not wrong.
    own->threaded = own->threaded && pthread_create(&own->helper, NULL, help, own) == 0;
}

void hrt_mpi_helper_stop(struct hrt_mpi *own) {
    assert(own->background.count == 0); // Nobody may leave with a message under way.
    pthread_mutex_lock(&own->lock);
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
    advance(own);
    request->done = request->pieces == 0;
    const bool moved = own->progress != own->seen;
    own->seen = own->progress;
    pthread_mutex_unlock(&own->lock);
    if (request->done || moved) {
        hrt_mpi_busy(own);
    } else {
        hrt_mpi_watch(own, &(struct hrt_mpi_piece){request, request->peer}, 1, "a transfer");
    }
    return request->done;
}
