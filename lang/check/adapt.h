// Adapters: adapt { rank, alpha, dropout, of }. Private to check/.
#ifndef HECATE_LANG_CHECK_ADAPT_H
#define HECATE_LANG_CHECK_ADAPT_H

#include "lang/check/settings.h"
#include "lang/check/unit.h"

// Takes the section's settings. Call it before the model is elaborated: adapters are part of it.
void hec_read_adapt(struct hec_checker *checker, const struct hec_setting_values *values);

// y = x @ weight, whose last `summed` dims of x were summed: y itself, or with an adapter's part where patterns match
// the weight. NULL after an error.
const struct hec_node *hec_adapt(struct hec_site *site, const struct hec_node *y,
                                 const struct hec_node *x, const struct hec_node *weight,
                                 int summed);

// Freezes all parameters but adapters where there are adapters; groups may say otherwise of some. Reports patterns that
// match no weight. Call it when the model is elaborated, and before groups are applied.
void hec_check_adapt(struct hec_checker *checker);

#endif
