// Rows on their way between ranks: one rank that has all experts, in as many waves as its room asks for.
// Movement of experts computes nothing.
#include <math.h>

#include "tests/interpret/machine.h"

// The state of a set's layer that `exchange` makes for later operations.
struct routed {
    struct routing rows;
    int64_t room, waves; // Rows of a wave.
    int64_t width;
    double *given, *given_back; // By pair: results, and gradients of rows.
    double *gate_back;          // By pair.
};

static struct routed *routed_of(struct machine *m, MlirOperation op, int layer_operand) {
    const struct symbol *set = symbol_of(m, op, "set");
    struct routed *r = set->routed[layer_of(m, op, set, layer_operand)];
    if (!r) fault(m, op, "comes before fssdp.exchange");
    return r;
}

void run_exchange(struct machine *m, MlirOperation op) {
    const struct symbol *symbol = symbol_of(m, op, "set");
    const MlirOperation set = hec_find_symbol(m->module, hec_get_string(op, "set"));
    struct routed *r = HEC_NEW(m->arena, struct routed);
    r->rows = route_rows(m, op, in(m, op, 0), hec_get_int(set, "experts"));
    const int64_t total = r->rows.first[r->rows.experts];
    r->room = hec_has_attr(set, "wave_rows") ? hec_get_int(set, "wave_rows") : total;
    if (r->room < 1) r->room = 1;
    r->waves = (total + r->room - 1) / r->room;
    if (r->waves < 1) r->waves = 1;
    symbol->routed[layer_of(m, op, symbol, 1)] = r;
}

void run_await_counts(struct machine *m, MlirOperation op) {
    routed_of(m, op, 0);
}

void run_waves(struct machine *m, MlirOperation op) {
    set_index(m, op, (double)routed_of(m, op, 0)->waves);
}

void run_overwritten(struct machine *m, MlirOperation op) {
    set_index(m, op, index_in(m, op, 0) + 1 < routed_of(m, op, 1)->waves);
}

// The rows of a wave: from `start` on, `count` of them, which must fit into `room`.
struct wave {
    int64_t start, count;
};

static struct wave wave_of(struct machine *m, MlirOperation op, const struct routed *r, int operand,
                           int64_t room) {
    const int64_t wave = index_in(m, op, operand), total = r->rows.first[r->rows.experts];
    if (wave < 0 || wave >= r->waves) fault(m, op, "wave %" PRId64, wave);
    struct wave w = {.start = wave * r->room};
    w.count = total - w.start < r->room ? total - w.start : r->room;
    if (w.count > room) fault(m, op, "%" PRId64 " rows in room for %" PRId64, w.count, room);
    return w;
}

static int64_t clipped(int64_t value, int64_t most) {
    return value < 0 ? 0 : value > most ? most : value;
}

// Rows of the wave's tokens; `x` [.., D].
static void fill_rows(const struct routed *r, struct wave w, struct tensor *rows,
                      const struct tensor *x) {
    const int64_t width = rows->count / rows->shape.size[0];
    for (int64_t i = 0; i < w.count * width; i++) {
        const int64_t token = r->rows.pair[w.start + i / width] / r->rows.topk;
        rows->at[i] = x->at[token * width + i % width];
    }
}

void run_dispatch(struct machine *m, MlirOperation op) {
    const struct routed *r = routed_of(m, op, 3);
    const struct tensor *x = in(m, op, 0), *weights = in(m, op, 1);
    struct tensor *rows = out(m, op, 0), *gate = out(m, op, 1), *first = out(m, op, 2);
    const struct wave w = wave_of(m, op, r, 2, rows->shape.size[0]);
    fill_rows(r, w, rows, x);
    for (int64_t i = 0; i < w.count; i++) gate->at[i] = weights->at[r->rows.pair[w.start + i]];
    for (int64_t e = 0; e < first->count; e++)
        first->at[e] = (double)clipped(r->rows.first[e] - w.start, w.count);
}

void run_dispatch_grad(struct machine *m, MlirOperation op) {
    const struct routed *r = routed_of(m, op, 3);
    struct tensor *drows = out(m, op, 0);
    fill_rows(r, wave_of(m, op, r, 2, drows->shape.size[0]), drows, in(m, op, 0));
}

// Keeps what a wave has made, by pair.
static double *keep(struct machine *m, const struct routed *r, struct wave w, double *kept,
                    const struct tensor *rows, int64_t width) {
    if (!kept) {
        kept = hec_arena_alloc(m->arena, (size_t)(r->rows.pairs * width), sizeof *kept);
        for (int64_t i = 0; i < r->rows.pairs * width; i++) kept[i] = NAN;
    }
    for (int64_t i = 0; i < w.count * width; i++)
        kept[r->rows.pair[w.start + i / width] * width + i % width] = rows->at[i];
    return kept;
}

void run_give_back(struct machine *m, MlirOperation op) {
    struct routed *r = routed_of(m, op, 2);
    const struct tensor *rows = in(m, op, 0);
    const struct wave w = wave_of(m, op, r, 1, rows->shape.size[0]);
    r->width = rows->count / rows->shape.size[0];
    r->given = keep(m, r, w, r->given, rows, r->width);
}

void run_give_back_grad(struct machine *m, MlirOperation op) {
    struct routed *r = routed_of(m, op, 3);
    const struct tensor *drows = in(m, op, 0), *dgate = in(m, op, 1);
    const struct wave w = wave_of(m, op, r, 2, drows->shape.size[0]);
    r->width = drows->count / drows->shape.size[0];
    r->given_back = keep(m, r, w, r->given_back, drows, r->width);
    r->gate_back = keep(m, r, w, r->gate_back, dgate, 1);
}

// Sums each token's rows.
static void sum_rows(struct machine *m, MlirOperation op, const struct routed *r,
                     const double *given, struct tensor *y) {
    if (!given) fault(m, op, "comes before what it collects");
    const int64_t tokens = r->rows.pairs / r->rows.topk, width = r->width;
    if (y->count != tokens * width) fault(m, op, "collects rows of another width");
    fill(y, 0);
    for (int64_t p = 0; p < r->rows.pairs; p++) {
        if (r->rows.slot[p] < 0) continue;
        for (int64_t i = 0; i < width; i++)
            y->at[p / r->rows.topk * width + i] += given[p * width + i];
    }
}

void run_collect(struct machine *m, MlirOperation op) {
    const struct routed *r = routed_of(m, op, 0);
    sum_rows(m, op, r, r->given, out(m, op, 0));
}

void run_collect_grad(struct machine *m, MlirOperation op) {
    const struct routed *r = routed_of(m, op, 0);
    struct tensor *dweights = out(m, op, 1);
    sum_rows(m, op, r, r->given_back, out(m, op, 0));
    for (int64_t p = 0; p < dweights->count; p++)
        dweights->at[p] = r->rows.slot[p] < 0 ? 0 : r->gate_back[p];
}
