// Functions of the emitted program: forward and backward, and one for each run of operations that
// came from one call of a block. Every tensor has its place, so that a function needs the model
// and the layer only.
#include "codegen/host/body.h"

#include <stdlib.h>
#include <string.h>

#include "codegen/host/back_end.h"
#include "codegen/host/calls.h"
#include "codegen/host/dims.h"
#include "codegen/host/emit_options.h"
#include "codegen/host/function.h"
#include "codegen/host/gradient.h"
#include "codegen/host/home.h"
#include "codegen/host/literal.h"
#include "codegen/host/rows.h"
#include "ir/accessors.h"
#include "ir/core/kernel.h"

// ---- where an operation comes from

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

// Says from which line of the source what follows comes, where that changes.
static void comment_line(struct hec_emitter *e, MlirOperation op) {
    struct hec_location location;
    if (!hec_loc_resolve(mlirOperationGetLocation(op), &location) || location.line == 0) return;
    struct hec_function *f = e->function;
    if (f->line == location.line) return;
    f->line = location.line;

    const char *file = hec_arena_copy(&e->arena, location.file.data, location.file.length);
    size_t length = 0;
    const char *text = e->options->source_line
                           ? e->options->source_line(e->options->user, file, location.line, &length)
                           : NULL;
    while (length && strchr(" \t", *text)) text++, length--;
    hec_blank(&f->body);
    hec_comment(&f->body, "%s:%u%s%.*s", base_name(file), location.line, length ? "   " : "",
                (int)length, length ? text : "");
    if (!e->back_end->line) return;
    f->has_lines = true;
    const char *line = HEC_TEXT(e, "%s:%u", base_name(file), location.line);
    hec_line(&f->body, "%s%s);", e->back_end->line, hec_quote(e, HEC_STR(line)));
}

// ---- statements

static void emit_list(struct hec_emitter *e, const MlirOperation *op, int count, int depth);

// Declares the temporaries of an operation in a fixed order, before its statement mentions them. Those of an
// epilogue are its function's, and a sum goes to the result.
static void declare(struct hec_emitter *e, MlirOperation op) {
    const struct hec_call call = hec_call_of(op);
    for (int i = 0; i < call.operands; i++) {
        const MlirValue v = hec_operand(op, i);
        if (!mlirTypeIsARankedTensor(mlirValueGetType(v))) continue;
        if (hec_value_home(e, v).kind == HEC_HOME_ARENA) hec_ref(e, v);
    }
    for (int i = 0; i < call.results; i++) {
        const MlirValue v = hec_result(op, i);
        if (hec_value_home(e, v).kind == HEC_HOME_ARENA) hec_result_ref(e, op, i);
    }
}

// A loop over waves, or one over all waves but the last for overwritten rows.
static void emit_waves(struct hec_emitter *e, const struct hec_for *loop, int depth) {
    struct hec_writer *out = &e->function->body;
    const MlirOperation count = hec_defining(loop->bound);
    const char *key = hec_route_key(e, count);
    hec_blank(out);
    if (hec_op_is(count, HEC_OP_overwritten)) {
        hec_open(out, "if (wave < hrt_experts_waves(%s) - 1) { // Its slots hold a later wave.",
                 key);
    } else if (loop->down) {
        hec_open(out, "for (int64_t wave = hrt_experts_waves(%s) - 1; wave >= 0; wave--) {", key);
    } else {
        hec_open(out, "for (int64_t wave = 0; wave < hrt_experts_waves(%s); wave++) {", key);
    }
    e->function->line = 0;
    hec_scope_enter(e);
    const struct hec_ops body = hec_ops_in(loop->body);
    emit_list(e, body.op, body.count, depth);
    free(body.op);
    hec_scope_leave(e);
    e->function->line = 0;
    hec_close(out, "}");
}

static void emit_for(struct hec_emitter *e, MlirOperation op, int depth) {
    struct hec_function *f = e->function;
    const struct hec_for loop = hec_for_of(op);
    if (loop.count == HEC_COUNT_AT_RUN_TIME) {
        emit_waves(e, &loop, depth);
        return;
    }
    if (f->layer) {
        hec_emit_fault(e, op, "is a loop in a loop over layers, which is not supported yet");
        return;
    }
    const char *layers = hec_layers(e, loop.count);
    for (int i = 0; i < loop.carried; i++) {
        hec_own(e, hec_for_init(&loop, i));
        hec_own(e, hec_for_argument(&loop, i));
    }
    hec_blank(&f->body);
    if (loop.down) {
        hec_open(&f->body, "for (int64_t i = %s - 1; i >= 0; i--) {", layers);
    } else {
        hec_open(&f->body, "for (int64_t i = 0; i < %s; i++) {", layers);
    }
    f->layer = "i";
    f->line = 0;
    hec_scope_enter(e);
    const struct hec_ops body = hec_ops_in(loop.body);
    emit_list(e, body.op, body.count, depth);
    free(body.op);
    hec_scope_leave(e);
    f->layer = NULL;
    f->line = 0;
    hec_close(&f->body, "}");
}

// Writes nothing: where it stands does not matter to the text.
static bool is_silent(struct hec_emitter *e, MlirOperation op) {
    switch (hec_op_of(op)) {
    case HEC_OP_accumulate:
        return hec_is_in_place(e, op);
    default:
        return hec_host_op(hec_op_of(op)) == hec_emit_nothing;
    }
}

static void emit_one(struct hec_emitter *e, MlirOperation op, int depth) {
    if (hec_op_is(op, HEC_OP_FOR)) {
        emit_for(e, op, depth);
        return;
    }
    hec_emit_op *emit = hec_host_op(hec_op_of(op));
    if (!emit) emit = e->back_end->of(hec_op_of(op));
    if (!emit) {
        hec_emit_fault(e, op, "is not supported yet by target %s", e->back_end->name);
        return;
    }
    if (is_silent(e, op)) return;
    comment_line(e, op);
    declare(e, op);
    emit(e, op);
}

// The unit of a mixture is called after its set: "sparse.layer" -> "sparse".
static MlirStringRef unit_name(struct hec_emitter *e, MlirStringRef call) {
    MlirStringRef name = call;
    HEC_EACH_OF (op, hec_ops_in(hec_module_body(e->module)), HEC_OP_set)
        if (mlirStringRefEqual(hec_any_mixture(op), call)) name = hec_any_sym_name(op);
    return name;
}

// Operations of one call become a function of their own.
static void emit_call(struct hec_emitter *e, MlirStringRef call, const MlirOperation *op, int count,
                      int depth) {
    call = unit_name(e, call);
    const char *way = e->backward ? "backward" : "forward";
    const char *base = hec_ident(&e->function_names, call, "block");
    const char *group = e->backward ? HEC_TEXT(e, "%.*s_backward", (int)call.length, call.data)
                                    : HEC_TEXT(e, "%.*s", (int)call.length, call.data);
    const char *name = HEC_TEXT(e, "%s_%s", base, way);
    struct hec_function *f = hec_function_begin(e, name, HEC_STR(group));
    emit_list(e, op, count, depth + 1);
    hec_function_end(e, HEC_TEXT(e, "static void %s(struct %s *m%s) {", name, e->name,
                                 f->uses_layer ? ", int64_t i" : ""));
    struct hec_function *outer = e->function;
    outer->uses_layer = outer->uses_layer || f->uses_layer;
    hec_statement(e, "%s(m%s);", name, f->uses_layer ? ", i" : "");
}

static void emit_list(struct hec_emitter *e, const MlirOperation *op, int count, int depth) {
    enum { FEWEST = 3 }; // Operations worth a function.
    for (int i = 0; i < count;) {
        const MlirStringRef call = hec_unit_at(op[i], depth);
        if (!call.length || is_silent(e, op[i])) {
            emit_one(e, op[i++], depth);
            continue;
        }
        int end = i, loud = 0;
        for (int k = i; k < count; k++) {
            if (is_silent(e, op[k])) continue;
            if (!mlirStringRefEqual(hec_unit_at(op[k], depth), call)) break;
            loud += hec_call_of(op[k]).outputs ? 2 : 1;
            end = k + 1;
        }
        if (loud >= FEWEST) {
            emit_call(e, call, op + i, end - i, depth);
        } else {
            for (int k = i; k < end; k++) emit_one(e, op[k], depth);
        }
        i = end;
    }
}

// ---- forward and backward

static void return_losses(struct hec_emitter *e, MlirOperation func) {
    const MlirOperation end = mlirBlockGetTerminator(hec_func_body(func));
    if (mlirOperationGetNumOperands(end) != hec_count_losses(e->module)) {
        hec_emit_fault(
            e, func,
            "must return the loss, the cross entropy and the auxiliary loss, and one for "
            "each slot that holds a loss");
        return;
    }
    hec_blank(&e->function->body);
    e->back_end->memory->losses(e, end);
}

static void emit_entry(struct hec_emitter *e, const char *name) {
    const MlirOperation func = hec_find_symbol(e->module, HEC_STR(name));
    if (mlirOperationIsNull(func) || !hec_op_is(func, HEC_OP_FUNC)) {
        hec_emit_fault(e, e->module, "has no function @%s", name);
        return;
    }
    e->backward = strcmp(name, "backward") == 0;
    e->function_names = (struct hec_idents){.arena = &e->arena};
    struct hec_function *f = hec_function_begin(e, name, HEC_STR(name));
    static const char *const argument[] = {"ids", "targets", "scale", "auxiliary_scale"};
    for (size_t i = 0; i < sizeof argument / sizeof *argument; i++)
        hec_ident_reserve(&f->names, argument[i]);
    hec_statement(e, "struct %s *m = model;", e->name);
    hec_statement(e, "begin(m, batch, ids, targets, scale, auxiliary_scale);");
    const struct hec_ops body = hec_ops_in(hec_func_body(func));
    emit_list(e, body.op, body.count, 0);
    free(body.op);
    if (!e->backward) return_losses(e, func);
    f->uses_batch = false; // It is an argument here.
    f->model_is_void = true;
    hec_function_end(e, HEC_TEXT(e,
                                 "static %s %s(void *model, int64_t batch, const int32_t *ids, "
                                 "const int32_t *targets, double scale, double auxiliary_scale) {",
                                 e->backward ? "void" : "struct hrt_losses", name));
}

void hec_emit_functions(struct hec_emitter *e) {
    struct hec_writer *out = &e->functions;
    hec_comment(out, "Keeps the arguments of a call for the functions of the layers.");
    hec_open(out,
             "static void begin(struct %s *m, int64_t batch, const int32_t *ids, "
             "const int32_t *targets, double scale, double auxiliary_scale) {",
             e->name);
    hec_line(out, "m->batch = batch;");
    hec_line(out, "m->ids = ids;");
    hec_line(out, "m->targets = targets;");
    const char *cast = strcmp(e->real, "float") == 0 ? "(float)" : "";
    static const char *const number[] = {"scale", "auxiliary_scale"};
    e->back_end->memory->keep(e, out, number, 2, cast);
    hec_close(out, "}");
    emit_entry(e, "forward");
    emit_entry(e, "backward");
}
