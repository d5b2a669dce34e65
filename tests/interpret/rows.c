// Rows grouped by expert, of one rank.
#include <math.h>

#include "tests/interpret/machine.h"

static int64_t last_of(const struct tensor *t) {
    return t->shape.size[t->shape.rank - 1];
}

static int64_t pair_in(struct machine *m, MlirOperation op, const struct tensor *t, int64_t i,
                       int64_t count) {
    if (!(t->at[i] >= 0 && t->at[i] < (double)count)) fault(m, op, "row or pair %g", t->at[i]);
    return (int64_t)t->at[i];
}

struct routing route_rows(struct machine *m, MlirOperation op, const struct tensor *ids,
                          int64_t experts) {
    struct routing r = {.pairs = ids->count, .topk = last_of(ids), .experts = experts};
    spend(m, op, (experts + 1) * ids->count);
    r.first = hec_arena_alloc(m->arena, (size_t)experts + 1, sizeof *r.first);
    r.pair = hec_arena_alloc(m->arena, (size_t)r.pairs, sizeof *r.pair);
    r.slot = hec_arena_alloc(m->arena, (size_t)r.pairs, sizeof *r.slot);
    int64_t row = 0;
    for (int64_t e = 0; e < experts; e++) {
        r.first[e] = row;
        for (int64_t p = 0; p < r.pairs; p++) {
            if (ids->at[p] == (double)e) r.pair[row] = p, r.slot[p] = row++;
        }
    }
    r.first[experts] = row;
    for (int64_t p = 0; p < r.pairs; p++) {
        if (!(ids->at[p] < (double)experts)) fault(m, op, "expert %g", ids->at[p]);
        if (ids->at[p] < 0) r.pair[row++] = p, r.slot[p] = -1;
    }
    return r;
}

// In each group of sequences an expert keeps its rows of the largest weights, or its first ones:
// `ids` with -1 where a pick is dropped.
static const struct tensor *keep_some(struct machine *m, MlirOperation op, const struct tensor *ids,
                                      const struct tensor *weights, int64_t experts) {
    struct tensor *kept = new_tensor(m, op, &ids->shape);
    const bool lowest = mlirStringRefEqual(hec_get_string(op, "drop"), HEC_STR("lowest"));
    const int64_t sequence = ids->count / ids->shape.size[0];
    const int64_t group = hec_has_attr(op, "group") ? hec_get_int(op, "group") * sequence : 0;
    spend(m, op, ids->count * ids->count);
    for (int64_t p = 0; p < ids->count; p++) {
        const int64_t start = group > 0 ? p / group * group : 0;
        const int64_t end = group > 0 && start + group < ids->count ? start + group : ids->count;
        const double most =
            ceil(hec_get_float(op, "capacity") * (double)(end - start) / (double)experts);
        double before = 0;
        for (int64_t q = start; q < end; q++) {
            if (ids->at[q] != ids->at[p] || q == p) continue;
            const double more = weights->at[q] - weights->at[p];
            before += lowest ? more > 0 || (more == 0 && q < p) : q < p;
        }
        kept->at[p] = before < most ? ids->at[p] : -1;
    }
    return kept;
}

static void write_routing(struct machine *m, MlirOperation op, const struct routing *r) {
    struct tensor *first = out(m, op, 0), *pair = out(m, op, 1), *slot = out(m, op, 2);
    for (int64_t e = 0; e < first->count; e++) first->at[e] = (double)r->first[e];
    for (int64_t i = 0; i < pair->count; i++) pair->at[i] = (double)r->pair[i];
    for (int64_t i = 0; i < slot->count; i++) slot->at[i] = (double)r->slot[i];
}

void run_route(struct machine *m, MlirOperation op) {
    const struct routing r = route_rows(m, op, in(m, op, 0), hec_get_int(op, "experts"));
    write_routing(m, op, &r);
}

void run_limit(struct machine *m, MlirOperation op) {
    const struct tensor *weights = in(m, op, 0), *first = in(m, op, 1), *pair = in(m, op, 2);
    struct tensor *ids = new_tensor(m, op, &weights->shape);
    const int64_t experts = first->count - 1;
    fill(ids, -1);
    for (int64_t e = 0; e < experts; e++) {
        for (int64_t row = (int64_t)first->at[e]; row < (int64_t)first->at[e + 1]; row++) {
            if (row < 0 || row >= pair->count) fault(m, op, "row %" PRId64, row);
            ids->at[pair_in(m, op, pair, row, ids->count)] = (double)e;
        }
    }
    const struct routing r = route_rows(m, op, keep_some(m, op, ids, weights, experts), experts);
    write_routing(m, op, &r);
}

void run_drop(struct machine *m, MlirOperation op) {
    const MlirOperation set = hec_find_symbol(m->module, hec_get_string(op, "set"));
    const int64_t experts = hec_get_int(set, "experts");
    bind(m, hec_result(op, 0), keep_some(m, op, in(m, op, 0), in(m, op, 1), experts));
}

// ---- rows and tokens

void run_permute(struct machine *m, MlirOperation op) {
    const struct tensor *x = in(m, op, 0), *pair = in(m, op, 1);
    struct tensor *rows = out(m, op, 0);
    const int64_t topk = last_of(in(m, op, 2)), width = rows->count / pair->count;
    for (int64_t row = 0; row < pair->count; row++) {
        const int64_t token = pair_in(m, op, pair, row, pair->count) / topk;
        for (int64_t i = 0; i < width; i++) rows->at[row * width + i] = x->at[token * width + i];
    }
}

// y of each token: the sum of its rows; `weights` (or NULL) multiplies them.
static void combine(struct machine *m, MlirOperation op, struct tensor *y,
                    const struct tensor *rows, const struct tensor *slot,
                    const struct tensor *weights) {
    const int64_t topk = last_of(slot), width = rows->count / rows->shape.size[0];
    fill(y, 0);
    for (int64_t p = 0; p < slot->count; p++) {
        if (slot->at[p] < 0) continue;
        const int64_t row = pair_in(m, op, slot, p, rows->shape.size[0]);
        for (int64_t i = 0; i < width; i++) {
            y->at[p / topk * width + i] +=
                rows->at[row * width + i] * (weights ? weights->at[p] : 1);
        }
    }
}

void run_combine(struct machine *m, MlirOperation op) {
    combine(m, op, out(m, op, 0), in(m, op, 0), in(m, op, 2), NULL);
}

void run_gate_rows(struct machine *m, MlirOperation op) {
    const struct tensor *weights = in(m, op, 0), *pair = in(m, op, 1);
    struct tensor *g = out(m, op, 0);
    for (int64_t i = 0; i < g->count; i++)
        g->at[i] = weights->at[pair_in(m, op, pair, i, weights->count)];
}

void run_gate_rows_grad(struct machine *m, MlirOperation op) {
    const struct tensor *dg = in(m, op, 0), *slot = in(m, op, 2);
    struct tensor *d = out(m, op, 0);
    for (int64_t p = 0; p < d->count; p++)
        d->at[p] = slot->at[p] < 0 ? 0 : dg->at[pair_in(m, op, slot, p, dg->count)];
}

// ---- a whole mixture, before group-experts

void run_experts(struct machine *m, MlirOperation op) {
    const struct tensor *x = in(m, op, 0), *weights = in(m, op, 1), *ids = in(m, op, 2);
    const MlirOperation set = hec_find_symbol(m->module, hec_get_string(op, "set"));
    const int64_t experts = hec_get_int(set, "experts"),
                  layer = has_in(op, 3) ? index_in(m, op, 3) : 0;
    if (hec_has_attr(op, "capacity")) ids = keep_some(m, op, ids, weights, experts);
    const struct routing r = route_rows(m, op, ids, experts);
    const int64_t width = x->count / (ids->count / r.topk);
    const MlirType real = x->shape.element;
    struct hec_tensor shape = {.element = real};
    hec_tensor_append(&shape, HEC_STR("rows"), r.pairs);
    hec_tensor_append(&shape, HEC_STR("width"), width);
    struct tensor *rows = new_tensor(m, op, &shape), *slot = new_tensor(m, op, &ids->shape);
    struct hec_tensor starts = {.element = real};
    hec_tensor_append(&starts, HEC_STR("first"), experts + 1);
    struct tensor *first = new_tensor(m, op, &starts);
    for (int64_t e = 0; e <= experts; e++) first->at[e] = (double)r.first[e];
    for (int64_t p = 0; p < r.pairs; p++) slot->at[p] = (double)r.slot[p];
    for (int64_t i = 0; i < rows->count; i++)
        rows->at[i] = x->at[r.pair[i / width] / r.topk * width + i % width];
    const bool on_input = hec_get_bool(op, "on_input");
    for (int64_t i = 0; on_input && i < rows->count; i++)
        rows->at[i] *= weights->at[r.pair[i / width]];
    const struct tensor *y = call_experts(m, op, "expert", rows, first, layer);
    combine(m, op, out(m, op, 0), y, slot, on_input ? NULL : weights);
}
