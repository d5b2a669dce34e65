// Back end `mpi`: ranks are the processes that mpirun or srun started. A library of its own,
// hecate_comm_mpi, so that programs of one rank need no MPI.
//
// Ranks are numbered so that those of a node follow each other, in the launcher's order otherwise.
//
// A lost rank ends the job. mpirun ends all ranks by itself when one dies, and names it. Where the
// launcher does not, the others see within a second that a process of their machine has ended. A rank that
// hangs, or whose machine or network is gone, is missed by its neighbour after HECATE_COMM_TIMEOUT
// seconds (20): every rank says once a second that it lives, from a thread of its own, so computing
// for long is no silence. One that lives but keeps others waiting is lost after HECATE_COMM_PATIENCE
// seconds (300), unless all are patient (hrt_comm_be_patient). One rank then prints who was lost and raises an alarm; all that hear it exit with
// code 1 (HRT_EXIT_FAILED), and end a process of their machine that hangs.
//
// Lanes (transport/transport.h) advance while the caller computes: a helper thread turns them every 200 us (1 ms
// where ranks share cores) and sleeps when nothing is under way. HECATE_COMM_PROGRESS=poll leaves it out: they
// then advance where the program joins one, and in collectives.
#ifndef HECATE_RUNTIME_COMM_MPI_H
#define HECATE_RUNTIME_COMM_MPI_H

#include "runtime/comm/backend.h"

// `open` of hrt_comm_mpi (backend.h) starts MPI and joins the ranks. `topology` names a file that says which
// ranks share a node (runtime/comm/world.h); NULL: those that share memory. Once per process. Every rank
// returns the same; on false, `error` says why: the launcher's rank count is not MPI's (a launcher that MPI
// does not know), or the topology or a variable is wrong; all that is left to do is to print it and to close
// `comm`, which every rank does.

#endif
