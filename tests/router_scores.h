// Scores of a router by their definitions, for tests: one row of `router_scores` for each of kernels/router/scores.def.
#ifndef HECATE_TESTS_ROUTER_SCORES_H
#define HECATE_TESTS_ROUTER_SCORES_H

#include <math.h>
#include <stddef.h>
#include <string.h>

struct router_score {
    const char *word;
    long double (*value)(long double l); // The score of a logit. NULL: a softmax over all of them.
    long double (*slope)(long double s); // The score's derivative by the logit, from the score.
};

static inline long double sigmoid_value(long double l) {
    return 1 / (1 + expl(-l));
}

static inline long double sigmoid_slope(long double s) {
    return s * (1 - s);
}

static inline long double sqrtsoftplus_value(long double l) {
    return sqrtl(log1pl(expl(l)));
}

static inline long double sqrtsoftplus_slope(long double s) {
    return -expm1l(-s * s) / (2 * s);
}

static const struct router_score router_scores[] = {
    {"softmax", NULL, NULL},
    {"sigmoid", sigmoid_value, sigmoid_slope},
    {"sqrtsoftplus", sqrtsoftplus_value, sqrtsoftplus_slope},
};

#endif
