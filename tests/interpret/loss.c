// Embedding, and the loss of a language model.
#include <math.h>

#include "tests/interpret/machine.h"

static int64_t row_of(struct machine *m, MlirOperation op, double id, int64_t rows) {
    if (!(id >= 0 && id < (double)rows)) fault(m, op, "id %g of %" PRId64, id, rows);
    return (int64_t)id;
}

void run_ahead(struct machine *m, MlirOperation op) {
    const struct tensor *targets = in(m, op, 0);
    struct tensor *ids = out(m, op, 0);
    const int64_t positions = targets->shape.size[1], by = hec_get_int(op, "by");
    for (int64_t i = 0; i < ids->count; i++)
        ids->at[i] = i % positions + by < positions ? targets->at[i + by] : -1;
}

void run_gather(struct machine *m, MlirOperation op) {
    const struct tensor *table = in(m, op, 0), *ids = in(m, op, 1);
    struct tensor *r = out(m, op, 0);
    const int64_t rows = table->shape.size[0], width = table->count / rows;
    for (int64_t t = 0; t < ids->count; t++) {
        const bool none = ids->at[t] < 0;
        const int64_t row = none ? 0 : row_of(m, op, ids->at[t], rows);
        for (int64_t i = 0; i < width; i++)
            r->at[t * width + i] = none ? 0 : table->at[row * width + i];
    }
}

void run_gather_grad(struct machine *m, MlirOperation op) {
    const struct tensor *dr = in(m, op, 0), *ids = in(m, op, 1);
    struct tensor *dtable = out(m, op, 0);
    const int64_t rows = dtable->shape.size[0], width = dtable->count / rows;
    fill(dtable, 0);
    for (int64_t t = 0; t < ids->count; t++) {
        if (ids->at[t] < 0) continue;
        const int64_t row = row_of(m, op, ids->at[t], rows);
        for (int64_t i = 0; i < width; i++) dtable->at[row * width + i] += dr->at[t * width + i];
    }
}

static double log_sum(const double *x, int64_t count) {
    double most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < count; i++) most = fmax(most, x[i]);
    for (int64_t i = 0; i < count; i++) sum += exp(x[i] - most);
    return most + log(sum);
}

void run_cross_entropy(struct machine *m, MlirOperation op) {
    const struct tensor *logits = in(m, op, 0), *targets = in(m, op, 1), *scale = in(m, op, 2);
    struct tensor *loss = out(m, op, 0), *lse = out(m, op, 1);
    const int64_t words = logits->shape.size[logits->shape.rank - 1];
    double sum = 0;
    for (int64_t t = 0; t < targets->count; t++) {
        lse->at[t] = log_sum(logits->at + t * words, words);
        if (targets->at[t] < 0) continue;
        sum += lse->at[t] - logits->at[t * words + row_of(m, op, targets->at[t], words)];
    }
    loss->at[0] = scale->at[0] * sum;
}

void run_cross_entropy_grad(struct machine *m, MlirOperation op) {
    const struct tensor *dloss = in(m, op, 0), *logits = in(m, op, 1), *lse = in(m, op, 2);
    const struct tensor *targets = in(m, op, 3), *scale = in(m, op, 4);
    struct tensor *dlogits = out(m, op, 0);
    const int64_t words = logits->shape.size[logits->shape.rank - 1];
    for (int64_t e = 0; e < logits->count; e++) {
        const double target = targets->at[e / words];
        const double hit = (double)(e % words) == target;
        dlogits->at[e] = target < 0 ? 0
                                    : dloss->at[0] * scale->at[0] *
                                          (exp(logits->at[e] - lse->at[e / words]) - hit);
    }
}

// ---- a teacher

bool teacher_entry(const struct machine *m, int64_t token, int k, int64_t *id, double *log_prob) {
    const uint64_t seed = m->options->seed;
    const int64_t words = hec_get_int(m->module, "hecate.vocabulary");
    const double u = random_unit(seed, "teacher's id", token, k);
    *id = (int64_t)((u + 1) / 2 * (double)words) % words;
    *log_prob = (double)(float)(3 * random_unit(seed, "teacher", token, k));
    return token % 5 != 4;
}

struct entry {
    int64_t id;
    double probability;
};

// A token's entries at a temperature. False: there are none.
static bool ask_teacher(const struct machine *m, int64_t token, double temperature,
                        struct entry entry[TEACHER_ENTRIES]) {
    double sum = 0, log_prob;
    bool known = false;
    for (int k = 0; k < TEACHER_ENTRIES; k++) {
        known = teacher_entry(m, token, k, &entry[k].id, &log_prob);
        entry[k].probability = exp(log_prob / temperature);
        sum += entry[k].probability;
    }
    for (int k = 0; k < TEACHER_ENTRIES; k++) entry[k].probability /= sum;
    return known;
}

static double warm_log_sum(const double *x, int64_t count, double temperature) {
    double most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < count; i++) most = fmax(most, x[i] / temperature);
    for (int64_t i = 0; i < count; i++) sum += exp(x[i] / temperature - most);
    return most + log(sum);
}

void run_distill(struct machine *m, MlirOperation op) {
    const struct tensor *logits = in(m, op, 0), *scale = in(m, op, 1);
    struct tensor *loss = out(m, op, 0), *losses = out(m, op, 1), *lse = out(m, op, 2);
    const int64_t words = logits->shape.size[logits->shape.rank - 1];
    const double temperature = hec_get_float(op, "temperature");
    double sum = 0;
    for (int64_t t = 0; t < losses->count; t++) {
        const double *row = logits->at + t * words;
        struct entry entry[TEACHER_ENTRIES];
        const bool known = ask_teacher(m, t, temperature, entry);
        lse->at[t] = known ? warm_log_sum(row, words, temperature) : 0;
        losses->at[t] = 0;
        for (int k = 0; known && k < TEACHER_ENTRIES; k++)
            losses->at[t] += temperature * temperature * entry[k].probability *
                             (lse->at[t] - row[entry[k].id] / temperature);
        sum += losses->at[t];
    }
    loss->at[0] = scale->at[0] * sum;
}

void run_distill_grad(struct machine *m, MlirOperation op) {
    const struct tensor *dloss = in(m, op, 0), *logits = in(m, op, 1), *lse = in(m, op, 2);
    const struct tensor *scale = in(m, op, 3);
    struct tensor *dlogits = out(m, op, 0);
    const int64_t words = logits->shape.size[logits->shape.rank - 1];
    const double temperature = hec_get_float(op, "temperature");
    const double factor = dloss->at[0] * scale->at[0] * temperature;
    for (int64_t t = 0; t < lse->count; t++) {
        struct entry entry[TEACHER_ENTRIES];
        const bool known = ask_teacher(m, t, temperature, entry);
        for (int64_t v = 0; v < words; v++) {
            const double p = exp(logits->at[t * words + v] / temperature - lse->at[t]);
            dlogits->at[t * words + v] = known ? factor * p : 0;
        }
        for (int k = 0; known && k < TEACHER_ENTRIES; k++)
            dlogits->at[t * words + entry[k].id] -= factor * entry[k].probability;
    }
}

// ---- pairs

// The reference's log-probability of a target: of teachers' first entry that is it.
static double said_of(const struct machine *m, int64_t token, int64_t target) {
    for (int k = 0; k < TEACHER_ENTRIES; k++) {
        int64_t id;
        double log_prob;
        if (teacher_entry(m, token, k, &id, &log_prob) && id == target) return log_prob;
    }
    return NAN;
}

void run_dpo(struct machine *m, MlirOperation op) {
    const struct tensor *logits = in(m, op, 0), *targets = in(m, op, 1), *scale = in(m, op, 2);
    struct tensor *loss = out(m, op, 0), *slopes = out(m, op, 1), *lse = out(m, op, 2);
    const int64_t words = logits->shape.size[logits->shape.rank - 1];
    const int64_t positions = lse->shape.size[lse->shape.rank - 1];
    const double beta = hec_get_float(op, "beta");
    double gain[2], sum = 0;
    for (int64_t t = 0; t < lse->count; t++)
        lse->at[t] = warm_log_sum(logits->at + t * words, words, 1), slopes->at[t] = 0;
    for (int64_t t = 0; t < lse->count / (2 * positions) * 2 * positions; t++) {
        const int64_t place = t % (2 * positions), target = (int64_t)targets->at[t];
        if (place == 0) gain[0] = gain[1] = 0;
        if (target >= 0)
            gain[place / positions] +=
                logits->at[t * words + target] - lse->at[t] - said_of(m, t, target);
        if (place + 1 < 2 * positions) continue;
        const double h = beta * (gain[0] - gain[1]);
        sum += log1p(exp(-h));
        for (int64_t i = 0; i < 2 * positions; i++) {
            const int64_t at = t + 1 - 2 * positions + i;
            const double sign = i < positions ? -1 : 1;
            slopes->at[at] = targets->at[at] < 0 ? 0 : sign * beta / (1 + exp(h));
        }
    }
    loss->at[0] = scale->at[0] * sum;
}

void run_policy(struct machine *m, MlirOperation op) {
    const struct tensor *logits = in(m, op, 0), *targets = in(m, op, 1), *scale = in(m, op, 2);
    struct tensor *loss = out(m, op, 0), *slopes = out(m, op, 1), *lse = out(m, op, 2);
    const int64_t words = logits->shape.size[logits->shape.rank - 1];
    const double clip = hec_get_float(op, "clip"), kl = hec_get_float(op, "kl");
    double sum = 0;
    for (int64_t t = 0; t < lse->count; t++) {
        const int64_t target = (int64_t)targets->at[t];
        int64_t id;
        double said[TEACHER_ENTRIES];
        lse->at[t] = warm_log_sum(logits->at + t * words, words, 1);
        slopes->at[t] = 0;
        if (target < 0) continue;
        for (int k = 0; k < TEACHER_ENTRIES; k++) teacher_entry(m, t, k, &id, &said[k]);
        const double own = logits->at[t * words + target] - lse->at[t];
        const double ratio = exp(own - said[0]), apart = said[2] - own;
        const double plain = ratio * said[1];
        const double clipped = fmin(fmax(ratio, 1 - clip), 1 + clip) * said[1];
        sum += -fmin(plain, clipped) + kl * (exp(apart) - apart - 1);
        slopes->at[t] = (plain <= clipped ? -plain : 0) + kl * (1 - exp(apart));
    }
    loss->at[0] = scale->at[0] * sum;
}

void run_policy_grad(struct machine *m, MlirOperation op) {
    const struct tensor *dloss = in(m, op, 0), *logits = in(m, op, 1), *slopes = in(m, op, 2);
    const struct tensor *lse = in(m, op, 3), *targets = in(m, op, 4), *scale = in(m, op, 5);
    struct tensor *dlogits = out(m, op, 0);
    const int64_t words = logits->shape.size[logits->shape.rank - 1];
    const double factor = dloss->at[0] * scale->at[0];
    for (int64_t t = 0; t < lse->count; t++) {
        for (int64_t v = 0; v < words; v++) {
            const double p = exp(logits->at[t * words + v] - lse->at[t]);
            dlogits->at[t * words + v] =
                targets->at[t] < 0 ? 0
                                   : factor * slopes->at[t] * ((targets->at[t] == (double)v) - p);
        }
    }
}

// ---- the head and its loss, block by block

// A head's matrix and what it multiplies, as numbers that the product reads.
struct head {
    const struct tensor *x, *w, *targets;
    int64_t words, width;
    bool turned;
};

static struct head head_of(struct machine *m, MlirOperation op, int x, int targets) {
    struct head h = {.x = rounded(m, op, in(m, op, x)),
                     .w = rounded(m, op, in(m, op, x + 1)),
                     .targets = in(m, op, targets),
                     .turned = hec_get_bool(op, "turned")};
    h.width = h.x->count / h.targets->count;
    h.words = h.w->count / h.width;
    spend(m, op, h.x->count * h.words);
    return h;
}

static double weight(const struct head *h, int64_t i, int64_t word) {
    return h->w->at[h->turned ? word * h->width + i : i * h->words + word];
}

// The logits of a token.
static void logits_of(const struct head *h, int64_t token, double *logits) {
    for (int64_t v = 0; v < h->words; v++) {
        logits[v] = 0;
        for (int64_t i = 0; i < h->width; i++)
            logits[v] += h->x->at[token * h->width + i] * weight(h, i, v);
    }
}

void run_linear_cross_entropy(struct machine *m, MlirOperation op) {
    const struct head h = head_of(m, op, 0, 2);
    struct tensor *loss = out(m, op, 0), *lse = out(m, op, 1), *block = out(m, op, 2);
    const int64_t rows = block->shape.size[0];
    double sum = 0;
    for (int64_t t = 0; t < h.targets->count; t++) {
        double *logits = block->at + t % rows * h.words;
        logits_of(&h, t, logits);
        lse->at[t] = log_sum(logits, h.words);
        if (h.targets->at[t] < 0) continue;
        sum += lse->at[t] - logits[row_of(m, op, h.targets->at[t], h.words)];
    }
    loss->at[0] = in(m, op, 3)->at[0] * sum;
}

void run_linear_cross_entropy_grad(struct machine *m, MlirOperation op) {
    const struct head h = head_of(m, op, 1, 4);
    const struct tensor *lse = in(m, op, 3);
    const double factor = in(m, op, 0)->at[0] * in(m, op, 5)->at[0];
    const bool rounds = hec_get_bool(op, "rounds"), both = mlirOperationGetNumResults(op) > 2;
    struct tensor *dx = out(m, op, 0), *block = out(m, op, 1), *dw = both ? out(m, op, 2) : NULL;
    const int64_t rows = block->shape.size[0];
    fill(dx, 0);
    if (dw) fill(dw, 0);
    for (int64_t t = 0; t < h.targets->count; t++) {
        double *d = block->at + t % rows * h.words;
        const double target = h.targets->at[t];
        logits_of(&h, t, d);
        for (int64_t v = 0; v < h.words; v++) {
            d[v] = target < 0 ? 0 : factor * (exp(d[v] - lse->at[t]) - ((double)v == target));
            const double read = rounds ? to_bf16(d[v]) : d[v];
            for (int64_t i = 0; i < h.width; i++) {
                dx->at[t * h.width + i] += read * weight(&h, i, v);
                if (dw)
                    dw->at[h.turned ? v * h.width + i : i * h.words + v] +=
                        read * h.x->at[t * h.width + i];
            }
        }
    }
}

// ---- losses of a router

void run_z_loss(struct machine *m, MlirOperation op) {
    const struct tensor *logits = in(m, op, 0);
    struct tensor *loss = out(m, op, 0);
    const int64_t experts = logits->shape.size[logits->shape.rank - 1];
    const int64_t tokens = logits->count / experts;
    double sum = 0;
    for (int64_t t = 0; t < tokens; t++)
        sum += pow(log_sum(logits->at + t * experts, experts), 2) / (double)tokens;
    loss->at[0] = m->options->shares * hec_get_float(op, "coef") * sum;
}

void run_z_loss_grad(struct machine *m, MlirOperation op) {
    const struct tensor *dloss = in(m, op, 0), *logits = in(m, op, 1);
    struct tensor *d = out(m, op, 0);
    const int64_t experts = logits->shape.size[logits->shape.rank - 1];
    const int64_t tokens = logits->count / experts;
    const double coef = m->options->shares * hec_get_float(op, "coef") / (double)tokens;
    for (int64_t e = 0; e < logits->count; e++) {
        const double lse = log_sum(logits->at + e / experts * experts, experts);
        d->at[e] = dloss->at[0] * coef * 2 * lse * exp(logits->at[e] - lse);
    }
}

void run_aux_loss(struct machine *m, MlirOperation op) {
    const struct tensor *means = in(m, op, 0), *fractions = in(m, op, 1);
    struct tensor *loss = out(m, op, 0);
    const double sequences = (double)means->shape.size[0];
    const double experts = (double)means->count / sequences;
    double sum = 0;
    for (int64_t i = 0; i < means->count; i++) sum += means->at[i] * fractions->at[i] / sequences;
    loss->at[0] = m->options->shares * hec_get_float(op, "coef") * experts * sum;
}

void run_aux_loss_grad(struct machine *m, MlirOperation op) {
    const struct tensor *dloss = in(m, op, 0), *fractions = in(m, op, 1);
    struct tensor *d = out(m, op, 0);
    const double sequences = (double)d->shape.size[0], experts = (double)d->count / sequences;
    const double coef = m->options->shares * hec_get_float(op, "coef") * experts / sequences;
    for (int64_t i = 0; i < d->count; i++) d->at[i] = dloss->at[0] * coef * fractions->at[i];
}
