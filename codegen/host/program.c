// The emitter: puts the parts of the program together.
#include "codegen/host/program.h"

#include <stdlib.h>
#include <string.h>

#include "codegen/host/back_end.h"
#include "codegen/host/body.h"
#include "codegen/host/dims.h"
#include "codegen/host/emitter.h"
#include "codegen/host/logits.h"
#include "codegen/host/model.h"
#include "codegen/host/seek.h"
#include "codegen/host/symbols.h"
#include "codegen/host/tables.h"
#include "ir/accessors.h"
#include "ir/core/setting.h"

// The element type of the model's reals.
static bool find_real(struct hec_emitter *e) {
    HEC_EACH_OF (op, hec_ops_in(hec_module_body(e->module)), HEC_OP_param) {
        if (e->real) break;
        const MlirType element = mlirShapedTypeGetElementType(hec_any_type(op));
        e->real = mlirTypeIsAF64(element) ? "double" : "float";
        e->suffix = mlirTypeIsAF64(element) ? "f64" : "f32";
    }
    if (!e->real) hec_emit_fault(e, e->module, "has no parameters");
    return e->real;
}

// Checks attributes of `op` that the emitter relies on.
static bool has_ints(struct hec_emitter *e, MlirOperation op, const char *const *keys) {
    for (; *keys; keys++) {
        const MlirAttribute value = mlirOperationGetAttributeByName(op, HEC_STR(*keys));
        if (!mlirAttributeIsNull(value) && mlirAttributeIsAInteger(value) &&
            mlirIntegerAttrGetValueInt(value) >= 0) {
            continue;
        }
        hec_emit_fault(e, op, "lacks %s: run place-buffers first", *keys);
        return false;
    }
    return true;
}

// Where ranks have parts of dense parameters, a module that gathers none would read what is not there.
static bool check_units(struct hec_emitter *e) {
    if (e->world == 1 || !hec_setting_is(e->module, HEC_KEY_parallel_dense, "shard")) return true;
    HEC_EACH (op, hec_ops_below(e->module)) {
        if (hec_is_unit(op)) return true;
    }
    hec_emit_fault(e, e->module, "has parts of dense parameters: run gather-dense first");
    return false;
}

static bool check_module(struct hec_emitter *e) {
    static const char *const of_module[] = {"hecate.arena_bytes", "hecate.param_elements",
                                            "hecate.batch",       "hecate.vocabulary",
                                            "hecate.positions",   NULL};
    static const char *const of_param[] = {"offset", "elements", NULL};
    static const char *const of_slot[] = {"offset", "stride", NULL};
    static const char *const of_set[] = {"offset", "chunk_elements", NULL};
    static const char *const of_ranks[] = {"hecate.world", NULL};
    bool sound = has_ints(e, e->module, of_module);
    if (sound && hec_module_has_world(e->module)) sound = has_ints(e, e->module, of_ranks);
    const struct hec_ops all = hec_ops_in(hec_module_body(e->module));
    for (int i = 0; sound && i < all.count; i++) {
        const MlirOperation op = all.op[i];
        if (hec_op_is(op, HEC_OP_param)) sound = has_ints(e, op, of_param);
        if (hec_op_is(op, HEC_OP_slot)) sound = has_ints(e, op, of_slot);
        if (hec_op_is(op, HEC_OP_set)) sound = has_ints(e, op, of_set);
        e->sends_rows |= hec_op_is(op, HEC_OP_set) && hec_any_owned(op);
        if (sound && hec_op_is(op, HEC_OP_param) && hec_any_has_set(op) &&
            mlirOperationIsNull(hec_set_of(e, op))) {
            hec_emit_fault(e, op, "belongs to a set that does not exist");
            sound = false;
        }
    }
    free(all.op);
    if (!sound) return false;
    e->batch = hec_module_batch(e->module);
    e->positions = hec_module_positions(e->module);
    e->world = hec_module_has_world(e->module) ? hec_module_world(e->module) : 1;
    if (e->batch < 1 || e->positions < 1) {
        hec_emit_fault(e, e->module, "has no tokens");
        return false;
    }
    const MlirOperation forward = hec_find_symbol(e->module, HEC_STR("forward"));
    if (mlirOperationIsNull(forward)) {
        hec_emit_fault(e, e->module, "has no function @forward");
        return false;
    }
    const struct hec_tensor ids =
        hec_tensor_of(mlirValueGetType(mlirBlockGetArgument(hec_func_body(forward), 0)));
    e->positions_dim = ids.dim[1];
    e->continues = hec_module_has_continues(e->module) && hec_module_continues(e->module);
    return check_units(e);
}

static void reserve_names(struct hec_emitter *e) {
    static const char *const own[] = {"backward", "begin",  "bind",     "bind_rounded", "forward",
                                      "loads",    "params", "rates",    "program",      "losses",
                                      "seek",     "sets",   "settings", "logits",       "parts"};
    static const char *const members[] = {
        "batch",           "dense",     "experts",   "grad",         "ids",    "noise",
        "param",           "rounded",   "routing",   "rows",         "saved",  "scale",
        "auxiliary_scale", "targets",   "iteration", "step_loads",   "device", "lane",
        "first",           "positions", "teacher",   "token_weights"};
    e->group_names.members = true;
    e->globals.arena = e->group_names.arena = e->function_names.arena = &e->arena;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        hec_ident_reserve(&e->globals, own[i]);
    }
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        hec_ident_reserve(&e->group_names, members[i]);
    }
    if (hec_has_movement(e)) {
        hec_ident_reserve(&e->globals, "movement");
        hec_ident_reserve(&e->group_names, "fssdp");
    }
    e->name = hec_ident(&(struct hec_idents){.arena = &e->arena},
                        hec_get_string(e->module, "sym_name"), "model");
}

static const char *mebibytes(struct hec_emitter *e, double bytes) {
    return HEC_TEXT(e, "%.1f MiB", bytes / (1024 * 1024));
}

// Includes the parts of the runtime that the host's part of a program needs.
static void write_runtime_headers(struct hec_emitter *e, struct hec_writer *out) {
    if (e->world > 1) {
        hec_line(out, "#include \"hecate/runtime/net/backend.h\"");
        hec_line(out, "#include \"hecate/runtime/experts/experts.h\"");
        hec_line(out, "#include \"hecate/runtime/train/dense.h\"");
    }
    if (hec_has_movement(e)) hec_line(out, "#include \"hecate/runtime/experts/fssdp.h\"");
    if (e->back_end->memory->header) hec_line(out, "#include \"%s\"", e->back_end->memory->header);
    hec_line(out, "#include \"hecate/runtime/program.h\"");
}

static void write_head(struct hec_emitter *e, struct hec_writer *out) {
    const MlirStringRef source = hec_module_source(e->module);
    const MlirStringRef passes = hec_module_passes(e->module);
    const double size = strcmp(e->real, "float") == 0 ? 4 : 8;
    const double params = size * (double)hec_module_param_elements(e->module);
    hec_comment(out, "Written by hecatec %s from %.*s.", e->options->version, (int)source.length,
                source.data);
    hec_comment(out, "Do not edit: change the model and compile again.");
    hec_line(out, "//");
    const char *precision = size == 8 ? "fp64" : hec_has_rounded(e) ? "bf16" : "fp32";
    hec_comment(out, "  target   %s, %s%s", e->back_end->name, precision,
                e->world > 1 ? HEC_TEXT(e, ", %" PRId64 " ranks", e->world) : "");
    hec_comment(out, "  memory   %s of parameters, as much for gradients, %s for everything else",
                mebibytes(e, params), mebibytes(e, (double)hec_module_arena_bytes(e->module)));
    // Pass names, as many on a line as fit.
    const char *line = "  passes  ";
    for (size_t i = 0; i < passes.length;) {
        size_t end = i;
        while (end < passes.length && passes.data[end] != ',') end++;
        const int length = (int)(end - i);
        if (strlen(line) + (size_t)length > HEC_COLUMNS - 8) {
            hec_comment(out, "%s", line);
            line = "          ";
        }
        line = HEC_TEXT(e, "%s %.*s", line, length, passes.data + i);
        i = end + 1;
    }
    if (passes.length) hec_comment(out, "%s", line);
    for (const char *const *header = e->back_end->headers; *header; header++)
        hec_line(out, "#include \"%s\"", *header);
    if (!e->back_end->device_headers) write_runtime_headers(e, out);
    hec_blank(out);
}
// The part of the program for nvcc: kernels and their launchers. The C compiler takes the rest.
static void write_device(struct hec_emitter *e, struct hec_writer *out) {
    hec_blank(out);
    hec_comment(
        out,
        "Two compilers read this file: that of the device the kernels, that of the host the rest.");
    hec_line(out, "#ifdef __cplusplus");
    hec_line(out, "extern \"C\" {");
    hec_line(out, "#endif");
    hec_append(out, &e->launchers);
    hec_line(out, "#ifdef __cplusplus");
    hec_line(out, "}");
    hec_blank(out);
    for (const char *const *header = e->back_end->device_headers; *header; header++)
        hec_line(out, "#include \"%s\"", *header);
    hec_append(out, &e->device);
    hec_blank(out);
    hec_line(out, "#else");
    write_runtime_headers(e, out);
    hec_blank(out);
}

bool hec_emit_program(MlirOperation module, const struct hec_back_end *back_end,
                      const struct hec_emit_options *options, struct hec_writer *out) {
    struct hec_emitter e = {.module = module, .back_end = back_end, .options = options};
    struct hec_writer model = {.arena = &e.arena}, tables = {.arena = &e.arena};
    e.functions.arena = e.device.arena = e.launchers.arena = &e.arena;
    hec_symbols_hold(module);
    if (check_module(&e) && find_real(&e)) {
        reserve_names(&e);
        hec_dims_collect(&e);
        hec_emit_functions(&e);
        e.has_logits = hec_emit_logits(&e);
        hec_model_struct(&e, &model);
        hec_blank(&model);
        hec_model_bind(&e, &model);
        hec_model_bind_rounded(&e, &model);
        hec_model_seek(&e, &model);
        hec_emit_tables(&e, &tables);
    }
    if (!e.failed) {
        hec_align_comments(&model);
        hec_align_comments(&e.functions);
        write_head(&e, out);
        hec_dims_print(&e, out);
        if (back_end->device_headers) write_device(&e, out);
        hec_model_offsets(&e, out);
        hec_blank(out);
        hec_append(out, &model);
        hec_blank(out);
        hec_append(out, &e.functions);
        hec_blank(out);
        hec_append(out, &tables);
        if (back_end->device_headers) hec_line(out, "#endif");
    }
    hec_map_free(&e.fields), hec_map_free(&e.owners), hec_map_free(&e.names);
    hec_arena_free(&e.arena);
    hec_symbols_release();
    return !e.failed;
}
