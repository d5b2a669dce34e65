// The table of settings, from settings.def.
#include "lang/settings.h"

#include <string.h>

#include "lang/program.h"

// Experts lie where a policy of the planner says, or one of its own, or everywhere.
#define HPL_POLICY(name, ...) "|" #name
static const char placements[] = "auto|replicate"
#include "runtime/plan/policies.def"
    ;

// Behind the first sign.
#define HRT_HF_FAMILY(name, ...) "|" #name
#define HRT_HF_LIKE HRT_HF_FAMILY
static const char families[] =
#include "runtime/store/hf_families.def"
    ;

// Behind the first two signs.
#define HK_SCORE(ID, word, ...) ", " #word
#define HK_SCORE_OF_ALL HK_SCORE
static const char scores[] =
#include "kernels/router/scores.def"
    ;

#define HEC_PLACEMENTS placements
#define HEC_FAMILIES families + 1

// Types of settings.def.
#define NUMERIC(kind, least, most) .type = HEC_SETTING_##kind, .smallest = least, .largest = most
#define COUNT(least, most) NUMERIC(COUNT, least, most)
#define AUTO_COUNT(least, most) NUMERIC(COUNT, least, most), .flags = HEC_SETTING_AUTO
#define COUNT_OR(word, least, most) NUMERIC(COUNT, least, most), .values = word
#define BYTES(least, most) NUMERIC(COUNT, least, most), .measure = HEC_BYTES
#define SLOTS                                                                                      \
    NUMERIC(COUNT, 0, 0), .measure = HEC_BYTES, .flags = HEC_SETTING_AUTO | HEC_SETTING_UNIT
#define NUMBER(least, most) NUMERIC(REAL, least, most)
#define AUTO_NUMBER(least, most) NUMERIC(REAL, least, most), .flags = HEC_SETTING_AUTO
#define NUMBER_OR_NONE(least, most) NUMERIC(REAL, least, most), .flags = HEC_SETTING_NONE
#define MEASURE(unit) NUMERIC(REAL, 0, 0), .measure = unit, .flags = HEC_SETTING_AUTO
#define PAIR(least, most) NUMERIC(PAIR, least, most)
#define PIECES .type = HEC_SETTING_PIECES
#define FLAG .type = HEC_SETTING_SWITCH
#define AUTO_FLAG .type = HEC_SETTING_SWITCH, .flags = HEC_SETTING_AUTO
#define AUTO_WORD(words) WORD(words), .flags = HEC_SETTING_AUTO
#define WORD(words) .type = HEC_SETTING_CHOICE, .values = words
#define TEXT .type = HEC_SETTING_TEXT
#define TEXT_OR_NONE .type = HEC_SETTING_TEXT, .flags = HEC_SETTING_NONE
#define TEXTS .type = HEC_SETTING_TEXT
#define TEXT_OF(words) .type = HEC_SETTING_TEXT, .flags = HEC_SETTING_NONE, .values = words
#define LABEL .type = HEC_SETTING_LABEL
// Places.
#define ANYWHERE .of = NULL
#define WITH(words) .of = words
#define FIRST(words) .of = words, .position = 1

const struct hec_setting_row hec_setting_rows[] = {
#define HEC_SETTING(id, key_, reader_, type_, standard_, place_, text_)                            \
    {key_, .reader = HEC_READER_##reader_, type_, .standard = standard_, place_, .text = text_},
#include "lang/settings.def"
#undef HEC_SETTING
};

// clang-format off
const struct hec_moe_row hec_moe_rows[] = {
    {"experts", "E * block", "", "number and body of the experts"},
    {"shared", "none, block", "none", "expert that every token goes to"},
    {"shared_gate", "none, sigmoid", "none", "gate of the shared expert's output"},
    {"capacity", "dropless, number", "dropless", "rows per expert, times the even share"},
    {"drop", "lowest, position", "lowest", "rows beyond the capacity: of the lowest weights, or the last"},
    {"router.score", scores + 2, "softmax", "from logits to scores"},
    {"router.topk", "count", "2", "experts per token"},
    {"router.groups", "count", "1", "groups that experts are chosen from"},
    {"router.topk_groups", "count", "1", "groups per token"},
    {"router.group_score", "auto, best, two_best", "auto",
     "a group's score: its best expert's, or its two best experts' sum"},
    {"router.weight", "scores, renormalized, softmax_of_topk", "renormalized",
     "weights of the chosen experts"},
    {"router.weight_on", "output, input", "output",
     "place of the weights: on the experts' output, or on their input"},
    {"router.scale", "number", "1", "factor of the weights"},
    {"router.bias", "true, false", "false", "trained bias of the logits"},
    {"router.jitter", "number", "0", "input noise in training, uniform in 1 +- jitter"},
    {"balance.aux", "number", "0", "coefficient of the auxiliary loss"},
    {"balance.per", "layer, sequence, batch, all_layers", "layer",
     "range of the auxiliary loss's means; all_layers with normalize = hf"},
    {"balance.normalize", "switch, hf", "switch",
     "value of the balanced loss: 1 (switch), or topk, as in transformers (hf)"},
    {"balance.z", "number", "0", "coefficient of the z-loss"},
    {"balance.bias", "none, number", "none", "step of the selection bias, once per step"},
};
// clang-format on
const int hec_moe_rows_count = sizeof hec_moe_rows / sizeof *hec_moe_rows;

const struct hec_setting_row *hec_setting_row(const char *key) {
    for (int i = 0; i < HEC_KEYS; i++) {
        if (!strcmp(hec_setting_rows[i].key, key)) return &hec_setting_rows[i];
    }
    return NULL;
}

bool hec_setting_lists(const char *list, const char *word) {
    const size_t length = strlen(word);
    while (list && *list) {
        const size_t here = strcspn(list, "|");
        if (here == length && !strncmp(list, word, length)) return true;
        list += here + (list[here] == '|');
    }
    return false;
}

// The range of numbers or the list of words: " (1 to 1024)".
static void print_values(FILE *out, const struct hec_setting_row *row) {
    if (row->values) fprintf(out, " (%s)", row->values);
    if (row->largest > 0)
        fprintf(out, " (%.7g to %.7g)", row->smallest, row->largest);
    else if (row->smallest > 0)
        fprintf(out, " (at least %.7g)", row->smallest);
}

void hec_settings_print(FILE *out) {
    for (int i = 0; i < HEC_KEYS; i++) {
        const struct hec_setting_row *row = &hec_setting_rows[i];
        fprintf(out, "%-38s %-10s %-7s %s", row->key, *row->standard ? row->standard : "\"\"",
                row->reader >= HEC_READER_RUN ? "run" : "compile", row->text);
        print_values(out, row);
        fputc('\n', out);
    }
    for (int i = 0; i < hec_moe_rows_count; i++) {
        const struct hec_moe_row *row = &hec_moe_rows[i];
        fprintf(out, "moe: %-33s %-10s %s (%s)\n", row->key, row->standard, row->text, row->values);
    }
}
