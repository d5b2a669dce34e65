// router: scores of the experts, the best of them for each token, and their gate weights.
#ifndef HECATE_KERNELS_ROUTER_H
#define HECATE_KERNELS_ROUTER_H

#include "kernels/types.h"

enum hk_score {
#define HK_SCORE(ID, ...) HK_##ID,
#define HK_SCORE_OF_ALL HK_SCORE
#include "kernels/router/scores.def"
#undef HK_SCORE
#undef HK_SCORE_OF_ALL
};

// The score of a group of experts.
enum hk_group_score {
    HK_GROUP_AS_USUAL, // HK_GROUP_BEST for softmax (DeepSeek-V2), else HK_GROUP_TWO_BEST (-V3).
    HK_GROUP_BEST,     // Its best expert.
    HK_GROUP_TWO_BEST, // The sum of its two best; the best where it has one.
};

// The weight of a chosen expert, before `scale`.
enum hk_weight {
    HK_SCORES,         // Its score.
    HK_RENORMALIZED,   // Its score / (sum of the chosen scores + 1e-20).
    HK_SOFTMAX_OF_TOPK // Softmax over the logits of the chosen.
};

enum { HK_EXPERTS_MAX = 4096 };

struct hk_router_rule {
    int64_t experts; // At most HK_EXPERTS_MAX.
    int64_t topk;    // At most `experts`; with groups, at most topk_groups * experts / groups.
    // groups > 1: only experts of the topk_groups best groups can be chosen; `groups` divides
    // `experts`, groups are neighbours.
    int64_t groups;
    int64_t topk_groups;
    enum hk_score score;
    enum hk_weight weight;
    double scale; // Multiplies the weights.
    enum hk_group_score group_score;
};

//   logits   [tokens, experts]
//   bias     [experts], added to the scores for the choice only, or NULL
//   forced   [tokens, topk], or NULL: the experts that each token goes to for any scores, all
//            different; weights follow from their scores by the rule. They are checked by nobody
//   record   [tokens, topk], or NULL: gets a copy of ids
//   scores   [tokens, experts]  of the logits, by the rule
//   ids      [tokens, topk]     the forced, or the chosen, best first, ties to the lower index; NaN counts as the
//                               worst, so that ids are valid for any logits
//   weights  [tokens, topk]
//   loads    [experts]          how often each expert stands in ids
void hk_router_f32(float *scores, float *weights, int32_t *ids, int32_t *loads, const float *logits,
                   const float *bias, const int32_t *forced, int32_t *record, int64_t tokens,
                   struct hk_router_rule rule);
void hk_router_f64(double *scores, double *weights, int32_t *ids, int32_t *loads,
                   const double *logits, const double *bias, const int32_t *forced, int32_t *record,
                   int64_t tokens, struct hk_router_rule rule);

// Stores dlogits [tokens, experts]. dscores [tokens, experts] is the gradient that reaches the
// scores by another way (auxiliary loss), or NULL. The choice itself has no gradient.
void hk_router_grad_f32(float *dlogits, const float *dweights, const float *dscores,
                        const float *scores, const float *weights, const int32_t *ids,
                        int64_t tokens, struct hk_router_rule rule);
void hk_router_grad_f64(double *dlogits, const double *dweights, const double *dscores,
                        const double *scores, const double *weights, const int32_t *ids,
                        int64_t tokens, struct hk_router_rule rule);

#endif
