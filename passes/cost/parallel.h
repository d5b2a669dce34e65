// Work that does not depend on the order in which it is done.
#ifndef HECATE_PASSES_COST_PARALLEL_H
#define HECATE_PASSES_COST_PARALLEL_H

// Calls `work` for each number from 0 to `count` - 1, on as many threads as this process may use processors, and
// returns when all calls have. `work` must not touch the IR, nor data of another call.
void hec_in_parallel(int count, void (*work)(void *context, int number), void *context);

#endif
