// The settings that OpenMP needs before it starts: number of threads, their places, how long they spin.
#ifndef HECATE_RUNTIME_CLI_OPENMP_H
#define HECATE_RUNTIME_CLI_OPENMP_H

#include <stdbool.h>

#include "runtime/base/error.h"

enum {
    HRT_THREADS_MOST = 4096,
    HRT_STACK_LEAST = 1 << 20, // Bytes; the largest kernels hold 840 KiB of blocks there.
};

// Whether OMP_NUM_THREADS, where it is set, is a number of threads, or a list (of levels, of which programs
// have one) that begins with one. Else a usage error. OpenMP itself reports faults of other variables.
bool hrt_cli_check_openmp(struct hrt_error *error);

// Whether each of `threads` threads has a stack that kernels fit in (ulimit -s, OMP_STACKSIZE); beyond it they
// would end by SIGSEGV. Else a usage error.
bool hrt_cli_check_stacks(int threads, struct hrt_error *error);

// Threads for one rank: it may run on `cores` of `all` cores that the run has on this node, for
// `ranks` ranks. Ranks that are not bound to cores, or bound to a socket that others are bound to as
// well, share them evenly. At least 1.
int hrt_cli_threads_of_rank(int cores, int all, int ranks);

// Ranks of this run on this node, as the launcher says; 1 when it does not.
int hrt_cli_local_ranks(void);

// Sets, unless the user's environment says something about it,
// - the number of threads, when ranks share cores (hrt_cli_threads_of_rank): more threads than cores
//   only wait for each other,
// - that threads stay where they are, when the node has several memories (NUMA): a thread that moves
//   finds its data far away. With one memory the kernel's choice is the better one, since it knows
//   other processes,
// - spinning at a barrier: some tenths of a millisecond. A thread that sleeps takes longer to wake than most
//   barriers last, above all in a virtual machine: with ten microseconds a step of the small model took 11 %
//   longer. libgomp spins for milliseconds by default: where anything else runs, a thread then burns the core that
//   the thread it waits for needs (a busy process beside two threads on two cores: steps of 873 ms with ten
//   microseconds, 1,431 with tenths of a millisecond, 2,166 by default). Several ranks spin for ten
//   microseconds: their helper threads need cores, too.
//
// While other programs want the cores of one process, the program's own default of spinning does not hold (crowd.h).
//
// OpenMP reads its environment when it is loaded, before any code of ours: so this starts the
// program anew, once, when it has set something. Call it first in main; when it cannot, it returns
// and nothing is lost.
void hrt_cli_prepare_openmp(char **argv);

// Threads that a loop of this process has.
int hrt_cli_openmp_threads(void);

// Whether threads spin as hrt_cli_prepare_openmp makes those of one process; false when the user's environment decides.
bool hrt_cli_openmp_spins(void);

#endif
