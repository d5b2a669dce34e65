// Where values live: the attributes of place-buffers, read.
#ifndef HECATE_CODEGEN_HOST_HOME_H
#define HECATE_CODEGEN_HOST_HOME_H

#include "codegen/host/emitter.h"

enum hec_home_kind {
    HEC_HOME_NONE, // Never read: has no memory.
    HEC_HOME_ARENA,
    HEC_HOME_SLOT,
    HEC_HOME_PARAM,
    HEC_HOME_GRAD,
    HEC_HOME_IDS,
    HEC_HOME_TARGETS,
    HEC_HOME_SCALE,
    HEC_HOME_SHARE,
};

struct hec_home {
    enum hec_home_kind kind;
    int64_t offset;       // Arena: in bytes.
    MlirOperation symbol; // Slot, parameter, gradient.
    bool layered;         // Its row is layer + `row`; else `row` alone, or -1 for no rows.
    int64_t row;
    bool adds; // The operation adds to what is there.
};

struct hec_home hec_value_home(struct hec_emitter *e, MlirValue value);
bool hec_home_is_panels(const struct hec_home *home); // A parameter or gradient kept as panels.

#endif
