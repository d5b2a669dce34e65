// Sums become means.
#include "runtime/log/objective.h"

static int means_of_pairs(const double *sum, struct hrt_objective_number *out) {
    const double pairs = sum[HK_DPO_PAIRS];
    const struct hrt_objective_number all[] = {
        {"chosen", "reward of chosen answers", sum[HK_DPO_CHOSEN] / pairs},
        {"rejected", "reward of rejected answers", sum[HK_DPO_REJECTED] / pairs},
        {"margin", "reward of chosen answers over that of rejected ones",
         (sum[HK_DPO_CHOSEN] - sum[HK_DPO_REJECTED]) / pairs},
        {"accuracy", "share of pairs whose chosen answer has the larger reward",
         sum[HK_DPO_RIGHT] / pairs},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) out[i] = all[i];
    return (int)(sizeof all / sizeof *all);
}

static int means_of_tokens(const double *sum, struct hrt_objective_number *out) {
    const double tokens = sum[HK_POLICY_TOKENS];
    const struct hrt_objective_number all[] = {
        {"advantage", "mean of the tokens that count", sum[HK_POLICY_ADVANTAGE] / tokens},
        {"ratio", "of the model's probability to that by which a token was drawn",
         sum[HK_POLICY_RATIO] / tokens},
        {"clipped", "share of tokens whose ratio is clipped", sum[HK_POLICY_CLIPPED] / tokens},
        {"kl_old", "estimate of the KL divergence from the policy that drew, nats a token",
         sum[HK_POLICY_KL_OLD] / tokens},
        {"kl", "estimate of the KL divergence from the reference, nats a token",
         sum[HK_POLICY_KL] / sum[HK_POLICY_REFERENCES]},
    };
    const int count = (int)(sizeof all / sizeof *all) - (sum[HK_POLICY_REFERENCES] == 0);
    for (int i = 0; i < count; i++) out[i] = all[i];
    return count;
}

int hrt_log_objective_of(const struct hrt_step_report *step,
                         struct hrt_objective_number out[HRT_OBJECTIVE_NUMBERS],
                         const char **section) {
    const bool pairs = step->objective == HRT_OBJECTIVE_dpo;
    *section = pairs ? "preferences" : "rollout";
    if ((!pairs && step->objective != HRT_OBJECTIVE_policy) || step->policy[0] == 0) return 0;
    return pairs ? means_of_pairs(step->policy, out) : means_of_tokens(step->policy, out);
}
