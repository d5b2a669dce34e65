// slots.h: the memory of replicas on a device. The compiler announces it, the runtime allocates it.
#ifndef HECATE_RUNTIME_PLAN_SLOTS_H
#define HECATE_RUNTIME_PLAN_SLOTS_H

#include "runtime/plan/policy.h"

#ifdef __cplusplus
extern "C" {
#endif

// Pieces of gradients that a device has under way to it at a time, each with room of its own.
enum { HPL_STAGED = 32 };

// A set of experts that a policy places.
struct hpl_slots_request {
    const struct hpl_policy *policy;
    int32_t experts, devices;
    int64_t layers;
    int32_t owned;      // Chunks of one layer that a device owns at first, at most; 0: its share.
    int64_t slots;      // m, the budget's.
    bool rematerialize; // Parameters' slots serve all layers; else each layer has its own.
    bool for_step;      // Replicas live for a step: each layer has slots for gradients of its own.
    int64_t
        param_bytes; // Bytes of a chunk's parameters as replicas hold them, and of its gradient.
    int64_t grad_bytes;
};

struct hpl_slots {
    int32_t replicas; // Most replicas of one layer on a device: its slots.
    int32_t holders;  // Holders of all experts of one layer, at most.
    int32_t
        grad_layers; // Layers whose gradients have slots at a time: one adds while another's travel.
    int32_t
        segments; // Pieces in which a chunk travels: four of 16 KiB and more of the larger of parameters and
                  // gradient, or as many of 256 KiB as it takes, HPL_SEGMENTS_MAX at most.
    int64_t param_stride, grad_stride; // Bytes from slot to slot.
    int64_t params, grads, staging; // Bytes on a device: parameters' slots, gradients' slots, and
                                    // room for gradients on their way. 0 without replicas.
};

// The memory for a request, whose numbers are at least 0, experts and devices at least 1. Pure.
struct hpl_slots hpl_slots_of(const struct hpl_slots_request *request);

// Rows that a replica must keep on its device to pay for itself: to it and back, forward and backward,
// they are as many bytes as its parameters and their gradient.
int32_t hpl_paying_rows(int64_t param_bytes, int64_t grad_bytes, int64_t row_bytes);

#ifdef __cplusplus
}
#endif
#endif
