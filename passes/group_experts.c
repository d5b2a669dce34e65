// group-experts: experts become ordinary operations over rows grouped by expert.
//
//   before   %y = moe.experts(%x, %weights, %ids, %i) {set = @sparse, expert = @sparse.expert}
//   after    %first, %pair, %slot = moe.route(%ids)
//            %r = moe.permute(%x, %pair, %slot); %g = moe.gate_rows(%weights, %pair, %slot)
//            %rows = call @sparse.expert(%r, %first, %i, %g)
//            %y = moe.combine(%rows, %pair, %slot)
//          With a capacity, %first, %pair and %slot are those of a moe.limit behind the route.
//          With on_input: %s = moe.mul(%r, %g); %rows = call @sparse.expert(%s, %first, %i)
//
// Why      A dropless layer has exactly tokens x topk rows. Sorted by expert, an expert's body is
//          IR like any other: differentiation, recomputation and fusion work on it unchanged. The
//          gate weight is multiplied in before the last GEMM, h * g @ w2 instead of (h @ w2) *
//          g: its gradient is then formed from values that are saved anyway, not from the experts'
//          output.
// Needs    the experts' function takes rows, first and the layer; one moe.experts per function.
// Leaves   no moe.experts. The function has one argument more, the gate weights, when its result is
//          a moe.grouped_contract and they are not on its input; else they are multiplied with its result, or its rows.
// Reports  a function with other arguments, or of two moe.experts.
#include "ir/accessors.h"
#include "passes/base/pass.h"

#include <assert.h>

#include "passes/base/rewrite.h"

enum { ARGUMENTS_MAX = 8 };

static bool check(MlirOperation experts, MlirOperation func) {
    const MlirBlock body = hec_func_body(func);
    const int layered = !mlirValueIsNull(hec_experts_layer(experts));
    const int arguments = (int)mlirBlockGetNumArguments(body);
    const MlirOperation ret = mlirBlockGetTerminator(body);
    bool sound = arguments == 2 + layered && mlirOperationGetNumOperands(ret) == 1;
    for (int i = 0; i < arguments && sound; i++) {
        const MlirType type = mlirValueGetType(mlirBlockGetArgument(body, i));
        sound = i == 2 ? mlirTypeIsAIndex(type) : mlirTypeIsARankedTensor(type);
    }
    if (!sound) {
        hec_ir_error(experts, "the experts' function takes rows, first%s, and returns rows",
                     layered ? " and the layer" : "");
    }
    return sound;
}

// The GEMM that makes the function's result; null when the result is anything else.
static MlirOperation last_product(MlirOperation func) {
    const MlirValue result = hec_operand(mlirBlockGetTerminator(hec_func_body(func)), 0);
    const MlirOperation op = hec_defining(result);
    const bool gated = hec_op_is(op, HEC_OP_grouped_contract) && hec_is_used_once(result);
    return gated ? op : (MlirOperation){0};
}

static MlirValue multiply(struct hec_builder *b, MlirValue rows, MlirValue gate) {
    const MlirValue operand[] = {rows, gate};
    return hec_build_value(b, HEC_OP_mul, 2, operand, mlirValueGetType(rows), 0, NULL);
}

// Adds the gate weights as last argument of `func` and multiplies them into `product`'s rows.
static void take_gate(MlirOperation func, MlirOperation product, MlirValue gate) {
    const MlirBlock body = hec_func_body(func);
    const MlirContext c = mlirOperationGetContext(func);
    const MlirType type = mlirValueGetType(gate);
    const MlirLocation at = hec_loc_strip(mlirOperationGetLocation(product));
    const MlirValue argument = mlirBlockAddArgument(body, type, hec_loc_named("gate", at));
    struct hec_builder b = hec_builder_before(product);
    b.at = hec_loc_named("gated", at);
    hec_product_set_a(product, multiply(&b, hec_product_a(product), argument));

    MlirType in[ARGUMENTS_MAX];
    const int arguments = (int)mlirBlockGetNumArguments(body);
    assert(arguments <= ARGUMENTS_MAX);
    for (int i = 0; i < arguments; i++) in[i] = mlirValueGetType(mlirBlockGetArgument(body, i));
    const MlirType out = mlirValueGetType(hec_operand(mlirBlockGetTerminator(body), 0));
    hec_set_attr(func,
                 hec_attr_type(c, "function_type", mlirFunctionTypeGet(c, arguments, in, 1, &out)));
}

static MlirValue call(struct hec_builder *b, MlirOperation func, int operands,
                      const MlirValue *operand) {
    const MlirOperation ret = mlirBlockGetTerminator(hec_func_body(func));
    const MlirNamedAttribute callee = hec_attr_symbol(b->context, "callee", hec_any_sym_name(func));
    return hec_build_value(b, HEC_OP_FUNC_CALL, operands, operand,
                           mlirValueGetType(hec_operand(ret, 0)), 1, &callee);
}

// Where each expert's rows start, and the order of rows.
struct order {
    MlirValue first, pair, slot;
};

// The order of the route, or of the rows that the experts' capacity keeps.
static struct order limit(struct hec_builder *b, MlirOperation experts, MlirOperation route) {
    const MlirValue first = hec_route_first(route), pair = hec_route_pair(route),
                    slot = hec_route_slot(route);
    if (!hec_experts_has_capacity(experts)) return (struct order){first, pair, slot};
    const MlirStringRef drop = hec_experts_drop(experts);
    const bool grouped = hec_experts_has_group(experts);
    const MlirNamedAttribute attribute[] = {
        hec_attr_float(b->context, "capacity", hec_experts_capacity(experts)),
        hec_attr(b->context, "drop", mlirStringAttrGet(b->context, drop)),
        hec_attr_int(b->context, "group", grouped ? hec_experts_group(experts) : 0),
    };
    const MlirValue in[] = {hec_experts_weights(experts), first, pair, slot};
    const MlirOperation kept =
        hec_build_inferred(b, HEC_OP_limit, 4, in, grouped ? 3 : 2, attribute);
    assert(!mlirOperationIsNull(kept));
    return (struct order){hec_limit_kept_first(kept), hec_limit_kept_pair(kept),
                          hec_limit_kept_slot(kept)};
}

// The function of the experts on `rows`, with the gate weights where they belong.
static MlirValue apply(struct hec_builder *b, MlirOperation experts, MlirOperation func,
                       MlirValue rows, MlirValue first, MlirValue gate) {
    const MlirLocation at = b->at, gated = hec_loc_named("gated", at);
    const bool on_input = hec_experts_on_input(experts);
    const MlirOperation product = on_input ? (MlirOperation){0} : last_product(func);
    b->at = gated;
    MlirValue operand[4] = {on_input ? multiply(b, rows, gate) : rows, first};
    int operands = 2;
    const MlirValue layer = hec_experts_layer(experts);
    if (layer.ptr) operand[operands++] = layer;
    if (product.ptr) {
        take_gate(func, product, gate);
        operand[operands++] = gate;
    }
    b->at = at;
    const MlirValue made = call(b, func, operands, operand);
    b->at = gated;
    return on_input || product.ptr ? made : multiply(b, made, gate);
}

static void group(MlirOperation experts, MlirOperation func) {
    const MlirOperation set = hec_find_symbol(hec_module_of(experts), hec_experts_set(experts));
    struct hec_builder b = hec_builder_before(experts);
    const MlirLocation named = b.at;
    b.at = hec_loc_strip(named);
    const MlirNamedAttribute count = hec_attr_int(b.context, "experts", hec_set_experts(set));
    const MlirValue ids = hec_experts_ids(experts);
    const MlirOperation route = hec_build_inferred(&b, HEC_OP_route, 1, &ids, 1, &count);
    assert(!mlirOperationIsNull(route)); // Its operand passed the verifier of moe.experts.
    // The owner of the rows, for distribute-experts. On one rank routes of two sets may be one.
    const bool told = hec_module_has_world(hec_module_of(experts));
    const MlirNamedAttribute rows_of =
        hec_attr_symbol(b.context, HEC_ROWS_OF, hec_set_sym_name(set));
    if (told) hec_set_attr(route, rows_of);
    const struct order kept = limit(&b, experts, route);
    const MlirValue x[] = {hec_experts_x(experts), kept.pair, kept.slot};
    const MlirValue w[] = {hec_experts_weights(experts), kept.pair, kept.slot};
    b.at = hec_loc_named("rows", hec_loc_strip(named));
    const MlirOperation permute = hec_build_inferred(&b, HEC_OP_permute, 3, x, told, &rows_of);
    b.at = hec_loc_named("gate", hec_loc_strip(named));
    const MlirOperation gate = hec_build_inferred(&b, HEC_OP_gate_rows, 3, w, told, &rows_of);
    assert(!mlirOperationIsNull(permute) && !mlirOperationIsNull(gate));

    b.at = hec_loc_strip(named);
    const MlirValue weighted =
        apply(&b, experts, func, hec_permute_rows(permute), kept.first, hec_gate_rows_g(gate));
    b.at = named;
    const MlirValue back[] = {weighted, kept.pair, kept.slot};
    const MlirValue result = hec_experts_y(experts);
    const MlirValue y =
        hec_build_value(&b, HEC_OP_combine, 3, back, mlirValueGetType(result), 0, NULL);
    mlirValueReplaceAllUsesOfWith(result, y);
    mlirOperationDestroy(experts);
}

static enum hec_pass_result run(MlirOperation module, const struct hec_pass_options *options) {
    (void)options;
    struct hec_map taken = {0}; // Functions of experts.
    bool sound = true;
    HEC_EACH_OF (op, hec_ops_below(module), HEC_OP_experts) {
        const MlirOperation func = hec_find_symbol(module, hec_any_expert(op));
        if (hec_map_get(&taken, func.ptr)) {
            sound = hec_ir_error(op, "its experts' function belongs to another moe.experts");
        } else if (check(op, func)) {
            *hec_map_at(&taken, func.ptr) = 1;
            group(op, func);
        } else {
            sound = false;
        }
    }
    hec_map_free(&taken);
    return sound ? HEC_PASS_DONE : HEC_PASS_REFUSED;
}

const struct hec_pass_code hec_pass_group_experts = {
    .run = run,
};
