// The parts of the executor for ranks of one machine (ipc.c). Private to it.
//
// Every pair of ranks has, on every lane and in each direction, a ring of places in the memory of the receiver's GPU,
// which the sender's process maps (CUDA IPC). A message travels in pieces: the sender's copy engine copies one into the
// next place, and the receiver's takes it from there. Two words of memory that all hosts and GPUs of the machine reach
// order the copies: the sender's stream writes a token into the place's word `ready`, and the receiver's waits for just
// this token; the receiver's stream counts pieces in `taken`, and the sender's waits until its place is free. A stream
// that waits takes no multiprocessor and runs no kernel, so ranks may share a GPU.
#ifndef HECATE_RUNTIME_NET_IPC_H
#define HECATE_RUNTIME_NET_IPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "kernels/cuda/lane.h"
#include "runtime/base/error.h"
#include "runtime/device/device.h"
#include "runtime/net/comm.h"
#include "runtime/net/transport.h"

enum {
    HRT_IPC_PLACES = 4, // Places of a ring.
    HRT_IPC_EVENTS = 8, // Lists of a lane that can be told apart.
};

// The most bytes of a piece: its token has bits for no more.
enum { HRT_IPC_PIECE = 2 << 20 };

// State of a ring, for all processes. The receiver's words and the sender's lie in cache lines of their own.
struct hrt_ipc_words {
    _Alignas(64) uint32_t ready[HRT_IPC_PLACES]; // Tokens (hrt_ipc_token).
    _Alignas(64) uint32_t taken;                 // Pieces so far, modulo 2^32.
};

// This rank's end of a ring.
struct hrt_ipc_end {
    struct hrt_ipc_words *words; // As the host sees them.
    CUdeviceptr device_words;    // As the GPU does.
    char *place;                 // [HRT_IPC_PLACES][piece]
    uint64_t pieces;             // Pieces whose copies are queued.
    uint32_t *
        expected; // For a receiver: [room] the token of piece n at n % room, of those not taken yet.
    uint32_t room; // A power of 2, or 0.
};

struct hrt_ipc_events {
    cudaEvent_t *event; // [count]
    size_t count, room;
};

// A stream of a lane: its sends, or all the rest.
struct hrt_ipc_side {
    struct hkc_lane work;
    cudaEvent_t done[HRT_IPC_EVENTS]; // End of list n: n % HRT_IPC_EVENTS.
    struct hrt_ipc_events step;       // Behind steps of a list that the other side follows.
    size_t used;                      // Used ones.
};

enum hrt_ipc_way { HRT_IPC_IN, HRT_IPC_OUT, HRT_IPC_WAYS };

struct hrt_ipc_lane {
    struct hrt_ipc_side side[HRT_IPC_WAYS];
    struct hrt_ipc_end *end[HRT_IPC_WAYS]; // [ranks] Of the ring from, or to, each.
    cudaEvent_t begun; // Work that the device had been asked for when a list came.
    uint64_t submitted;
    uint64_t ordered; // Lists up to this one the device has been asked to wait for.
};

// Functions of the driver, which programs are not linked with.
typedef CUresult hrt_ipc_value(CUstream stream, CUdeviceptr at, cuuint32_t value, unsigned flags);

struct hrt_ipc {
    struct hrt_comm *comm;
    struct hrt_device *device;
    size_t piece; // Bytes of a place.
    struct hrt_ipc_lane lane[HRT_LANES];
    char *inbox;   // [lane that moves][rank][HRT_IPC_PLACES][piece], of this rank's GPU.
    char **mapped; // [ranks] Those of the others; NULL: its own, or not mapped yet.
    struct hrt_ipc_words *words; // [lane that moves][from][to], of the machine.
    hrt_ipc_value *wait, *write;
    bool joined;
};

// Lanes that may have lists on the device.
static inline bool hrt_ipc_moves(int lane) {
    return lane != HRT_LANE_COUNTS;
}
enum { HRT_IPC_LANES = HRT_LANES - 1 };

// The token of a ring's piece `number`, of `bytes`; `last` of its message. The pieces that follow each other in a
// place, and the content of a place before the first, have different ones.
static inline uint32_t hrt_ipc_token(uint64_t number, size_t bytes, bool last) {
    enum { TURNS = 1 << 10, SIZE_BITS = 21 };
    const uint32_t turn = (uint32_t)((number / HRT_IPC_PLACES + 1) % TURNS);
    return turn << (SIZE_BITS + 1) | (uint32_t)last << SIZE_BITS | (uint32_t)(bytes - 1);
}

// Ends the job on an error.
void hrt_ipc_check(struct hrt_comm *comm, const char *what, cudaError_t error);

// ---- ipc_meet.c

// Takes streams, events, the functions of the driver and the memory that others will write to. Everything taken before
// an error hrt_ipc_part gives back.
bool hrt_ipc_take(struct hrt_ipc *ipc, struct hrt_error *error);
// Shows all ranks each other's memory. Collective; a failure ends the job.
void hrt_ipc_meet(struct hrt_ipc *ipc);
// Gives all back. Collective when they have met.
void hrt_ipc_part(struct hrt_ipc *ipc);
// Appends an event; false: out of memory.
bool hrt_ipc_keep(struct hrt_ipc_events *events, cudaEvent_t event);
// Device memory of a rank.
size_t hrt_ipc_bytes(int ranks);

// ---- ipc_watch.c

// Remembers the token that the ring's next piece has to have.
void hrt_ipc_expect(struct hrt_ipc *ipc, struct hrt_ipc_end *end, uint32_t token);
// Ends the job when another rank sends other pieces than this one receives, or has kept it waiting for too long.
void hrt_ipc_look(void *context, double seconds);

#endif
