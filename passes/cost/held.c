// Reads parameters and sets.
#include "passes/cost/held.h"

#include <stdlib.h>

#include "ir/accessors.h"
#include "ir/target/target.h"
#include "passes/base/movement.h"
#include "runtime/plan/plan.h"

// First owners and parts as they are chosen; owners by number, as of expert parallelism; one rank has everything.
enum held_by { CHOSEN, EVEN, WHOLE };

static int64_t at_least_one(int64_t layers) {
    return layers ? layers : 1;
}

// Bytes of an element of parameters; the module has some.
static int32_t element_of(MlirOperation param) {
    const MlirType type = hec_any_type(param);
    return (int32_t)(hec_type_bytes(type) / hec_type_elements(type));
}

// `of`: the parameter, or the set that it belongs to.
static struct hpl_held_param param_of(MlirOperation module, MlirOperation param, MlirOperation of,
                                      int32_t set, enum held_by by) {
    const int64_t elements = hec_param_elements(param);
    const int64_t kept = by == WHOLE ? elements : hec_kept_elements(module, of, elements);
    return (struct hpl_held_param){
        .offset = hec_param_offset(param),
        .elements = kept,
        .layers = at_least_one(hec_param_layers(param)),
        .set = set,
        .trained = hec_param_trainable(param),
        .frozen = hec_param_frozen(param),
        .copied = hec_param_rounded(param) && kept == elements, // Others come and go.
        .copied_only = hec_param_rounded_only(param),
    };
}

// First owners: those that shard has chosen, or `even`: consecutive experts. NULL: every rank has all.
static const int32_t *owners_of(struct hec_arena *arena, MlirOperation module, MlirOperation set,
                                bool even) {
    if (!hec_set_owned(set)) return NULL;
    const int64_t experts = hec_set_experts(set);
    const int64_t chunks = at_least_one(hec_set_layers(set)) * experts;
    const MlirAttribute chosen = mlirOperationGetAttributeByName(set, HEC_STR("owner"));
    const bool table =
        !even && !mlirAttributeIsNull(chosen) && mlirAttributeIsADenseI32Array(chosen);
    int32_t *owner = hec_arena_alloc(arena, (size_t)chunks, sizeof *owner);
    for (int64_t i = 0; i < chunks; i++)
        owner[i] = table ? mlirDenseI32ArrayGetElement(chosen, (intptr_t)i)
                         : hpl_even_owner(i % experts, experts, hec_module_world(module));
    return owner;
}

static struct hpl_held_set set_of(struct hec_arena *arena, MlirOperation module, MlirOperation set,
                                  enum held_by by) {
    const int64_t chunk = hec_set_chunk_elements(set);
    return (struct hpl_held_set){
        .offset = hec_set_offset(set),
        .chunk_elements = by == WHOLE ? chunk : hec_kept_elements(module, set, chunk),
        .chunks = at_least_one(hec_set_layers(set)) * hec_set_experts(set),
        .owner = by == WHOLE ? NULL : owners_of(arena, module, set, by == EVEN),
    };
}

static int32_t number_of(const struct hec_ops *sets, MlirOperation set) {
    for (int i = 0; i < sets->count; i++) {
        if (mlirOperationEqual(sets->op[i], set)) return i;
    }
    return -1;
}

static struct hpl_held held_of(struct hec_arena *arena, MlirOperation module, enum held_by by) {
    struct hec_ops ops = hec_ops_in(hec_module_body(module));
    struct hec_ops sets = {.op = hec_arena_alloc(arena, (size_t)ops.count + 1, sizeof *sets.op)};
    struct hpl_held_param *param = hec_arena_alloc(arena, (size_t)ops.count + 1, sizeof *param);
    struct hpl_held_set *set = hec_arena_alloc(arena, (size_t)ops.count + 1, sizeof *set);
    struct hpl_movement movement;
    struct hpl_held held = {.param = param, .set = set, .element = sizeof(float), .ranks = 1};
    held.all_elements = hec_module_param_elements(module);
    if (hec_module_has_world(module)) held.ranks = (int32_t)hec_module_world(module);
    held.states = by != WHOLE && hec_shares_states(module) && !hec_shards_dense(module);
    held.moves = by == CHOSEN && hec_movement_read(module, &movement) && movement.reshard_every > 0;
    for (int i = 0; i < ops.count; i++) {
        if (!hec_op_is(ops.op[i], HEC_OP_set)) continue;
        set[held.sets++] = set_of(arena, module, ops.op[i], by);
        sets.op[sets.count++] = ops.op[i];
    }
    for (int i = 0; i < ops.count; i++) {
        if (!hec_op_is(ops.op[i], HEC_OP_param)) continue;
        const MlirOperation of = hec_find_symbol(module, hec_param_set(ops.op[i]));
        param[held.params++] = param_of(module, ops.op[i], of.ptr ? of : ops.op[i],
                                        of.ptr ? number_of(&sets, of) : -1, by);
        held.element = element_of(ops.op[i]);
    }
    free(ops.op);
    return held;
}

// In whole pages where the target takes such.
static int64_t bytes_of(struct hec_arena *arena, MlirOperation module, const struct hpl_held *held,
                        enum hpl_buffer buffer) {
    const int64_t page = hec_target_of(module)->page_bytes;
    if (page == 0) return hpl_held_bytes(held, buffer);
    bool *taken = hec_arena_alloc(arena, (size_t)hpl_held_pages(held, page), sizeof *taken);
    return hpl_held_page_bytes(held, buffer, page, taken);
}

struct hec_held_bytes hec_held_bytes(struct hec_arena *arena, MlirOperation module,
                                     enum hpl_buffer buffer) {
    const struct hpl_held held = held_of(arena, module, CHOSEN);
    const struct hpl_held ep = held_of(arena, module, EVEN);
    struct hpl_held outside = held, model = held_of(arena, module, WHOLE);
    bool any = buffer != HPL_COPIES;
    for (int i = 0; i < model.params; i++) any = any || model.param[i].copied;
    if (!any) return (struct hec_held_bytes){0};
    outside.sets = 0;
    if (hec_target_of(module)->page_bytes)
        outside.states = false; // Pages of states are not shared.
    struct hec_held_bytes bytes = {.all = bytes_of(arena, module, &held, buffer),
                                   .outside = hpl_held_bytes(&outside, buffer),
                                   .ep = hpl_held_bytes(&ep, buffer),
                                   .model = hpl_held_bytes(&model, buffer)};
    model.sets = 0;
    bytes.model_outside = hpl_held_bytes(&model, buffer);
    return bytes;
}

int64_t hec_held_element_bytes(MlirOperation module) {
    struct hec_arena arena = {0};
    const int64_t bytes = held_of(&arena, module, CHOSEN).element;
    hec_arena_free(&arena);
    return bytes;
}
