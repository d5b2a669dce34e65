// Back end `mpi`: ranks are the processes that mpirun or srun started. A library of its own,
// hecate_comm_mpi, so that programs of one rank need no MPI.
//
// Ranks are numbered so that those of a node follow each other, in the launcher's order otherwise.
//
// net.h has everything that is the same for all transports.
#ifndef HECATE_RUNTIME_NET_MPI_H
#define HECATE_RUNTIME_NET_MPI_H

#include "runtime/net/backend.h"

// `open` of hrt_net_comm_mpi (backend.h) starts MPI and joins the ranks. `topology` names a file that says which
// ranks share a node (runtime/base/world.h); NULL: those that share memory. Once per process. Every rank
// returns the same; on false, `error` says why: the launcher's rank count is not MPI's (a launcher that MPI
// does not know), or the topology or a variable is wrong; all that is left to do is to print it and to close
// `comm`, which every rank does.

#endif
