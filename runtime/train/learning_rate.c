// The rate of a step, and the pieces of schedules of one form: a warmup, then cosine or linear, once or several times,
// constant, or constant and linear at the end (warmup, stable, decay: wsd).
#include "runtime/train/learning_rate.h"

#include <math.h>

// How far step `at` is, of `steps` that fall `falls` times: 0 for the first one of each fall, 1 for the last one.
static double share_of_fall(int64_t at, int64_t steps, int64_t falls) {
    const int64_t fall = at * falls / steps; // Its steps are those for which this is the same.
    const int64_t begin = (fall * steps + falls - 1) / falls,
                  end = ((fall + 1) * steps + falls - 1) / falls;
    return end - begin > 1 ? (double)(at - begin) / (double)(end - begin - 1) : 1;
}

// The share of lr at t, from 0 to 1.
static double share_at(const struct hrt_rate_piece *piece, double t) {
    const double from = piece->from, to = piece->to;
    switch (piece->form) {
    case HRT_RATE_warmup:
    case HRT_RATE_linear: // Exact next to the smaller one, which may be 0.
        return from < to ? from + (to - from) * t : to + (from - to) * (1 - t);
    case HRT_RATE_cosine:
        return to + (from - to) * (0.5 * (1 + cos(M_PI * t)));
    case HRT_RATE_sqrt:
        return to + (from - to) * (1 - sqrt(t));
    case HRT_RATE_inverse_sqrt:
        return from / sqrt(1 + t * (from / to * (from / to) - 1));
    case HRT_RATE_exponential:
        return from * pow(to / from, t);
    case HRT_RATE_constant:
        break;
    }
    return to;
}

double hrt_train_learning_rate(const struct hrt_rates *rates, int64_t step) {
    const struct hrt_rate_piece *piece = rates->piece;
    while (piece < rates->piece + rates->count - 1 && step >= piece->begin + piece->steps) piece++;
    const int64_t at = step - piece->begin;
    if (at + 1 >= piece->steps) return rates->lr * piece->to;
    const double t = piece->jumps ? share_of_fall(at, piece->steps, piece->falls)
                                  : (double)(at + 1) / (double)piece->steps;
    return rates->lr * share_at(piece, t);
}

static void add(struct hrt_rates *rates, struct hrt_rate_piece piece) {
    if (piece.steps <= 0) return;
    if (rates->count > 0) {
        const struct hrt_rate_piece *last = &rates->piece[rates->count - 1];
        piece.begin = last->begin + last->steps;
    }
    rates->piece[rates->count++] = piece;
}

// Falls to the last rate of the schedule: the first falling step still has lr.
static void add_fall(struct hrt_rates *rates, const struct hrt_config *config,
                     enum hrt_rate_form form, int64_t steps, int64_t falls) {
    add(rates, (struct hrt_rate_piece){.form = form,
                                       .steps = steps,
                                       .from = 1,
                                       .to = config->train_schedule_final,
                                       .jumps = true,
                                       .falls = falls > 1 ? falls : 1});
}

bool hrt_train_rates(struct hrt_rates *rates, const struct hrt_config *config,
                     struct hrt_error *error) {
    *rates = (struct hrt_rates){.lr = config->train_optimizer_lr};
    if (config->train_schedule == HRT_SCHEDULE_pieces)
        return hrt_train_rate_pieces(rates, config->train_schedule_pieces, config->train_steps,
                                     error);
    const int64_t warmup = config->train_schedule_warmup, left = config->train_steps - warmup;
    const double falling = round(config->train_schedule_decay * (double)config->train_steps);
    const int64_t decay =
        config->train_schedule_decay > 0 ? (int64_t)fmin(fmax(falling, 1), (double)left) : 0;
    add(rates, (struct hrt_rate_piece){.form = HRT_RATE_warmup, .steps = warmup, .to = 1});
    const struct hrt_rate_piece constant = {
        .form = HRT_RATE_constant, .from = 1, .to = 1, .falls = 1};
    struct hrt_rate_piece stable = constant;
    switch ((enum hrt_schedule)config->train_schedule) {
    case HRT_SCHEDULE_cosine:
        add_fall(rates, config, HRT_RATE_cosine, left, config->train_schedule_cycles);
        break;
    case HRT_SCHEDULE_linear:
        add_fall(rates, config, HRT_RATE_linear, left, config->train_schedule_cycles);
        break;
    case HRT_SCHEDULE_wsd:
        stable.steps = left - decay;
        add(rates, stable);
        add_fall(rates, config, HRT_RATE_linear, decay, 1);
        break;
    case HRT_SCHEDULE_constant:
    case HRT_SCHEDULE_pieces:
        stable.steps = left;
        add(rates, stable);
        break;
    }
    return true;
}
