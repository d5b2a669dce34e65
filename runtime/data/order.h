// The order in which training reads the tokens of one source: which token is the first of sequence number n.
//
// The training parts of a source's files follow each other and form a ring of N tokens, so sequences also cross the
// ends of files. With T positions an epoch is N / T sequences, rounded down.
//   shuffle     Epoch e cuts the ring into sequences, T tokens apart, from an offset on that is drawn from (seed, e),
//               and reads them in an order that is a permutation drawn from (seed, e). So an epoch reads each token
//               once, but for the N mod T tokens before its offset.
//   sequential  Sequence n begins at token n T of the ring: the files in their order, again and again.
//   random      Each sequence begins anywhere inside of a part, drawn from (seed, n): tokens are read with replacement.
// The place depends on (seed, n) alone: neither on ranks and microbatches, nor on where a run was stopped.
#ifndef HECATE_RUNTIME_DATA_ORDER_H
#define HECATE_RUNTIME_DATA_ORDER_H

#include <stdint.h>

#include "lang/settings.def"
#include "runtime/base/random.h"

#define HRT_ENUM(word) HRT_DATA_ORDER_##word
#define HRT_COMMA ,
enum hrt_data_order { HEC_LIST_DATA_ORDER(HRT_ENUM, HRT_COMMA) }; // data.order
#undef HRT_ENUM
#undef HRT_COMMA

// The image of `index` under the permutation of 0 .. count - 1 that `key` names; index < count. No table: it takes
// 24 draws of `key` in the mean, and no memory.
uint64_t hrt_data_permute(struct hrt_stream key, uint64_t count, uint64_t index);

// The first token of sequence `sequence` in a ring of `tokens` >= `positions` tokens, by shuffle or sequential.
// `unit`: sequences begin at multiples of it; a divisor of `tokens`, and `positions` is a multiple of it.
int64_t hrt_data_order_place(enum hrt_data_order order, uint64_t seed, int64_t tokens,
                             int64_t positions, int64_t unit, uint64_t sequence);

#endif
