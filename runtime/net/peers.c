// Watches the other ranks, and ends the job when one of them is lost.
//
// The processes of this machine are watched through descriptors of theirs (pidfd), which tell of
// their end even when the number is used again. A rank that sees a process end waits 4 s first: a launcher
// that ends the job by itself, which takes mpirun 2 s, then prints the only message. One rank of a machine
// prints; those of other machines wait a little longer than those before them. The rank that
// prints raises the alarm (heart.c), and all end.
#include "runtime/net/net.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/clock.h"

enum { NODES_APART = 16 }; // Beyond so many nodes ranks no longer wait for each other to print.

static void wait_seconds(double seconds) {
    struct timespec time = {.tv_sec = (time_t)seconds};
    time.tv_nsec = (long)((seconds - (double)time.tv_sec) * 1e9);
    while (nanosleep(&time, &time) != 0 && errno == EINTR) {
    }
}

static int open_process(int64_t process) {
#ifdef SYS_pidfd_open
    return (int)syscall(SYS_pidfd_open, (pid_t)process, 0);
#else
    (void)process;
    return -1;
#endif
}

void hrt_net_peers_open(struct hrt_net *own) {
    for (int r = 0; r < own->size; r++) {
        const struct hrt_net_peer *peer = &own->peer[r];
        const bool here = hrt_net_same_processes(peer, &own->peer[own->rank]);
        own->watch[r] = here && r != own->rank ? open_process(peer->process) : -1;
    }
}

void hrt_net_peers_close(struct hrt_net *own) {
    if (own->announced) hrt_net_flag_close(own->announced);
    for (int r = 0; r < own->size; r++) {
        if (own->watch[r] >= 0) close(own->watch[r]);
    }
}

static bool has_ended(const struct hrt_net *own, int rank) {
    struct pollfd process = {.fd = own->watch[rank], .events = POLLIN};
    return own->watch[rank] >= 0 && poll(&process, 1, 0) > 0;
}

// A rank that hangs does not end by itself, and not every launcher ends it.
static void end_process(const struct hrt_net *own, int rank) {
#ifdef SYS_pidfd_send_signal
    if (own->watch[rank] >= 0)
        syscall(SYS_pidfd_send_signal, own->watch[rank], SIGKILL, (void *)0, 0);
#else
    (void)own, (void)rank;
#endif
}

// The rank that ends the process of a hanging one: the first other rank of its machine; -1: there is none.
static int keeper_of(const struct hrt_net *own, int lost) {
    for (int r = 0; lost >= 0 && r < own->size; r++) {
        if (r != lost && hrt_net_same_processes(&own->peer[r], &own->peer[lost])) return r;
    }
    return -1;
}

// The others leave at once, which most launchers answer by ending everybody; then this is not needed.
static void clear_away(const struct hrt_net *own, int lost) {
    if (keeper_of(own, lost) != own->rank || has_ended(own, lost)) return;
    wait_seconds(3);
    end_process(own, lost);
}

// Ends this rank, and with it the job where the launcher cares. `all`: asks the launcher to end
// everybody. The transport may be in no state to do anything: then this process ends by a signal.
static _Noreturn void leave(struct hrt_net *own, bool all) {
    alarm(5);
    fflush(stdout);
    if (all) own->wire->abort(own, HRT_EXIT_FAILED);
    _exit(HRT_EXIT_FAILED);
}

void hrt_net_follow(struct hrt_net *own, int lost) {
    own->calls->alarm(own->heart, lost,
                      false); // For those whom the rank that raised it does not reach.
    wait_seconds(0.5);        // The other message comes first.
    clear_away(own, lost);
    leave(own, false);
}

// Whether the launcher may be about to end the job for the same reason.
enum seen { BY_US, BY_LAUNCHER };

// Ends the job because of rank `lost` (-1: of something else); one rank prints the sentence. All
// others follow its alarm, so that the launcher is needed only for a rank that nobody reaches. Launchers
// react differently to MPI_Abort, and mpirun --enable-recovery then hangs itself.
static _Noreturn void end(struct hrt_net *own, int lost, enum seen seen, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static _Noreturn void end(struct hrt_net *own, int lost, enum seen seen, const char *format, ...) {
    const int32_t node = own->node_of[own->rank];
    const int first = seen == BY_LAUNCHER ? 40 : 5;
    const int waits = first + 5 * (node < NODES_APART ? node : NODES_APART);
    for (int i = 0; i < waits; i++) {
        wait_seconds(0.1);
        if (own->heart) own->calls->follow(own->heart);
    }
    if (own->announced && atomic_exchange(own->announced, 1) != 0) {
        wait_seconds(5); // The alarm of the rank that prints ends us.
        leave(own, true);
    }
    char sentence[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    fflush(stdout);
    fprintf(stderr, "%s: error: %s\n", program_invocation_short_name, sentence);
    if (own->heart) own->calls->alarm(own->heart, lost, true);
    const bool gone = lost >= 0 && has_ended(own, lost), last = own->size == 2;
    const bool alone = !own->heart || (!gone && (last || keeper_of(own, lost) < 0));
    if (!alone) clear_away(own, lost);
    leave(own, alone);
}

// "rank 3 (process 4711 on n1)"
struct label {
    char text[160];
};

static struct label label_of(const struct hrt_net *own, int rank) {
    const struct hrt_net_peer *peer = &own->peer[rank];
    struct label label;
    snprintf(label.text, sizeof label.text, "rank %d (process %lld on %s)", rank,
             (long long)peer->process, peer->host);
    return label;
}

void hrt_net_fail(struct hrt_net *own, int peer, const char *what, const char *why) {
    if (peer >= 0)
        end(own, peer, BY_LAUNCHER, "lost %s: %s failed on rank %d: %s", label_of(own, peer).text,
            what, own->rank, why);
    end(own, -1, BY_LAUNCHER, "%s failed on rank %d: %s", what, own->rank, why);
}

void hrt_net_disagree(struct hrt_net *own, const char *format, ...) {
    char sentence[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    end(own, -1, BY_US, "%s", sentence);
}

void hrt_net_busy(struct hrt_net *own) {
    own->idle = 0;
    if (atomic_load_explicit(&own->awaits, memory_order_relaxed) >= 0)
        atomic_store(&own->awaits, -1);
}

void hrt_net_look(struct hrt_net *own) {
    for (int r = 0; r < own->size; r++) {
        if (has_ended(own, r))
            end(own, r, BY_LAUNCHER, "lost %s: its process ended", label_of(own, r).text);
    }
}

void hrt_net_silent(struct hrt_net *own, int rank) {
    end(own, rank, BY_US,
        "lost %s: no heartbeat for %d s on rank %d: it hangs, or its machine or the network "
        "between them is gone (HECATE_COMM_TIMEOUT=SECONDS allows more)",
        label_of(own, rank).text, own->timeout, own->rank);
}

void hrt_net_alone(struct hrt_net *own) {
    end(own, -1, BY_US,
        "lost %s: it hears no other rank for %d s: its network is gone, or all other machines are "
        "(HECATE_COMM_TIMEOUT=SECONDS allows more)",
        label_of(own, own->rank).text, own->timeout);
}

void hrt_net_damaged(struct hrt_net *own, int peer, const char *what) {
    end(own, -1, BY_US,
        "rank %d received a damaged frame from %s: %s: a network card, a switch or memory is at "
        "fault",
        own->rank, label_of(own, peer).text, what);
}

// Nobody else has come to where others wait. `peer` may itself wait.
static _Noreturn void lose_patience(struct hrt_net *own, int peer, int lane, const char *what) {
    const int lost = own->heart ? own->calls->blame(own->heart, peer, lane) : peer;
    if (lost != peer)
        end(own, lost, BY_US,
            "lost %s: others wait for it, and rank %d for them, in %s, for %d s "
            "(HECATE_COMM_PATIENCE=SECONDS allows more)",
            label_of(own, lost).text, own->rank, what, own->patience);
    end(own, lost, BY_US,
        "lost %s: nothing came from it for %d s while rank %d waited for it in %s "
        "(HECATE_COMM_PATIENCE=SECONDS allows more)",
        label_of(own, lost).text, own->patience, own->rank, what);
}

void hrt_net_watch(struct hrt_net *own, const struct hrt_net_pieces *pieces, int peer, int lane,
                   const char *what) {
    enum { PATIENT_POLLS = 1000 }; // A caller that computes between two polls is not waiting.
    if (own->idle++ % 64) return;  // The clock costs more than a poll.
    const double time = hrt_base_now();
    if (own->idle == 1) {
        own->idle_from = time;
        own->look_at = time + 0.5;
    }
    if (time < own->look_at) return;
    own->look_at = time + 0.5;
    for (int i = 0; i < pieces->count; i++) {
        if (has_ended(own, pieces->of[i].peer))
            end(own, pieces->of[i].peer, BY_LAUNCHER,
                "lost %s: its process ended while rank %d waited for it in %s",
                label_of(own, pieces->of[i].peer).text, own->rank, what);
    }
    if (peer < 0) return;
    atomic_store(&own->awaits, (lane + 1) * own->size + peer);
    if (!own->patient && own->idle > PATIENT_POLLS && time - own->idle_from > own->patience)
        lose_patience(own, peer, lane, what);
}
