// calibrate.h: replicas added after the gate, where the budget has room and they save more time than they take.
#ifndef HECATE_RUNTIME_PLAN_CALIBRATE_H
#define HECATE_RUNTIME_PLAN_CALIBRATE_H

#include "runtime/plan/policy.h"

#ifdef __cplusplus
extern "C" {
#endif

// The alternatives of calibration, in the unit of the costs.
struct hpl_calibration {
    bool taken;
    int64_t level_before; // Largest load on a device, rows at speed one, rounded up.
    int64_t level_after;
    int64_t cross_before; // Rows over the link of the busiest node, one way. 0 where they are not
    int64_t cross_after;  // weighed: without a price, or split evenly.
    int64_t added;        // Replicas that the calibrated plan adds.
    int64_t gain;  // Time saved: computing on the busiest device, rows of the busiest node, in
                   // all iterations that the replicas serve, as if their loads were these.
    int64_t wait;  // Time of the device, or node, that receives most new chunks: exposed.
    int64_t price; // The same, and that of the gradients that nothing hides.
};

// Runs the policy again on the exact counts, with the slots and entries that `present` left, and
// takes the larger plan only if the time it saves exceeds the time its chunks take.
//
//   problem  loads are the exact counts; present is the plan made before the gate, and is required;
//            serves: iterations that are left of the step for which replicas stay
//   plan     the calibrated plan when taken, else a copy of the present one
//   share    [plan's capacity] the shares of its holders as hpl_share gives them, where the split is by
//            quotas; else untouched
//   policy   one with `calibrates` set
//   split    how rows will be split, which decides the gain of a plan
//   always   take it whenever it saves time (to see the limit of the budget)
//
// Pure, so every rank decides alike. HPL_BAD_ARGUMENT, HPL_NO_ROOM.
enum hpl_status hpl_calibrate(const struct hpl_problem *problem, const struct hpl_policy *policy,
                              enum hpl_split split, bool always, struct hpl_plan *plan,
                              int64_t *share, struct hpl_calibration *result,
                              struct hpl_work *work);

// Changes in a problem behind the gate. Chunks are waited for, also within windows: so their
// price limits them, not the entries, and only balance may ask for them, or rows across nodes where
// those have a price. A row that a device is spared counts forward and backward, which takes twice as
// long; a row that stays in its node is spared four ways.
void hpl_calibration_terms(struct hpl_problem *problem);

#ifdef __cplusplus
}
#endif
#endif
