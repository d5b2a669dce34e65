// C identifiers made from the names of a model: never a keyword, a macro or a function of the
// headers that emitted programs include, and no two alike in one scope.
#ifndef HECATE_CODEGEN_TEXT_IDENT_H
#define HECATE_CODEGEN_TEXT_IDENT_H

#include <stdbool.h>

#include <mlir-c/Support.h>

#include "lang/base/arena.h"
#include "lang/base/vec.h"

// A name that is taken, and the number to try first for another one of its kind.
struct hec_taken {
    const char *name;
    int next;
};

// The names of one scope. Zero-initialise, then set `arena`, and `outer` to the scope around it
// whose names must stay visible, or NULL.
struct hec_idents {
    struct hec_arena *arena;
    const struct hec_idents *outer;
    bool members; // Members of a struct: they cannot clash with functions.
    HEC_VEC(struct hec_taken) taken;
    int *bucket, buckets; // A hash table: 1 + index of `taken`, 0: none.
};

// Takes `text` for a name: "attention.wq" becomes attention_wq, and attention_wq_2 where that is
// taken. Empty text becomes `otherwise`.
const char *hec_ident(struct hec_idents *scope, MlirStringRef text, const char *otherwise);

// Takes exactly `name`; the emitter's own names are reserved this way.
void hec_ident_reserve(struct hec_idents *scope, const char *name);

#endif
