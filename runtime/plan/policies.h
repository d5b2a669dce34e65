// policies.h: the policies by name, for the table (inside the planner only).
#ifndef HECATE_RUNTIME_PLAN_POLICIES_H
#define HECATE_RUNTIME_PLAN_POLICIES_H

#include "runtime/plan/policy.h"

extern const struct hpl_policy hpl_policy_ep;
extern const struct hpl_policy hpl_policy_quota;

#endif
