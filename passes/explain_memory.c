// --explain=memory: the memory of a device, and the arena's contents when most of it is in use.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ir/accessors.h"
#include "ir/core/kernel.h"
#include "ir/core/setting.h"
#include "ir/target/target.h"
#include "passes/base/movement.h"
#include "passes/held.h"
#include "passes/homes/homes.h"
#include "passes/pipeline.h"

enum { SHOWN_MAX = 24, TEXT_MAX = 96 };

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

static int64_t element_bytes(MlirOperation module) {
    int64_t bytes = 4;
    HEC_EACH_OF (op, hec_ops_in(hec_module_body(module)), HEC_OP_param) {
        const MlirType type = hec_any_type(op);
        bytes = hec_type_bytes(type) / hec_type_elements(type);
        break;
    }
    return bytes;
}

static void explain_parameters(struct hec_homes *p, int64_t whole, FILE *out) {
    const int64_t element = element_bytes(p->module);
    struct table table = {.arena = &p->arena};
    HEC_EACH_OF (op, hec_ops_in(hec_module_body(p->module)), HEC_OP_param) {
        const MlirOperation param = op;
        const MlirOperation set = hec_find_symbol(p->module, hec_param_set(param));
        const int64_t layers = hec_param_layers(param);
        const int64_t copies = (layers ? layers : 1) * (set.ptr ? hec_set_experts(set) : 1);
        const MlirStringRef name = hec_param_sym_name(param);
        const bool panels = hec_is_panels(hec_param_layout(param));
        struct entry e = {.bytes = copies * hec_param_elements(param) * element,
                          .kind = panels ? "panels" : "rows"};
        snprintf(e.what, sizeof e.what, "%.*s", (int)name.length, name.data);
        write_shape(e.shape, layers, hec_param_type(param));
        HEC_PUSH(table.arena, &table.entries, e);
    }
    fputs("\nparameters, as stored:\n", out);
    print_table(&table, whole, out);
}

static void print_line(const char *what, int64_t bytes, const char *note, FILE *out) {
    write_bytes(bytes, 8, out);
    fprintf(out, "  %-18s %s\n", what, note);
}

static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

// Elements of what Muon works in, as hrt_muon_bytes of the runtime: twice the largest of its matrices, and twice the longest of
// the shorter sides, squared.
static int64_t muon_elements(MlirOperation module) {
    int64_t largest = 0, longest = 0;
    HEC_EACH_OF (param, hec_ops_in(hec_module_body(module)), HEC_OP_param) {
        if (!hec_param_muon(param)) continue;
        const MlirAttribute matrix = mlirOperationGetAttributeByName(param, HEC_STR("matrix"));
        if (mlirAttributeIsNull(matrix)) continue;
        const int64_t rows = mlirIntegerAttrGetValueInt(mlirArrayAttrGetElement(matrix, 0));
        const int64_t columns = mlirIntegerAttrGetValueInt(mlirArrayAttrGetElement(matrix, 1));
        largest = larger(largest, hec_param_elements(param));
        longest = larger(longest, rows < columns ? rows : columns);
    }
    return 2 * (largest + longest * longest);
}

// Compares the need with a device's memory, where the model sets it, and lists settings that would need less.
static void explain_device(MlirOperation module, int64_t needed, FILE *out) {
    const int64_t memory = (int64_t)hec_setting_number(module, HEC_KEY_cluster_device_memory, 0);
    if (memory <= 0) return;
    if (needed <= memory) {
        char note[32];
        snprintf(note, sizeof note, "%.0f %% taken", 100 * (double)needed / (double)memory);
        print_line("of a device", memory, note, out);
        return;
    }
    print_line("of a device", memory, "TOO LITTLE; needs less:", out);
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

// Prints whose memory the table below shows.
static void print_whose(const struct hec_target *target, int64_t ranks, FILE *out) {
    const char *what = target->apart ? "device" : ranks > 1 ? "rank" : "process";
    if (ranks > 1)
        fprintf(out, "memory of one %s of %" PRId64 ", the fullest:\n", what, ranks);
    else
        fprintf(out, "memory of the %s:\n", what);
}

bool hec_explain_memory(MlirOperation module, FILE *out) {
    struct hec_homes p = {.target = hec_target_of(module), .sound = true};
    const bool placed = read_placement(&p, module);
    if (placed) {
        const int64_t whole = hec_module_param_elements(module) * element_bytes(module);
        const int64_t parameters = hec_held_bytes(&p.arena, module, HPL_PARAMETERS);
        const int64_t gradients = hec_held_bytes(&p.arena, module, HPL_GRADIENTS);
        const int64_t states = hec_held_bytes(&p.arena, module, HPL_STATE);
        const int64_t rounded = hec_held_bytes(&p.arena, module, HPL_COPIES);
        const bool ranks = hec_module_has_world(module);
        const int64_t scratch = p.target->scratch_bytes;
        const bool by_muon = hec_setting_is(module, HEC_KEY_train_optimizer, "muon");
        const int64_t muon = by_muon ? muon_elements(module) * element_bytes(module) : 0;
        print_whose(p.target, ranks ? hec_module_world(module) : 1, out);
        print_line("parameters", parameters, ranks ? "on one rank, with its experts" : "", out);
        if (rounded) print_line("rounded copies", rounded, "in bf16, that GEMMs read", out);
        print_line("gradients", gradients, "of what is trained", out);
        const int64_t states_here = hec_states_on_host(module) ? 0 : 2 * states;
        if (states_here)
            print_line("optimizer states", states_here,
                       by_muon ? "momenta, and AdamW's two means" : "AdamW's two means", out);
        if (muon) print_line("Muon's scratch", muon, "for one matrix at a time", out);
        print_line("arena", p.arena_bytes, "saved values and temporaries of one microbatch", out);
        const int64_t replicas = hec_replicas_of(module);
        if (replicas) print_line("replicas", replicas, "of other ranks' experts, below", out);
        if (scratch) print_line("scratch", scratch, "of kernels", out);
        const int64_t needed = parameters + gradients + states_here + muon + rounded + replicas +
                               scratch + p.arena_bytes;
        print_line("together", needed,
                   ranks ? "and what is under way between ranks: see the program's info" : "", out);
        if (states_here < 2 * states)
            print_line("of the host", 2 * states, "for the optimizer's states", out);
        explain_device(module, needed, out);
        hec_explain_replicas(module, out);
        explain_parameters(&p, whole, out);
        explain_arena(&p, out);
    }
    hec_live_free(&p.live);
    hec_arena_free(&p.arena);
    return placed;
}
