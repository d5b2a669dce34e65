// movement.h: how experts move. The compiler decides it, plan files keep it, programs carry it, and episodes plan with
// it: simulations and programs, which read the same struct, plan alike.
#ifndef HECATE_RUNTIME_PLAN_MOVEMENT_H
#define HECATE_RUNTIME_PLAN_MOVEMENT_H

#include <stdbool.h>
#include <stdint.h>

enum { HPL_POLICY_NAME = 16 };
enum hpl_lifetime { HPL_LIFETIME_ITERATION, HPL_LIFETIME_STEP };
enum hpl_calibrates { HPL_CALIBRATES_NEVER, HPL_CALIBRATES_WORTH, HPL_CALIBRATES_ALWAYS };

// For all sets, the same on every rank.
struct hpl_movement {
    char policy[HPL_POLICY_NAME];  // As hpl_policy_find knows it: "fssdp". Empty: nothing moves.
    bool even;                     // Rows are split evenly over an expert's holders; else by quota.
    int64_t overlap;               // t: chunks that may enter a node, per layer.
    int64_t slots;                 // m: replicas of a device, per layer.
    enum hpl_calibrates calibrate; // Replicas are added after the gate, where the policy can.
    bool rematerialize;            // Replicas go after forward and are gathered again for backward.
    // Replicas that live for a step are planned and come in its first iteration, are joined by others in any, and add
    // their gradients up themselves: the owner gets the sums in the last one.
    enum hpl_lifetime lifetime;
    int64_t
        iterations; // A step has so many, as the compiler expects: so often one transfer may serve.
    int64_t window; // Iterations that the forecast is the mean of.
    // 1: routes are known before a step (parallel.placement.forecast = routes), and plans are made from them.
    // 0: they are forecast.
    int64_t known;
    int64_t reshard_every; // Iterations between changes of owners; 0: never.
    // Chunks entering a node whose parameters, and gradients, computation hides, per layer: of a set's
    // first layer, which has attention alone before it, and of the others.
    int64_t gather_hidden_first, gather_hidden;
    int64_t reduce_hidden_first, reduce_hidden;
    // A chunk that enters a node beyond them must save as many bytes of rows as it takes, less so many percent: rows are
    // waited for, chunks may travel behind those of other layers.
    int64_t import_discount;
    // Prices of the planner, picoseconds: a row computed, a row sent to another rank, over the link
    // of a node; a chunk sent to another node (to another rank, if there is one node), inside a node,
    // and its gradient to another node.
    int64_t row_compute, row_send, row_cross;
    int64_t chunk_send, chunk_near, grad_send;
    int64_t chunk_bytes; // One chunk's parameters on their way.
    int64_t
        window_bytes; // Bytes that may enter a node while a layer's window lasts; 0: no limit but t.
};

// Bytes of transfers of one set.
struct hpl_sizes {
    int64_t param_bytes, grad_bytes; // Bytes of a chunk on its way.
    int64_t row_bytes;
};

#endif
