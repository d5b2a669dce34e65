// Which executor moves what lies on GPUs, of the two that programs of several ranks are linked with: NCCL where each rank has
// a GPU of its own, memory that processes map from each other where ranks of one machine share one, or as HECATE_TRANSPORT
// asks. All ranks choose alike.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/error.h"
#include "runtime/net/backend.h"
#include "runtime/net/nccl_library.h"
#include "runtime/net/transport.h"

// Not where NCCL's header was not there.
extern const struct hrt_executor hrt_executor_nccl __attribute__((weak));

enum asked { AS_FITS, NCCL, IPC, NEITHER };

static enum asked asked_for(void) {
    const char *text = getenv("HECATE_TRANSPORT");
    if (!text || !*text) return AS_FITS;
    return strcmp(text, "nccl") == 0 ? NCCL : strcmp(text, "ipc") == 0 ? IPC : NEITHER;
}

static bool has_nccl(char *why, size_t bytes) {
    if (!&hrt_executor_nccl) {
        snprintf(why, bytes, "this program was linked without it");
        return false;
    }
    return !hrt_nccl_library_open || hrt_nccl_library_open(why, bytes);
}

// ---- the choice

static bool one_machine(const struct hrt_comm *comm) {
    for (int r = 0; r < comm->size; r++) {
        if (comm->machine_of[r] != comm->machine_of[0]) return false;
    }
    return true;
}

// False if this rank's HECATE_TRANSPORT is unknown, or differs from other ranks'; a rank without a fault follows.
static bool check_asked(const struct hrt_comm *comm, const int64_t *ranks_asking,
                        struct hrt_error *error) {
    const enum asked asked = asked_for();
    if (asked == NEITHER)
        return hrt_fail_usage(error, "HECATE_TRANSPORT is '%s'; it takes nccl or ipc",
                              getenv("HECATE_TRANSPORT"));
    return ranks_asking[NEITHER] > 0 || ranks_asking[asked] == comm->size ||
           hrt_fail_usage(error, "HECATE_TRANSPORT differs between ranks");
}

static const struct hrt_executor *choose_ipc(const struct hrt_comm *comm,
                                             const struct hrt_sharing *sharing,
                                             struct hrt_error *error) {
    if (one_machine(comm)) return &hrt_executor_ipc;
    if (sharing->one < 0)
        hrt_fail_usage(error, "HECATE_TRANSPORT=ipc is for ranks of one machine");
    else
        hrt_fail(error,
                 "ranks %d and %d have the same GPU, %s of their machine, which ranks of several "
                 "machines cannot: start no more ranks on a machine than it has GPUs, and let each "
                 "see its own",
                 sharing->one, sharing->other, sharing->address);
    return NULL;
}

// From 2.30 on NCCL shares a GPU where it is told to.
static bool nccl_shares(void) {
    const char *told = getenv("NCCL_MULTI_RANK_GPU_ENABLE");
    return told && strcmp(told, "1") == 0;
}

static const struct hrt_executor *choose_nccl(const struct hrt_sharing *sharing,
                                              const char *missing, struct hrt_error *error) {
    if (*missing) {
        hrt_fail(error, "messages between GPUs need NCCL: %s", missing);
        return NULL;
    }
    if (sharing->one < 0 || nccl_shares()) return &hrt_executor_nccl;
    hrt_fail(
        error,
        "ranks %d and %d have the same GPU, %s of their machine, which NCCL refuses: without "
        "HECATE_TRANSPORT=nccl they may, or from NCCL 2.30 on with NCCL_MULTI_RANK_GPU_ENABLE=1",
        sharing->one, sharing->other, sharing->address);
    return NULL;
}

static const struct hrt_executor *choose(struct hrt_comm *comm, const struct hrt_sharing *sharing,
                                         struct hrt_error *error) {
    enum { HAVE_NCCL = NEITHER + 1, WORDS };
    int64_t ranks[WORDS] = {0}; // How many ask for what, and have NCCL.
    char missing[200] = "";
    const enum asked asked = asked_for();
    ranks[asked] = 1;
    ranks[HAVE_NCCL] = has_nccl(missing, sizeof missing);
    hrt_net_comm_all_reduce(comm, ranks, WORDS, HRT_INT64);
    if (!check_asked(comm, ranks, error)) return NULL;
    const bool nccl = ranks[HAVE_NCCL] == comm->size;
    if (asked == IPC) return choose_ipc(comm, sharing, error);
    if (asked == AS_FITS && (sharing->one >= 0 || (!nccl && one_machine(comm))))
        return choose_ipc(comm, sharing, error);
    return choose_nccl(sharing, missing, error);
}

// ---- what can be said before

static size_t bytes_of(int ranks) {
    const size_t ipc = hrt_executor_ipc.bytes(ranks);
    const size_t nccl = &hrt_executor_nccl ? hrt_executor_nccl.bytes(ranks) : 0;
    const enum asked asked = asked_for();
    return asked == IPC || (asked == AS_FITS && ipc > nccl) ? ipc : nccl;
}

static void describe(char *text, size_t bytes) {
    char nccl[64] = "", ipc[64], why[200];
    const enum asked asked = asked_for();
    hrt_executor_ipc.describe(ipc, sizeof ipc);
    if (has_nccl(why, sizeof why)) hrt_executor_nccl.describe(nccl, sizeof nccl);
    if (asked == IPC || !*nccl) {
        snprintf(text, bytes, "%s", asked == NCCL ? "NCCL, which is not there" : ipc);
    } else if (asked == NCCL) {
        snprintf(text, bytes, "%s", nccl);
    } else {
        snprintf(text, bytes, "%s, or %s where ranks share one", nccl, ipc);
    }
}

const struct hrt_executor hrt_executor_cuda = {
    .name = "cuda",
    .describe = describe,
    .choose = choose,
    .bytes = bytes_of,
};
