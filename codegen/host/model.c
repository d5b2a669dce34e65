// The struct of the emitted program: pointers to everything it computes with, and the function that
// binds them to the runtime's buffers.
#include "codegen/host/model.h"

#include <stdlib.h>
#include <string.h>

#include "codegen/host/back_end.h"
#include "codegen/host/dims.h"
#include "codegen/host/literal.h"
#include "codegen/host/symbols.h"
#include "ir/accessors.h"
#include "ir/core/kernel.h"

// "[layers]", "[layers + 1]" or nothing.
static const char *extent(struct hec_emitter *e, MlirOperation op) {
    const int64_t layers = hec_any_layers(op);
    if (layers < 1) return "";
    const bool more = hec_any_has_rows(op) && hec_any_rows(op) > layers;
    return HEC_TEXT(e, "[%s%s]", hec_layers(e, layers), more ? " + 1" : "");
}

// ---- the struct

static void struct_params(struct hec_emitter *e, struct hec_writer *out, bool grads) {
    const char *qualifier = grads ? "" : "const ";
    const struct hec_ops params = hec_symbols(e, HEC_OP_param), sets = hec_symbols(e, HEC_OP_set);
    hec_comment(out, grads ? "Their gradients." : "Parameters, as the runtime stores them.");
    hec_open(out, "struct {");
    for (int i = 0; i < params.count; i++) {
        const MlirOperation op = params.op[i];
        if (hec_in_set(op) || (grads ? !hec_any_trainable(op) : hec_comes_as_copy(e, op))) continue;
        const bool panels = hec_is_panels(hec_any_layout(op));
        hec_line(out, "%s%s *%s%s;%s", qualifier, e->real, hec_member(e, op), extent(e, op),
                 grads ? ""
                       : HEC_TEXT(e, " // %s%s", hec_dims_text(e, hec_any_type(op)),
                                  panels ? " in panels" : ""));
    }
    for (int i = 0; i < sets.count; i++) {
        hec_line(out, "%s%s *%s%s[%s];%s", qualifier, e->real, hec_member(e, sets.op[i]),
                 extent(e, sets.op[i]), hec_experts(e, sets.op[i]),
                 grads ? "" : " // Chunks of experts.");
    }
    hec_close(out, grads ? "} grad;" : "} param;");
    free(params.op), free(sets.op);
}

static void struct_rounded(struct hec_emitter *e, struct hec_writer *out) {
    if (!hec_has_rounded(e)) return;
    const struct hec_ops params = hec_symbols(e, HEC_OP_param), sets = hec_symbols(e, HEC_OP_set);
    hec_comment(out, "Their copies in bf16, which GEMMs read.");
    hec_open(out, "struct {");
    for (int i = 0; i < params.count; i++) {
        if (hec_in_set(params.op[i]) || !hec_is_rounded(e, params.op[i])) continue;
        hec_line(out, "const hk_bf16 *%s%s;", hec_member(e, params.op[i]), extent(e, params.op[i]));
    }
    for (int i = 0; i < sets.count; i++) {
        if (!hec_is_rounded(e, sets.op[i])) continue;
        hec_line(out, "const hk_bf16 *%s%s[%s];", hec_member(e, sets.op[i]), extent(e, sets.op[i]),
                 hec_experts(e, sets.op[i]));
    }
    hec_close(out, "} rounded;");
    free(params.op), free(sets.op);
}

static void struct_saved(struct hec_emitter *e, struct hec_writer *out) {
    const struct hec_ops slots = hec_symbols(e, HEC_OP_slot);
    if (slots.count) {
        hec_comment(out, "Values of forward that backward or the runtime reads.");
        hec_open(out, "struct {");
        for (int i = 0; i < slots.count; i++) {
            const MlirType type = hec_any_type(slots.op[i]);
            hec_line(out, "%s *%s%s; // %s", hec_element_name(e, type), hec_member(e, slots.op[i]),
                     extent(e, slots.op[i]), hec_dims_text(e, type));
        }
        hec_close(out, "} saved;");
    }
    free(slots.op);
}

static void struct_routing(struct hec_emitter *e, struct hec_writer *out) {
    bool open = false;
    HEC_EACH (op, hec_symbols(e, HEC_OP_set)) {
        if (mlirOperationIsNull(hec_loads_of(e, op))) continue;
        if (!open) {
            hec_comment(out, "The runtime may force the experts of tokens, and record the chosen.");
            hec_open(out, "struct {");
        }
        open = true;
        hec_line(out, "struct hrt_routing %s%s;", hec_member(e, op), extent(e, op));
    }
    if (open) hec_close(out, "} routing;");
}

static void struct_step_loads(struct hec_emitter *e, struct hec_writer *out) {
    if (!hec_counts_steps(e)) return;
    hec_comment(out, "Loads of the step so far, of losses that balance experts per batch.");
    hec_line(out, "int64_t iteration; // Number in the step, from 1; 0: outside of steps.");
    hec_open(out, "struct {");
    HEC_EACH (op, hec_symbols(e, HEC_OP_set)) {
        if (mlirOperationIsNull(hec_step_loads_of(e, op))) continue;
        hec_line(out, "int32_t %s%s[%s];", hec_member(e, op), extent(e, op), hec_experts(e, op));
    }
    hec_close(out, "} step_loads;");
}

static void struct_temporaries(struct hec_emitter *e, struct hec_writer *out) {
    const char *const kinds[] = {e->real, "int32_t", "hk_bf16"};
    for (int i = 0; i < e->groups.count; i++) {
        const struct hec_group *group = e->groups.item[i];
        const char *text = NULL;
        for (int kind = 0; kind < 3; kind++) {
            const char *line = NULL;
            for (int k = 0; k < group->fields.count; k++) {
                const struct hec_field *field = group->fields.item[k];
                if (strcmp(field->type, kinds[kind]) != 0) continue;
                line = line ? HEC_TEXT(e, "%s, *%s", line, field->name)
                            : HEC_TEXT(e, "%s *%s", field->type, field->name);
            }
            if (!line) continue;
            if (!text) hec_open(out, "struct {");
            text = line;
            hec_line(out, "%s;", line);
        }
        if (text) hec_close(out, HEC_TEXT(e, "} %s;", group->name));
    }
}

void hec_model_struct(struct hec_emitter *e, struct hec_writer *out) {
    hec_open(out, "struct %s {", e->name);
    hec_line(out, "int64_t batch; // Sequences of the current call.");
    if (e->continues) {
        hec_line(out, "int64_t first; // Position of a sequence that the call begins at.");
        hec_line(out, "int64_t positions; // Length of a sequence in the call.");
    }
    const MlirOperation forward = hec_find_symbol(e->module, HEC_STR("forward"));
    const MlirValue ids = mlirBlockGetArgument(hec_func_body(forward), 0);
    const char *dims = hec_dims_text(e, mlirValueGetType(ids));
    hec_line(out, "const int32_t *ids; // %s", dims);
    hec_line(out, "const int32_t *targets; // %s; negative: ignored.", dims);
    const char *pointer = e->back_end->memory->pointer;
    hec_line(out, "%s %sscale; // Factor of the token losses.", e->real, pointer);
    hec_line(out, "%s %sauxiliary_scale; // Factor of the auxiliary losses.", e->real, pointer);
    if (e->back_end->memory->members) e->back_end->memory->members(e, out);
    if (e->world > 1) {
        hec_line(out, "struct hrt_experts *experts; // Routes of rows to experts; the runtime's.");
        hec_line(out, "int64_t rows; // Rows of the current wave.");
        hec_line(
            out,
            "struct hrt_train_dense *dense; // Sums of gradients over the ranks; the runtime's.");
    }
    if (hec_has_movement(e))
        hec_line(out, "struct hrt_fssdp *fssdp; // Placement of experts; the runtime's.");
    hec_blank(out);
    struct_params(e, out, false);
    struct_rounded(e, out);
    struct_params(e, out, true);
    struct_saved(e, out);
    struct_routing(e, out);
    struct_step_loads(e, out);
    if (hec_has_noise(e))
        hec_line(out, "struct hk_noise noise; // Random numbers of jitter and dropout.");
    if (hec_has_teacher(e))
        hec_line(out,
                 "struct hk_teacher teacher; // Its entries for the call's tokens; the runtime's.");
    if (hec_has_weights(e))
        hec_line(out, "const float *token_weights; // In losses; NULL: 1. The runtime's.");
    hec_blank(out);
    hec_comment(out, "Temporaries of each function; many share memory.");
    struct_temporaries(e, out);
    hec_close(out, "};");
}

// Where each expert's parameters lie in its chunk.
void hec_model_offsets(struct hec_emitter *e, struct hec_writer *out) {
    const char *text = NULL;
    HEC_EACH (op, hec_symbols(e, HEC_OP_param)) {
        const int64_t offset = hec_in_set(op) ? hec_any_offset(op) : 0;
        if (!hec_in_set(op) || offset > INT32_MAX) continue;
        text = HEC_TEXT(e, "%s%s = %" PRId64, text ? HEC_TEXT(e, "%s, ", text) : "",
                        hec_member(e, op), offset);
    }
    if (text) {
        hec_comment(out, "Where an expert's parameters lie in its chunk, in elements.");
        hec_line(out, "enum { %s };", text);
    }
}

// ---- bind

// Loops over layers are written around runs of symbols with equally many layers.
struct layer_loop {
    struct hec_emitter *e;
    struct hec_writer *out;
    int64_t count; // The open loop's; 0: none.
};

static void enter_loop(struct layer_loop *loop, const char *count_text, int64_t count) {
    if (loop->count == count) return;
    if (loop->count) hec_close(loop->out, "}");
    loop->count = count;
    if (count) hec_open(loop->out, "for (int64_t i = 0; i < %s; i++) {", count_text);
}

static const char *at_offset(struct hec_emitter *e, const char *base, int64_t offset) {
    return offset ? HEC_TEXT(e, "%s + %" PRId64, base, offset) : base;
}

// Parts of the struct, and the variables that point to their buffers.
enum part { PARAM, GRAD, ROUNDED, PARTS };
static const char *const part_name[PARTS] = {"param", "grad", "rounded"};
static const char *const part_base[PARTS] = {"p", "g", "r"};

static bool is_in_part(struct hec_emitter *e, enum part part, MlirOperation symbol) {
    if (hec_is_cut(e, symbol)) return false;
    if (part == ROUNDED) return hec_is_rounded(e, symbol);
    return part == PARAM || !hec_op_is(symbol, HEC_OP_param) || hec_any_trainable(symbol);
}

static void bind_param(struct layer_loop *loop, MlirOperation op, enum part first, enum part last) {
    struct hec_emitter *e = loop->e;
    const int64_t layers = hec_any_layers(op);
    const char *name = hec_member(e, op);
    for (enum part part = first; part <= last; part++) {
        if (!is_in_part(e, part, op)) continue;
        enter_loop(loop, layers ? hec_layers(e, layers) : "", layers);
        const char *place = at_offset(e, part_base[part], hec_any_offset(op));
        if (layers) place = HEC_TEXT(e, "%s + i * %" PRId64, place, hec_any_elements(op));
        hec_line(loop->out, "m->%s.%s%s = %s;", part_name[part], name, layers ? "[i]" : "", place);
    }
}

// Not where experts live on several ranks: there the runtime says which chunks are here.
static void bind_set(struct hec_emitter *e, struct hec_writer *out, MlirOperation set,
                     enum part first, enum part last) {
    if (e->sends_rows || !is_in_part(e, first, set)) return;
    const int64_t layers = hec_any_layers(set);
    const char *name = hec_member(e, set), *experts = hec_experts(e, set);
    const char *chunk = "n";
    if (layers) {
        hec_open(out, "for (int64_t i = 0; i < %s; i++) {", hec_layers(e, layers));
        chunk = HEC_TEXT(e, "(i * %s + n)", experts);
    }
    hec_open(out, "for (int64_t n = 0; n < %s; n++) {", experts);
    for (enum part part = first; part <= last; part++) {
        hec_line(out, "m->%s.%s%s[n] = %s + %s * %" PRId64 ";", part_name[part], name,
                 layers ? "[i]" : "", at_offset(e, part_base[part], hec_any_offset(set)), chunk,
                 hec_any_chunk_elements(set));
    }
    hec_close(out, "}");
    if (layers) hec_close(out, "}");
}

static void bind_slot(struct layer_loop *loop, MlirOperation op) {
    struct hec_emitter *e = loop->e;
    const int64_t layers = hec_any_layers(op);
    const int64_t rows = hec_any_has_rows(op) ? hec_any_rows(op) : layers;
    const char *count = layers ? hec_layers(e, layers) : "";
    enter_loop(loop, rows > layers ? HEC_TEXT(e, "%s + 1", count) : count, layers ? rows : 0);
    const char *place = at_offset(e, "a", hec_any_offset(op));
    if (layers) place = HEC_TEXT(e, "%s + i * %" PRId64, place, hec_any_stride(op));
    hec_line(loop->out, "m->saved.%s%s = (void *)(%s);", hec_member(e, op), layers ? "[i]" : "",
             place);
}

// Whether anything is bound to the buffer of a part.
static bool binds_any(struct hec_emitter *e, enum part part) {
    HEC_EACH (op, hec_ops_in(hec_module_body(e->module))) {
        if (hec_op_is(op, HEC_OP_param) && !hec_in_set(op) && is_in_part(e, part, op)) return true;
        if (hec_op_is(op, HEC_OP_set) && !e->sends_rows && is_in_part(e, part, op)) return true;
    }
    return false;
}

// The variable that members of a part are bound by; a buffer that nothing is bound to has none.
static void open_base(struct hec_emitter *e, struct hec_writer *out, enum part part,
                      const char *type, const char *argument) {
    if (binds_any(e, part))
        hec_line(out, "%s%s = %s;", type, part_base[part], argument);
    else
        hec_line(out, "(void)%s;", argument);
}

void hec_model_bind(struct hec_emitter *e, struct hec_writer *out) {
    struct layer_loop loop = {.e = e, .out = out};
    const struct hec_ops params = hec_symbols(e, HEC_OP_param), sets = hec_symbols(e, HEC_OP_set);
    hec_open(out, "static void bind(void *model, void *params, void *grads, void *arena) {");
    hec_line(out, "struct %s *m = model;", e->name);
    open_base(e, out, PARAM, HEC_TEXT(e, "const %s *", e->real), "params");
    open_base(e, out, GRAD, HEC_TEXT(e, "%s *", e->real), "grads");
    hec_line(out, "char *a = arena;");
    hec_blank(out);
    if (e->continues) hec_line(out, "m->positions = %" PRId64 ";", e->positions);
    for (int i = 0; i < params.count; i++) {
        if (!hec_in_set(params.op[i])) bind_param(&loop, params.op[i], PARAM, GRAD);
    }
    enter_loop(&loop, "", 0);
    for (int i = 0; i < sets.count; i++) bind_set(e, out, sets.op[i], PARAM, GRAD);
    hec_blank(out);
    HEC_EACH (op, hec_symbols(e, HEC_OP_slot)) bind_slot(&loop, op);
    enter_loop(&loop, "", 0);
    hec_blank(out);
    for (int i = 0; i < e->groups.count; i++) {
        const struct hec_group *group = e->groups.item[i];
        for (int k = 0; k < group->fields.count; k++) {
            const struct hec_field *field = group->fields.item[k];
            hec_line(out, "m->%s.%s = (void *)(%s);", group->name, field->name,
                     at_offset(e, "a", field->offset));
        }
    }
    if (e->back_end->memory->bind) e->back_end->memory->bind(e, out);
    hec_close(out, "}");
    free(params.op), free(sets.op);
}

void hec_model_bind_rounded(struct hec_emitter *e, struct hec_writer *out) {
    if (!hec_has_rounded(e)) return;
    struct layer_loop loop = {.e = e, .out = out};
    const struct hec_ops params = hec_symbols(e, HEC_OP_param), sets = hec_symbols(e, HEC_OP_set);
    hec_blank(out);
    hec_open(out, "static void bind_rounded(void *model, const void *rounded) {");
    if (binds_any(e, ROUNDED))
        hec_line(out, "struct %s *m = model;", e->name);
    else
        hec_line(out, "(void)model;");
    open_base(e, out, ROUNDED, "const hk_bf16 *", "rounded");
    hec_blank(out);
    for (int i = 0; i < params.count; i++) {
        if (!hec_in_set(params.op[i])) bind_param(&loop, params.op[i], ROUNDED, ROUNDED);
    }
    enter_loop(&loop, "", 0);
    for (int i = 0; i < sets.count; i++) bind_set(e, out, sets.op[i], ROUNDED, ROUNDED);
    hec_close(out, "}");
    free(params.op), free(sets.op);
}
