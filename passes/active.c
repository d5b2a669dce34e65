// Activity: values that depend on a trainable parameter.
#include "passes/active.h"

#include "ir/accessors.h"
#include "passes/base/rewrite.h"

struct search {
    MlirOperation module;
    struct hec_map *active;
    bool sound;
};

static bool is_active(const struct search *s, MlirValue v) {
    return hec_map_get(s->active, v.ptr) != 0;
}

// Returns whether this is news.
static bool mark(struct search *s, MlirValue v) {
    const MlirType type = hec_type_unrounded(mlirValueGetType(v));
    if (!hec_type_is_real(type) || is_active(s, v)) return false;
    *hec_map_at(s->active, v.ptr) = 1;
    return true;
}

static bool reads_active(const struct search *s, MlirOperation op) {
    for (int i = 0; i < mlirOperationGetNumOperands(op); i++) {
        if (is_active(s, hec_operand(op, i))) return true;
    }
    return false;
}

static bool search_block(struct search *s, MlirBlock block);

// A carried value may become active in the body: the body is searched until nothing is new.
static bool search_loop(struct search *s, MlirOperation op) {
    const struct hec_for loop = hec_for_of(op);
    bool any = false;
    for (bool news = true; news;) {
        news = false;
        for (int k = 0; k < loop.carried; k++) {
            const bool active =
                is_active(s, hec_for_init(&loop, k)) || is_active(s, hec_for_yielded(&loop, k));
            if (!active) continue;
            news |= mark(s, hec_for_argument(&loop, k));
            news |= mark(s, hec_result(op, k));
        }
        news |= search_block(s, loop.body);
        any |= news;
    }
    return any;
}

static bool search_op(struct search *s, MlirOperation op) {
    const enum hec_op id = hec_op_of(op);
    bool news = false;
    if (id == HEC_OP_get) {
        const MlirOperation param = hec_find_symbol(s->module, hec_any_param(op));
        return hec_op_is(param, HEC_OP_param) && hec_param_trainable(param) &&
               mark(s, hec_result(op, 0));
    }
    if (id == HEC_OP_FOR) return search_loop(s, op);
    if (id == HEC_OP_FUNC_CALL || (id == HEC_OP_OTHER && reads_active(s, op))) {
        if (s->sound) hec_ir_error(op, "cannot be differentiated");
        s->sound = false;
    }
    if (id >= HEC_OP_FUNC || !hec_op_traits(op)->gradient || !reads_active(s, op)) return false;
    for (int i = 0; i < mlirOperationGetNumResults(op); i++) news |= mark(s, hec_result(op, i));
    return news;
}

static bool search_block(struct search *s, MlirBlock block) {
    bool news = false;
    HEC_EACH_IN (op, block) {
        news |= search_op(s, op);
    }
    return news;
}

bool hec_find_active(MlirOperation forward, struct hec_map *active) {
    struct search s = {.module = hec_module_of(forward), .active = active, .sound = true};
    search_block(&s, hec_func_body(forward));
    return s.sound;
}
