// The MPI back end: its state, and what its files do for each other. Nobody else includes this.
#ifndef HECATE_RUNTIME_COMM_MPI_BACKEND_H
#define HECATE_RUNTIME_COMM_MPI_BACKEND_H

#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>

#include "runtime/base/error.h"
#include "runtime/comm/comm.h"
#include "runtime/transport/transport.h"

enum { HRT_MPI_PIECE = 1 << 20 }; // Bytes of one MPI message: TCP sends these eagerly.

// One MPI message, and what it is a piece of.
struct hrt_mpi_piece {
    enum {
        HRT_MPI_SENT,
        HRT_MPI_RECEIVED,
        HRT_MPI_GIVEN,
        HRT_MPI_GOT
    } what; // The last two: of windows.
    int peer, tag, bytes;
    struct hrt_steps *steps; // NULL: of a collective.
    struct hrt_step *step;
};

// MPI messages under way. `request` and `of` are parallel; finished ones are taken out, into `through`.
struct hrt_mpi_pieces {
    const char *name; // Of what moves, in messages.
    MPI_Comm comm;
    MPI_Request *request;
    struct hrt_mpi_piece *of, *through;
    int *finished;
    MPI_Status *status;
    int count, room;
};

// What a lane has sent to and received from a rank. Room is given back by empty messages, one for every `half` bytes
// received.
struct hrt_mpi_flow {
    uint64_t half; // Of the window, bytes; the same on both sides.
    uint64_t sent, received;
    uint64_t got, given; // Halves of the window, by the other side and by this one.
    bool listening;      // For the next one.
    uint64_t blocked;    // The scan in which a send to it had to wait: those behind it do, too.
};

struct hrt_mpi_lane {
    int number;
    bool behind; // The helper turns it; others are joined at once.
    size_t piece;

    pthread_mutex_t turning; // Held by who turns the lane; of what follows.
    struct hrt_mpi_pieces pieces;
    struct hrt_mpi_flow *flow; // [size]
    struct hrt_steps *first;   // In the order submitted.
    uint64_t scans;
    bool again; // Steps could be run.

    struct hrt_steps *inbox, *newest; // Under own->lock: submitted, and not taken in yet.
    uint64_t submitted;               // Likewise.
    atomic_uint_least64_t arrived, done;
    atomic_int awaited; // The rank for which its oldest list waits; -1: for nobody else.
};

// What is known of every rank.
struct hrt_mpi_peer {
    char host[64];
    int64_t process;
    uint64_t boot;      // The machine, as long as it runs; 0: unknown.
    uint64_t processes; // Which numbering of processes it lives in (its PID namespace); 0: unknown.
    int32_t launched;   // Its rank in MPI_COMM_WORLD.
};

struct hrt_mpi_heart;

// What mpi_peers.c, which the heart calls, needs of the heart. Not called without one.
struct hrt_mpi_heart_calls {
    // Tells all ranks that `lost` is: they end too.
    void (*alarm)(struct hrt_mpi_heart *heart, int lost);
    // On the heart's own thread: looks for an alarm. Elsewhere nothing: that thread does.
    void (*follow)(struct hrt_mpi_heart *heart);
    // Called when this rank has waited too long for `peer` on `lane` (-1: in a collective): who keeps all waiting. It
    // may be another, for whom `peer` waits in turn: every rank's heart tells whom it waits for, until one waits for
    // nobody.
    int (*blame)(struct hrt_mpi_heart *heart, int peer, int lane);
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
    struct hrt_mpi_lane lane[HRT_LANES];
    atomic_uint_least64_t progress; // Of all lanes, by either thread.

    pthread_mutex_t lock; // Held for a few instructions only. Of what follows.
    pthread_cond_t work;
    int64_t under_way; // Lists of lanes that the helper turns.
    bool threaded, leave;
    pthread_t helper;

    // Of the wait that the caller is in; only its thread touches these.
    uint64_t seen;    // Progress when it last looked.
    int64_t idle;     // Polls since something advanced.
    double idle_from; // Time of the first of them.
    double look_at;   // Time at which to look at processes and the clock again.
    bool patient;     // It waits as long as the others live.
    atomic_int
        awaits; // (lane + 1) * size + the rank that it waits for; lane -1: a collective. -1: for nobody.

    struct hrt_mpi_heart *heart; // NULL: nobody watches.
    const struct hrt_mpi_heart_calls *calls;
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

// mpi_pieces.c: posts one message of `piece.bytes` at `data`. An error of MPI ends the job.
void hrt_mpi_post(struct hrt_mpi *own, struct hrt_mpi_pieces *pieces, struct hrt_mpi_piece piece,
                  void *data);

// Posts `bytes` at `data` of a collective as one or more messages.
void hrt_mpi_start(struct hrt_mpi *own, bool send, int peer, char *data, size_t bytes);

// Takes out what has finished, into pieces->through; returns how many. Ends the job when less or more came than
// was expected.
int hrt_mpi_advance(struct hrt_mpi *own, struct hrt_mpi_pieces *pieces);

// Between two polls of a wait.
void hrt_mpi_nap(const struct hrt_mpi *own);

void hrt_mpi_pieces_free(struct hrt_mpi_pieces *pieces);

// transport/mpi_turn.c: does what can be done on a lane, by who holds lane->turning; false: nothing moved. Steps are
// run only if `runs`.
bool hrt_mpi_turn(struct hrt_mpi *own, struct hrt_mpi_lane *lane, bool runs);

// transport/mpi_lanes.c: the lanes, and the helper thread that turns them.
bool hrt_mpi_lanes_open(struct hrt_mpi *own);
void hrt_mpi_lanes_join(struct hrt_mpi *own); // When the nodes are known: the windows.
void hrt_mpi_helper_start(struct hrt_mpi *own);
void hrt_mpi_helper_stop(struct hrt_mpi *own);
void hrt_mpi_lanes_drain(struct hrt_mpi *own); // Collective: what is left of windows.
void hrt_mpi_lanes_free(struct hrt_mpi *own);
void hrt_mpi_submit(struct hrt_comm *comm, int lane, struct hrt_steps *steps);
bool hrt_mpi_reached(struct hrt_comm *comm, const struct hrt_mark *mark);
void hrt_mpi_join(struct hrt_comm *comm, const struct hrt_mark *mark, const char *why);

// Of a collective that waits: where there is no helper thread, does what it would do.
void hrt_mpi_help(struct hrt_mpi *own);

// mpi_peers.c: exchanges who is where, and starts to watch the processes of this machine.
void hrt_mpi_peers_open(struct hrt_mpi *own, int launched);
void hrt_mpi_peers_close(struct hrt_mpi *own);

// Called when the caller waits for `pieces`, above all those of `peer`, on `lane` (-1: in a collective), and nothing
// advanced: ends the job when one of their ranks is lost. `what` names the wait.
void hrt_mpi_watch(struct hrt_mpi *own, const struct hrt_mpi_pieces *pieces, int peer, int lane,
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

// Ends this rank because of an alarm.
_Noreturn void hrt_mpi_follow(struct hrt_mpi *own, int lost);

// Ends the job because of what ranks sent each other.
_Noreturn void hrt_mpi_disagree(struct hrt_mpi *own, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// Ends the job because of an error of MPI; `peer` is -1 when it is not known.
_Noreturn void hrt_mpi_fail(struct hrt_mpi *own, int code, int peer, const char *what);

// mpi_reduce.c: returns when all pieces of the collective called `what` have finished.
void hrt_mpi_finish(struct hrt_mpi *own, const char *what);

void hrt_mpi_all_reduce(struct hrt_comm *comm, void *data, int64_t count, enum hrt_number type);

#endif
