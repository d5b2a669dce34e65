// The state of the emitter: of the program, and of the function being written. Which file of this folder
// makes what of it stands beside each part.
#ifndef HECATE_CODEGEN_HOST_EMITTER_H
#define HECATE_CODEGEN_HOST_EMITTER_H

#include "codegen/text/ident.h"
#include "codegen/text/writer.h"
#include "ir/core/op.h"
#include "lang/base/vec.h"

struct hec_emit_options;
struct hec_back_end;
struct hec_dim_constant;

// ---- the C function being written (function.h)

// A temporary: a pointer of the model's struct into the arena.
struct hec_field {
    const char *name;
    const char *base; // Its value's name.
    const char *dims; // "[batch, T]"
    const char *type; // Type of an element, in C.
    int64_t offset;
};

// The temporaries of one C function.
struct hec_group {
    const char *name;
    struct hec_idents names;
    HEC_VEC(struct hec_field *) fields;
};

struct hec_alias;

struct hec_function {
    struct hec_function *outer; // The one that calls it.
    struct hec_group *group;
    struct hec_writer body;
    struct hec_idents names;
    HEC_VEC(struct hec_alias) aliases;
    HEC_VEC(int) scopes; // Blocks around the current statement.
    int scopes_made;
    bool uses_batch, uses_positions;
    bool model_is_void;    // Its parameter is `void *model`, not the model's struct.
    HEC_VEC(int64_t) rows; // Rows per token of each variable `rows` in use.
    const char *layer;     // Variable of the layer, or NULL.
    bool uses_layer;
    bool has_lines; // It tells profilers about lines of the source.
    unsigned line;  // Named in the last comment.
};

struct hec_emitter {
    MlirOperation module;
    const struct hec_emit_options *options;
    const struct hec_back_end *back_end; // The target's.
    struct hec_arena arena;
    const char *real;   // "float" or "double"
    const char *suffix; // "f32" or "f64"
    const char *name;   // The model's, as a C identifier.
    MlirStringRef positions_dim;
    int64_t batch, positions;
    int64_t world;    // Ranks; 1: one process.
    bool sends_rows;  // To other ranks: rows are those of a wave.
    bool continues;   // A call may go on with a sequence: positions are a variable.
    bool backward;    // The functions written now.
    const char *only; // The tokens whose logits alone its calls compute; NULL: everything.
    bool has_logits;  // A function that computes some.
    bool failed;

    struct hec_idents globals, function_names;
    HEC_VEC(struct hec_dim_constant) dims;
    HEC_VEC(struct hec_group *) groups;
    struct hec_idents group_names;
    struct hec_map fields; // Value -> struct hec_field it lives in.
    struct hec_map owners; // Field -> its struct hec_group.
    struct hec_map names;  // Symbol operation -> its member's or constant's name.
    struct hec_function *function;
    struct hec_writer functions; // Finished ones, callees first.
    struct hec_writer device; // Kernels, for targets whose tensors lie in the memory of a device.
    struct hec_writer launchers; // Declarations of the functions that the host calls.
};

#define HEC_TEXT(e, ...) hec_arena_format(&(e)->arena, __VA_ARGS__)

// Reports that `op` cannot be emitted.
void hec_emit_fault(struct hec_emitter *e, MlirOperation op, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
