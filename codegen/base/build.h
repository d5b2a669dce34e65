// The compilation of an emitted source to a program, by the compilers of its target.
#ifndef HECATE_CODEGEN_BASE_BUILD_H
#define HECATE_CODEGEN_BASE_BUILD_H

#include "codegen/base/options.h"

struct hec_build {
    struct hec_arena *arena;
    const struct hec_options *options;
    const char *target; // With its architecture: "cuda:sm_90a".
    const char *name;   // The model's.
    const char *ranks;  // Transport between ranks, "mpi" or "tcp"; NULL: one process.
    const char *source;
    // Objects and libraries before the runtime's, ended by NULL; NULL: none.
    const char *const *link;
};

#endif
