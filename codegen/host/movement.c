// Tables of how experts move: the choices that shard left in the module, first owners, forecast.
#include "codegen/host/movement.h"

#include <string.h>

#include "codegen/host/symbols.h"
#include "ir/accessors.h"

enum { PER_LINE = 20 };

static MlirAttribute choices(struct hec_emitter *e) {
    return mlirOperationGetAttributeByName(e->module, HEC_STR("hecate.movement"));
}

static MlirAttribute choice(struct hec_emitter *e, const char *key) {
    const MlirAttribute value = mlirDictionaryAttrGetElementByName(choices(e), HEC_STR(key));
    if (mlirAttributeIsNull(value))
        hec_emit_fault(e, e->module, "lacks %s in hecate.movement: run shard first", key);
    return value;
}

static int64_t number(struct hec_emitter *e, const char *key) {
    const MlirAttribute value = choice(e, key);
    return !mlirAttributeIsNull(value) && mlirAttributeIsAInteger(value)
               ? mlirIntegerAttrGetValueInt(value)
               : 0;
}

static const char *flag(struct hec_emitter *e, const char *key) {
    const MlirAttribute value = choice(e, key);
    const bool set =
        !mlirAttributeIsNull(value) && mlirAttributeIsABool(value) && mlirBoolAttrGetValue(value);
    return set ? "true" : "false";
}

static const char *text(struct hec_emitter *e, const char *key) {
    const MlirAttribute value = choice(e, key);
    if (mlirAttributeIsNull(value) || !mlirAttributeIsAString(value)) return "";
    const MlirStringRef string = mlirStringAttrGetValue(value);
    const char *copy = hec_arena_copy(&e->arena, string.data, string.length);
    if (strspn(copy, "abcdefghijklmnopqrstuvwxyz") == strlen(copy)) return copy;
    hec_emit_fault(e, e->module, "has no name at %s in hecate.movement", key);
    return "";
}

static const char *calibrate_constant(struct hec_emitter *e) {
    const char *name = text(e, "calibrate");
    if (strcmp(name, "worth") == 0) return "HPL_CALIBRATES_WORTH";
    return strcmp(name, "always") == 0 ? "HPL_CALIBRATES_ALWAYS" : "HPL_CALIBRATES_NEVER";
}

// The array `key` of a set as a table of the program; nothing where there is none. It must have
// `parts` numbers for each expert of each layer, from 0 to below `limit`.
static void emit_array(struct hec_emitter *e, struct hec_writer *out, MlirOperation set,
                       const char *key, const char *type, int64_t parts, int64_t limit) {
    const char *name = hec_set_table(e, set, key);
    if (!name) return;
    const MlirAttribute all = mlirOperationGetAttributeByName(set, HEC_STR(key));
    const intptr_t count = mlirDenseArrayGetNumElements(all);
    const int64_t layers = hec_any_layers(set), experts = hec_any_experts(set);
    bool sound = count == parts * (layers > 0 ? layers : 1) * experts;
    for (intptr_t i = 0; i < count && sound; i++) {
        const int32_t value = mlirDenseI32ArrayGetElement(all, i);
        sound = value >= 0 && value < limit;
    }
    if (!sound) {
        hec_emit_fault(e, set, "has a table %s that does not fit its layers, experts and ranks",
                       key);
        return;
    }
    hec_blank(out);
    hec_line(out, "static const %s %s[] = {", type, name);
    const char *line = "";
    for (intptr_t i = 0; i < count; i++) {
        line = HEC_TEXT(e, "%s%d,", line, (int)mlirDenseI32ArrayGetElement(all, i));
        if (i % PER_LINE != PER_LINE - 1 && i + 1 < count) continue;
        hec_line(out, "    %s", line);
        line = "";
    }
    hec_line(out, "};");
}

const char *hec_set_table(struct hec_emitter *e, MlirOperation set, const char *key) {
    const MlirAttribute all = mlirOperationGetAttributeByName(set, HEC_STR(key));
    if (mlirAttributeIsNull(all) || !mlirAttributeIsADenseI32Array(all)) return NULL;
    return HEC_TEXT(e, "%s_%d", key, hec_set_index(e, hec_any_sym_name(set)));
}

void hec_emit_movement(struct hec_emitter *e, struct hec_writer *out) {
    if (!hec_has_movement(e)) return;
    HEC_EACH_OF (op, hec_ops_in(hec_module_body(e->module)), HEC_OP_set) {
        emit_array(e, out, op, "owner", "int32_t", 1, e->world);
        emit_array(e, out, op, "forecast", "uint32_t", e->world, INT32_MAX);
    }
    static const char *const rows[][3] = {
        {"overlap", "slots", NULL},
        {"window", "reshard_every", "iterations"},
        {"known", NULL, NULL},
        {"gather_hidden_first", "gather_hidden", NULL},
        {"reduce_hidden_first", "reduce_hidden", "import_discount"},
        {"row_compute", "row_send", "row_cross"},
        {"chunk_send", "chunk_near", "grad_send"},
        {"chunk_bytes", "window_bytes", NULL},
    };
    hec_blank(out);
    hec_open(out, "static const struct hpl_movement movement = {");
    hec_line(out, ".policy = \"%s\", .even = %s,", text(e, "policy"), flag(e, "even"));
    hec_line(out, ".calibrate = %s, .rematerialize = %s,", calibrate_constant(e),
             flag(e, "rematerialize"));
    hec_line(out, ".lifetime = %s,",
             strcmp(text(e, "lifetime"), "step") == 0 ? "HPL_LIFETIME_STEP"
                                                      : "HPL_LIFETIME_ITERATION");
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        const char *line = "";
        for (int k = 0; k < 3 && rows[r][k]; k++) {
            line = HEC_TEXT(e, "%s%s.%s = %" PRId64 ",", line, k ? " " : "", rows[r][k],
                            number(e, rows[r][k]));
        }
        hec_line(out, "%s", line);
    }
    hec_close(out, "};");
}
