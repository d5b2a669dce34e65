// limit: a capacity for experts. Rows beyond it are dropped: their top-k choices add nothing.
// Source: Fedus et al. 2021, arXiv:2101.03961, section 2.2; dropped by weight or position as Megatron
// does (moe_utils.py, topk_softmax_with_capacity).
#ifndef HECATE_KERNELS_LIMIT_H
#define HECATE_KERNELS_LIMIT_H

#include "kernels/types.h"

// The rows that an expert with too many drops.
enum hk_drop {
    HK_LOWEST,  // Those of the lowest gate weights; of equal ones the last.
    HK_POSITION // The last.
};

// The capacity limit. In each group of `group` tokens (the last may be shorter; 0: one group) an expert keeps at most
// ceil(capacity * tokens of the group * topk / experts) rows, in their order.
//
//   weights      [tokens, topk]  gate weights, not negative; NaN counts as 0
//   first, pair  as hk_route gives them
//   kept_first   [experts + 1]   expert e keeps rows kept_first[e] .. kept_first[e+1]-1
//   kept_pair    [tokens * topk] the pair of each row; behind the kept ones, of each dropped one
//   kept_slot    [tokens, topk]  the row of (t, j); -1 where it is dropped
void hk_limit_f32(int32_t *kept_first, int32_t *kept_pair, int32_t *kept_slot, const float *weights,
                  const int32_t *first, const int32_t *pair, int64_t tokens, int64_t topk,
                  int64_t experts, int64_t group, double capacity, enum hk_drop drop);
void hk_limit_f64(int32_t *kept_first, int32_t *kept_pair, int32_t *kept_slot,
                  const double *weights, const int32_t *first, const int32_t *pair, int64_t tokens,
                  int64_t topk, int64_t experts, int64_t group, double capacity, enum hk_drop drop);

#endif
