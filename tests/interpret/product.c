// Products: the dimensions that the result lacks are summed.
#include <math.h>

#include "tests/interpret/machine.h"

// Dimensions of a result and of what is summed into it.
enum { DIMS = 2 * HEC_IR_RANK_MAX };
struct space {
    int rank;
    int64_t size[DIMS], a[DIMS], b[DIMS], r[DIMS];
};

static int64_t stride_in(const struct hec_tensor *t, MlirStringRef dim) {
    const int at = hec_tensor_find(t, dim);
    int64_t stride = at >= 0;
    for (int k = at + 1; at >= 0 && k < t->rank; k++) stride *= t->size[k];
    return stride;
}

static void add_dim(struct space *s, const struct tensor *a, const struct tensor *b,
                    const struct tensor *r, MlirStringRef dim, int64_t size) {
    s->size[s->rank] = size;
    s->a[s->rank] = stride_in(&a->shape, dim);
    s->b[s->rank] = stride_in(&b->shape, dim);
    s->r[s->rank++] = stride_in(&r->shape, dim);
}

// r += the sum of products, over all dimensions.
static void multiply(struct machine *m, MlirOperation op, struct tensor *r, const struct tensor *a,
                     const struct tensor *b) {
    struct space s = {0};
    for (int i = 0; i < r->shape.rank; i++) add_dim(&s, a, b, r, r->shape.dim[i], r->shape.size[i]);
    for (int i = 0; i < a->shape.rank; i++) {
        if (hec_tensor_find(&r->shape, a->shape.dim[i]) < 0)
            add_dim(&s, a, b, r, a->shape.dim[i], a->shape.size[i]);
    }
    int64_t index[DIMS] = {0}, at_a = 0, at_b = 0, at_r = 0, steps = 1;
    for (int i = 0; i < s.rank; i++) steps *= s.size[i];
    spend(m, op, steps);
    for (int64_t step = 0; step < steps; step++) {
        r->at[at_r] += a->at[at_a] * b->at[at_b];
        for (int i = s.rank - 1; i >= 0; i--) {
            at_a += s.a[i], at_b += s.b[i], at_r += s.r[i];
            if (++index[i] < s.size[i]) break;
            index[i] = 0;
            at_a -= s.a[i] * s.size[i], at_b -= s.b[i] * s.size[i], at_r -= s.r[i] * s.size[i];
        }
    }
}

void run_contract(struct machine *m, MlirOperation op) {
    const struct tensor *a = rounded(m, op, in(m, op, 0)), *b = rounded(m, op, in(m, op, 1));
    struct tensor *r = out(m, op, 0);
    fill(r, 0);
    multiply(m, op, r, a, b);
}

// ---- by expert

static bool has_rows(const struct tensor *t) {
    return mlirStringRefEqual(t->shape.dim[0], HEC_STR("rows"));
}

// One index of the first dimension.
static struct tensor part(const struct tensor *t, int64_t index) {
    struct tensor p = {.count = t->count / t->shape.size[0], .shape.element = t->shape.element};
    p.at = t->at + index * p.count;
    for (int i = 1; i < t->shape.rank; i++) {
        p.shape.size[p.shape.rank] = t->shape.size[i];
        p.shape.dim[p.shape.rank++] = t->shape.dim[i];
    }
    return p;
}

static int64_t first_of(struct machine *m, MlirOperation op, const struct tensor *first, int64_t e,
                        int64_t rows) {
    const double row = first->at[e];
    if (!(row >= 0 && row <= (double)rows)) fault(m, op, "rows of an expert start at %g", row);
    return (int64_t)row;
}

static void multiply_by_expert(struct machine *m, MlirOperation op, struct tensor *r,
                               const struct tensor *a, const struct tensor *b,
                               const struct tensor *first) {
    const int64_t rows = a->shape.size[0];
    if (!has_rows(r)) fill(r, 0);
    for (int64_t e = 0; e + 1 < first->count; e++) {
        const int64_t end = first_of(m, op, first, e + 1, rows);
        for (int64_t row = first_of(m, op, first, e, rows); row < end; row++) {
            const struct tensor left = part(a, row), right = part(b, has_rows(b) ? row : e);
            struct tensor result = part(r, has_rows(r) ? row : e);
            if (has_rows(r)) fill(&result, 0);
            multiply(m, op, &result, &left, &right);
        }
    }
}

void run_grouped_contract(struct machine *m, MlirOperation op) {
    multiply_by_expert(m, op, out(m, op, 0), rounded(m, op, in(m, op, 0)),
                       rounded(m, op, in(m, op, 1)), in(m, op, 2));
}

// A row of `x`, which has the rows of tokens, for each pair: operand `route`, with the slots behind it.
static const struct tensor *rows_of(struct machine *m, MlirOperation op, const struct tensor *x,
                                    int route) {
    const struct tensor *pair = in(m, op, route), *slot = in(m, op, route + 1);
    const int tokens = slot->shape.rank - 1;
    struct hec_tensor shape = pair->shape;
    shape.element = x->shape.element;
    for (int i = tokens; i < x->shape.rank; i++)
        hec_tensor_append(&shape, x->shape.dim[i], x->shape.size[i]);
    struct tensor *rows = new_tensor(m, op, &shape);
    const int64_t width = rows->count / pair->count;
    for (int64_t row = 0; row < pair->count; row++) {
        const double token = floor(pair->at[row] / (double)slot->shape.size[tokens]);
        if (!(token >= 0 && token < (double)(x->count / width))) fault(m, op, "token %g", token);
        for (int64_t i = 0; i < width; i++)
            rows->at[row * width + i] = x->at[(int64_t)token * width + i];
    }
    return rows;
}

void run_gathered_contract(struct machine *m, MlirOperation op) {
    const struct tensor *a = rounded(m, op, in(m, op, 0)), *b = rounded(m, op, in(m, op, 1));
    const bool of_a = !has_rows(a);
    multiply_by_expert(m, op, out(m, op, 0), of_a ? rows_of(m, op, a, 3) : a,
                       of_a ? b : rows_of(m, op, b, 3), in(m, op, 2));
}

static void run_gated(struct machine *m, MlirOperation op, const struct tensor *a,
                      const struct tensor *scale) {
    struct tensor *ab = out(m, op, 0), *ac = out(m, op, 1), *r = out(m, op, 2);
    multiply_by_expert(m, op, ab, a, rounded(m, op, in(m, op, 1)), in(m, op, 3));
    multiply_by_expert(m, op, ac, a, rounded(m, op, in(m, op, 2)), in(m, op, 3));
    const int64_t width = r->count / scale->count;
    for (int64_t i = 0; i < r->count; i++)
        r->at[i] = ab->at[i] / (1 + exp(-ab->at[i])) * ac->at[i] * scale->at[i / width];
}

void run_swiglu(struct machine *m, MlirOperation op) {
    run_gated(m, op, rounded(m, op, in(m, op, 0)), in(m, op, 4));
}

void run_gathered_swiglu(struct machine *m, MlirOperation op) {
    run_gated(m, op, rows_of(m, op, rounded(m, op, in(m, op, 0)), 4), in(m, op, 6));
}

void run_spread(struct machine *m, MlirOperation op) {
    const struct tensor *a = in(m, op, 0), *first = in(m, op, 1);
    struct tensor *r = out(m, op, 0);
    const int64_t rows = r->shape.size[0], width = r->count / rows;
    for (int64_t e = 0; e + 1 < first->count; e++) {
        const int64_t end = first_of(m, op, first, e + 1, rows);
        for (int64_t row = first_of(m, op, first, e, rows); row < end; row++) {
            for (int64_t i = 0; i < width; i++) r->at[row * width + i] = a->at[e * width + i];
        }
    }
}

void run_spread_grad(struct machine *m, MlirOperation op) {
    const struct tensor *dr = in(m, op, 0), *first = in(m, op, 1);
    struct tensor *da = out(m, op, 0);
    const int64_t rows = dr->shape.size[0], width = dr->count / rows;
    fill(da, 0);
    for (int64_t e = 0; e + 1 < first->count; e++) {
        const int64_t end = first_of(m, op, first, e + 1, rows);
        for (int64_t row = first_of(m, op, first, e, rows); row < end; row++) {
            for (int64_t i = 0; i < width; i++) da->at[e * width + i] += dr->at[row * width + i];
        }
    }
}
