// plan.h: plans as sets of holders: copies, their owners, and the differences of two.
#ifndef HECATE_RUNTIME_PLAN_PLAN_H
#define HECATE_RUNTIME_PLAN_PLAN_H

#include "runtime/plan/types.h"

#ifdef __cplusplus
extern "C" {
#endif

// The device that owns `expert` where nobody has chosen another one: consecutive experts, the first devices one more
// where they do not divide. Pure.
int32_t hpl_even_owner(int64_t expert, int64_t experts, int64_t devices);

// All that follow write `to` in canonical form, and return HPL_NO_ROOM when it is too small; pure.

// Copies `from` to `to`.
enum hpl_status hpl_plan_copy(struct hpl_plan *to, const struct hpl_plan *from);

// Every one of `experts` experts has its owner alone. owner [experts].
enum hpl_status hpl_plan_of_owners(struct hpl_plan *to, int32_t experts, const int32_t *owner);

// The holders of `plan`, and the owners where they are not among them.
enum hpl_status hpl_plan_with_owners(struct hpl_plan *to, const struct hpl_plan *plan,
                                     const int32_t *owner);

// The owners and, for every expert, the holders of `now` that `before` lacks: the chunks that still have to travel.
// Both have the owners.
enum hpl_status hpl_plan_added(struct hpl_plan *to, const struct hpl_plan *before,
                               const struct hpl_plan *now, const int32_t *owner);

// Whether the device is among the expert's holders.
bool hpl_plan_holds(const struct hpl_plan *plan, int32_t expert, int32_t device);

#ifdef __cplusplus
}
#endif
#endif
