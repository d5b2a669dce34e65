// Several ranks: everything that does not depend on the transport. Lanes, sums, lost ranks. A transport carries
// messages: MPI (mpi.c), or TCP (tcp.c). Only these files and tests include this.
//
// A lost rank ends the job. mpirun ends all ranks by itself when one dies, and names it. Where the
// launcher does not, the others see within a second that a process of their machine has ended. A rank that
// hangs, or whose machine or network is gone, is missed by its neighbour after HECATE_COMM_TIMEOUT
// seconds (20): every rank says once a second that it lives, from a thread of its own, so computing
// for long is no silence. One that lives but keeps others waiting is lost after HECATE_COMM_PATIENCE
// seconds (300), unless all are patient (hrt_net_comm_be_patient). One rank then prints who was lost and raises an
// alarm; all that hear it exit with code 1 (HRT_EXIT_FAILED), and end a process of their machine that hangs.
//
// Lanes (net/transport.h) advance while the caller computes: a helper thread turns them every 200 us (1 ms
// where ranks share cores) and sleeps when nothing is under way. HECATE_COMM_PROGRESS=poll leaves it out: they
// then advance where the program joins one, and in collectives.
#ifndef HECATE_RUNTIME_NET_NET_H
#define HECATE_RUNTIME_NET_NET_H

#include <pthread.h>
#include <stdatomic.h>

#include "runtime/base/error.h"
#include "runtime/net/comm.h"
#include "runtime/net/transport.h"
#include "runtime/plan/grid.h"

enum {
    HRT_NET_PIECE = 1 << 20,           // Bytes of one message: MPI over TCP sends these eagerly.
    HRT_NET_COLLECTIVE = 2 * HRT_LANES // The tag behind those of lanes, which have two each.
};

// One message, and the list that it is a piece of.
struct hrt_net_piece {
    enum {
        HRT_NET_SENT,
        HRT_NET_RECEIVED,
        HRT_NET_GIVEN,
        HRT_NET_GOT
    } what; // The last two: of windows.
    int peer, tag, bytes;
    struct hrt_steps *steps; // NULL: of a collective.
    struct hrt_step *step;
};

// Messages under way. `request` and `of` are parallel; finished ones are taken out, into `through`.
struct hrt_net_pieces {
    const char *name; // Name of the list, in messages.
    char *request;    // For the transport: wire->request bytes each.
    struct hrt_net_piece *of, *through;
    int *finished;
    int *came;    // Bytes of each finished one that was received; -1: more than there is room for.
    char *status; // Scratch of the transport: wire->status bytes each.
    int count, room;
};

// Bytes that a lane has sent to and received from a rank. Room is given back by empty messages, one for every `half`
// bytes received.
struct hrt_net_flow {
    uint64_t half; // Half of the window, in bytes; the same on both sides.
    uint64_t sent, received;
    uint64_t got, given; // Halves of the window, by the other side and by this one.
    bool listening;      // For the next one.
    uint64_t blocked;    // The scan in which a send to it had to wait: those behind it do, too.
};

struct hrt_net_lane {
    int number;
    bool behind; // The helper turns it; others are joined at once.
    size_t piece;

    pthread_mutex_t turning; // Held by the thread that turns the lane; guards the fields below.
    struct hrt_net_pieces pieces;
    struct hrt_net_flow *flow; // [size]
    struct hrt_steps *first;   // In the order submitted.
    uint64_t scans;
    bool again; // Steps could be run.

    struct hrt_steps *inbox, *newest; // Under own->lock: submitted, and not taken in yet.
    uint64_t submitted;               // Likewise.
    atomic_uint_least64_t arrived, done;
    atomic_int awaited; // The rank for which its oldest list waits; -1: for nobody else.
};

// Facts known of every rank.
struct hrt_net_peer {
    char host[64];
    int64_t process;
    uint64_t boot;      // The machine, as long as it runs; 0: unknown.
    uint64_t processes; // Which numbering of processes it lives in (its PID namespace); 0: unknown.
    int32_t launched;   // Its rank as the launcher counts.
};

struct hrt_net_heart;
struct hrt_net;

// A transport. Between two ranks messages of one tag keep their order. An error ends the job.
struct hrt_wire {
    size_t request, status; // Bytes.
    // Begins the next message of `pieces`, `piece.bytes` at `data`, and fills in its request.
    void (*post)(struct hrt_net *own, struct hrt_net_pieces *pieces,
                 const struct hrt_net_piece *piece, void *data);
    // Which have finished: sets `finished`, numbers of pieces, and `came`; returns how many.
    int (*test)(struct hrt_net *own, struct hrt_net_pieces *pieces);
    // Notes, small messages between the threads that watch. Sends one; false: too much is under way.
    bool (*tell)(struct hrt_net *own, int peer, int kind, int32_t value);
    // Takes the next note of `kind` of *peer, or of anybody (-1), whom it names there. False: none has come.
    bool (*told)(struct hrt_net *own, int kind, int *peer, int32_t *value);
    // Whether all notes have left.
    bool (*quiet)(struct hrt_net *own);
    // Asks for the end of all ranks; may return.
    void (*abort)(struct hrt_net *own, int exit_code);
    // All ranks are done with each other.
    void (*close)(struct hrt_net *own);
};

enum { HRT_NOTE_SIGN, HRT_NOTE_ALARM, HRT_NOTE_ASK, HRT_NOTE_ANSWER, HRT_NOTES };

// Functions of the heart that peers.c, which the heart calls, needs. Not called without one.
struct hrt_net_heart_calls {
    // Tells all ranks that `lost` is: they end too. `all` false: those near in the grid, of an alarm that is passed on.
    void (*alarm)(struct hrt_net_heart *heart, int lost, bool all);
    // On the heart's own thread: looks for an alarm. Elsewhere nothing: that thread does.
    void (*follow)(struct hrt_net_heart *heart);
    // Called when this rank has waited too long for `peer` on `lane` (-1: in a collective): finds the rank that keeps
    // all waiting. It may be another, for whom `peer` waits in turn: every rank's heart tells whom it waits for, until
    // one waits for nobody.
    int (*blame)(struct hrt_net_heart *heart, int peer, int lane);
};

struct hrt_net {
    struct hrt_comm *comm; // The caller's.
    const struct hrt_wire *wire;
    void *wire_own;
    bool many_threads; // The transport takes calls of several.
    int rank, size;
    struct hrt_net_peer *peer; // [size]
    int *watch;            // [size] A descriptor that tells when the rank's process ends, or -1.
    atomic_int *announced; // Shared by the ranks of this machine: somebody prints the message.

    int timeout;      // Seconds without a heartbeat after which a rank counts as lost.
    int patience;     // Seconds after which one that others wait for does, though it lives.
    int spins;        // Polls before a waiting rank sleeps between polls.
    long interval_ns; // Between two tests of the helper thread.
    bool crowded;     // The ranks of this machine leave no core for helper threads.

    struct hrt_net_pieces collective; // Only the caller's thread touches these.
    struct hrt_net_lane lane[HRT_LANES];
    atomic_uint_least64_t progress; // Progress of all lanes, by either thread.

    pthread_mutex_t lock; // Held for a few instructions only. It guards the fields below.
    pthread_cond_t work;
    int64_t under_way; // Lists of lanes that the helper turns.
    bool threaded, leave;
    pthread_t helper;
    atomic_bool waiting; // The caller waits and turns every lane; the helper lets it.

    // The wait that the caller is in; only its thread touches these.
    uint64_t seen;    // Progress when it last looked.
    int64_t idle;     // Polls since something advanced.
    double idle_from; // Time of the first of them.
    double look_at;   // Time at which to look at processes and the clock again.
    bool patient;     // It waits as long as the others live.
    atomic_int
        awaits; // (lane + 1) * size + the rank that it waits for; lane -1: a collective. -1: for nobody.

    struct hrt_net_heart *heart; // NULL: nobody watches.
    const struct hrt_net_heart_calls *calls;
    int32_t *node_of, *machine_of;
    struct hpl_grid grid;     // In which ranks tell each other.
    struct hrt_steps telling; // Messages of a collective over the grid.
    char *scratch;            // HRT_NET_SCRATCH bytes, of all_reduce.
};

enum {
    HRT_NET_SCRATCH = 8 << 20,
    HRT_NET_PATIENCE = 300 // Seconds, where HECATE_COMM_PATIENCE says nothing.
};

// net.c: a net of `size` ranks over `wire`; NULL: no memory.
struct hrt_net *hrt_net_reserve(const struct hrt_wire *wire, int size);
void hrt_net_free(struct hrt_net *own);

// Reads HECATE_COMM_TIMEOUT, HECATE_COMM_PATIENCE and HECATE_COMM_PROGRESS.
bool hrt_net_read_settings(struct hrt_net *own, struct hrt_error *error);

// Reads a variable of seconds; one that is not set leaves them as they are.
bool hrt_net_read_seconds(const char *variable, int *seconds, struct hrt_error *error);

// Lets ranks that have met begin: `own` knows its rank, node_of and peers, and its transport carries messages. Fills in
// `comm`. `key` is a number that is the same on all ranks, and another one in every run. Collective.
void hrt_net_begin(struct hrt_net *own, struct hrt_comm *comm, int nodes, uint64_t key);

// machine.c: the facts of this rank.
void hrt_net_peer_self(struct hrt_net_peer *peer, int launched);

// Whether two ranks are on one machine; and whether each can name the other's process there.
bool hrt_net_same_machine(const struct hrt_net_peer *a, const struct hrt_net_peer *b);
bool hrt_net_same_processes(const struct hrt_net_peer *a, const struct hrt_net_peer *b);

// Whether this process has been put into a PID namespace that its launcher is not in, such as a container of
// its own. It may then have the same process number as other ranks. To be asked before MPI starts.
bool hrt_net_is_apart(void);

// A number in memory that the ranks of this machine share, 0 at first: the first of them makes it and has a descriptor,
// then the others open it, then its name goes. -1: there is none, and every rank has its own.
int hrt_net_flag_open(const struct hrt_net *own, uint64_t key, bool make);
void hrt_net_flag_forget(const struct hrt_net *own, uint64_t key);
atomic_int *hrt_net_flag_map(int fd); // Closes it. NULL: no memory.
void hrt_net_flag_close(atomic_int *flag);

// pieces.c: posts one message of `piece.bytes` at `data`. An error ends the job.
void hrt_net_post(struct hrt_net *own, struct hrt_net_pieces *pieces, struct hrt_net_piece piece,
                  void *data);

// Posts `bytes` at `data` of a collective as one or more messages.
void hrt_net_start(struct hrt_net *own, bool send, int peer, char *data, size_t bytes);

// Moves finished messages into pieces->through; returns how many. Ends the job when less or more came than
// was expected.
int hrt_net_advance(struct hrt_net *own, struct hrt_net_pieces *pieces);

// Between two polls of a wait.
void hrt_net_nap(const struct hrt_net *own);

void hrt_net_pieces_free(struct hrt_net_pieces *pieces);

// net/turn.c: advances a lane as far as possible; the caller holds lane->turning; false: nothing moved. Steps are
// run only if `runs`.
bool hrt_net_turn(struct hrt_net *own, struct hrt_net_lane *lane, bool runs);

// net/lanes.c: the lanes, and the helper thread that turns them.
bool hrt_net_lanes_open(struct hrt_net *own);
void hrt_net_lanes_join(struct hrt_net *own); // When nodes and grid are known.
void hrt_net_helper_start(struct hrt_net *own);
void hrt_net_helper_stop(struct hrt_net *own);
void hrt_net_lanes_drain(struct hrt_net *own); // Collective: completes the windows.
void hrt_net_lanes_free(struct hrt_net *own);
void hrt_net_submit(struct hrt_comm *comm, int lane, struct hrt_steps *steps);
bool hrt_net_reached(struct hrt_comm *comm, const struct hrt_mark *mark);
void hrt_net_join(struct hrt_comm *comm, const struct hrt_mark *mark, const char *why);

// Between hrt_net_wait(own, true) and (own, false) the caller waits, and calls hrt_net_help at each look: it does the
// work of the helper thread where there is none, or no core for it.
void hrt_net_wait(struct hrt_net *own, bool begins);
void hrt_net_help(struct hrt_net *own);

// peers.c: starts to watch the processes of this machine.
void hrt_net_peers_open(struct hrt_net *own);
void hrt_net_peers_close(struct hrt_net *own);

// Called when the caller waits for `pieces`, above all those of `peer`, on `lane` (-1: in a collective), and nothing
// advanced: ends the job when one of their ranks is lost. `what` names the wait.
void hrt_net_watch(struct hrt_net *own, const struct hrt_net_pieces *pieces, int peer, int lane,
                   const char *what);

// Called when something advanced, and when a wait begins.
void hrt_net_busy(struct hrt_net *own);

// Ends the job when a process of this machine has ended.
void hrt_net_look(struct hrt_net *own);

// Ends the job because `rank` gives no heartbeat.
_Noreturn void hrt_net_silent(struct hrt_net *own, int rank);

// heart.c: starts to tell the next rank that this one lives, and to listen to the one before;
// `timeout` seconds of silence end the job. Every rank calls it. NULL: the transport takes no calls of threads.
struct hrt_net_heart *hrt_net_heart_start(struct hrt_net *own, int timeout);

// From now on processes may end; and, when all ranks have said so, hearts may stop.
void hrt_net_heart_closing(struct hrt_net_heart *heart);
void hrt_net_heart_stop(struct hrt_net_heart *heart);

// Ends this rank because of an alarm.
_Noreturn void hrt_net_follow(struct hrt_net *own, int lost);

// Ends the job because ranks sent each other different messages.
_Noreturn void hrt_net_disagree(struct hrt_net *own, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// Ends the job because data of `peer` arrived damaged; `what` names it.
_Noreturn void hrt_net_damaged(struct hrt_net *own, int peer, const char *what);

// Ends the job because this rank hears no other.
_Noreturn void hrt_net_alone(struct hrt_net *own);

// Ends the job because `what` failed; `peer` is -1 when it is not known.
_Noreturn void hrt_net_fail(struct hrt_net *own, int peer, const char *what, const char *why);

// reduce.c
void hrt_net_all_reduce(struct hrt_comm *comm, void *data, int64_t count, enum hrt_number type);

// Everybody tells everybody a block, at hrt_net_gathered_at of own->grid; returns when all have come. `what` names the
// wait.
void hrt_net_tell_all(struct hrt_net *own, void *blocks, size_t bytes, const char *what);

#endif
