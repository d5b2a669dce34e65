// Values, symbols, and helpers of all operations.
#include "tests/interpret/machine.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { WORK_MAX = 400 * 1000 * 1000 };

void fault(struct machine *m, MlirOperation op, const char *format, ...) {
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    m->fault = hec_arena_format(m->arena, "%s: %s", hec_op_row(hec_op_of(op))->name, text);
    longjmp(m->end, 1);
}

void spend(struct machine *m, MlirOperation op, int64_t work) {
    if (work < 0 || work > WORK_MAX || (m->work += work) > WORK_MAX)
        m->too_large = true, fault(m, op, "more work than this interpreter wants");
}

int64_t elements(const struct hec_tensor *shape) {
    int64_t count = 1;
    for (int i = 0; i < shape->rank; i++) count *= shape->size[i];
    return count;
}

void fill(struct tensor *t, double value) {
    for (int64_t i = 0; i < t->count; i++) t->at[i] = value;
}

struct tensor *new_tensor(struct machine *m, MlirOperation op, const struct hec_tensor *shape) {
    struct tensor *t = HEC_NEW(m->arena, struct tensor);
    t->shape = *shape;
    t->count = elements(shape);
    spend(m, op, t->count + 1);
    t->at = hec_arena_alloc(m->arena, (size_t)t->count + 1, sizeof *t->at);
    fill(t, NAN);
    return t;
}

// ---- values

void bind(struct machine *m, MlirValue to, const struct tensor *value) {
    *hec_map_at(&m->value, to.ptr) = (intptr_t)value;
}

const struct tensor *value_of(struct machine *m, MlirOperation op, MlirValue v) {
    const struct tensor *t = (const struct tensor *)hec_map_get(&m->value, v.ptr);
    if (!t) fault(m, op, "reads what nothing has computed");
    return t;
}

bool has_in(MlirOperation op, int operand) {
    return operand < mlirOperationGetNumOperands(op);
}

const struct tensor *in(struct machine *m, MlirOperation op, int operand) {
    if (!has_in(op, operand)) fault(m, op, "has no operand %d", operand);
    return value_of(m, op, hec_operand(op, operand));
}

int64_t index_in(struct machine *m, MlirOperation op, int operand) {
    return (int64_t)in(m, op, operand)->at[0];
}

struct tensor *out(struct machine *m, MlirOperation op, int result) {
    const struct hec_tensor shape = hec_tensor_of(mlirValueGetType(hec_result(op, result)));
    struct tensor *t = new_tensor(m, op, &shape);
    bind(m, hec_result(op, result), t);
    return t;
}

void set_index(struct machine *m, MlirOperation op, double value) {
    struct tensor *t = new_tensor(m, op, &(struct hec_tensor){0});
    t->at[0] = value;
    bind(m, hec_result(op, 0), t);
}

// ---- symbols

static struct symbol *new_symbol(struct machine *m, MlirOperation symbol) {
    struct symbol *s = HEC_NEW(m->arena, struct symbol);
    const int64_t layers = hec_get_int(symbol, "layers");
    const int64_t rows = hec_has_attr(symbol, "rows") ? hec_get_int(symbol, "rows") : layers;
    s->layers = rows > layers ? rows : layers;
    if (s->layers < 1) s->layers = 1;
    spend(m, symbol, s->layers);
    s->value = hec_arena_alloc(m->arena, (size_t)s->layers, sizeof *s->value);
    s->gradient = hec_arena_alloc(m->arena, (size_t)s->layers, sizeof *s->gradient);
    s->routed = hec_arena_alloc(m->arena, (size_t)s->layers, sizeof *s->routed);
    return s;
}

struct symbol *symbol_named(struct machine *m, MlirOperation op, MlirStringRef name) {
    const MlirOperation symbol = hec_find_symbol(m->module, name);
    if (mlirOperationIsNull(symbol)) fault(m, op, "names what is no symbol");
    intptr_t *known = hec_map_at(&m->symbol, symbol.ptr);
    if (!*known) *known = (intptr_t)new_symbol(m, symbol);
    return (struct symbol *)*known;
}

struct symbol *symbol_of(struct machine *m, MlirOperation op, const char *key) {
    return symbol_named(m, op, hec_get_string(op, key));
}

int64_t layer_of(struct machine *m, MlirOperation op, const struct symbol *symbol, int operand) {
    const int64_t layer = has_in(op, operand) ? index_in(m, op, operand) : 0;
    if (layer < 0 || layer >= symbol->layers) fault(m, op, "layer %" PRId64, layer);
    return layer;
}

// ---- dimensions by name

void strides_of(const struct hec_tensor *t, const struct hec_tensor *over, int64_t *stride) {
    for (int i = 0; i < over->rank; i++) {
        const int at = hec_tensor_find(t, over->dim[i]);
        stride[i] = at < 0 ? 0 : 1;
        for (int k = at + 1; at >= 0 && k < t->rank; k++) stride[i] *= t->size[k];
    }
}

int64_t offset_of(const struct hec_tensor *over, const int64_t *stride, int64_t i) {
    int64_t offset = 0;
    for (int k = over->rank - 1; k >= 0; k--) {
        offset += i % over->size[k] * stride[k];
        i /= over->size[k];
    }
    return offset;
}

// ---- numbers

// To nearest, ties to even: eight bits are left.
double to_bf16(double value) {
    if (!isfinite(value) || value == 0) return value;
    int exponent;
    const double mantissa = frexp(value, &exponent);
    return ldexp(nearbyint(ldexp(mantissa, 8)), exponent - 8);
}

const struct tensor *rounded(struct machine *m, MlirOperation op, const struct tensor *t) {
    if (!hec_get_bool(op, "rounds")) return t;
    struct tensor *r = new_tensor(m, op, &t->shape);
    for (int64_t i = 0; i < t->count; i++) r->at[i] = to_bf16(t->at[i]);
    return r;
}

static uint64_t mixed(uint64_t x) { // The finalizer of MurmurHash3.
    x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdu;
    x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53u;
    return x ^ (x >> 33);
}

double random_unit(uint64_t seed, const char *text, int64_t a, int64_t b) {
    uint64_t x = mixed(seed + 1);
    for (; *text; text++) x = mixed(x ^ (unsigned char)*text);
    x = mixed(mixed(x ^ (uint64_t)a) ^ (uint64_t)b);
    return (double)(x >> 11) / (double)((uint64_t)1 << 52) - 1;
}
