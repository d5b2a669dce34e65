// policies.h: the functions of the policies, for the table (inside the planner only).
#ifndef HECATE_RUNTIME_PLAN_POLICIES_H
#define HECATE_RUNTIME_PLAN_POLICIES_H

#include "runtime/plan/policy.h"

#define HPL_POLICY(name, ...) hpl_place_fn hpl_place_##name;
#include "runtime/plan/policies.def"

#endif
