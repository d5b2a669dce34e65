// Finds ranks that share a device, and opens the executor of transfers between devices.
#include "runtime/train/devices.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/net/comm.h"
#include "runtime/net/transport.h"
#include "runtime/params/state.h"
#include "runtime/train/ranks.h"

enum { WORDS = HRT_DEVICE_ADDRESS / sizeof(int64_t) };
_Static_assert(HRT_DEVICE_ADDRESS % sizeof(int64_t) == 0, "addresses travel as whole numbers");

_Static_assert(sizeof((struct hrt_sharing *)0)->address == HRT_DEVICE_ADDRESS, "as long as any");

static bool same(const struct hrt_comm *comm, const int64_t *address, int a, int b) {
    return comm->machine_of[a] == comm->machine_of[b] && address[a * WORDS] != 0 &&
           memcmp(&address[a * WORDS], &address[b * WORDS], HRT_DEVICE_ADDRESS) == 0;
}

// The first two, the same ones on all ranks.
static bool find_sharing(struct hrt_comm *comm, const struct hrt_device *device,
                         struct hrt_sharing *sharing, struct hrt_error *error) {
    int64_t *address = calloc((size_t)comm->size * WORDS, sizeof *address);
    *sharing = (struct hrt_sharing){.one = -1, .other = -1};
    if (!hrt_train_ranks_agree(comm, address || hrt_fail(error, "out of memory"), error)) {
        free(address);
        return false;
    }
    memcpy(&address[comm->rank * WORDS], device->address, HRT_DEVICE_ADDRESS);
    hrt_net_comm_all_reduce(comm, address, (int64_t)comm->size * WORDS, HRT_INT64);
    for (int one = 0; one < comm->size && sharing->one < 0; one++) {
        for (int other = one + 1; other < comm->size && sharing->one < 0; other++) {
            if (!same(comm, address, one, other)) continue;
            *sharing = (struct hrt_sharing){.one = one, .other = other};
            memcpy(sharing->address, &address[one * WORDS], HRT_DEVICE_ADDRESS - 1);
        }
    }
    free(address);
    return true;
}

// NULL: nobody can serve these devices.
static const struct hrt_executor *choose(const struct hrt_executor *executor, struct hrt_comm *comm,
                                         const struct hrt_sharing *sharing,
                                         struct hrt_error *error) {
    if (executor->choose) return executor->choose(comm, sharing, error);
    if (sharing->one < 0) return executor;
    hrt_fail(error, "ranks %d and %d have the same GPU, %s of their machine, which %s refuses",
             sharing->one, sharing->other, sharing->address, executor->name);
    return NULL;
}

// The device has failed. The process ends without the destructors of what has met others over it, which may wait for
// ever.
static void end(void *context, int exit_code) {
    hrt_net_comm_abort(context, exit_code);
}

bool hrt_train_devices_meet(struct hrt_state *state, bool opened, struct hrt_error *error) {
    struct hrt_comm *comm = state->comm;
    struct hrt_sharing sharing;
    if (!comm || !state->program->executor) return opened;
    if (!hrt_train_ranks_agree(comm, opened, error)) return false;
    if (!find_sharing(comm, &state->device, &sharing, error)) return false;
    const struct hrt_executor *executor = choose(state->program->executor, comm, &sharing, error);
    if (!hrt_train_ranks_agree(comm, executor, error)) return false;
    const bool ready = executor->open(comm, &state->device, error);
    if (!hrt_train_ranks_agree(comm, ready, error)) return false;
    state->device.end = end;
    state->device.end_context = comm;
    executor->join(comm);
    return true;
}
