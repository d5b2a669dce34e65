// --explain=memory: the memory of a device, and the arena's contents when most of it is in use.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ir/accessors.h"
#include "ir/core/kernel.h"
#include "ir/core/setting.h"
#include "ir/target/target.h"
#include "passes/base/movement.h"
#include "passes/cost/explain.h"
#include "passes/cost/held.h"
#include "passes/cost/memory.h"
#include "passes/homes/homes.h"
#include "passes/pipeline.h"

enum { SHOWN_MAX = 24, TEXT_MAX = 96, NOTES = 33 };

// One thing in memory, as the tables show it.
struct entry {
    int64_t bytes;
    char what[TEXT_MAX], shape[TEXT_MAX];
    const char *kind;
};

struct table {
    struct hec_arena *arena;
    HEC_VEC(struct entry) entries;
};

static int by_bytes(const void *left, const void *right) {
    const struct entry *a = left, *b = right;
    if (a->bytes != b->bytes) return a->bytes < b->bytes ? 1 : -1;
    return strcmp(a->what, b->what);
}

static void write_bytes(int64_t bytes, int width, FILE *out) {
    static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    int u = 0;
    for (; value >= 1024 && u < 4; u++) value /= 1024;
    fprintf(out, "%*.*f %-*s", width, u == 0 ? 0 : 1, value, width ? 3 : 0, unit[u]);
}

static void write_shape(char text[TEXT_MAX], int64_t count, MlirType type) {
    const struct hec_tensor t = hec_tensor_of(type);
    size_t at = 0;
    if (count > 0) at = (size_t)snprintf(text, TEXT_MAX, "%" PRId64 " x ", count);
    for (int i = 0; i < t.rank && at < TEXT_MAX; i++) {
        at += (size_t)snprintf(text + at, TEXT_MAX - at, "%s%.*s %" PRId64, i ? ", " : "[",
                               (int)t.dim[i].length, t.dim[i].data, t.size[i]);
    }
    if (at < TEXT_MAX) snprintf(text + at, TEXT_MAX - at, t.rank ? "]" : "scalar");
}

static void print_table(struct table *table, int64_t whole, FILE *out) {
    qsort(table->entries.item, (size_t)table->entries.count, sizeof *table->entries.item, by_bytes);
    int64_t rest = 0;
    for (int i = 0; i < table->entries.count; i++) {
        const struct entry *e = &table->entries.item[i];
        if (i >= SHOWN_MAX) {
            rest += e->bytes;
            continue;
        }
        write_bytes(e->bytes, 8, out);
        fprintf(out, "  %5.1f%%  %-10s %-28s %s\n",
                whole ? 100 * (double)e->bytes / (double)whole : 0, e->kind, e->what, e->shape);
    }
    if (rest == 0) return;
    write_bytes(rest, 8, out);
    fprintf(out, "  %5.1f%%  %d smaller ones\n", 100 * (double)rest / (double)whole,
            table->entries.count - SHOWN_MAX);
}

// ---- the placed module, read back

static bool read_placement(struct hec_homes *p, MlirOperation module) {
    if (!hec_module_has_arena_bytes(module) || !hec_module_has_param_elements(module))
        return hec_ir_error(module, "has no homes: place-buffers did not run");
    p->module = module;
    p->arena_bytes = hec_module_arena_bytes(module);
    hec_live_find(&p->live, &p->arena, module);
    p->placed = hec_arena_alloc(&p->arena, (size_t)p->live.values.count, sizeof *p->placed);
    for (int i = 0; i < p->live.values.count; i++) {
        struct hec_homes_value *placed = &p->placed[i];
        placed->root = placed->next = i;
        hec_home_of(p->live.values.item[i].value, &placed->home);
        placed->pinned = placed->home.kind != HEC_HOME_ARENA;
    }
    hec_homes_find_slots(p);
    for (int i = 0; i < p->slots.count; i++) {
        struct hec_slot *slot = &p->slots.item[i];
        slot->rows = hec_any_rows(slot->op);
        slot->offset = hec_any_offset(slot->op);
    }
    hec_homes_slot_lives(p);
    return true;
}

// ---- the arena

static bool is_alive(const struct hec_homes *p, int value, int at) {
    const struct hec_live_value *v = &p->live.values.item[value];
    return p->placed[value].home.kind == HEC_HOME_ARENA && v->first <= at && at <= v->last;
}

// Bytes alive at operation `at`; `table` NULL: only the sum. A value made in place counts once.
static int64_t live_bytes(const struct hec_homes *p, int at, struct table *table) {
    int64_t sum = 0;
    for (int i = 0; i < p->slots.count; i++) {
        const struct hec_slot *slot = &p->slots.item[i];
        if (slot->last < 0 || at < slot->first || slot->last < at) continue;
        sum += slot->rows * slot->stride;
        if (!table) continue;
        struct entry e = {.bytes = slot->rows * slot->stride, .kind = "saved"};
        if (slot->observed) e.kind = "observed";
        snprintf(e.what, sizeof e.what, "%.*s", (int)slot->name.length, slot->name.data);
        write_shape(e.shape, slot->rows > 1 ? slot->rows : 0, hec_any_type(slot->op));
        HEC_PUSH(table->arena, &table->entries, e);
    }
    for (int i = 0; i < p->live.values.count; i++) {
        if (!is_alive(p, i, at)) continue;
        bool counted = false;
        for (int j = 0; j < i && !counted; j++) {
            counted = is_alive(p, j, at) && p->placed[j].home.at == p->placed[i].home.at;
        }
        if (counted) continue;
        const MlirValue v = p->live.values.item[i].value;
        const int64_t bytes = hec_type_bytes(mlirValueGetType(v));
        sum += bytes;
        if (!table) continue;
        const MlirStringRef name = hec_value_name(v);
        const MlirOperation op = hec_defining(v);
        struct entry e = {.bytes = bytes, .kind = "temporary"};
        snprintf(e.what, sizeof e.what, "%.*s", (int)name.length, name.data);
        if (!name.length)
            snprintf(e.what, sizeof e.what, "(%s)",
                     op.ptr ? hec_op_row(hec_op_computes(op))->name : "");
        write_shape(e.shape, 0, mlirValueGetType(v));
        HEC_PUSH(table->arena, &table->entries, e);
    }
    return sum;
}

static void explain_arena(struct hec_homes *p, FILE *out) {
    int64_t most = -1;
    int peak = 0;
    for (int k = 1; k < p->live.ops.count; k++) {
        const int64_t bytes = live_bytes(p, k, NULL);
        if (bytes > most) most = bytes, peak = k;
    }
    if (most < 0) return;
    struct table table = {.arena = &p->arena};
    live_bytes(p, peak, &table);
    const MlirOperation op = p->live.ops.item[peak];
    const MlirOperation func = hec_func_of(op);
    const MlirStringRef in = hec_any_sym_name(func);
    fputs("\narena at its fullest: ", out);
    write_bytes(most, 0, out);
    fputs(" of ", out);
    write_bytes(p->arena_bytes, 0, out);
    fprintf(out, " in use, in @%.*s at %s", (int)in.length, in.data,
            hec_op_row(hec_op_computes(op))->name);
    struct hec_location location;
    if (hec_loc_resolve(mlirOperationGetLocation(op), &location)) {
        fprintf(out, " (%.*s:%u:%u)", (int)location.file.length, location.file.data, location.line,
                location.column);
    }
    fputs("\n", out);
    print_table(&table, p->arena_bytes, out);
}

// ---- parameters

static void explain_parameters(struct hec_homes *p, int64_t whole, FILE *out) {
    const int64_t element = hec_held_element_bytes(p->module);
    struct table table = {.arena = &p->arena};
    HEC_EACH_OF (op, hec_ops_in(hec_module_body(p->module)), HEC_OP_param) {
        const MlirOperation param = op;
        const MlirOperation set = hec_find_symbol(p->module, hec_param_set(param));
        const int64_t layers = hec_param_layers(param);
        const int64_t copies = (layers ? layers : 1) * (set.ptr ? hec_set_experts(set) : 1);
        const MlirStringRef name = hec_param_sym_name(param);
        const bool panels = hec_is_panels(hec_param_layout(param));
        const int64_t stored = copies * hec_param_elements(param);
        struct entry e = {.bytes = stored * element, .kind = panels ? "panels" : "rows"};
        if (hec_param_rounded_only(param)) { // In places of bf16.
            e.bytes = 2 * stored;
            whole -= stored * element - e.bytes;
        }
        if (hec_param_has_packing(param)) e.kind = hec_param_packing(param).data;
        snprintf(e.what, sizeof e.what, "%.*s", (int)name.length, name.data);
        write_shape(e.shape, layers, hec_param_type(param));
        HEC_PUSH(table.arena, &table.entries, e);
    }
    fputs("\nparameters, as stored:\n", out);
    print_table(&table, whole, out);
}

static void print_line(const char *what, int64_t bytes, const char *note, FILE *out) {
    write_bytes(bytes, 8, out);
    fprintf(out, "  %-*s%s%s\n", *note ? 18 : 0, what, *note ? " " : "", note);
}

// Settings that would need less, unless they have those values already.
static void print_advice(MlirOperation module, FILE *out) {
    const char *indent = "                                   ";
    if (!hec_setting_is(module, HEC_KEY_parallel_recompute, "all"))
        fprintf(out, "%s--set parallel.recompute=all\n", indent);
    if (hec_setting_is(module, HEC_KEY_parallel_logits, "whole"))
        fprintf(out, "%s--set parallel.logits=512\n", indent);
    if (hec_module_batch(module) > 1)
        fprintf(out, "%s--set parallel.microbatch=N, now %" PRId64 "\n", indent,
                hec_module_batch(module));
    if (hec_has_ranks(module) && !hec_shares_states(module))
        fprintf(out, "%s--set parallel.dense=states\n", indent);
    if (hec_has_ranks(module) && !hec_shards_dense(module) && !hec_target_of(module)->page_bytes)
        fprintf(out, "%s--set parallel.dense=shard\n", indent);
    if (hec_target_of(module)->apart && !hec_states_on_host(module))
        fprintf(out, "%s--set parallel.states=host\n", indent);
    if (hec_setting_is(module, HEC_KEY_train_precision, "fp32"))
        fprintf(out, "%s--set train.precision=bf16, on GPUs\n", indent);
    fprintf(out, "%smore devices: cluster.nodes, cluster.devices\n", indent);
}

// Compares the need with a device's memory, where the model sets it, and lists settings that would need less.
static void explain_device(MlirOperation module, const struct hec_memory *m, FILE *out) {
    char note[96];
    if (m->device <= 0) return;
    if (m->all <= m->device) {
        snprintf(note, sizeof note, "%.0f %% taken", 100 * (double)m->all / (double)m->device);
        print_line("of a device", m->device, note, out);
        return;
    }
    snprintf(note, sizeof note,
             "TOO LITTLE, by %s; needs less:", hec_text_bytes((double)(m->all - m->device)).text);
    print_line("of a device", m->device, note, out);
    print_advice(module, out);
}

// The lines of hec_fit (codegen/tune/fit.h): chosen settings and their costs, or the least that is possible.
static void explain_fit(MlirOperation module, FILE *out) {
    const MlirAttribute lines = mlirOperationGetAttributeByName(module, HEC_STR("hecate.fit"));
    if (mlirAttributeIsNull(lines) || !mlirAttributeIsAArray(lines)) return;
    for (intptr_t i = 0; i < mlirArrayAttrGetNumElements(lines); i++) {
        const MlirAttribute line = mlirArrayAttrGetElement(lines, i);
        if (!mlirAttributeIsAString(line)) continue;
        const MlirStringRef text = mlirStringAttrGetValue(line);
        fprintf(out, "%*s%.*s\n", NOTES, "", (int)text.length, text.data);
    }
}

// ---- beside the ideal

struct above {
    const char *what;
    int64_t bytes;
};

static int by_excess(const void *left, const void *right) {
    const struct above *a = left, *b = right;
    return (a->bytes < b->bytes) - (a->bytes > b->bytes);
}

// The ideal: of everything that the model has of parameters, a rank holds its share and nothing else.
static void explain_ideal(const struct hec_memory *m, FILE *out) {
    enum { NAMED = 3 };
    static const char *const outside[HEC_MEMORY_HELD] = {
        "parameters outside of experts", "their copies in bf16", "gradients outside of experts",
        "optimizer states outside of experts"};
    static const char *const of_experts[HEC_MEMORY_HELD] = {
        "parameters of experts", "copies of experts in bf16", "gradients of experts",
        "optimizer states of experts"};
    struct above above[2 * HEC_MEMORY_ITEMS];
    int64_t ideal = 0;
    int count = 0;
    if (m->ranks < 2) return;
    for (int i = 0; i < HEC_MEMORY_HELD; i++) {
        const int64_t share = m->model_outside[i] / m->ranks;
        const int64_t own = m->model[i] / m->ranks - share;
        ideal += share + own;
        above[count++] = (struct above){outside[i], m->outside[i] - share};
        above[count++] = (struct above){of_experts[i], m->item[i] - m->outside[i] - own};
    }
    for (int i = HEC_MEMORY_HELD; i < HEC_MEMORY_ITEMS; i++)
        above[count++] = (struct above){hec_memory_names[i].text, m->item[i]};
    qsort(above, (size_t)count, sizeof *above, by_excess);
    fputs("\nideal: ", out);
    write_bytes(ideal, 0, out);
    fprintf(out,
            ", all parameters, copies, gradients and states over %" PRId64
            " ranks; most above it:\n",
            m->ranks);
    for (int i = 0; i < NAMED && above[i].bytes > 0; i++)
        print_line(above[i].what, above[i].bytes, "", out);
}

// Prints whose memory the table below shows.
static void print_whose(const struct hec_target *target, int64_t ranks, FILE *out) {
    const char *what = target->apart ? "device" : ranks > 1 ? "rank" : "process";
    if (ranks > 1)
        fprintf(out, "memory of one %s of %" PRId64 ", the fullest:\n", what, ranks);
    else
        fprintf(out, "memory of the %s:\n", what);
}

static bool is_packed(MlirOperation module) {
    HEC_EACH_OF (param, hec_ops_in(hec_module_body(module)), HEC_OP_param)
        if (hec_param_has_packing(param)) return true;
    return false;
}

static void print_items(MlirOperation module, const struct hec_memory *m, FILE *out) {
    const bool ranks = m->ranks > 1;
    const bool by_muon = hec_setting_is(module, HEC_KEY_train_optimizer, "muon");
    const char *const note[HEC_MEMORY_ITEMS] = {
        [HEC_MEMORY_PARAMETERS] = ranks ? "on one rank, with its experts" : "",
        [HEC_MEMORY_COPIES] =
            is_packed(module) ? "in bf16 or packed, that GEMMs read" : "in bf16, that GEMMs read",
        [HEC_MEMORY_GRADIENTS] = "of what is trained",
        [HEC_MEMORY_STATES] = by_muon ? "momenta, and AdamW's two means" : "AdamW's two means",
        [HEC_MEMORY_ARENA] = "saved values and temporaries of one microbatch",
        [HEC_MEMORY_REPLICAS] = "of other ranks' experts, below",
        [HEC_MEMORY_ROWS] = "of experts, between ranks",
        [HEC_MEMORY_SUMS] = "gradients outside of experts",
        [HEC_MEMORY_UNITS] = "whole parameters and gradients of a few layers",
        [HEC_MEMORY_MESSAGES] = "NCCL's buffers",
        [HEC_MEMORY_MUON] = "for the matrices of one time",
        [HEC_MEMORY_SCRATCH] = "of kernels",
        [HEC_MEMORY_PROGRAM] = "the process itself",
    };
    for (int i = 0; i < HEC_MEMORY_ITEMS; i++) {
        if (m->item[i]) print_line(hec_memory_names[i].text, m->item[i], note[i], out);
    }
    print_line("together", m->all, "", out);
}

bool hec_explain_memory(MlirOperation module, FILE *out) {
    struct hec_homes p = {.target = hec_target_of(module), .sound = true};
    const bool placed = read_placement(&p, module);
    if (placed) {
        const int64_t whole = hec_module_param_elements(module) * hec_held_element_bytes(module);
        struct hec_memory memory;
        hec_memory_of(module, &memory);
        print_whose(p.target, memory.ranks, out);
        print_items(module, &memory, out);
        if (memory.host) print_line("of the host", memory.host, "for the optimizer's states", out);
        explain_device(module, &memory, out);
        explain_fit(module, out);
        explain_ideal(&memory, out);
        hec_explain_replicas(module, &memory, out);
        explain_parameters(&p, whole, out);
        explain_arena(&p, out);
    }
    hec_live_free(&p.live);
    hec_arena_free(&p.arena);
    return placed;
}
