// The reference interpreter of the IR computes a module's results in double precision, one small function
// per operation, written from docs/ir.md. It knows nothing of homes, layouts, threads or kernels but scalar functions.
//
// It runs @forward, and @backward where there is one, on random inputs and parameters. Parameters are
// keyed by their path, so that a module has the same ones at every stage. Undefined values (rows behind
// the last expert's, a slot before its stash) are NaN, so that uses of them are seen.
//
// A module for several ranks runs on one, which has all experts and stands for all of them.
#ifndef HECATE_TESTS_INTERPRET_INTERPRET_H
#define HECATE_TESTS_INTERPRET_INTERPRET_H

#include "ir/core/op.h"
#include "lang/base/arena.h"

struct interpret_options {
    uint64_t seed;
    double shares; // Losses of routers count this often: their coefficients are each rank's share.
    bool inputs;   // Also "param layers.2.wq" and "tokens", those of the first sequence.
    // One element of a parameter that is larger by `by`: for differences. NULL: none.
    const char *nudged; // The name of its gradient: "grad layers.2.wq".
    int64_t element;
    double by;
};

// Numbers of one name: "loss", "slot logits[0]", "grad layers.2.wq".
struct interpret_item {
    const char *name;
    int64_t count;
    const double *at;
};

enum { INTERPRET_ITEMS_MAX = 4096 };
struct interpret_outcome {
    const char *fault; // Why the module computes nothing; NULL: it does.
    bool too_large;    // It might, but this interpreter does not want to.
    int count;
    struct interpret_item item[INTERPRET_ITEMS_MAX];
};

// Runs a verified module. Everything lies in `arena`. Same module and options, same bits.
void interpret(MlirOperation module, const struct interpret_options *options,
               struct hec_arena *arena, struct interpret_outcome *outcome);

const struct interpret_item *interpret_find(const struct interpret_outcome *outcome,
                                            const char *name); // NULL when absent.

#endif
