// The back ends, as an emitted program names the one that it is linked with.
#ifndef HECATE_RUNTIME_NET_BACKEND_H
#define HECATE_RUNTIME_NET_BACKEND_H

#include <stdbool.h>
#include <stddef.h>

struct hrt_comm;
struct hrt_error;
struct hrt_executor;

struct hrt_comm_backend {
    const char *name; // "self"
    // Joins the ranks of the run, once per process. `topology` names a file that says which ranks
    // share a node (runtime/base/world.h), or is NULL. On false every rank has the same error, and can but
    // print it and then close `comm`, like all others.
    bool (*open)(struct hrt_comm *comm, const char *topology, struct hrt_error *error);
};

// One rank. Refuses to be one of several that a launcher started.
extern const struct hrt_comm_backend hrt_net_comm_self;

// Ranks that mpirun or srun started; of the library hecate_comm_mpi (runtime/net/mpi.h).
extern const struct hrt_comm_backend hrt_net_comm_mpi;

// Ranks that meet over TCP, with any launcher; in the library hecate_comm_tcp (docs/ranks.md). A run of one
// rank meets nobody.
extern const struct hrt_comm_backend hrt_net_comm_tcp;

// Executors that move the memory of GPUs between their ranks (runtime/net/transport.h): NCCL, in the library
// hecate_transport_nccl; memory that the processes of one machine map from each other; and the one of both that fits
// the ranks, of the library hecate_transport_cuda.
extern const struct hrt_executor hrt_executor_nccl, hrt_executor_ipc, hrt_executor_cuda;

// Its library and version, such as "NCCL 2.28.3". Not collective, needs no device.
void hrt_net_executor_describe(const struct hrt_executor *executor, char *text, size_t bytes);

#endif
