// Shared by the files of the C emitter: its state, and how values become C expressions.
#ifndef HECATE_CODEGEN_EMITTER_H
#define HECATE_CODEGEN_EMITTER_H

#include "codegen/emit_c.h"
#include "codegen/ident.h"
#include "codegen/writer.h"
#include "ir/op.h"
#include "lang/base/vec.h"

// ---- where a value lives: the attributes of place-buffers, read (home.c)

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

struct hec_emitter;
struct hec_home hec_value_home(struct hec_emitter *e, MlirValue value);
bool hec_home_is_panels(const struct hec_home *home); // A parameter or gradient kept as panels.

// ---- dimensions (dims.c)

// A dimension of the source is one constant; a name that a call binds anew gives several.
struct hec_dim_constant {
    MlirStringRef dim;
    int64_t size;
    const char *name;
    bool used;
};

// ---- the C function being written (function.c)

// A temporary: a pointer of the model's struct into the arena.
struct hec_field {
    const char *name;
    const char *base; // Its value's name.
    const char *dims; // "[batch, T]"
    int64_t offset;
    bool integer;
};

// The temporaries of one C function.
struct hec_group {
    const char *name;
    struct hec_idents names;
    HEC_VEC(struct hec_field *) fields;
};

// A local pointer that stands for a temporary.
struct hec_alias {
    const struct hec_field *field;
    const char *name;
    int scope; // Block that declares it; 0: out of scope.
};

struct hec_function {
    struct hec_function *outer; // The one that calls it.
    struct hec_group *group;
    struct hec_writer body;
    struct hec_idents names;
    HEC_VEC(struct hec_alias) aliases;
    HEC_VEC(int) scopes; // Blocks around the current statement.
    int scopes_made;
    bool uses_batch;
    HEC_VEC(int64_t) rows; // Rows per token of each variable `rows` in use.
    const char *layer;     // Variable of the layer, or NULL.
    bool uses_layer;
    unsigned line; // Named in the last comment.
};

struct hec_emitter {
    MlirOperation module;
    const struct hec_emit_options *options;
    struct hec_arena arena;
    const char *real;   // "float" or "double"
    const char *suffix; // "f32" or "f64"
    const char *name;   // The model's, as a C identifier.
    MlirStringRef positions_dim;
    int64_t batch, positions, layers_seen;
    int64_t world;   // Ranks; 1: one process.
    bool sends_rows; // To other ranks: rows are those of a wave.
    bool backward;   // The functions written now.
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
};

#define HEC_TEXT(e, ...) hec_arena_format(&(e)->arena, __VA_ARGS__)

// Reports that `op` cannot be emitted.
void hec_emit_fault(struct hec_emitter *e, MlirOperation op, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

void hec_dims_collect(struct hec_emitter *e);
// The constant or variable that holds the size of dimension `index`.
const char *hec_dim(struct hec_emitter *e, const struct hec_tensor *t, int index);
// The constant for a number of layers.
const char *hec_layers(struct hec_emitter *e, int64_t count);
// How many elements dimensions from .. to-1 have: "batch * T * D"; "1" for none. `hec_factor` puts
// brackets around what has several factors.
const char *hec_product(struct hec_emitter *e, const struct hec_tensor *t, int from, int to);
const char *hec_factor(struct hec_emitter *e, const struct hec_tensor *t, int from, int to);
const char *hec_elements(struct hec_emitter *e, MlirType type);
const char *hec_dims_text(struct hec_emitter *e, MlirType type); // "[batch, T, D]"
void hec_dims_print(struct hec_emitter *e, struct hec_writer *out);

struct hec_function *hec_function_begin(struct hec_emitter *e, const char *name,
                                        MlirStringRef group);
// A function whose temporaries are those of the current one: what a product does with a block.
struct hec_function *hec_function_begin_block(struct hec_emitter *e);
void hec_function_end(struct hec_emitter *e, const char *head);
void hec_scope_enter(struct hec_emitter *e);
void hec_scope_leave(struct hec_emitter *e);

// Writes a statement or a line of the current function.
#define hec_statement(e, ...) hec_line(&(e)->function->body, __VA_ARGS__)

// The name that a temporary for the value has, made unique; empty: it has none.
MlirStringRef hec_temporary_name(MlirValue value);
// Makes a value a temporary of the current function, whoever mentions it first.
void hec_own(struct hec_emitter *e, MlirValue value);
// A pointer to the value's first element, declared first where it is a local variable. "NULL" for
// a value without memory.
const char *hec_ref(struct hec_emitter *e, MlirValue value);
// The same for a place that is no value: a slot or a gradient.
const char *hec_home_ref(struct hec_emitter *e, const struct hec_home *home);
// The row of a home behind its symbol's member: "[i]", "[layers]"; "" for none.
const char *hec_home_row(struct hec_emitter *e, const struct hec_home *home);
// Element `index` of it.
const char *hec_element(struct hec_emitter *e, MlirValue value, const char *index);
// The table of chunk pointers a value of a set lives in, and the constant for its offset there.
const char *hec_chunk(struct hec_emitter *e, MlirValue value);
const char *hec_chunk_offset(struct hec_emitter *e, MlirValue value);
// "HK_ADD" or "HK_STORE" for result `index`; "HK_PANELS" or "HK_ROWS".
const char *hec_write_mode(struct hec_emitter *e, MlirOperation op, int index);
const char *hec_layout(struct hec_emitter *e, MlirValue value);
const char *hec_real(struct hec_emitter *e, double value);   // A literal: "0.5f"
const char *hec_number(struct hec_emitter *e, double value); // "0.5", shortest that reads back.

// ---- symbols of the module (model.c)

const char *hec_member(struct hec_emitter *e, MlirOperation symbol);  // Of struct param or saved.
MlirOperation hec_set_of(struct hec_emitter *e, MlirOperation param); // Null: none.
// Whether products read a bf16 copy of a parameter; of a set: of one of its experts' parameters.
bool hec_is_rounded(struct hec_emitter *e, MlirOperation symbol);
bool hec_has_rounded(struct hec_emitter *e);                       // Of any.
const char *hec_experts(struct hec_emitter *e, MlirOperation set); // The constant for its experts.
// The slot in which `set` keeps its loads, and the set of such a slot; null: there is none.
MlirOperation hec_loads_of(struct hec_emitter *e, MlirOperation set);
MlirOperation hec_set_of_loads(struct hec_emitter *e, MlirOperation slot);
int hec_set_index(struct hec_emitter *e, MlirStringRef name); // In the table of sets; -1: none.
// In the table of buckets: of gradients that are complete together (fssdp.all_reduce).
int hec_bucket_index(struct hec_emitter *e, MlirOperation op);
bool hec_counts_steps(struct hec_emitter *e); // Whether losses are per batch.
bool hec_has_noise(struct hec_emitter *e);    // Whether routers have jitter.
void hec_model_struct(struct hec_emitter *e, struct hec_writer *out);
void hec_model_offsets(struct hec_emitter *e, struct hec_writer *out);
void hec_model_bind(struct hec_emitter *e, struct hec_writer *out);
void hec_model_bind_rounded(struct hec_emitter *e,
                            struct hec_writer *out); // Where hec_has_rounded.
void hec_emit_tables(struct hec_emitter *e, struct hec_writer *out);

// ---- how experts move (movement.c)

bool hec_has_movement(struct hec_emitter *e);
// The tables of all sets, then `movement`; nothing where experts stay.
void hec_emit_movement(struct hec_emitter *e, struct hec_writer *out);
// The name of the set's table `key`, "owner" or "forecast"; NULL: it has none.
const char *hec_set_table(struct hec_emitter *e, MlirOperation set, const char *key);

// ---- operations

// Writes the statements of one operation into the current function.
typedef void hec_emit_op(struct hec_emitter *e, MlirOperation op);

// What stands for `op` in C; NULL: this target has nothing for it.
hec_emit_op *hec_emit_of(enum hec_op op);
// Writes nothing: where it stands does not matter to the text.
bool hec_is_silent(struct hec_emitter *e, MlirOperation op);

void hec_emit_functions(struct hec_emitter *e);

#endif
