// This process's place among the ranks of a run, as its launcher gives it, and the ranks that share its node.
#ifndef HECATE_RUNTIME_BASE_WORLD_H
#define HECATE_RUNTIME_BASE_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/error.h"

struct hrt_world {
    const char *launcher; // "torchrun", "mpirun", "srun", ...; NULL: started alone.
    int rank, size;       // 0, 1 when started alone.
    int local_rank;       // On its machine; -1: not given. 0 when started alone.
    bool here;            // The launcher says that all ranks are on this machine.
};

// Reads HECATE_RANK, HECATE_RANKS and, where they are set, HECATE_LOCAL_RANK (else -1) and HECATE_LOCAL_RANKS, else the
// variables of torchrun (RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE with MASTER_ADDR), else of Open MPI
// (OMPI_COMM_WORLD_*), else of Slurm (SLURM_PROCID, SLURM_NTASKS, SLURM_LOCALID, SLURM_STEP_NUM_NODES of a step that
// srun started; not those of the batch script itself). The innermost launcher counts: torchrun may run below the
// others, and mpirun below Slurm. False: a variable is missing or not a number in range.
bool hrt_base_world_find(struct hrt_world *world, struct hrt_error *error);

// The topology file to read, of the variable HECATE_TOPOLOGY; NULL: it is not set, or empty.
const char *hrt_base_topology_path(void);

// Reads a file that assigns ranks to nodes, so that one machine can stand for several. Each line is
// a node: its ranks and ranges of them, `4-7 9`; '#' starts a comment. Nodes are numbered as they
// come.
//   node_of  [ranks] the node of every rank
// False, with file and line: unreadable, not a rank below `ranks`, a rank twice or not at all.
bool hrt_base_topology_read(const char *path, int ranks, int32_t *node_of, int *nodes,
                            struct hrt_error *error);

#endif
