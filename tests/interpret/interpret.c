// Runs a module: blocks, loops and calls, the symbols that they share, and the results.
#include "tests/interpret/interpret.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ir/core/home.h"
#include "ir/core/kernel.h"
#include "tests/interpret/machine.h"

// ---- by symbol

static const char *text_of(struct machine *m, MlirStringRef text) {
    return hec_arena_copy(m->arena, text.data, text.length);
}

// The parameter's path at a layer, whose {} is the layer's iteration in the model.
static const char *path_of(struct machine *m, MlirOperation param, int64_t layer) {
    const char *path = text_of(m, hec_get_string(param, "path")), *gap = strstr(path, "{}");
    if (!gap || !hec_has_attr(param, "index_first") || !hec_has_attr(param, "index_stride"))
        return hec_arena_format(m->arena, "%s[%" PRId64 "]", path, layer);
    const int64_t iteration =
        hec_get_int(param, "index_first") + layer * hec_get_int(param, "index_stride");
    return hec_arena_format(m->arena, "%.*s%" PRId64 "%s", (int)(gap - path), path, iteration,
                            gap + 2);
}

static const char *gradient_name(struct machine *m, MlirOperation param, int64_t layer) {
    return hec_arena_format(m->arena, "grad %s", path_of(m, param, layer));
}

// Cosines, then sines, of the angles at each position; without scaling to longer sequences.
static void fill_rope(MlirOperation param, struct tensor *table) {
    const int64_t width = table->shape.size[table->shape.rank - 1], half = width / 2;
    const double theta = hec_get_float(param, "theta");
    for (int64_t i = 0; i < table->count; i++) {
        const int64_t j = i % width % half;
        const double angle = (double)(i / width) * pow(theta, -2.0 * (double)j / (double)width);
        table->at[i] = i % width < half ? cos(angle) : sin(angle);
    }
}

// Around 1 where the program begins with ones, else around 0.
static struct tensor *new_param(struct machine *m, MlirOperation param, int64_t layer) {
    const struct hec_tensor shape = hec_tensor_of(hec_get_type(param, "type"));
    struct tensor *t = new_tensor(m, param, &shape);
    const char *path = path_of(m, param, layer);
    const bool ones = mlirStringRefEqual(hec_get_string(param, "init"), HEC_STR("ones"));
    for (int64_t i = 0; i < t->count; i++)
        t->at[i] = ones + 0.5 * random_unit(m->options->seed, path, 0, i);
    if (mlirStringRefEqual(hec_get_string(param, "init"), HEC_STR("rope")) && t->count > 1)
        fill_rope(param, t);
    const struct interpret_options *o = m->options;
    if (o->nudged && o->element < t->count &&
        strcmp(o->nudged, gradient_name(m, param, layer)) == 0)
        t->at[o->element] += o->by;
    return t;
}

void run_get(struct machine *m, MlirOperation op) {
    struct symbol *s = symbol_of(m, op, "param");
    const int64_t layer = layer_of(m, op, s, 0);
    if (!s->value[layer])
        s->value[layer] =
            new_param(m, hec_find_symbol(m->module, hec_get_string(op, "param")), layer);
    const struct tensor *value = s->value[layer];
    if (!hec_type_is_rounded(mlirValueGetType(hec_result(op, 0)))) {
        bind(m, hec_result(op, 0), value);
        return;
    }
    struct tensor *copy = out(m, op, 0);
    for (int64_t i = 0; i < copy->count; i++) copy->at[i] = to_bf16(value->at[i]);
}

void run_accumulate(struct machine *m, MlirOperation op) {
    struct symbol *s = symbol_of(m, op, "param");
    const struct tensor *value = in(m, op, 0);
    struct tensor **sum = &s->gradient[layer_of(m, op, s, 1)];
    if (!*sum) {
        *sum = new_tensor(m, op, &value->shape);
        fill(*sum, 0);
    }
    for (int64_t i = 0; i < value->count; i++) (*sum)->at[i] += value->at[i];
}

void run_stash(struct machine *m, MlirOperation op) {
    struct symbol *s = symbol_of(m, op, "slot");
    s->value[layer_of(m, op, s, 1)] = (struct tensor *)in(m, op, 0);
}

void run_fetch(struct machine *m, MlirOperation op) {
    struct symbol *s = symbol_of(m, op, "slot");
    const struct tensor *value = s->value[layer_of(m, op, s, 0)];
    if (!value) fault(m, op, "comes before its stash");
    bind(m, hec_result(op, 0), value);
}

// ---- control

static void run_constant(struct machine *m, MlirOperation op) {
    set_index(m, op, (double)hec_get_int(op, "value"));
}

static void run_index(struct machine *m, MlirOperation op) {
    const int64_t a = index_in(m, op, 0), b = index_in(m, op, 1);
    set_index(m, op, (double)(hec_op_is(op, HEC_OP_ADDI) ? a + b : a - b));
}

// A loop's result at a row of a slot is kept there without a stash: the only home with a meaning of
// its own, from place-buffers.
static void keep_last(struct machine *m, MlirOperation op, int result, const struct tensor *value) {
    struct hec_home home;
    if (!hec_home_of(hec_result(op, result), &home) || home.kind != HEC_HOME_SLOT ||
        home.row != HEC_ROW_FIXED)
        return;
    struct symbol *slot = symbol_named(m, op, home.symbol);
    if (home.at >= 0 && home.at < slot->layers) slot->value[home.at] = (struct tensor *)value;
}

static void run_for(struct machine *m, MlirOperation op) {
    const MlirBlock body = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, 0));
    const int64_t begin = index_in(m, op, 0), end = index_in(m, op, 1), step = index_in(m, op, 2);
    const int carried = (int)mlirOperationGetNumResults(op);
    const struct tensor **value =
        hec_arena_alloc(m->arena, (size_t)carried + 1, sizeof(struct tensor *));
    if (step < 1) fault(m, op, "step %" PRId64, step);
    for (int k = 0; k < carried; k++) value[k] = in(m, op, 3 + k);
    for (int64_t i = begin; i < end; i += step) {
        struct tensor *index = new_tensor(m, op, &(struct hec_tensor){0});
        index->at[0] = (double)i;
        bind(m, mlirBlockGetArgument(body, 0), index);
        for (int k = 0; k < carried; k++) bind(m, mlirBlockGetArgument(body, 1 + k), value[k]);
        const MlirOperation yield = run_block(m, body);
        for (int k = 0; k < carried; k++) value[k] = in(m, yield, k);
    }
    for (int k = 0; k < carried; k++) {
        bind(m, hec_result(op, k), value[k]);
        keep_last(m, op, k, value[k]);
    }
}

static MlirBlock body_of(struct machine *m, MlirOperation op, const char *key) {
    const MlirOperation func = hec_find_symbol(m->module, hec_get_string(op, key));
    if (!hec_op_is(func, HEC_OP_FUNC)) fault(m, op, "calls what is no function");
    return hec_func_body(func);
}

static void run_function(struct machine *m, MlirOperation op) {
    const MlirBlock body = body_of(m, op, "callee");
    for (int i = 0; i < mlirOperationGetNumOperands(op); i++)
        bind(m, mlirBlockGetArgument(body, i), in(m, op, i));
    const MlirOperation end = run_block(m, body);
    for (int i = 0; i < mlirOperationGetNumResults(op); i++)
        bind(m, hec_result(op, i), in(m, end, i));
}

const struct tensor *call_experts(struct machine *m, MlirOperation op, const char *key,
                                  const struct tensor *rows, const struct tensor *first,
                                  int64_t layer) {
    const MlirBlock body = body_of(m, op, key);
    for (int i = 0; i < mlirBlockGetNumArguments(body); i++) {
        const MlirValue argument = mlirBlockGetArgument(body, i);
        if (mlirTypeIsAIndex(mlirValueGetType(argument))) {
            struct tensor *index = new_tensor(m, op, &(struct hec_tensor){0});
            index->at[0] = (double)layer;
            bind(m, argument, index);
            continue;
        }
        const struct hec_tensor t = hec_tensor_of(mlirValueGetType(argument));
        const struct tensor *given = hec_tensor_find(&t, HEC_STR("rows")) == 0 ? rows : first;
        struct tensor *own = new_tensor(m, op, &t); // Under the names that it has there.
        if (own->count != given->count) fault(m, op, "its experts take other arguments");
        memcpy(own->at, given->at, (size_t)given->count * sizeof *given->at);
        bind(m, argument, own);
    }
    return in(m, run_block(m, body), 0);
}

// Movement computes nothing.
#define NOTHING(id)                                                                                \
    void run_##id(struct machine *m, MlirOperation op) {                                           \
        (void)m, (void)op;                                                                         \
    }
NOTHING(plan)
NOTHING(materialize)
NOTHING(prefetch)
NOTHING(calibrate)
NOTHING(await)
NOTHING(reduce)
NOTHING(release)
NOTHING(all_reduce)
NOTHING(reduce_scatter)
NOTHING(all_gather)
NOTHING(await_gather)
NOTHING(forget)

// An operation is run by the function run_<operation> of some file of this folder; without one it is elementwise, a
// norm whose kernels define it, or unknown.
#define HEC_OP(id, dialect, operands, results, attributes)                                         \
    extern run_op run_##id __attribute__((weak));
#include "ir/ops.def"
#undef HEC_OP

static run_op *run_of(enum hec_op id) {
    static run_op *const runs[HEC_OP_OTHER + 1] = {
#define HEC_OP(id, dialect, operands, results, attributes) [HEC_OP_##id] = run_##id,
#define HEC_NORM(id) [HEC_OP_##id] = run_norm, [HEC_OP_##id##_grad] = run_norm_grad,
#include "ir/ops.def"
#undef HEC_OP
        [HEC_OP_CONSTANT] = run_constant,  [HEC_OP_ADDI] = run_index,
        [HEC_OP_SUBI] = run_index,         [HEC_OP_FOR] = run_for,
        [HEC_OP_FUNC_CALL] = run_function,
    };
    if (runs[id]) return runs[id];
    return hec_traits_of(id)->elementwise ? run_elementwise : NULL;
}

static void run_one(struct machine *m, MlirOperation op) {
    const enum hec_op id = hec_op_of(op);
    run_op *run = run_of(id);
    if (!run) fault(m, op, "is an operation that this interpreter does not know");
    spend(m, op, 1);
    run(m, op);
}

// A kernel gives what its operation gives, added to `onto`; its epilogue is a fused loop behind it.
void run_call(struct machine *m, MlirOperation op) {
    const struct hec_call call = hec_call_of(op);
    const MlirOperation operation = hec_call_operation(op);
    run_one(m, operation);
    for (int i = 0; i < call.results; i++) {
        const struct tensor *made = value_of(m, operation, hec_result(operation, i));
        if (i > 0 || mlirValueIsNull(call.onto)) {
            bind(m, hec_result(op, i), made);
            continue;
        }
        const struct tensor *onto = value_of(m, op, call.onto);
        struct tensor *sum = out(m, op, i);
        for (int64_t k = 0; k < sum->count; k++) sum->at[k] = onto->at[k] + made->at[k];
    }
    mlirOperationDestroy(operation);
    if (!mlirBlockIsNull(call.block)) run_fused(m, op);
}

MlirOperation run_block(struct machine *m, MlirBlock block) {
    const MlirOperation end = mlirBlockGetTerminator(block);
    MlirOperation op = mlirBlockGetFirstOperation(block);
    for (; !mlirOperationEqual(op, end); op = mlirOperationGetNextInBlock(op)) run_one(m, op);
    return end;
}

// ---- what goes in and comes out

// One text: token `at` of a sequence. Targets are the tokens behind the ids.
static double token(struct machine *m, int64_t sequence, int64_t at) {
    const bool told = hec_has_attr(m->module, "hecate.vocabulary");
    const double words = told ? (double)hec_get_int(m->module, "hecate.vocabulary") : 2;
    const double u = 0.5 + 0.5 * random_unit(m->options->seed, "tokens", sequence, at);
    return fmin(floor(u * words), words - 1);
}

// Some tokens have no target, but all of the first sequence.
static bool is_target(int64_t sequence, int64_t at) {
    return sequence == 0 || at % 7 != 3;
}

// ids, targets, and how losses are scaled: by their order.
static struct tensor *argument(struct machine *m, MlirOperation func, int index) {
    const MlirBlock body = hec_func_body(func);
    const struct hec_tensor shape =
        hec_tensor_of(mlirValueGetType(mlirBlockGetArgument(body, index)));
    struct tensor *t = new_tensor(m, func, &shape);
    const struct hec_tensor ids = hec_tensor_of(mlirValueGetType(mlirBlockGetArgument(body, 0)));
    const int64_t all = elements(&ids), each = ids.rank > 0 ? all / ids.size[0] : 1;
    double targets = 0;
    for (int64_t i = 0; i < all; i++) {
        targets += is_target(i / each, i % each);
        if (index == 0 && t->count == all) t->at[i] = token(m, i / each, i % each);
        if (index == 1 && t->count == all)
            t->at[i] = is_target(i / each, i % each) ? token(m, i / each, i % each + 1) : -1;
    }
    if (index >= 2) fill(t, index == 2 ? 1 / targets : 0.9);
    return t;
}

static MlirOperation run_func(struct machine *m, const char *name) {
    enum { ARGUMENTS = 4 };
    const MlirOperation func = hec_find_symbol(m->module, HEC_STR(name));
    if (!hec_op_is(func, HEC_OP_FUNC)) return (MlirOperation){0};
    const MlirBlock body = hec_func_body(func);
    const int arguments = (int)mlirBlockGetNumArguments(body);
    if (arguments > ARGUMENTS) fault(m, func, "%d arguments", arguments);
    for (int i = 0; i < arguments; i++) {
        const MlirValue v = mlirBlockGetArgument(body, i);
        if (!mlirTypeIsARankedTensor(mlirValueGetType(v))) fault(m, func, "takes no tensor");
        bind(m, v, argument(m, func, i));
    }
    return run_block(m, body);
}

static void put(struct machine *m, struct interpret_outcome *o, const char *name,
                const struct tensor *t) {
    if (o->count == INTERPRET_ITEMS_MAX)
        m->too_large = true, fault(m, m->module, "too many numbers");
    o->item[o->count++] = (struct interpret_item){name, t->count, t->at};
}

static void put_results(struct machine *m, struct interpret_outcome *o, MlirOperation end) {
    static const char *const name[] = {"loss", "cross_entropy", "auxiliary"};
    const int count = mlirOperationIsNull(end) ? 0 : (int)mlirOperationGetNumOperands(end);
    for (int i = 0; i < count; i++)
        put(m, o, i < 3 ? name[i] : hec_arena_format(m->arena, "named %d", i - 3), in(m, end, i));
}

static void put_slots(struct machine *m, struct interpret_outcome *o) {
    const struct hec_ops ops = hec_ops_in(hec_module_body(m->module));
    for (int k = 0; k < ops.count; k++) {
        const struct symbol *s = (struct symbol *)hec_map_get(&m->symbol, ops.op[k].ptr);
        if (!s || !hec_op_is(ops.op[k], HEC_OP_slot) || !hec_get_bool(ops.op[k], "observed"))
            continue;
        const char *name = text_of(m, hec_get_string(ops.op[k], "sym_name"));
        for (int64_t i = 0; i < s->layers; i++) {
            const struct tensor *value = s->value[i];
            if (!value) continue;
            // Logits of a block are others than those of all tokens.
            const bool block =
                value->shape.rank > 0 && mlirStringRefEqual(value->shape.dim[0], HEC_STR("block"));
            put(m, o,
                hec_arena_format(m->arena, "%s %s[%" PRId64 "]", block ? "block" : "slot", name, i),
                value);
        }
    }
    free(ops.op);
}

// Gradients of trainable parameters; zeros where nothing was added.
static void put_gradients(struct machine *m, struct interpret_outcome *o) {
    const struct hec_ops ops = hec_ops_in(hec_module_body(m->module));
    for (int k = 0; k < ops.count; k++) {
        if (!hec_op_is(ops.op[k], HEC_OP_param) || !hec_get_bool(ops.op[k], "trainable")) continue;
        const struct symbol *s = (struct symbol *)hec_map_get(&m->symbol, ops.op[k].ptr);
        const int64_t layers = hec_get_int(ops.op[k], "layers");
        for (int64_t i = 0; i < (layers < 1 ? 1 : layers); i++) {
            const struct tensor *sum = s ? s->gradient[i] : NULL;
            if (!sum) {
                const struct hec_tensor shape = hec_tensor_of(hec_get_type(ops.op[k], "type"));
                struct tensor *zeros = new_tensor(m, ops.op[k], &shape);
                fill(zeros, 0);
                sum = zeros;
            }
            put(m, o, gradient_name(m, ops.op[k], i), sum);
        }
    }
    free(ops.op);
}

// Teacher entries for the tokens of the first sequence: ids, and log-probabilities.
static void put_teacher(struct machine *m, struct interpret_outcome *o) {
    struct hec_tensor shape = {0};
    hec_tensor_append(&shape, HEC_STR("T"), hec_get_int(m->module, "hecate.positions") + 1);
    hec_tensor_append(&shape, HEC_STR("entries"), TEACHER_ENTRIES);
    struct tensor *ids = new_tensor(m, m->module, &shape);
    struct tensor *log_probs = new_tensor(m, m->module, &shape);
    for (int64_t i = 0; i < ids->count; i++) {
        int64_t id;
        if (!teacher_entry(m, i / TEACHER_ENTRIES, (int)(i % TEACHER_ENTRIES), &id,
                           &log_probs->at[i]))
            log_probs->at[i] = -INFINITY;
        ids->at[i] = (double)id;
    }
    put(m, o, "teacher ids", ids);
    put(m, o, "teacher log_probs", log_probs);
}

// The inputs: parameters that were read, and the tokens of the first sequence.
static void put_inputs(struct machine *m, struct interpret_outcome *o) {
    const struct hec_ops ops = hec_ops_in(hec_module_body(m->module));
    for (int k = 0; k < ops.count; k++) {
        const struct symbol *s = (struct symbol *)hec_map_get(&m->symbol, ops.op[k].ptr);
        for (int64_t i = 0; s && hec_op_is(ops.op[k], HEC_OP_param) && i < s->layers; i++) {
            const char *path = path_of(m, ops.op[k], i);
            if (s->value[i]) put(m, o, hec_arena_format(m->arena, "param %s", path), s->value[i]);
        }
    }
    free(ops.op);
    struct hec_tensor shape = {0};
    hec_tensor_append(&shape, HEC_STR("T"), hec_get_int(m->module, "hecate.positions") + 1);
    struct tensor *tokens = new_tensor(m, m->module, &shape);
    for (int64_t i = 0; i < tokens->count; i++) tokens->at[i] = token(m, 0, i);
    put(m, o, "tokens", tokens);
    put_teacher(m, o);
}

void interpret(MlirOperation module, const struct interpret_options *options,
               struct hec_arena *arena, struct interpret_outcome *outcome) {
    struct machine *m = HEC_NEW(arena, struct machine);
    m->module = module, m->options = options, m->arena = arena;
    outcome->count = 0;
    hec_symbols_hold(module);
    if (!setjmp(m->end)) {
        put_results(m, outcome, run_func(m, "forward"));
        put_slots(m, outcome);
        const MlirOperation backward = hec_find_symbol(module, HEC_STR("backward"));
        if (hec_op_is(backward, HEC_OP_FUNC)) {
            run_func(m, "backward");
            put_gradients(m, outcome);
        }
        if (options->inputs) put_inputs(m, outcome);
    }
    hec_symbols_release();
    outcome->fault = m->fault;
    outcome->too_large = m->too_large;
    hec_map_free(&m->value);
    hec_map_free(&m->symbol);
}

const struct interpret_item *interpret_find(const struct interpret_outcome *outcome,
                                            const char *name) {
    for (int i = 0; i < outcome->count; i++) {
        if (strcmp(outcome->item[i].name, name) == 0) return &outcome->item[i];
    }
    return NULL;
}
