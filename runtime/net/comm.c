// The calls of comm.h: they check the arguments and hand over to the back end.
#include "runtime/net/comm.h"

#include <assert.h>

void hrt_net_comm_all_reduce(struct hrt_comm *comm, void *data, int64_t count,
                             enum hrt_number type) {
    assert(count >= 0);
    comm->ops->all_reduce(comm, data, count, type);
}

void hrt_net_comm_barrier(struct hrt_comm *comm) {
    comm->ops->barrier(comm);
}

void hrt_net_comm_be_patient(struct hrt_comm *comm, bool patient) {
    comm->ops->be_patient(comm, patient);
    comm->patient = patient;
}

_Noreturn void hrt_net_comm_abort(struct hrt_comm *comm, int exit_code) {
    comm->ops->abort(comm, exit_code);
    __builtin_unreachable();
}

void hrt_net_comm_close(struct hrt_comm *comm) {
    comm->ops->close(comm);
}

int hrt_net_comm_local(const struct hrt_comm *comm) {
    int local = 0;
    for (int r = 0; r < comm->rank; r++)
        local += comm->machine_of[r] == comm->machine_of[comm->rank];
    return local;
}
