// The calls of job.h: they prepare the job and hand over to the back end.
#include "runtime/comm/job.h"

void hrt_comm_start(struct hrt_comm *comm, struct hrt_job *job) {
    job->done = false;
    job->next = NULL;
    comm->ops->start(comm, job);
}

bool hrt_comm_finished(struct hrt_comm *comm, struct hrt_job *job) {
    return comm->ops->finished(comm, job);
}

void hrt_comm_wait(struct hrt_comm *comm, struct hrt_job *job, const char *what) {
    comm->ops->wait(comm, job, what);
}
