#include "codegen/tune/knobs.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const struct hec_knob hec_knobs[HEC_KNOBS] = {
    {"parallel.microbatch", {"1", "2", "4", "8", "16"}, AS_WRITTEN, false, ANYWHERE},
    {"parallel.recompute", {"none", "elementwise", "cheap", "all"}, AS_WRITTEN, false, ANYWHERE},
    {"parallel.logits", {"whole", "512"}, AS_WRITTEN, false, ANYWHERE},
    {"parallel.dense", {"replicate", "states", "shard"}, AS_WRITTEN, false, ANYWHERE},
    {"parallel.states", {"device", "host"}, AS_WRITTEN, false, APART},
    {"parallel.placement.rematerialize", {"true", "false"}, AS_WRITTEN, true, ANYWHERE},
    {"parallel.placement.overlap", {"0.5", "0.75", "1.5", "2"}, OF_OVERLAP, true, ANYWHERE},
    {"parallel.placement.memory", {"1", "2", "3", "4", "6", "8", "12"}, AS_WRITTEN, true, ANYWHERE},
    {"parallel.placement.calibrate", {"true", "false"}, AS_WRITTEN, true, ANYWHERE},
    {"parallel.placement.forecast",
     {"window(1)", "window(2)", "window(5)", "window(10)"},
     AS_WRITTEN,
     true,
     ANYWHERE},
    {"parallel.placement.reshard",
     {"never", "every(25)", "every(50)", "every(100)", "every(200)"},
     AS_WRITTEN,
     true,
     ANYWHERE},
    {"parallel.rows", {"direct", "node"}, AS_WRITTEN, false, BETWEEN_NODES},
    {"parallel.bucket", {"1MiB", "4MiB", "16MiB", "64MiB"}, AS_WRITTEN, false, ANYWHERE},
    {"parallel.rows_max", {"0.8", "1.2", "1.6", "2.4"}, OF_ROWS, false, ANYWHERE},
    {"parallel.experts", {"fssdp", "hecate", "ep", "ultraep"}, AS_WRITTEN, false, ANYWHERE},
};

const char *hec_knob_setting(struct hec_arena *arena, const struct hec_knob *knob,
                             const char *value, const struct hec_step_score *own) {
    if (knob->times == AS_WRITTEN) return hec_arena_format(arena, "%s=%s", knob->key, value);
    const int64_t of = knob->times == OF_OVERLAP ? own->overlap : own->wave_rows;
    const int64_t number = (int64_t)(strtod(value, NULL) * (double)of);
    if (number < 1 || number == of) return NULL;
    return hec_arena_format(arena, "%s=%" PRId64, knob->key, number);
}

bool hec_knob_counts(const struct hec_knob *knob, const struct hec_step_score *score, bool moves) {
    if (knob->moving && !moves) return false;
    if (knob->where == APART) return score->apart;
    return knob->where == ANYWHERE || (score->nodes > 1 && !score->apart);
}

int hec_knob_place(const struct hec_knob *knob, const char *setting) {
    for (int v = 0; setting && v < HEC_KNOB_VALUES && knob->value[v]; v++) {
        if (strcmp(strchr(setting, '=') + 1, knob->value[v]) == 0) return v + 1;
    }
    return 0;
}
