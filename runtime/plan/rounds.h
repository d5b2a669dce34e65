// rounds.h: schedules in the order of their rounds (inside the planner only).
#ifndef HECATE_RUNTIME_PLAN_ROUNDS_H
#define HECATE_RUNTIME_PLAN_ROUNDS_H

#include "runtime/plan/schedule.h"

// Sorts transfers by round; those of one round keep their order. HPL_NO_ROOM: there are more of them than a workspace
// of hpl_work_bytes has room for.
enum hpl_status hpl_rounds_sort(struct hpl_schedule *schedule, struct hpl_work *work);

#endif
