// Messages cut into pieces, and the wait for those of a collective.
//
// Pieces of one message have its tag: the order of messages between two ranks with one tag is kept,
//  so both sides cut alike and the pieces meet.
#include "runtime/net/net.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void *grown(struct hrt_net *own, void *array, size_t count, size_t element) {
    void *larger = realloc(array, count * element);
    if (larger) return larger;
    fprintf(stderr, "%s: error: out of memory for %zu messages\n", program_invocation_short_name,
            count);
    own->wire->abort(own, HRT_EXIT_FAILED);
    abort();
}

static void make_room(struct hrt_net *own, struct hrt_net_pieces *pieces) {
    if (pieces->count < pieces->room) return;
    pieces->room = pieces->room ? 2 * pieces->room : 64;
    const size_t room = (size_t)pieces->room;
    pieces->request = grown(own, pieces->request, room, own->wire->request);
    pieces->of = grown(own, pieces->of, room, sizeof *pieces->of);
    pieces->through = grown(own, pieces->through, room, sizeof *pieces->through);
    pieces->finished = grown(own, pieces->finished, room, sizeof *pieces->finished);
    pieces->came = grown(own, pieces->came, room, sizeof *pieces->came);
    if (own->wire->status) pieces->status = grown(own, pieces->status, room, own->wire->status);
}

void hrt_net_post(struct hrt_net *own, struct hrt_net_pieces *pieces, struct hrt_net_piece piece,
                  void *data) {
    make_room(own, pieces);
    own->wire->post(own, pieces, &piece, data);
    pieces->of[pieces->count++] = piece;
}

void hrt_net_start(struct hrt_net *own, bool send, int peer, char *data, size_t bytes) {
    size_t at = 0;
    do {
        const size_t left = bytes - at;
        const size_t piece = left < HRT_NET_PIECE ? left : HRT_NET_PIECE;
        hrt_net_post(own, &own->collective,
                     (struct hrt_net_piece){.what = send ? HRT_NET_SENT : HRT_NET_RECEIVED,
                                            .peer = peer,
                                            .tag = HRT_NET_COLLECTIVE,
                                            .bytes = (int)piece},
                     data + at);
        at += piece;
    } while (at < bytes);
}

// Compares the received length with the length that both sides expect.
static void compare_size(struct hrt_net *own, const struct hrt_net_pieces *pieces,
                         const struct hrt_net_piece *piece, int came) {
    if (piece->what != HRT_NET_RECEIVED || came == piece->bytes) return;
    if (came < 0)
        hrt_net_disagree(own, "rank %d sent more than the %d bytes of %s that rank %d expected",
                         piece->peer, piece->bytes, pieces->name, own->rank);
    hrt_net_disagree(own, "rank %d sent %d bytes of %s where rank %d expected %d", piece->peer,
                     came, pieces->name, own->rank, piece->bytes);
}

int hrt_net_advance(struct hrt_net *own, struct hrt_net_pieces *pieces) {
    const int finished = own->wire->test(own, pieces);
    for (int i = 0; i < finished; i++) {
        struct hrt_net_piece *piece = &pieces->of[pieces->finished[i]];
        pieces->through[i] = *piece;
        piece->bytes = -1;
        compare_size(own, pieces, &pieces->through[i], pieces->came[i]);
    }
    const size_t request = own->wire->request;
    int kept = 0;
    for (int i = 0; i < pieces->count && finished > 0; i++) {
        if (pieces->of[i].bytes < 0) continue;
        if (kept < i)
            memcpy(pieces->request + (size_t)kept * request, pieces->request + (size_t)i * request,
                   request);
        pieces->of[kept++] = pieces->of[i];
    }
    if (finished > 0) pieces->count = kept;
    return finished;
}

// Spinning is fastest while every rank has a core; one that waits long, or shares its core, leaves it
// to others.
void hrt_net_nap(const struct hrt_net *own) {
    if (own->idle < own->spins) return;
    if (own->idle < own->spins + 20) {
        sched_yield();
    } else {
        nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
    }
}

void hrt_net_pieces_free(struct hrt_net_pieces *pieces) {
    free(pieces->request);
    free(pieces->status);
    free(pieces->of);
    free(pieces->through);
    free(pieces->finished);
    free(pieces->came);
}
