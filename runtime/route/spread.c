// Systematic sampling in whole numbers, so that rounding cannot give a token one expert twice.
#include "runtime/route/spread.h"

#include <assert.h>
#include <stdbool.h>

static const int64_t unit = 1 << 24;

// Top-k choices for one unit of popularity; -1 when no open expert has any.
static double factor_of(const int64_t *mass, const double *popularity, int64_t experts,
                        double left) {
    double total = 0;
    for (int64_t e = 0; e < experts; e++) total += mass[e] < 0 ? popularity[e] : 0;
    return total > 0 ? left / total : -1;
}

// Fills up the experts whose popularity is too large, marking the others -1. Returns the top-k choices left.
static double fill_full(int64_t *mass, const double *popularity, struct hrt_spread spread) {
    double left = (double)(spread.positions * spread.topk);
    const double most = (double)spread.positions;
    for (int64_t e = 0; e < spread.experts; e++) mass[e] = -1;
    for (bool again = true; again;) {
        const double factor = factor_of(mass, popularity, spread.experts, left);
        again = false;
        for (int64_t e = 0; e < spread.experts && left > 0; e++) {
            if (mass[e] >= 0 || popularity[e] * factor < most) continue;
            mass[e] = spread.positions * unit;
            left -= most;
            again = true;
        }
    }
    return left;
}

void hrt_route_spread_masses(int64_t *mass, const double *popularity, struct hrt_spread spread) {
    assert(spread.topk <= spread.experts);
    const int64_t most = spread.positions * unit;
    int64_t open = 0, missing = most * spread.topk;
    const double left = fill_full(mass, popularity, spread);
    const double factor = factor_of(mass, popularity, spread.experts, left);
    for (int64_t e = 0; e < spread.experts; e++) open += mass[e] < 0;
    for (int64_t e = 0; e < spread.experts; e++) {
        if (mass[e] < 0) {
            const double picks = factor < 0 ? left / (double)open : popularity[e] * factor;
            mass[e] = (int64_t)(picks * (double)unit);
            if (mass[e] > most) mass[e] = most;
        }
        missing -= mass[e];
    }
    // The units that rounding has lost, or won.
    for (int64_t e = 0; e < spread.experts && missing != 0; e++) {
        const int64_t room = most - mass[e];
        const int64_t more = missing > room ? room : missing < -mass[e] ? -mass[e] : missing;
        mass[e] += more;
        missing -= more;
    }
    assert(missing == 0);
}

void hrt_route_spread_sequence(int32_t *ids, const int64_t *mass, struct hrt_spread spread,
                               struct hrt_stream stream, uint64_t sequence, int32_t *order) {
    const int64_t positions = spread.positions;
    const uint64_t first = sequence * ((uint64_t)positions + 1);
    for (int64_t t = 0; t < positions; t++) {
        const int64_t other = (int64_t)hrt_draw_below(stream, first + (uint64_t)t, (uint64_t)t + 1);
        order[t] = order[other];
        order[other] = (int32_t)t;
    }
    const int64_t start =
        (int64_t)hrt_draw_below(stream, first + (uint64_t)positions, (uint64_t)unit);
    int64_t expert = 0, end = mass[0];
    for (int64_t q = 0; q < positions * spread.topk; q++) {
        while (q * unit + start >= end) end += mass[++expert];
        ids[order[q % positions] * spread.topk + q / positions] = (int32_t)expert;
    }
}
