// The settings inside a moe. Private to check/.
#ifndef HECATE_LANG_CHECK_MOE_SETTINGS_H
#define HECATE_LANG_CHECK_MOE_SETTINGS_H

#include "lang/check/unit.h"
#include "lang/settings.h"

// Settings that do not fit into hec_moe before its parameters exist.
struct hec_moe_settings {
    const struct hec_set *experts;
    const struct hec_set *shared;
    bool router_bias, select_bias, shared_gate;
    struct hec_span router_bias_at, select_bias_at, shared_gate_at;
    struct hec_span groups_at, topk_groups_at, drop_at;
};

// Reads every setting of the moe that `site` elaborates; reports unknown and broken ones.
struct hec_moe_settings hec_moe_read(struct hec_site *site, struct hec_moe *moe);

// Reports settings that contradict one another or the number of experts.
void hec_moe_check(struct hec_site *site, const struct hec_moe *moe,
                   const struct hec_moe_settings *settings);

// Warns of a router that learns nothing. Call it when groups have said which parameters are frozen.
void hec_moe_look(struct hec_checker *checker, const struct hec_moe *moe);

bool hec_moe_is_none(const struct hec_set *set);

#endif
