// The MPI back end: its state, and what its files do for each other. Nobody else includes this.
#ifndef HECATE_RUNTIME_COMM_MPI_BACKEND_H
#define HECATE_RUNTIME_COMM_MPI_BACKEND_H

#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>

#include "runtime/base/error.h"
#include "runtime/comm/comm.h"
#include "runtime/comm/job.h"

enum { HRT_MPI_PIECE = 1 << 20 }; // Bytes of one MPI message: TCP sends these eagerly.

// MPI messages under way. `request` and `of` are parallel; finished ones are taken out.
struct hrt_mpi_pieces {
    MPI_Request *request;
    struct hrt_mpi_piece {
        struct hrt_request *message; // NULL: of a collective.
        int peer;
    } * of;
    int *finished;
    MPI_Status *status;
    int count, room;
};

// What is known of every rank.
struct hrt_mpi_peer {
    char host[64];
    int64_t process;
    uint64_t boot;      // The machine, as long as it runs; 0: unknown.
    uint64_t processes; // Which numbering of processes it lives in (its PID namespace); 0: unknown.
    int32_t launched;   // Its rank in MPI_COMM_WORLD.
};

struct hrt_mpi {
    struct hrt_comm *comm;          // The caller's.
    MPI_Comm messages, collectives; // Separate, so that tags never meet.
    int rank, size;
    struct hrt_mpi_peer *peer; // [size]
    int *watch;            // [size] A descriptor that tells when the rank's process ends, or -1.
    atomic_int *announced; // Shared by the ranks of this machine: somebody prints the message.

    int timeout;      // Seconds without a sign of life after which a rank counts as lost.
    int patience;     // Seconds after which one that others wait for does, though it lives.
    int spins;        // Polls before a waiting rank sleeps between polls.
    long interval_ns; // Between two tests of the helper thread.

    struct hrt_mpi_pieces collective; // Only the caller's thread touches these.

    pthread_mutex_t lock; // Of what follows.
    pthread_cond_t work;
    struct hrt_mpi_pieces background;
    struct hrt_job *jobs; // In the order started.
    bool in_job;          // Calls come from a job's advance, by the thread that holds the lock.
    bool threaded, leave;
    uint64_t progress; // Pieces finished by either thread.
    pthread_t helper;

    // Of the wait that the caller is in; only its thread touches these.
    uint64_t seen;    // Progress when it last looked.
    int64_t idle;     // Polls since something advanced.
    double idle_from; // Time of the first of them.
    double look_at;   // Time at which to look at processes and the clock again.
    bool patient;     // It waits as long as the others live.

    struct hrt_mpi_heart *heart; // NULL: nobody watches.
    int32_t *node_of;
    char *scratch; // HRT_MPI_SCRATCH bytes, of all_reduce.
};

enum { HRT_MPI_SCRATCH = 8 << 20 };

// mpi_start.c: between the two calls this rank ends, with a message, after `seconds`. The caller owns `vigil`;
// where no thread can be had nobody watches.
struct hrt_mpi_vigil {
    int seconds, rank;
    bool watched;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool started; // Under the lock.
};
void hrt_mpi_vigil_begin(struct hrt_mpi_vigil *vigil, int seconds);
void hrt_mpi_vigil_end(struct hrt_mpi_vigil *vigil);

// mpi_machine.c: who this rank is.
void hrt_mpi_peer_self(struct hrt_mpi_peer *peer, int launched);

// Whether two ranks are on one machine; and whether each can name the other's process there.
bool hrt_mpi_same_machine(const struct hrt_mpi_peer *a, const struct hrt_mpi_peer *b);
bool hrt_mpi_same_processes(const struct hrt_mpi_peer *a, const struct hrt_mpi_peer *b);

// Whether this process has been put into a PID namespace that its launcher is not in, such as a container of
// its own. It may then have the same process number as other ranks. To be asked before MPI starts.
bool hrt_mpi_is_apart(void);

// A number in memory that the ranks of this machine share, 0 at first. Every rank calls it. NULL: no memory.
atomic_int *hrt_mpi_flag_open(const struct hrt_mpi *own);
void hrt_mpi_flag_close(atomic_int *flag);

// mpi_pieces.c: posts `bytes` at `data` as one or more MPI messages to or from `peer`. An error of
// MPI ends the job.
struct hrt_mpi_post {
    MPI_Comm comm;
    bool send;
    int peer, tag;
    char *data;
    size_t bytes;
    struct hrt_request *message;
};
void hrt_mpi_start(struct hrt_mpi *own, struct hrt_mpi_pieces *pieces,
                   const struct hrt_mpi_post *post);

// Takes out what has finished; returns how many.
int hrt_mpi_advance(struct hrt_mpi *own, struct hrt_mpi_pieces *pieces);

// Between two polls of a wait.
void hrt_mpi_nap(const struct hrt_mpi *own);

// Returns when all pieces of the collective called `what` have finished.
void hrt_mpi_finish(struct hrt_mpi *own, const char *what);

void hrt_mpi_pieces_free(struct hrt_mpi_pieces *pieces);

// mpi_progress.c: the helper thread, and transfers in the background.
void hrt_mpi_helper_start(struct hrt_mpi *own);
void hrt_mpi_helper_stop(struct hrt_mpi *own);
void hrt_mpi_send_behind(struct hrt_comm *comm, struct hrt_request *request);
void hrt_mpi_receive_behind(struct hrt_comm *comm, struct hrt_request *request);
bool hrt_mpi_test(struct hrt_comm *comm, struct hrt_request *request);
void hrt_mpi_job_start(struct hrt_comm *comm, struct hrt_job *job);
bool hrt_mpi_job_finished(struct hrt_comm *comm, struct hrt_job *job);
void hrt_mpi_job_wait(struct hrt_comm *comm, struct hrt_job *job, const char *what);

// Of a collective that waits: where there is no helper thread, does what it would do.
void hrt_mpi_help(struct hrt_mpi *own);

// mpi_peers.c: exchanges who is where, and starts to watch the processes of this machine.
void hrt_mpi_peers_open(struct hrt_mpi *own, int launched);
void hrt_mpi_peers_close(struct hrt_mpi *own);

// Called when the caller waits for `count` pieces and nothing advanced: ends the job when a peer of
// theirs is lost. `what` names the wait.
void hrt_mpi_watch(struct hrt_mpi *own, const struct hrt_mpi_piece *of, int count,
                   const char *what);

// Called when something advanced, and when a wait begins.
void hrt_mpi_busy(struct hrt_mpi *own);

// Ends the job when a process of this machine has ended.
void hrt_mpi_look(struct hrt_mpi *own);

// Ends the job because `rank` gives no sign of life.
_Noreturn void hrt_mpi_silent(struct hrt_mpi *own, int rank);

// mpi_heart.c: starts to tell the next rank that this one lives, and to listen to the one before;
// `timeout` seconds of silence end the job. Every rank calls it. NULL: MPI takes no calls of threads.
struct hrt_mpi_heart *hrt_mpi_heart_start(struct hrt_mpi *own, int timeout);

// From now on processes may end; and, when all ranks have said so, hearts may stop.
void hrt_mpi_heart_closing(struct hrt_mpi_heart *heart);
void hrt_mpi_heart_stop(struct hrt_mpi_heart *heart);

// Tells all ranks that `lost` is: they end too.
void hrt_mpi_heart_alarm(struct hrt_mpi_heart *heart, int lost);

// On the heart's own thread: looks for an alarm. Elsewhere nothing: that thread does.
void hrt_mpi_heart_follow(struct hrt_mpi_heart *heart);

// Ends this rank because of an alarm.
_Noreturn void hrt_mpi_follow(struct hrt_mpi *own, int lost);

// Ends the job because of an error of MPI; `peer` is -1 when it is not known.
_Noreturn void hrt_mpi_fail(struct hrt_mpi *own, int code, int peer, const char *what);

// mpi_reduce.c
void hrt_mpi_all_reduce(struct hrt_comm *comm, void *data, int64_t count, enum hrt_number type);

#endif
