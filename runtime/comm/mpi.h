// Back end `mpi`: ranks are the processes that mpirun or srun started. A library of its own,
// hecate_comm_mpi, so that programs of one rank need no MPI.
//
// Ranks are numbered so that those of a node follow each other, in the launcher's order otherwise.
//
// A lost rank ends the job. mpirun ends all ranks by itself when one dies, and names it. Where the
// launcher does not, a rank that waits for the lost one sees within 3 s that its process on this
// machine has ended (elsewhere: that its connection broke, or that nothing came for
// HECATE_COMM_TIMEOUT seconds, 300 by default); one rank then prints who was lost and ends all.
//
// Transfers started by hrt_comm_isend and hrt_comm_irecv advance while the caller computes: a helper
// thread tests them every 200 us (1 ms where ranks share cores) and sleeps when there are none.
// HECATE_COMM_PROGRESS=poll leaves it out: they then advance in hrt_comm_test and collectives only.
#ifndef HECATE_RUNTIME_COMM_MPI_H
#define HECATE_RUNTIME_COMM_MPI_H

#include <stdbool.h>

#include "runtime/base/error.h"
#include "runtime/comm/comm.h"

// Starts MPI and joins the ranks. `topology` names a file that says which ranks share a node
// (runtime/comm/world.h); NULL: those that share memory. Once per process. Every rank returns the
// same; on false, `error` says why: the launcher's rank count is not MPI's (a launcher that MPI does
// not know), or the topology or a variable is wrong; MPI has then been left.
bool hrt_comm_open_mpi(struct hrt_comm *comm, const char *topology, struct hrt_error *error);

#endif
