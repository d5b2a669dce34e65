// Messages cut into pieces, and the wait for those of a collective.
//
// Pieces of one message have its tag: MPI keeps the order of messages between two ranks with one
// tag, so both sides cut alike and the pieces meet.
#include "runtime/comm/mpi_backend.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void *grown(void *array, size_t count, size_t element) {
    void *larger = realloc(array, count * element);
    if (larger) return larger;
    fprintf(stderr, "%s: error: out of memory for %zu messages\n", program_invocation_short_name,
            count);
    MPI_Abort(MPI_COMM_WORLD, HRT_EXIT_FAILED);
    abort();
}

static void make_room(struct hrt_mpi_pieces *pieces) {
    if (pieces->count < pieces->room) return;
    pieces->room = pieces->room ? 2 * pieces->room : 64;
    const size_t room = (size_t)pieces->room;
    pieces->request = grown(pieces->request, room, sizeof *pieces->request);
    pieces->of = grown(pieces->of, room, sizeof *pieces->of);
    pieces->through = grown(pieces->through, room, sizeof *pieces->through);
    pieces->finished = grown(pieces->finished, room, sizeof *pieces->finished);
    pieces->status = grown(pieces->status, room, sizeof *pieces->status);
}

void hrt_mpi_post(struct hrt_mpi *own, struct hrt_mpi_pieces *pieces, struct hrt_mpi_piece piece,
                  void *data) {
    make_room(pieces);
    MPI_Request *request = &pieces->request[pieces->count];
    const bool send = piece.what == HRT_MPI_SENT || piece.what == HRT_MPI_GIVEN;
    const int code =
        send ? MPI_Isend(data, piece.bytes, MPI_BYTE, piece.peer, piece.tag, pieces->comm, request)
             : MPI_Irecv(data, piece.bytes, MPI_BYTE, piece.peer, piece.tag, pieces->comm, request);
    if (code != MPI_SUCCESS) hrt_mpi_fail(own, code, piece.peer, send ? "sending" : "receiving");
    pieces->of[pieces->count++] = piece;
}

void hrt_mpi_start(struct hrt_mpi *own, bool send, int peer, char *data, size_t bytes) {
    size_t at = 0;
    do {
        const size_t left = bytes - at;
        const size_t piece = left < HRT_MPI_PIECE ? left : HRT_MPI_PIECE;
        hrt_mpi_post(own, &own->collective,
                     (struct hrt_mpi_piece){.what = send ? HRT_MPI_SENT : HRT_MPI_RECEIVED,
                                            .peer = peer,
                                            .bytes = (int)piece},
                     data + at);
        at += piece;
    } while (at < bytes);
}

// Fails with the first piece whose status is an error.
static _Noreturn void fail_among(struct hrt_mpi *own, const struct hrt_mpi_pieces *pieces, int code,
                                 int finished) {
    for (int i = 0; code == MPI_ERR_IN_STATUS && i < finished; i++) {
        const int error = pieces->status[i].MPI_ERROR;
        const struct hrt_mpi_piece *piece = &pieces->of[pieces->finished[i]];
        int kind = MPI_SUCCESS;
        if (error != MPI_SUCCESS && error != MPI_ERR_PENDING) MPI_Error_class(error, &kind);
        if (kind == MPI_ERR_TRUNCATE)
            hrt_mpi_disagree(own, "rank %d sent more than the %d bytes of %s that rank %d expected",
                             piece->peer, piece->bytes, pieces->name, own->rank);
        if (kind != MPI_SUCCESS) hrt_mpi_fail(own, error, piece->peer, "exchanging data");
    }
    hrt_mpi_fail(own, code, -1, "exchanging data");
}

// What came must be as long as both sides know it to be.
static void compare_size(struct hrt_mpi *own, const struct hrt_mpi_pieces *pieces,
                         const struct hrt_mpi_piece *piece, const MPI_Status *status) {
    int bytes = 0;
    if (piece->what != HRT_MPI_RECEIVED) return;
    MPI_Get_count(status, MPI_BYTE, &bytes);
    if (bytes != piece->bytes)
        hrt_mpi_disagree(own, "rank %d sent %d bytes of %s where rank %d expected %d", piece->peer,
                         bytes, pieces->name, own->rank, piece->bytes);
}

int hrt_mpi_advance(struct hrt_mpi *own, struct hrt_mpi_pieces *pieces) {
    int finished = 0;
    const int code =
        MPI_Testsome(pieces->count, pieces->request, &finished, pieces->finished, pieces->status);
    if (code != MPI_SUCCESS) fail_among(own, pieces, code, finished);
    if (finished == MPI_UNDEFINED || finished == 0) return 0;
    for (int i = 0; i < finished; i++) {
        pieces->through[i] = pieces->of[pieces->finished[i]];
        compare_size(own, pieces, &pieces->through[i], &pieces->status[i]);
    }
    int kept = 0;
    for (int i = 0; i < pieces->count; i++) {
        if (pieces->request[i] == MPI_REQUEST_NULL) continue;
        pieces->request[kept] = pieces->request[i];
        pieces->of[kept++] = pieces->of[i];
    }
    pieces->count = kept;
    return finished;
}

// Spinning is fastest while every rank has a core; one that waits long, or shares its core, leaves it
// to others.
void hrt_mpi_nap(const struct hrt_mpi *own) {
    if (own->idle < own->spins) return;
    if (own->idle < own->spins + 20) {
        sched_yield();
    } else {
        nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
    }
}

void hrt_mpi_pieces_free(struct hrt_mpi_pieces *pieces) {
    free(pieces->request);
    free(pieces->of);
    free(pieces->through);
    free(pieces->finished);
    free(pieces->status);
}
