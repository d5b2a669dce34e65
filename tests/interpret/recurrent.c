// Convolutions over positions and the delta rule, position by position, as docs/ir.md defines them.
#include <math.h>

#include "ir/accessors.h"
#include "tests/interpret/machine.h"

// NULL: the operation lacks it.
static const struct tensor *maybe(struct machine *m, MlirOperation op, MlirValue value) {
    return mlirValueIsNull(value) ? NULL : value_of(m, op, value);
}

// ---- causal_conv

// Calls `each` for all terms of y, by the places of their factors.
struct convolution {
    const struct tensor *x, *w, *dy;
    struct tensor *y, *dx, *dw;
};
typedef void each_product(struct convolution *c, int64_t y, int64_t x, int64_t w);

static void for_products(struct convolution *c, const struct tensor *begins, each_product *each) {
    const int64_t positions = c->x->shape.size[1], taps = c->w->shape.size[c->w->shape.rank - 1];
    const int64_t channels = c->w->count / taps;
    for (int64_t i = 0; i < c->x->count; i++) {
        const int64_t token = i / channels, begin = begins ? (int64_t)begins->at[token] : 0;
        for (int64_t back = 0; back < taps && token % positions - back >= begin; back++)
            each(c, i, i - back * channels, i % channels * taps + taps - 1 - back);
    }
}

static void convolve(struct convolution *c, int64_t y, int64_t x, int64_t w) {
    c->y->at[y] += c->w->at[w] * c->x->at[x];
}

static void convolve_back(struct convolution *c, int64_t y, int64_t x, int64_t w) {
    c->dx->at[x] += c->w->at[w] * c->dy->at[y];
    c->dw->at[w] += c->x->at[x] * c->dy->at[y];
}

void run_causal_conv(struct machine *m, MlirOperation op) {
    struct convolution c = {.x = in(m, op, 0), .w = in(m, op, 1), .y = out(m, op, 0)};
    fill(c.y, 0);
    for_products(&c, maybe(m, op, hec_causal_conv_begins(op)), convolve);
}

void run_causal_conv_grad(struct machine *m, MlirOperation op) {
    struct convolution c = {.dy = in(m, op, 0),
                            .x = in(m, op, 1),
                            .w = in(m, op, 2),
                            .dx = out(m, op, 0),
                            .dw = out(m, op, 1)};
    fill(c.dx, 0), fill(c.dw, 0);
    for_products(&c, maybe(m, op, hec_causal_conv_grad_begins(op)), convolve_back);
}

// ---- delta_rule

struct delta {
    const struct tensor *q, *k, *v, *decay, *beta, *begins;
    int64_t positions, heads, groups, width, vwidth;
    double scale;
};

static struct delta delta_of(struct machine *m, MlirOperation op, int first, MlirValue begins) {
    struct delta d = {.q = in(m, op, first),
                      .k = in(m, op, first + 1),
                      .v = in(m, op, first + 2),
                      .decay = in(m, op, first + 3),
                      .beta = in(m, op, first + 4),
                      .begins = maybe(m, op, begins),
                      .scale = hec_get_float(op, "scale")};
    d.positions = d.q->shape.size[1], d.groups = d.q->shape.size[2], d.width = d.q->shape.size[3];
    d.heads = d.v->shape.size[2], d.vwidth = d.v->shape.size[3];
    spend(m, op, d.v->count * d.width * 4);
    return d;
}

// Elements of a state, and where those of token `token` and head `h` begin.
static int64_t state_size(const struct delta *d) {
    return d->width * d->vwidth;
}
static int64_t key_at(const struct delta *d, int64_t token, int64_t h) {
    return (token * d->groups + h / (d->heads / d->groups)) * d->width;
}
static int64_t scalar_at(const struct delta *d, int64_t token, int64_t h) {
    return token * d->heads + h;
}

// The share of the state that is left at this token: 0 where a document begins.
static double kept(const struct delta *d, int64_t token, int64_t h) {
    const int64_t t = token % d->positions;
    const bool fresh = t == 0 || (d->begins && (int64_t)d->begins->at[token] == t);
    return fresh ? 0 : exp(d->decay->at[scalar_at(d, token, h)]);
}

// held = v - (kept before)^T k
static double held(const struct delta *d, const double *before, int64_t token, int64_t h,
                   int64_t i) {
    double found = 0;
    for (int64_t a = 0; a < d->width; a++)
        found += before[a * d->vwidth + i] * d->k->at[key_at(d, token, h) + a];
    return d->v->at[scalar_at(d, token, h) * d->vwidth + i] - kept(d, token, h) * found;
}

// The state behind a token, from that before it.
static void step(const struct delta *d, double *after, const double *before, int64_t token,
                 int64_t h) {
    const double decay = kept(d, token, h), beta = d->beta->at[scalar_at(d, token, h)];
    for (int64_t i = 0; i < d->vwidth; i++) {
        const double u = beta * held(d, before, token, h, i);
        for (int64_t a = 0; a < d->width; a++)
            after[a * d->vwidth + i] =
                decay * before[a * d->vwidth + i] + u * d->k->at[key_at(d, token, h) + a];
    }
}

// The states before each token of a head, and behind the last.
static double *states_of(struct machine *m, const struct delta *d, int64_t b, int64_t h) {
    const int64_t size = state_size(d);
    double *state = hec_arena_alloc(m->arena, (size_t)((d->positions + 1) * size), sizeof(double));
    for (int64_t i = 0; i < size; i++) state[i] = 0;
    for (int64_t t = 0; t < d->positions; t++)
        step(d, state + (t + 1) * size, state + t * size, b * d->positions + t, h);
    return state;
}

void run_delta_rule(struct machine *m, MlirOperation op) {
    const struct delta d = delta_of(m, op, 0, hec_delta_rule_begins(op));
    struct tensor *y = out(m, op, 0), *kept_states = out(m, op, 1);
    const int64_t size = state_size(&d), chunk = hec_get_int(op, "chunk");
    const int64_t chunks = kept_states->shape.size[1];
    fill(y, 0);
    for (int64_t i = 0; i < d.v->shape.size[0] * d.heads; i++) {
        const int64_t b = i / d.heads, h = i % d.heads;
        const double *state = states_of(m, &d, b, h);
        for (int64_t t = 0; t < d.positions; t++) {
            const int64_t token = b * d.positions + t;
            const double *after = state + (t + 1) * size;
            for (int64_t e = 0; e < size; e++)
                y->at[scalar_at(&d, token, h) * d.vwidth + e % d.vwidth] +=
                    d.scale * after[e] * d.q->at[key_at(&d, token, h) + e / d.vwidth];
            for (int64_t e = 0; t % chunk == 0 && e < size; e++)
                kept_states->at[((b * chunks + t / chunk) * d.heads + h) * size + e] =
                    state[t * size + e];
        }
    }
}

struct slopes {
    const struct tensor *dout;
    struct tensor *dq, *dk, *dv, *ddecay, *dbeta;
    double *dstate; // By the state behind a token, then by that before it.
};

// One token, backward.
static void step_back(const struct delta *d, struct slopes *s, const double *before,
                      const double *after, int64_t token, int64_t h) {
    const int64_t scalar = scalar_at(d, token, h), key = key_at(d, token, h);
    const double decay = kept(d, token, h), beta = d->beta->at[scalar];
    for (int64_t i = 0; i < d->vwidth; i++) {
        const double dy = d->scale * s->dout->at[scalar * d->vwidth + i];
        const double own = held(d, before, token, h, i);
        double du = 0, found = 0;
        for (int64_t a = 0; a < d->width; a++) {
            double *ds = &s->dstate[a * d->vwidth + i];
            s->dq->at[key + a] += dy * after[a * d->vwidth + i];
            *ds += dy * d->q->at[key + a];
            du += *ds * d->k->at[key + a];
            s->dk->at[key + a] += *ds * beta * own;
        }
        s->dbeta->at[scalar] += du * own;
        s->dv->at[scalar * d->vwidth + i] = beta * du;
        for (int64_t a = 0; a < d->width; a++) {
            const int64_t e = a * d->vwidth + i;
            found += before[e] * d->k->at[key + a];
            s->dk->at[key + a] -= beta * du * decay * before[e];
            s->ddecay->at[scalar] += decay * before[e] * s->dstate[e];
            s->dstate[e] = decay * (s->dstate[e] - beta * du * d->k->at[key + a]);
        }
        s->ddecay->at[scalar] -= decay * beta * du * found;
    }
}

void run_delta_rule_grad(struct machine *m, MlirOperation op) {
    const struct delta d = delta_of(m, op, 1, hec_delta_rule_grad_begins(op));
    struct slopes s = {in(m, op, 0),  out(m, op, 0), out(m, op, 1), out(m, op, 2),
                       out(m, op, 3), out(m, op, 4), NULL};
    struct tensor *last = out(m, op, 5);
    const int64_t size = state_size(&d);
    fill(s.dq, 0), fill(s.dk, 0), fill(s.ddecay, 0), fill(s.dbeta, 0), fill(last, 0);
    for (int64_t i = 0; i < d.v->shape.size[0] * d.heads; i++) {
        const int64_t b = i / d.heads, h = i % d.heads;
        const double *state = states_of(m, &d, b, h);
        s.dstate = last->at + i * size;
        for (int64_t t = d.positions - 1; t >= 0; t--)
            step_back(&d, &s, state + t * size, state + (t + 1) * size, b * d.positions + t, h);
    }
}
