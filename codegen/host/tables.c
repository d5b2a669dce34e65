// The tables at the end of the emitted program, which describe the model to the runtime.
#include "codegen/host/tables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/host/back_end.h"
#include "codegen/host/emit_options.h"
#include "codegen/host/literal.h"
#include "codegen/host/logits.h"
#include "codegen/host/movement.h"
#include "codegen/host/symbols.h"
#include "ir/accessors.h"
#include "ir/core/kernel.h"
#include "ir/core/setting.h"
#include "ir/ops/contract.h"
#include "ir/target/target.h"
#include "ir/values.h"

static const char *quote_attr(struct hec_emitter *e, MlirOperation op, const char *key) {
    return hec_quote(e, hec_get_string(op, key));
}

static int64_t int_or(MlirOperation op, const char *key, int64_t otherwise) {
    return hec_has_attr(op, key) ? hec_get_int(op, key) : otherwise;
}

static int64_t at_least_one(int64_t layers) {
    return layers < 1 ? 1 : layers;
}

// ".init = HRT_INIT_NORMAL, .init_value = 0.02".
static const char *init_text(struct hec_emitter *e, MlirOperation op) {
    static const struct {
        const char *init, *constant, *value;
    } kinds[] = {{"normal", "HRT_INIT_NORMAL", "deviation"},
                 {"zeros", "HRT_INIT_ZEROS", NULL},
                 {"ones", "HRT_INIT_ONES", NULL},
                 {"rope", "HRT_INIT_ROPE", "theta"}};
    size_t k = 0;
    while (!mlirStringRefEqual(hec_any_init(op), HEC_STR(kinds[k].init))) k++;
    const double value = kinds[k].value ? hec_get_float(op, kinds[k].value) : 0;
    const char *made =
        HEC_TEXT(e, ".init = %s, .init_value = %s", kinds[k].constant, hec_number(e, value));
    if (!hec_any_has_factor(op)) return made;
    const double original = hec_any_has_original(op) ? hec_any_original(op) : 0;
    return HEC_TEXT(e, "%s, .rope = {%s, %s, %s, %s, %s}", made, hec_number(e, hec_any_factor(op)),
                    hec_number(e, hec_any_low(op)), hec_number(e, hec_any_high(op)),
                    hec_number(e, hec_any_amplitude(op)), hec_number(e, original));
}

// The rows that are sent to the experts of `set`: elements of one, and whether they are of bf16.
static const char *rows_text(struct hec_emitter *e, MlirOperation set) {
    const MlirOperation dispatch = hec_dispatch_of(set);
    if (mlirOperationIsNull(dispatch)) return ".width = 0";
    const MlirType type = mlirValueGetType(hec_dispatch_rows(dispatch));
    return HEC_TEXT(e, ".width = %" PRId64 "%s",
                    hec_type_elements(type) / mlirShapedTypeGetDimSize(type, 0),
                    hec_type_is_rounded(type) ? ", .rows_bf16 = true" : "");
}

// ", .owner = owner_0"; "" where the set has no such table.
static const char *table_text(struct hec_emitter *e, MlirOperation set, const char *key) {
    const char *table = hec_set_table(e, set, key);
    return table ? HEC_TEXT(e, ", .%s = %s", key, table) : "";
}

// The fields that let the runtime send rows to a set's experts: "" where every rank has all of them.
static const char *sending_text(struct hec_emitter *e, MlirOperation set) {
    if (!e->sends_rows) return "";
    return HEC_TEXT(e, ", %s, .wave_rows = %" PRId64, rows_text(e, set), hec_any_wave_rows(set));
}

// "{0, 512}, {1024, 1536}": where its layers come, and their gradients.
static const char *places_text(struct hec_emitter *e, MlirOperation op) {
    const MlirAttribute all = mlirOperationGetAttributeByName(op, HEC_STR("unit_places"));
    int64_t at[4] = {0};
    for (intptr_t i = 0; !mlirAttributeIsNull(all) && i < mlirArrayAttrGetNumElements(all); i++)
        at[i & 3] = mlirIntegerAttrGetValueInt(mlirArrayAttrGetElement(all, i));
    return HEC_TEXT(e, "{%" PRId64 ", %" PRId64 "}, {%" PRId64 ", %" PRId64 "}", at[0], at[1],
                    at[2], at[3]);
}

// Where the model has the pointers of a parameter or set that the runtime places.
static const char *pointers_text(struct hec_emitter *e, MlirOperation op) {
    static const char *const fields[2][3] = {{"pointers", "grad_pointers", "rounded_pointers"},
                                             {"chunks", "chunk_grads", "chunk_rounded"}};
    static const char *const members[3] = {"param", "grad", "rounded"};
    const bool set = hec_op_is(op, HEC_OP_set);
    const bool has[3] = {!hec_comes_as_copy(e, op), set || hec_any_trainable(op),
                         hec_is_rounded(e, op)};
    const char *text = "";
    if (!hec_is_cut(e, op) && !(set && e->sends_rows)) return "";
    if (hec_is_cut(e, op)) text = HEC_TEXT(e, ", .slot = {%s}", places_text(e, op));
    for (int i = 0; i < 3; i++) {
        if (!has[i]) continue;
        text = HEC_TEXT(e, "%s, .%s = offsetof(struct %s, %s.%s)", text, fields[set][i], e->name,
                        members[i], hec_member(e, op));
    }
    return text;
}

static void emit_set(struct hec_emitter *e, struct hec_writer *out, MlirOperation op) {
    hec_line(out,
             "{.name = %s, .experts = %" PRId64 ", .topk = %" PRId64 ", .layers = %" PRId64
             ", .offset = %" PRId64 ", .chunk_elements = %" PRId64 "%s%s},",
             quote_attr(e, op, "sym_name"), hec_any_experts(op), hec_any_topk(op),
             at_least_one(hec_any_layers(op)), hec_any_offset(op), hec_any_chunk_elements(op),
             hec_any_limited(op) ? ", .limited = true" : "",

             HEC_TEXT(e, "%s%s%s%s", sending_text(e, op), pointers_text(e, op),
                      table_text(e, op, "owner"), table_text(e, op, "forecast")));
}

// Parameters whose layers have rates of their own share one table. Returns the number of its rows before a parameter's.
static int64_t count_rates(struct hec_emitter *e, MlirOperation before) {
    int64_t rates = 0;
    HEC_EACH (op, hec_ops_in(hec_module_body(e->module))) {
        if (before.ptr && mlirOperationEqual(op, before)) break;
        if (hec_op_is(op, HEC_OP_param) && hec_any_has_layer_rates(op))
            rates += mlirDenseArrayGetNumElements(hec_any_layer_rates(op)) / 2;
    }
    return rates;
}

static void emit_rates(struct hec_emitter *e, struct hec_writer *out) {
    if (count_rates(e, (MlirOperation){0}) == 0) return;
    hec_blank(out);
    hec_comment(
        out,
        "By layer: the factor of the learning rate, and the decay (0: the optimizer's, -1: none).");
    hec_open(out, "static const struct hrt_param_rates rates[] = {");
    HEC_EACH_OF (op, hec_ops_in(hec_module_body(e->module)), HEC_OP_param) {
        if (!hec_any_has_layer_rates(op)) continue;
        const MlirAttribute rates = hec_any_layer_rates(op);
        for (intptr_t k = 0; k < mlirDenseArrayGetNumElements(rates); k += 2)
            hec_line(out, "{%s, %s},", hec_number(e, mlirDenseF64ArrayGetElement(rates, k)),
                     hec_number(e, mlirDenseF64ArrayGetElement(rates, k + 1)));
    }
    hec_close(out, "};");
}

// The fields for a parameter's role and for its group; "": none.
static const char *group_text(struct hec_emitter *e, MlirOperation op) {
    const char *text = hec_any_frozen(op) ? ", .frozen = true" : "";
    if (hec_any_has_lora(op))
        text = HEC_TEXT(e, "%s, .lora = %s", text,
                        mlirStringRefEqual(hec_any_lora(op), HEC_STR("a")) ? "HRT_LORA_A"
                                                                           : "HRT_LORA_B");
    if (hec_any_has_shares(op))
        text = HEC_TEXT(e, "%s, .shares = %s", text, quote_attr(e, op, "shares"));
    if (hec_any_has_role(op)) text = HEC_TEXT(e, "%s, .role = %s", text, quote_attr(e, op, "role"));
    if (hec_any_muon(op)) text = HEC_TEXT(e, "%s, .muon = true", text);
    if (hec_any_has_layer_rates(op))
        text = HEC_TEXT(e, "%s, .layer_rates = rates + %" PRId64, text, count_rates(e, op));
    if (hec_any_has_lr_scale(op))
        text = HEC_TEXT(e, "%s, .lr_scale = %s", text, hec_number(e, hec_any_lr_scale(op)));
    if (hec_any_has_decay_rate(op))
        text = HEC_TEXT(e, "%s, .decay_rate = %s", text, hec_number(e, hec_any_decay_rate(op)));
    return text;
}

static const char *packing_text(MlirOperation op) {
    if (!hec_any_has_packing(op)) return "";
    const bool mxfp4 = mlirStringRefEqual(hec_any_packing(op), HEC_STR("mxfp4"));
    return mxfp4 ? ", .packing = HRT_MXFP4" : ", .packing = HRT_FP8";
}

static void emit_param(struct hec_emitter *e, struct hec_writer *out, MlirOperation op) {
    const struct hec_tensor t = hec_tensor_of(hec_any_type(op));
    const int first = hec_any_has_set(op) ? 1 : 0; // The chunk holds one expert's.
    const char *dims = "", *shape = "";
    int64_t elements = 1;
    for (int i = first; i < t.rank; i++) {
        const char *comma = i > first ? ", " : "";
        dims = HEC_TEXT(e, "%s%s%s", dims, comma, hec_quote(e, t.dim[i]));
        shape = HEC_TEXT(e, "%s%s%" PRId64, shape, comma, t.size[i]);
        elements *= t.size[i];
    }
    const MlirAttribute matrix = mlirOperationGetAttributeByName(op, HEC_STR("matrix"));
    int64_t rows = 1, columns = elements;
    if (!mlirAttributeIsNull(matrix) && mlirAttributeIsAArray(matrix) &&
        mlirArrayAttrGetNumElements(matrix) == 2) {
        rows = mlirIntegerAttrGetValueInt(mlirArrayAttrGetElement(matrix, 0));
        columns = mlirIntegerAttrGetValueInt(mlirArrayAttrGetElement(matrix, 1));
    }
    const bool panels = hec_is_panels(hec_any_layout(op));
    const int set = first ? hec_set_index(e, hec_any_set(op)) : -1;
    const char *text = HEC_TEXT(
        e, "{.symbol = %s, .path = %s, .rank = %d, .dim = {%s}, .shape = {%s}, .layers = %" PRId64,
        quote_attr(e, op, "sym_name"), quote_attr(e, op, "path"), t.rank - first,
        t.rank > first ? dims : "NULL", t.rank > first ? shape : "0",
        at_least_one(hec_any_layers(op)));
    text = HEC_TEXT(e,
                    "%s, .index_first = %" PRId64 ", .index_stride = %" PRId64 ", %s, .decay = %s, "
                    ".trainable = %s, .layout = %s",
                    text, int_or(op, "index_first", -1), int_or(op, "index_stride", 0),
                    init_text(e, op), hec_any_decay(op) ? "true" : "false",
                    hec_any_trainable(op) ? "true" : "false", panels ? "HRT_PANELS" : "HRT_ROWS");
    text = HEC_TEXT(e, "%s%s", text, group_text(e, op));
    if (hec_is_rounded(e, op)) text = HEC_TEXT(e, "%s, .rounded = true", text);
    if (hec_any_rounded_only(op)) text = HEC_TEXT(e, "%s, .rounded_only = true", text);
    text = HEC_TEXT(e, "%s%s", text, packing_text(op));
    hec_line(out,
             "%s, .rows = %" PRId64 ", .columns = %" PRId64 ", .elements = %" PRId64
             ", .set = %d, .offset = %" PRId64 "%s},",
             text, rows, columns, hec_any_elements(op), set, hec_any_offset(op),
             pointers_text(e, op));
}

static void emit_loads(struct hec_emitter *e, struct hec_writer *out, MlirOperation set) {
    const MlirOperation slot = hec_loads_of(e, set);
    if (mlirOperationIsNull(slot)) return;
    const bool biased = hec_any_has_select_bias(set);
    hec_line(out,
             "{.set = %d, .arena_offset = %" PRId64 ", .arena_stride = %" PRId64
             ", .routing_offset = offsetof(struct %s, routing.%s), .select_bias = %d, "
             ".bias_rate = %.17g},",
             hec_set_index(e, hec_any_sym_name(set)), hec_any_offset(slot),
             int_or(slot, "stride", 0), e->name, hec_member(e, set),
             biased ? hec_param_index(e, hec_any_select_bias(set)) : -1,
             biased ? hec_any_bias_rate(set) : 0.0);
}

static int compare_settings(const void *a, const void *b) {
    const MlirNamedAttribute *x = a, *y = b;
    const MlirStringRef left = mlirIdentifierStr(x->name), right = mlirIdentifierStr(y->name);
    const size_t shorter = left.length < right.length ? left.length : right.length;
    const int order = memcmp(left.data, right.data, shorter);
    if (order) return order;
    return left.length < right.length ? -1 : left.length > right.length;
}

// A dictionary of texts of the module, as table `name`. Returns how many there are.
static int emit_texts(struct hec_emitter *e, struct hec_writer *out, const char *key,
                      const char *name) {
    const MlirAttribute all = mlirOperationGetAttributeByName(e->module, HEC_STR(key));
    if (mlirAttributeIsNull(all) || !mlirAttributeIsADictionary(all)) return 0;
    const int count = (int)mlirDictionaryAttrGetNumElements(all);
    if (count == 0) return 0;
    MlirNamedAttribute *entry = hec_arena_alloc(&e->arena, (size_t)count, sizeof *entry);
    for (int i = 0; i < count; i++) entry[i] = mlirDictionaryAttrGetElement(all, i);
    qsort(entry, (size_t)count, sizeof *entry, compare_settings);
    hec_blank(out);
    hec_open(out, "static const struct hrt_setting %s[] = {", name);
    for (int i = 0; i < count; i++) {
        const char *value = hec_setting_print(&e->arena, entry[i].attribute);
        hec_line(out, "{%s, %s},", hec_quote(e, mlirIdentifierStr(entry[i].name)),
                 hec_quote(e, HEC_STR(value)));
    }
    hec_close(out, "};");
    return count;
}

// One table of a kind of symbol; nothing when there is none of it. Returns how many there are.
static int emit_table(struct hec_emitter *e, struct hec_writer *out, const char *head,
                      enum hec_op kind,
                      void (*row)(struct hec_emitter *, struct hec_writer *, MlirOperation)) {
    struct hec_writer rows = {.arena = &e->arena, .indent = 1};
    int count = 0;
    HEC_EACH (op, hec_ops_in(hec_module_body(e->module))) {
        if (!hec_op_is(op, kind)) continue;
        const size_t before = rows.length;
        row(e, &rows, op);
        count += rows.length > before;
    }
    if (!count) return 0;
    hec_blank(out);
    hec_line(out, "%s = {", head);
    hec_append(out, &rows);
    hec_line(out, "};");
    return count;
}

// ---- buckets of gradients, units of parameters

static void emit_bucket(struct hec_emitter *e, struct hec_writer *out, MlirOperation op) {
    const MlirAttribute names = mlirOperationGetAttributeByName(op, HEC_STR("params"));
    const char *list[2] = {"", ""}; // Parameters, sets.
    int count[2] = {0};
    int64_t layers = 1;
    for (intptr_t i = 0; i < mlirArrayAttrGetNumElements(names); i++) {
        const MlirStringRef name = mlirStringAttrGetValue(mlirArrayAttrGetElement(names, i));
        const MlirOperation symbol = hec_find_symbol(e->module, name);
        const bool set = hec_op_is(symbol, HEC_OP_set);
        const int index = set ? hec_set_index(e, name) : hec_param_index(e, name);
        list[set] = HEC_TEXT(e, "%s%s%d", list[set], count[set] ? ", " : "", index);
        count[set]++;
        layers = at_least_one(hec_any_layers(symbol));
    }
    const char *text = HEC_TEXT(e, ".layers = %" PRId64, layers);
    if (count[0])
        text = HEC_TEXT(e, "%s, .params = %d, .param = (const int[]){%s}", text, count[0], list[0]);
    if (count[1])
        text = HEC_TEXT(e, "%s, .sets = %d, .set = (const int[]){%s}", text, count[1], list[1]);
    hec_line(out, "{%s},", text);
}

// Whether the table of buckets, or of units, has a row for `op`, behind `rows` others.
typedef bool has_row(struct hec_emitter *e, MlirOperation op, int rows);

static bool has_bucket(struct hec_emitter *e, MlirOperation op, int rows) {
    (void)e, (void)rows;
    return hec_is_bucket(op);
}

// Several operations name the same unit.
static bool has_unit(struct hec_emitter *e, MlirOperation op, int rows) {
    return hec_is_unit(op) && hec_unit_index(e, op) == rows;
}

// Returns how many rows there are.
static int emit_buckets(struct hec_emitter *e, struct hec_writer *out, const char *name,
                        has_row *has) {
    int rows = 0;
    HEC_EACH (op, hec_ops_below(e->module)) {
        if (!has(e, op, rows)) continue;
        if (rows++ == 0) {
            hec_blank(out);
            hec_open(out, "static const struct hrt_bucket %s[] = {", name);
        }
        emit_bucket(e, out, op);
    }
    if (rows) hec_close(out, "};");
    return rows;
}

static void emit_flops(struct hec_emitter *e, struct hec_writer *out) {
    if (!hec_module_has_flops_per_token(e->module)) return;
    hec_line(out, ".flops_per_token = %s,", hec_number(e, hec_module_flops_per_token(e->module)));
}

// Where logits lie.
static const char *logits_text(struct hec_emitter *e, MlirOperation slot) {
    const int64_t rows = hec_logits_rows(slot);
    return HEC_TEXT(e, ".logits_offset = %" PRId64 "%s%s", hec_any_offset(slot),
                    rows ? HEC_TEXT(e, ", .logits_rows = %" PRId64, rows) : "",
                    hec_type_is_rounded(hec_any_type(slot)) ? ", .logits_bf16 = true" : "");
}

// The losses that have names, as @forward returns them. Returns how many there are.
static int emit_losses(struct hec_emitter *e, struct hec_writer *out) {
    int losses = 0;
    HEC_EACH (slot, hec_symbols(e, HEC_OP_slot)) {
        if (!hec_any_has_loss(slot)) continue;
        if (!losses++) {
            hec_blank(out);
            hec_open(out, "static const struct hrt_loss losses[] = {");
        }
        const bool soft = mlirStringRefEqual(hec_any_holds(slot), HEC_STR("losses"));
        const char *losses_text =
            HEC_TEXT(e, ".losses_offset = %" PRId64 ", .teacher = true", hec_any_offset(slot));
        hec_line(out, "{.name = %s, .weight = %s, .ahead = %" PRId64 ", %s},",
                 hec_quote(e, hec_any_loss(slot)), hec_number(e, hec_any_coef(slot)),
                 hec_any_ahead(slot), soft ? losses_text : logits_text(e, slot));
    }
    if (losses) hec_close(out, "};");
    return losses;
}

struct table_sizes {
    int params, sets, loads, buckets, units, settings, parts, losses;
};

static void emit_table_sizes(struct hec_writer *out, const struct table_sizes *size) {
    const struct {
        const char *one, *many;
        int count;
    } tables[] = {{"param", "params", size->params}, {"set", "sets", size->sets},
                  {"load", "loads", size->loads},    {"setting", "settings", size->settings},
                  {"part", "parts", size->parts},    {"loss", "losses", size->losses}};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        if (!tables[i].count) continue;
        hec_line(out, ".%s = %d, .%s = %s,", tables[i].many, tables[i].count, tables[i].one,
                 tables[i].many);
    }
}

// Nodes to which rows cross once.
static void emit_nodes(struct hec_emitter *e, struct hec_writer *out) {
    const MlirOperation m = e->module;
    const int64_t nodes = hec_setting_count(m, HEC_KEY_cluster_nodes, 1);
    if (!e->sends_rows || nodes == 1 || !hec_setting_is(m, HEC_KEY_parallel_rows, "node")) return;
    if (hec_target_of(m)->apart)
        hec_emit_fault(e, m, "parallel.rows = node is not supported yet by target %s",
                       e->back_end->name);
    hec_line(out, ".nodes = %" PRId64 ",", nodes);
}

static void emit_program(struct hec_emitter *e, struct hec_writer *out,
                         const struct table_sizes *size) {
    const MlirOperation m = e->module;
    const MlirOperation logits = hec_find_slot(m, "logits", (MlirOperation){0});
    hec_blank(out);
    hec_open(out, "static const struct hrt_program program = {");
    hec_line(out, ".name = %s,", quote_attr(e, m, "sym_name"));
    hec_line(out, ".source = %s,", quote_attr(e, m, "hecate.source"));
    hec_line(out, ".version = %s,", hec_quote(e, HEC_STR(e->options->version)));
    hec_line(out, ".instructions = HRT_INSTRUCTIONS,");
    hec_line(out, ".precision = %s,", strcmp(e->real, "float") == 0 ? "HRT_FP32" : "HRT_FP64");
    hec_line(out, ".vocabulary = %" PRId64 ",", hec_module_vocabulary(m));
    hec_line(out, ".positions = %" PRId64 ",", e->positions);
    hec_line(out, ".batch = %" PRId64 ",", e->batch);
    hec_line(out, ".param_elements = %" PRId64 ",", hec_module_param_elements(m));
    hec_line(out, ".arena_bytes = %" PRId64 ",",
             hec_module_arena_bytes(m) + e->back_end->memory->bytes);
    emit_flops(e, out);
    emit_table_sizes(out, size);
    if (e->world > 1) {
        const bool shard = hec_setting_is(m, HEC_KEY_parallel_dense, "shard");
        const bool states = hec_setting_is(m, HEC_KEY_parallel_dense, "states");
        if (size->buckets)
            hec_line(out, ".buckets = %d, .bucket = buckets, .bucket_bytes = %" PRId64 ",",
                     size->buckets, hec_setting_count(m, HEC_KEY_parallel_bucket, 1));
        hec_line(out, ".dense_offset = offsetof(struct %s, dense), .dense = HRT_DENSE_%s,", e->name,
                 shard    ? "SHARD"
                 : states ? "STATES"
                          : "REPLICATE");
        if (shard)
            hec_line(out, ".units = %d, .unit = units, .unit_bytes = %" PRId64 ",", size->units,
                     hec_module_unit_bytes(m));
        if (hec_setting_is(m, HEC_KEY_parallel_gradients, "bf16"))
            hec_line(out, ".gradients_bf16 = true,");
        emit_nodes(e, out);
        hec_line(out, ".world = %" PRId64 ", .owned = %s,", e->world,
                 e->sends_rows ? "true" : "false");
        hec_line(out, ".experts_offset = offsetof(struct %s, experts),", e->name);
        const char *ranks = e->options->ranks;
        hec_line(out, ".backend = &hrt_net_comm_%s,", ranks ? ranks : e->back_end->ranks);
        if (e->back_end->executor)
            hec_line(out, ".executor = &hrt_executor_%s,", e->back_end->executor);
    }
    if (hec_has_movement(e))
        hec_line(out, ".movement = &movement, .fssdp_offset = offsetof(struct %s, fssdp),",
                 e->name);
    hec_line(out, ".model_bytes = sizeof(struct %s),", e->name);
    if (e->back_end->memory->fields) e->back_end->memory->fields(e, out);
    if (hec_counts_steps(e))
        hec_line(out, ".iteration_offset = offsetof(struct %s, iteration),", e->name);
    if (hec_has_noise(e)) hec_line(out, ".noise_offset = offsetof(struct %s, noise),", e->name);
    if (hec_has_teacher(e))
        hec_line(out, ".teacher_offset = offsetof(struct %s, teacher),", e->name);
    if (hec_has_weights(e))
        hec_line(out, ".weights_offset = offsetof(struct %s, token_weights),", e->name);
    if (mlirOperationIsNull(logits)) {
        hec_emit_fault(e, m, "has no slot that holds the logits");
    } else {
        hec_line(out, "%s,", logits_text(e, logits));
    }
    hec_line(out, ".bind = bind,");
    if (hec_has_rounded(e)) hec_line(out, ".bind_rounded = bind_rounded,");
    if (e->continues) hec_line(out, ".seek = seek,");
    if (e->has_logits) hec_line(out, ".logits = logits,");
    hec_line(out, ".forward = forward,");
    hec_line(out, ".backward = backward,");
    hec_close(out, "};");
}

void hec_emit_tables(struct hec_emitter *e, struct hec_writer *out) {
    hec_emit_movement(e, out);
    struct table_sizes size = {0};
    size.sets = emit_table(e, out, "static const struct hrt_set sets[]", HEC_OP_set, emit_set);
    emit_rates(e, out);
    size.params =
        emit_table(e, out, "static const struct hrt_param params[]", HEC_OP_param, emit_param);
    size.loads =
        emit_table(e, out, "static const struct hrt_loads loads[]", HEC_OP_set, emit_loads);
    size.settings = emit_texts(e, out, "hecate.settings", "settings");
    size.parts = emit_texts(e, out, "hecate.parts", "parts");
    size.losses = emit_losses(e, out);
    size.buckets = emit_buckets(e, out, "buckets", has_bucket);
    size.units = emit_buckets(e, out, "units", has_unit);
    emit_program(e, out, &size);
    hec_blank(out);
    hec_open(out, "int main(int argc, char **argv) {");
    hec_line(out, "return hrt_cli_main(argc, argv, &program);");
    hec_close(out, "}");
}
