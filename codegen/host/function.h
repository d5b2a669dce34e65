// The C function being written: its local variables, and how values become expressions in it.
#ifndef HECATE_CODEGEN_HOST_FUNCTION_H
#define HECATE_CODEGEN_HOST_FUNCTION_H

#include "codegen/host/emitter.h"
#include "codegen/host/home.h"

struct hec_function *hec_function_begin(struct hec_emitter *e, const char *name,
                                        MlirStringRef group);
// A function whose temporaries are those of the current one: the work of a GEMM on a block.
struct hec_function *hec_function_begin_block(struct hec_emitter *e);
// A function for a device, which knows nothing but its parameters.
struct hec_function *hec_function_begin_device(struct hec_emitter *e);
void hec_function_end(struct hec_emitter *e, const char *head);
// Ends a function of a device. The text of its body is the caller's to write; `uses_batch`: it needs a parameter
// `batch`, which the function around it has then, too.
const struct hec_writer *hec_function_leave(struct hec_emitter *e, bool *uses_batch);
void hec_scope_enter(struct hec_emitter *e);
void hec_scope_leave(struct hec_emitter *e);

// Writes a statement or a line of the current function.
#define hec_statement(e, ...) hec_line(&(e)->function->body, __VA_ARGS__)

// The name that a temporary for the value has, made unique; empty: it has none.
MlirStringRef hec_temporary_name(MlirValue value);
// Makes a value a temporary of the current function, at its first mention.
void hec_own(struct hec_emitter *e, MlirValue value);
// A pointer to the value's first element, declared first where it is a local variable. "NULL" for
// a value without memory.
const char *hec_ref(struct hec_emitter *e, MlirValue value);
// The same for result `index` of `op`, where `op` writes it.
const char *hec_result_ref(struct hec_emitter *e, MlirOperation op, int index);
// The same for a place that is no value: a slot or a gradient.
const char *hec_home_ref(struct hec_emitter *e, const struct hec_home *home);
// The row of a home behind its symbol's member: "[i]", "[layers]"; "" for none.
const char *hec_home_row(struct hec_emitter *e, const struct hec_home *home);
// The layer that `op` is of, `behind` layers before its operand: "i", "i - 1", or a number where that is a
// constant; NULL: it has no operand for one.
const char *hec_layer_text(struct hec_emitter *e, MlirOperation op, int64_t behind);
// Element `index` of it.
const char *hec_element(struct hec_emitter *e, MlirValue value, const char *index);
// The table of chunk pointers a value of a set lives in, and the constant for its offset there.
const char *hec_chunk(struct hec_emitter *e, MlirValue value);
const char *hec_chunk_offset(struct hec_emitter *e, MlirValue value);
// "HK_ADD" or "HK_STORE" for result `index`.
const char *hec_write_mode(struct hec_emitter *e, MlirOperation op, int index);

#endif
