// Shared by the tests of several ranks, with any back end (RANKS_BACKEND): every rank runs all tests of a file, rank
// 0 reports.
#ifndef HECATE_TESTS_RUNTIME_RANKS_CASE_H
#define HECATE_TESTS_RUNTIME_RANKS_CASE_H

#include "runtime/net/backend.h"
#include "runtime/net/comm.h"
#include "tests/runtime/support/case.h"

#ifndef RANKS_BACKEND
#define RANKS_BACKEND hrt_net_comm_mpi
#endif

// A rank whose check fails leaves the test at once; the others would wait for it. So the job ends.
#define RANKS_CHECK(comm, condition)                                                               \
    do {                                                                                           \
        if (condition) break;                                                                      \
        fprintf(stderr, "%s:%d: rank %d of %d: not so: %s\n", __FILE__, __LINE__, (comm)->rank,    \
                (comm)->size, #condition);                                                         \
        hrt_net_comm_abort(comm, 1);                                                               \
    } while (0)

// Opens the ranks of this run, or ends it. Only rank 0 keeps its standard output.
static inline void ranks_open(struct hrt_comm *comm, const char *topology) {
    struct hrt_error error = {0};
    if (!RANKS_BACKEND.open(comm, topology, &error)) {
        if (*error.text) fprintf(stderr, "%s\n", error.text); // Else another rank says it.
        exit(error.code);
    }
    if (comm->rank > 0 && !freopen("/dev/null", "w", stdout)) hrt_net_comm_abort(comm, 1);
}

#endif
