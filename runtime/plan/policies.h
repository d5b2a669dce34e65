// policies.h: the policies by name, for the table (inside the planner only).
#ifndef HECATE_RUNTIME_PLAN_POLICIES_H
#define HECATE_RUNTIME_PLAN_POLICIES_H

#include "runtime/plan/policy.h"

extern const struct hpl_policy hpl_policy_ep;
extern const struct hpl_policy hpl_policy_fsdp;
extern const struct hpl_policy hpl_policy_fastermoe;
extern const struct hpl_policy hpl_policy_smartmoe;
extern const struct hpl_policy hpl_policy_flexmoe;
extern const struct hpl_policy hpl_policy_laer;
extern const struct hpl_policy hpl_policy_llep;
extern const struct hpl_policy hpl_policy_ultraep;
extern const struct hpl_policy hpl_policy_eplb;
extern const struct hpl_policy hpl_policy_hecate;
extern const struct hpl_policy hpl_policy_quota;

#endif
