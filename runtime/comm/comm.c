// The calls of comm.h: they check the arguments and hand over to the back end.
#include "runtime/comm/comm.h"

#include <assert.h>

static void fill(const struct hrt_comm *comm, struct hrt_request *request, int peer, int tag,
                 void *data, size_t bytes) {
    assert(peer >= 0 && peer < comm->size);
    *request = (struct hrt_request){.peer = peer, .tag = tag, .data = data, .bytes = bytes};
}

void hrt_comm_isend(struct hrt_comm *comm, struct hrt_request *request, int peer, int tag,
                    const void *data, size_t bytes) {
    fill(comm, request, peer, tag, (void *)data, bytes); // A send only reads.
    comm->ops->isend(comm, request);
}

void hrt_comm_irecv(struct hrt_comm *comm, struct hrt_request *request, int peer, int tag,
                    void *data, size_t bytes) {
    fill(comm, request, peer, tag, data, bytes);
    comm->ops->irecv(comm, request);
}

bool hrt_comm_test(struct hrt_comm *comm, struct hrt_request *request) {
    return request->done || comm->ops->test(comm, request);
}

void hrt_comm_all_to_all(struct hrt_comm *comm, void *recv, const void *send,
                         const struct hrt_exchange *exchange) {
    comm->ops->all_to_all(comm, recv, send, exchange);
}

void hrt_comm_all_reduce(struct hrt_comm *comm, void *data, int64_t count, enum hrt_number type) {
    assert(count >= 0);
    comm->ops->all_reduce(comm, data, count, type);
}

void hrt_comm_barrier(struct hrt_comm *comm) {
    comm->ops->barrier(comm);
}

void hrt_comm_be_patient(struct hrt_comm *comm, bool patient) {
    comm->ops->be_patient(comm, patient);
}

_Noreturn void hrt_comm_abort(struct hrt_comm *comm, int exit_code) {
    comm->ops->abort(comm, exit_code);
    __builtin_unreachable();
}

void hrt_comm_close(struct hrt_comm *comm) {
    comm->ops->close(comm);
}
