// The settings that --autotune chooses among.
#ifndef HECATE_CODEGEN_TUNE_KNOBS_H
#define HECATE_CODEGEN_TUNE_KNOBS_H

#include <stdbool.h>

#include "lang/base/arena.h"
#include "passes/timeline/estimate.h"

enum { HEC_KNOBS = 15, HEC_KNOB_POLICY = HEC_KNOBS - 1, HEC_KNOB_VALUES = 8 };

// NULL ends the values. With `times` the values are shares of the model's own choice.
struct hec_knob {
    const char *key;
    const char *value[HEC_KNOB_VALUES];
    enum { AS_WRITTEN, OF_OVERLAP, OF_ROWS } times;
    bool moving; // Means something only where experts move.
    // Where it means something: on devices with memory of their own alone, where hosts send rows between nodes alone.
    enum { ANYWHERE, APART, BETWEEN_NODES } where;
};

extern const struct hec_knob hec_knobs[HEC_KNOBS];

// The setting ("KEY=VALUE") of a value; NULL: none that differs from that of `own`, which the model has.
const char *hec_knob_setting(struct hec_arena *arena, const struct hec_knob *knob,
                             const char *value, const struct hec_step_score *own);

// Whether it means something in the program of `score`, where experts move or not.
bool hec_knob_counts(const struct hec_knob *knob, const struct hec_step_score *score, bool moves);

// Which value a setting of the knob says, from 1; 0: none of them, or NULL.
int hec_knob_place(const struct hec_knob *knob, const char *setting);

#endif
