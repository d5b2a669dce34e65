// Measures the links of a cluster that cluster.sh has set up, and says whether they are as set:
// link_speed RANKS BITS, as `cluster.sh check` runs it. RANKS of a node; BITS per second between
// nodes, 0: not shaped. Exits with 1 when a rate between nodes is not within 15 % below and 5 % above.
//
// Real bytes through MPI, as programs send them: messages of 1 MiB, several under way.
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { PIECE = 1 << 20, PIECES = 32, ROUND_TRIPS = 200, ROUNDS = 4 };

static int rank, size;
static char *out, *in;

// Seconds for PIECES MiB from each of `pairs` ranks at `from` to its counterpart at `to`.
static double send_once(int from, int to, int pairs, bool back) {
    MPI_Request request[2 * PIECES];
    int requests = 0, to_rank = -1, from_rank = -1;
    if (rank >= from && rank < from + pairs) to_rank = rank - from + to;
    if (rank >= to && rank < to + pairs) from_rank = rank - to + from;
    if (back && to_rank >= 0) from_rank = to_rank;
    if (back && from_rank >= 0) to_rank = from_rank;
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    for (int i = 0; i < PIECES; i++) {
        char *const space = in + (size_t)i * PIECE;
        if (from_rank >= 0)
            MPI_Irecv(space, PIECE, MPI_BYTE, from_rank, 0, MPI_COMM_WORLD, &request[requests++]);
        if (to_rank >= 0)
            MPI_Isend(out, PIECE, MPI_BYTE, to_rank, 0, MPI_COMM_WORLD, &request[requests++]);
    }
    MPI_Waitall(requests, request, MPI_STATUSES_IGNORE);
    double seconds = MPI_Wtime() - start, slowest;
    MPI_Allreduce(&seconds, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

// Seconds for PIECES MiB, the best of some rounds: other work on this machine only slows links down.
static double send_bulk(int from, int to, int pairs, bool back) {
    double best = send_once(from, to, pairs, back);
    for (int i = 1; i < ROUNDS; i++) {
        const double seconds = send_once(from, to, pairs, back);
        if (seconds < best) best = seconds;
    }
    return best;
}

// Seconds that an empty message takes from rank 0 to `peer`.
static double send_empty(int peer) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    for (int i = 0; i < ROUND_TRIPS; i++) {
        if (rank == 0) MPI_Send(NULL, 0, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
        if (rank == 0 || rank == peer)
            MPI_Recv(NULL, 0, MPI_BYTE, peer - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == peer) MPI_Send(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
    }
    return (MPI_Wtime() - start) / ROUND_TRIPS / 2;
}

// Prints a rate, `bits` per second expected (0: any). False: it is not that.
static bool report(const char *what, double bytes, double seconds, double bits) {
    const double measured = 8 * bytes / seconds;
    const bool sound = bits == 0 || (measured > 0.85 * bits && measured < 1.05 * bits);
    if (rank == 0) {
        printf("%-44s %8.3f Gbit/s", what, measured / 1e9);
        if (bits > 0) printf(", set %.3f%s", bits / 1e9, sound ? "" : "  NOT AS SET");
        printf("\n");
    }
    return sound;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const int ranks = argc == 3 ? atoi(argv[1]) : 0;
    const double bits = argc == 3 ? atof(argv[2]) : 0, bulk = (double)PIECE * PIECES;
    out = calloc(1, PIECE);
    in = calloc(PIECES, PIECE);
    bool sound = ranks > 0 && out && in;
    if (!sound) MPI_Abort(MPI_COMM_WORLD, 2);
    if (ranks > 1) {
        report("inside a node", bulk, send_bulk(0, 1, 1, false), 0);
        const double seconds = send_empty(1);
        if (rank == 0) printf("%-44s %8.1f us\n", "an empty message inside a node", 1e6 * seconds);
    }
    if (size >= 2 * ranks) {
        sound &= report("one rank to another node", bulk, send_bulk(0, ranks, 1, false), bits);
        sound &=
            report("there and back at once, each way", bulk, send_bulk(0, ranks, 1, true), bits);
        sound &= report("all ranks of a node to another, together", bulk * ranks,
                        send_bulk(0, ranks, ranks, false), bits);
        const double seconds = send_empty(ranks);
        if (rank == 0)
            printf("%-44s %8.1f us\n", "an empty message to another node", 1e6 * seconds);
    }
    MPI_Finalize();
    return sound ? 0 : 1;
}
