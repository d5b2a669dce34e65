// Owners change between steps: their chunks move with the optimizer's states.
#ifndef HECATE_RUNTIME_EXPERTS_CHANGE_OWNERS_H
#define HECATE_RUNTIME_EXPERTS_CHANGE_OWNERS_H

#include <stdint.h>

struct hrt_fssdp;

// Ends a step, after the optimizer: every so many iterations (reshard_every) owners change, by the loads
// of the last iterations. Policies of ours spread the experts of every layer that are not heavy
// (hpl_reshard_near); periodic ones place anew, and an expert whose owner is not among its holders any more
// gets one that is. Others leave owners alone.
//
// Parameters, their rounded copies, means and variances of the chunks that change their owner move
// point to point; the memory they leave is given back, page by page, before more arrives. Gradients must
// be zero, as the optimizer leaves them: their memory is given back, too. Collective.
//
// Returns how many chunks have a new owner; unless 0, a list of the chunks here must be made anew.
int64_t hrt_experts_fssdp_end_step(struct hrt_fssdp *fssdp);

#endif
