// The state of experts that a resumed run needs, beside their tensors: owners, the counts that the forecast is
// the mean of, and of policies that place for many iterations the placement at hand.
//
// With it, plans are those of a run that was never interrupted. It serves runs on the same terms only: the same
// policy and budgets, ranks and nodes, and first owners. Others place experts anew.
//
// All ranks know all of it. Counts are most of it, 4 bytes for each layer, iteration of the window, rank and expert: so
// a checkpoint has a file of each rank, with the counts of its own rows, and the rest as JSON.
#ifndef HECATE_RUNTIME_EXPERTS_HISTORY_H
#define HECATE_RUNTIME_EXPERTS_HISTORY_H

#include <stdbool.h>

#include "runtime/base/error.h"
#include "runtime/experts/fssdp_run.h"
#include "runtime/net/comm.h"
#include "runtime/params/placement.h"
#include "runtime/params/safetensors_write.h"

struct json_t;

// The history so far but for counts. The caller gives it back by json_decref; NULL: out of memory.
struct json_t *hrt_experts_fssdp_history(const struct hrt_fssdp *fssdp);

// This rank's counts, as safetensors: a tensor for each set, U32 [layers][window][experts], the iterations of the
// window in any order. The caller frees it; its data are NULL: out of memory.
struct hrt_whole_file hrt_experts_fssdp_counts(const struct hrt_fssdp *fssdp);

// Whether it is of an older version, which had counts in JSON. Such a one does not fit.
bool hrt_experts_fssdp_is_older(const struct json_t *history);

// Whether the history is one of this program on these ranks, and whole. It is not trusted.
bool hrt_experts_fssdp_fits(const struct json_t *history, const struct hrt_placement *placement,
                            const struct hrt_comm *comm);

// Takes over from one that fits: the owners, before there is a state; and the rest but for counts.
void hrt_experts_fssdp_recall_owners(const struct json_t *history, struct hrt_placement *placement);
void hrt_experts_fssdp_recall(const struct json_t *history, struct hrt_fssdp *fssdp);

// Reads this rank's counts from its file. Not collective; false: `error` says what is wrong with the file, which is not
// trusted. When all have read theirs, they tell each other: collective.
bool hrt_experts_fssdp_recall_counts(struct hrt_fssdp *fssdp, const char *path,
                                     struct hrt_error *error);
void hrt_experts_fssdp_share_counts(struct hrt_fssdp *fssdp);

#endif
