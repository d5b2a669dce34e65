// Spreading the tokens of one sequence over experts by their popularity: forced routing that has the
// loads one asks for.
#ifndef HECATE_RUNTIME_ROUTE_SPREAD_H
#define HECATE_RUNTIME_ROUTE_SPREAD_H

#include <stdint.h>

#include "runtime/base/random.h"

// How a sequence's top-k choices (positions x topk) are spread, topk <= experts.
struct hrt_spread {
    int64_t experts, topk, positions;
};

// Stores in `mass` [experts] how many of the top-k choices each expert gets, in units of 1 / 2^24: in the
// proportion of `popularity` [experts] (finite, not negative), but no expert more than `positions`,
// since the experts of a token differ; the excess of one goes to the others. The masses sum to
// positions x topk exactly.
void hrt_route_spread_masses(int64_t *mass, const double *popularity, struct hrt_spread spread);

// Stores ids [positions][topk], the experts of each token all different, such that expert e occurs
// mass[e] times, rounded down or up. Which tokens, and which way it is rounded, depends on
// (stream, sequence) alone. `order` [positions] is scratch.
//
// Systematic sampling: pick q of the sequence falls to the expert in whose stretch of the line
// [0, positions x topk) the point q + u lies, u uniform in [0, 1); token t of a random order has
// top-k choices t, t + positions, ..., which never meet in one stretch of at most `positions`.
// Source: Madow 1949, "On the theory of systematic sampling, II".
void hrt_route_spread_sequence(int32_t *ids, const int64_t *mass, struct hrt_spread spread,
                               struct hrt_stream stream, uint64_t sequence, int32_t *order);

#endif
