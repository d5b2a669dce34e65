// The C function being written: its local variables, and how values become expressions in it.
#include "codegen/host/function.h"

#include <string.h>

#include "codegen/host/back_end.h"
#include "codegen/host/dims.h"
#include "codegen/host/literal.h"
#include "codegen/host/symbols.h"
#include "ir/accessors.h"
#include "ir/core/kernel.h"
#include "ir/ops/fused.h"

// A local pointer that stands for a temporary.
struct hec_alias {
    const struct hec_field *field;
    const char *name;
    int scope; // Block that declares it; 0: out of scope.
};

// `rows` of each number of top-k choices (hec_function_end).
static void reserve_rows(struct hec_emitter *e, struct hec_idents *names) {
    HEC_EACH_OF (op, hec_ops_in(hec_module_body(e->module)), HEC_OP_set)
        hec_ident_reserve(names, HEC_TEXT(e, "rows_%" PRId64, hec_any_topk(op)));
}

static struct hec_function *begin(struct hec_emitter *e, struct hec_group *group) {
    static const char *const own[] = {"m",    "i",   "j",     "n",     "r",    "batch",
                                      "rows", "sum", "model", "block", "lines"};
    struct hec_function *f = HEC_NEW(&e->arena, struct hec_function);
    f->outer = e->function;
    f->body.arena = &e->arena;
    f->body.indent = 1;
    f->names = (struct hec_idents){.arena = &e->arena, .outer = &e->globals};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) hec_ident_reserve(&f->names, own[i]);
    reserve_rows(e, &f->names);
    f->layer = e->function ? e->function->layer : NULL;
    f->group = group;
    e->function = f;
    hec_scope_enter(e);
    return f;
}

struct hec_function *hec_function_begin(struct hec_emitter *e, const char *name,
                                        MlirStringRef group) {
    struct hec_group *made = HEC_NEW(&e->arena, struct hec_group);
    made->name = hec_ident(&e->group_names, group, name);
    made->names = (struct hec_idents){.arena = &e->arena, .members = true};
    HEC_PUSH(&e->arena, &e->groups, made);
    return begin(e, made);
}

struct hec_function *hec_function_begin_block(struct hec_emitter *e) {
    struct hec_function *f = begin(e, e->function->group);
    f->model_is_void = true;
    hec_statement(e, "struct %s *m = model;", e->name);
    return f;
}

struct hec_function *hec_function_begin_device(struct hec_emitter *e) {
    return begin(e, e->function->group);
}

// The numbers of rows that the function turned out to need.
static void write_rows(struct hec_emitter *e, const struct hec_function *f,
                       struct hec_writer *out) {
    for (int i = 0; i < f->rows.count; i++) {
        const int64_t picks = f->rows.item[i];
        struct hec_tensor t = {
            .rank = 2, .dim = {e->positions_dim, HEC_STR("picks")}, .size = {e->positions, picks}};
        const char *tokens = hec_product(e, &t, 0, 2);
        const bool plain = strcmp(hec_dim(e, &t, 1), "picks") == 0;
        hec_line(out, "const int64_t rows%s = batch * %s;",
                 plain ? "" : HEC_TEXT(e, "_%" PRId64, picks), tokens);
    }
}

const struct hec_writer *hec_function_leave(struct hec_emitter *e, bool *uses_batch) {
    const struct hec_function *f = e->function;
    struct hec_writer *text = HEC_NEW(&e->arena, struct hec_writer);
    *text = (struct hec_writer){.arena = &e->arena, .indent = 1};
    write_rows(e, f, text);
    hec_append(text, &f->body);
    *uses_batch = f->uses_batch;
    e->function = f->outer;
    e->function->uses_batch |= f->uses_batch;
    return text;
}

// How many positions the call has, where they are a variable. The model's struct may be declared in the body only.
static void write_positions(struct hec_emitter *e, struct hec_function *f, struct hec_writer *out) {
    f->uses_positions |= e->continues && f->rows.count > 0;
    if (!f->uses_positions) return;
    const char *m = f->model_is_void ? HEC_TEXT(e, "((const struct %s *)model)", e->name) : "m";
    hec_line(out, "const int64_t %s = %s->positions;", hec_positions(e), m);
}

// Writes the finished function to the others: its head, the variables it turned out to need, body.
void hec_function_end(struct hec_emitter *e, const char *head) {
    struct hec_function *f = e->function;
    struct hec_writer *out = &e->functions;
    hec_blank(out);
    hec_open(out, "%s", head);
    if (f->uses_batch) hec_line(out, "const int64_t batch = m->batch;");
    write_positions(e, f, out);
    write_rows(e, f, out);
    if (f->has_lines) hec_line(out, "%s", e->back_end->lines);
    if (f->uses_batch || f->uses_positions || f->has_lines) hec_blank(out);
    hec_append(out, &f->body);
    hec_close(out, "}");
    e->function = f->outer;
}

void hec_scope_enter(struct hec_emitter *e) {
    struct hec_function *f = e->function;
    HEC_PUSH(&e->arena, &f->scopes, ++f->scopes_made);
}

void hec_scope_leave(struct hec_emitter *e) {
    struct hec_function *f = e->function;
    const int left = f->scopes.item[--f->scopes.count];
    for (int i = 0; i < f->aliases.count; i++) {
        if (f->aliases.item[i].scope == left) f->aliases.item[i].scope = 0;
    }
}

// ---- temporaries

// The word of `words`, "dq dk dv?", for result `index`.
static MlirStringRef result_word(const char *words, int index) {
    for (; index > 0 && *words; index--) words += strcspn(words, " "), words += *words == ' ';
    return mlirStringRefCreate(words, strcspn(words, " ?*:"));
}

// The name of a value. A loop's result has that of what went in, one of moe.fused that of what its
// region yields, a further result of a kernel its own: the location has one name for all of them.
MlirStringRef hec_temporary_name(MlirValue value) {
    const MlirStringRef name = hec_value_name(value);
    const MlirOperation maker = hec_defining(value);
    if (mlirOperationIsNull(maker)) return name;
    const int index = (int)mlirOpResultGetResultNumber(value);
    if (hec_op_is(maker, HEC_OP_FOR)) {
        if (name.length) return name;
        const struct hec_for loop = hec_for_of(maker);
        return hec_temporary_name(hec_for_init(&loop, index));
    }
    const struct hec_fused fused = hec_fused_of(maker);
    for (int i = 0; i < fused.outputs; i++) {
        if (mlirValueEqual(fused.output[i], value))
            return hec_value_name(hec_operand(mlirBlockGetTerminator(fused.body), i));
    }
    if (index > 0) return result_word(hec_op_row(hec_op_computes(maker))->results, index);
    return name;
}

// The name of a value that has none: "moe.rmsnorm" -> "rmsnorm"; "fused" for the result of an epilogue.
static const char *operation_name(MlirOperation op, int result) {
    const enum hec_op id = result >= hec_call_of(op).results ? HEC_OP_fused : hec_op_computes(op);
    const char *dot = strrchr(hec_op_row(id)->name, '.');
    return dot ? dot + 1 : NULL;
}

// The function that computes a value has it among its temporaries; a loop's carried value belongs
// to the function with the loop. Values of one name and place are one temporary.
static struct hec_field *make_field(struct hec_emitter *e, MlirValue value, int64_t offset) {
    struct hec_group *group = e->function->group;
    const MlirType type = mlirValueGetType(value);
    const MlirStringRef name = hec_temporary_name(value);
    const MlirOperation maker = hec_defining(value);
    const char *otherwise = mlirOperationIsNull(maker)
                                ? NULL
                                : operation_name(maker, (int)mlirOpResultGetResultNumber(value));
    if (!otherwise) otherwise = "value";
    const char *base = name.length ? hec_arena_copy(&e->arena, name.data, name.length) : otherwise;
    const char *dims = hec_dims_text(e, type), *element = hec_element_name(e, type);
    for (int i = 0; i < group->fields.count; i++) {
        struct hec_field *known = group->fields.item[i];
        if (known->offset == offset && strcmp(known->type, element) == 0 &&
            strcmp(known->base, base) == 0 && strcmp(known->dims, dims) == 0) {
            return known;
        }
    }
    struct hec_field *field = HEC_NEW(&e->arena, struct hec_field);
    *field = (struct hec_field){.name = hec_ident(&group->names, HEC_STR(base), "value"),
                                .base = base,
                                .dims = dims,
                                .type = element,
                                .offset = offset};
    HEC_PUSH(&e->arena, &group->fields, field);
    *hec_map_at(&e->owners, field) = (intptr_t)group;
    return field;
}

static const struct hec_field *field_of(struct hec_emitter *e, MlirValue value, int64_t offset) {
    intptr_t *at = hec_map_at(&e->fields, value.ptr);
    if (!*at) {
        struct hec_field *made = make_field(e, value, offset);
        at = hec_map_at(&e->fields, value.ptr);
        *at = (intptr_t)made;
    }
    return (const struct hec_field *)*at;
}

void hec_own(struct hec_emitter *e, MlirValue value) {
    const struct hec_home home = hec_value_home(e, value);
    if (home.kind == HEC_HOME_ARENA) field_of(e, value, home.at);
}

// The local variable that points to a temporary, declared in the current block if there is none.
static const char *alias_of(struct hec_emitter *e, const struct hec_field *field) {
    struct hec_function *f = e->function;
    struct hec_alias *alias = NULL;
    for (int i = 0; i < f->aliases.count; i++) {
        if (f->aliases.item[i].field == field) alias = &f->aliases.item[i];
    }
    if (!alias) {
        const struct hec_alias made = {.field = field,
                                       .name = hec_ident(&f->names, HEC_STR(field->base), "value")};
        HEC_PUSH(&e->arena, &f->aliases, made);
        alias = &f->aliases.item[f->aliases.count - 1];
    }
    if (!alias->scope) {
        const struct hec_group *owner = (const struct hec_group *)hec_map_get(&e->owners, field);
        hec_statement(e, "%s%s *%s = m->%s.%s; // %s", owner == f->group ? "" : "const ",
                      field->type, alias->name, owner->name, field->name, field->dims);
        alias->scope = f->scopes.item[f->scopes.count - 1];
    }
    return alias->name;
}

// ---- expressions

const char *hec_home_row(struct hec_emitter *e, const struct hec_home *home) {
    if (home->row == HEC_ROW_ONLY) return "";
    const MlirOperation symbol = hec_home_symbol(e, home);
    if (home->row == HEC_ROW_FIXED) {
        if (home->at > 0 && home->at == hec_any_layers(symbol)) {
            return HEC_TEXT(e, "[%s]", hec_layers(e, home->at)); // The last layer's value.
        }
        return HEC_TEXT(e, "[%" PRId64 "]", home->at);
    }
    if (!e->function->layer) {
        hec_emit_fault(e, symbol, "is read by layer outside of a loop over layers");
        return "";
    }
    e->function->uses_layer = true;
    return HEC_TEXT(e, home->row == HEC_ROW_NEXT ? "[%s + 1]" : "[%s]", e->function->layer);
}

const char *hec_layer_text(struct hec_emitter *e, MlirOperation op, int64_t behind) {
    const MlirValue layer = hec_layer_of(op);
    if (mlirValueIsNull(layer)) return NULL;
    const MlirOperation made = hec_defining(layer);
    if (hec_op_is(made, HEC_OP_CONSTANT))
        return HEC_TEXT(e, "%" PRId64, hec_get_int(made, "value") - behind);
    if (!e->function->layer) {
        hec_emit_fault(e, op, "names a layer outside of a loop over layers");
        return "0";
    }
    e->function->uses_layer = true;
    if (behind == 0) return e->function->layer;
    return HEC_TEXT(e, "%s %c %" PRId64, e->function->layer, behind < 0 ? '+' : '-',
                    behind < 0 ? -behind : behind);
}

static const char *member_text(struct hec_emitter *e, const char *part, MlirOperation symbol,
                               const struct hec_home *home) {
    return HEC_TEXT(e, "m->%s.%s%s", part, hec_member(e, symbol), hec_home_row(e, home));
}

// The part of the model's struct that a parameter's value or gradient is in.
static const char *part_of(const struct hec_home *home, bool rounded) {
    return home->kind == HEC_HOME_GRAD ? "grad" : rounded ? "rounded" : "param";
}

static const char *home_ref(struct hec_emitter *e, const struct hec_home *home, bool rounded) {
    static const char *const argument[HEC_ARGUMENTS] = {"ids", "targets", "scale",
                                                        "auxiliary_scale"};
    const char *address = e->back_end->memory->address;
    const char *const before[HEC_ARGUMENTS] = {"", "", address, address};
    const MlirOperation symbol = hec_home_symbol(e, home);
    switch (home->kind) {
    case HEC_HOME_SLOT:
        return member_text(e, "saved", symbol, home);
    case HEC_HOME_PARAM:
    case HEC_HOME_GRAD:
        if (!mlirOperationIsNull(hec_set_of(e, symbol))) {
            hec_emit_fault(e, symbol, "belongs to a set and is used as one tensor");
        }
        return member_text(e, part_of(home, rounded), symbol, home);
    case HEC_HOME_ARGUMENT:
        return HEC_TEXT(e, "%sm->%s", before[home->at], argument[home->at]);
    case HEC_HOME_ARENA:
        break; // Has a name only by its value.
    case HEC_HOME_NONE:
        break;
    }
    return "NULL";
}

const char *hec_home_ref(struct hec_emitter *e, const struct hec_home *home) {
    return home_ref(e, home, false);
}

const char *hec_ref(struct hec_emitter *e, MlirValue value) {
    const struct hec_home home = hec_value_home(e, value);
    if (home.kind == HEC_HOME_ARENA) return alias_of(e, field_of(e, value, home.at));
    return home_ref(e, &home, hec_type_is_rounded(mlirValueGetType(value)));
}

// A sum into a temporary of this function is written under the temporary's name.
const char *hec_result_ref(struct hec_emitter *e, MlirOperation op, int index) {
    const MlirValue onto = hec_call_of(op).onto;
    if (index > 0 || mlirValueIsNull(onto)) return hec_ref(e, hec_result(op, index));
    const struct hec_home home = hec_value_home(e, onto);
    if (home.kind != HEC_HOME_ARENA) return hec_ref(e, hec_result(op, index));
    const struct hec_field *field = field_of(e, onto, home.at);
    const bool own = hec_map_get(&e->owners, field) == (intptr_t)e->function->group;
    return own ? alias_of(e, field) : hec_ref(e, hec_result(op, index));
}

const char *hec_element(struct hec_emitter *e, MlirValue value, const char *index) {
    const char *ref = hec_ref(e, value);
    return *ref == '&' ? ref + 1 : HEC_TEXT(e, "%s[%s]", ref, index);
}

const char *hec_chunk(struct hec_emitter *e, MlirValue value) {
    const struct hec_home home = hec_value_home(e, value);
    const bool kept = home.kind == HEC_HOME_PARAM || home.kind == HEC_HOME_GRAD;
    const MlirOperation set = kept ? hec_set_of(e, hec_home_symbol(e, &home)) : (MlirOperation){0};
    if (mlirOperationIsNull(set)) {
        hec_emit_fault(e, hec_defining(value), "has a result or operand that lies in no set");
        return "NULL";
    }
    return member_text(e, part_of(&home, hec_type_is_rounded(mlirValueGetType(value))), set, &home);
}

const char *hec_chunk_offset(struct hec_emitter *e, MlirValue value) {
    const struct hec_home home = hec_value_home(e, value);
    const MlirOperation symbol = hec_home_symbol(e, &home);
    return mlirOperationIsNull(symbol) ? "0" : hec_member(e, symbol); // hec_chunk has complained.
}

const char *hec_write_mode(struct hec_emitter *e, MlirOperation op, int index) {
    (void)e;
    const bool onto = index == 0 && !mlirValueIsNull(hec_call_of(op).onto);
    return onto || hec_home_adds(hec_result(op, index)) ? "HK_ADD" : "HK_STORE";
}
