// Reading of sections and --set against the table of settings. Private to check/.
#ifndef HECATE_LANG_CHECK_SETTINGS_H
#define HECATE_LANG_CHECK_SETTINGS_H

#include "lang/check/checker.h"
#include "lang/settings.h"

// Settings while they are read; `value[i]` belongs to row i of the table.
struct hec_setting_values {
    struct hec_setting value[HEC_KEYS];
    const struct hec_expr *expr[HEC_KEYS]; // As given, or NULL.
};

// Reads all sections, then --set. Reports unknown, repeated and broken ones.
void hec_read_settings(struct hec_checker *checker, struct hec_setting_values *values);

// Reads the value of one row from `expr`, which stands at `at`.
void hec_read_setting(struct hec_checker *checker, struct hec_setting_values *values,
                      const struct hec_setting_row *row, const struct hec_expr *expr,
                      struct hec_span at);

// The text of a list of pieces of a learning rate, with its numbers evaluated: "[warmup(100), linear(0.2, to = 0)]".
// NULL after reporting a fault.
const char *hec_read_pieces(struct hec_checker *checker, const struct hec_setting_row *row,
                            const struct hec_expr *list);

// Reports `schedule = pieces` without a list, and pieces that take more steps than the run has, or fewer, or leave none
// for the one without a length. `steps` 0: the run says later how many it has.
void hec_check_pieces(struct hec_checker *checker, const struct hec_setting_values *values,
                      int64_t steps);

// Decides values that depend on several settings (tokens, microbatch, group) and adds all to the program.
void hec_resolve_settings(struct hec_checker *checker, struct hec_setting_values *values);

#endif
