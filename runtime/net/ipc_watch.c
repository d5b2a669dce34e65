// The host watches the pieces under way while it waits: it finds unexpected ones, and ranks that do not come.
#include "runtime/net/ipc.h"

#include <stdio.h>
#include <stdlib.h>

static uint32_t load(const uint32_t *word) {
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

// Pieces of the ring that have been taken, of those that this rank's GPU was asked to copy.
static uint64_t taken_of(const struct hrt_ipc_end *end, uint32_t taken) {
    return end->pieces - (uint32_t)((uint32_t)end->pieces - taken);
}

void hrt_ipc_expect(struct hrt_ipc *ipc, struct hrt_ipc_end *end, uint32_t token) {
    const uint64_t first = taken_of(end, load(&end->words->taken));
    if (end->pieces - first == end->room) {
        const uint32_t room = end->room ? 2 * end->room : 16;
        uint32_t *more = calloc(room, sizeof *more);
        if (!more) hrt_net_executor_fail(ipc->comm, "a receive", "out of memory");
        for (uint64_t n = first; n < end->pieces; n++)
            more[n % room] = end->expected[n % end->room];
        free(end->expected);
        end->expected = more;
        end->room = room;
    }
    end->expected[end->pieces % end->room] = token;
}

// ---- other pieces

// The token in the place of the first piece that has not been taken. False: all have, or the GPU is just taking it.
static bool next_token(const struct hrt_ipc_end *end, uint32_t *there, uint32_t *expected) {
    const uint32_t taken = load(&end->words->taken);
    const uint64_t first = taken_of(end, taken);
    if (first == end->pieces) return false;
    *expected = end->expected[first % end->room];
    *there = load(&end->words->ready[first % HRT_IPC_PLACES]);
    return load(&end->words->taken) == taken;
}

// Whether `there` belongs to the same turn of the place, but to another piece.
static bool is_other(uint32_t there, uint32_t expected) {
    enum { SIZE = (HRT_IPC_PIECE << 1) - 1 };
    return there != expected && (there & ~(uint32_t)SIZE) == (expected & ~(uint32_t)SIZE);
}

static const char *name_piece(char text[48], uint32_t token) {
    enum { SIZE = HRT_IPC_PIECE - 1, LAST = HRT_IPC_PIECE };
    snprintf(text, 48, "%u bytes%s", (token & SIZE) + 1, token & LAST ? "" : " and more");
    return text;
}

static void compare(const struct hrt_ipc *ipc, int peer, const struct hrt_ipc_end *end) {
    uint32_t there, expected;
    char sent[48], asked[48], why[200];
    if (!next_token(end, &there, &expected) || !is_other(there, expected)) return;
    snprintf(why, sizeof why, "rank %d receives %s, rank %d sends %s", ipc->comm->rank,
             name_piece(asked, expected), peer, name_piece(sent, there));
    hrt_net_executor_fail(ipc->comm, "a message", why);
}

// ---- ranks that do not come

// Another rank that has not sent what this one was asked to receive, or not taken what it was to send; -1: none.
static int late_rank(const struct hrt_ipc *ipc) {
    for (int way = 0; way < HRT_IPC_WAYS; way++) {
        for (int i = 0; i < HRT_LANES; i++) {
            for (int r = 0; hrt_ipc_moves(i) && r < ipc->comm->size; r++) {
                const struct hrt_ipc_end *end = &ipc->lane[i].end[way][r];
                if (r == ipc->comm->rank || taken_of(end, load(&end->words->taken)) == end->pieces)
                    continue;
                uint32_t there, expected;
                const bool here =
                    way == HRT_IPC_IN && (!next_token(end, &there, &expected) || there == expected);
                if (!here) return r;
            }
        }
    }
    return -1;
}

static void lose_patience(const struct hrt_ipc *ipc) {
    struct hrt_comm *comm = ipc->comm;
    const int late = late_rank(ipc);
    char who[32] = "others", why[160];
    if (late >= 0) snprintf(who, sizeof who, "rank %d", late);
    snprintf(
        why, sizeof why,
        "this rank's GPU has waited for %s for %d s (HECATE_COMM_PATIENCE=SECONDS allows more)",
        who, comm->patience);
    hrt_net_executor_fail(comm, "a message", why);
}

void hrt_ipc_look(void *context, double seconds) {
    const struct hrt_ipc *ipc = context;
    struct hrt_comm *comm = ipc->comm;
    const int turn = comm->rank < 10 ? comm->rank : 10; // One speaks, and ends the others.
    for (int i = 0; i < HRT_LANES; i++) {
        for (int r = 0; hrt_ipc_moves(i) && r < comm->size; r++) {
            if (r != comm->rank) compare(ipc, r, &ipc->lane[i].end[HRT_IPC_IN][r]);
        }
    }
    if (!comm->patient && comm->patience > 0 && seconds > comm->patience + turn) lose_patience(ipc);
}
