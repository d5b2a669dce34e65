// The state of experts that a resumed run needs, beside their tensors: owners, the counts that the forecast is
// the mean of, and of policies that place for many iterations the placement at hand.
//
// With it, plans are those of a run that was never interrupted. It serves runs on the same terms only: the same
// policy and budgets, ranks and nodes, and first owners. Others place experts anew.
#ifndef HECATE_RUNTIME_EXPERTS_HISTORY_H
#define HECATE_RUNTIME_EXPERTS_HISTORY_H

#include <stdbool.h>

#include "runtime/experts/fssdp_run.h"
#include "runtime/net/comm.h"
#include "runtime/params/placement.h"

struct json_t;

// The history so far, which all ranks know. The caller gives it back by json_decref; NULL: out of memory.
struct json_t *hrt_experts_fssdp_history(const struct hrt_fssdp *fssdp);

// Whether the history is one of this program on these ranks, and whole. It is not trusted.
bool hrt_experts_fssdp_fits(const struct json_t *history, const struct hrt_placement *placement,
                            const struct hrt_comm *comm);

// Takes over from one that fits: the owners, before there is a state; and the rest.
void hrt_experts_fssdp_recall_owners(const struct json_t *history, struct hrt_placement *placement);
void hrt_experts_fssdp_recall(const struct json_t *history, struct hrt_fssdp *fssdp);

#endif
