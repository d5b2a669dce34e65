// Which token comes next, drawn by the model's scores.
#ifndef HECATE_RUNTIME_SAMPLE_DRAW_H
#define HECATE_RUNTIME_SAMPLE_DRAW_H

#include <stdint.h>

struct hrt_draw_rule {
    double temperature; // 0: the likeliest token, the lower of equals.
    int64_t topk;       // Draw among this many likeliest; 0: all;
    double topp;        // of these among the fewest whose shares come to it; 0: all;
    double minp;        // of these among those with at least this share of the likeliest one's.
    uint64_t seed;
    uint64_t sample; // Number among several samples with one seed: each has draws of its own.
};

struct hrt_candidate {
    double score; // Logit, then weight.
    int32_t id;
};

// Draws token `index` of a sample by the scores of `candidate` [vocabulary], which it reorders. The same rule, index
// and scores give the same token.
int32_t hrt_sample_draw_token(struct hrt_candidate *candidate, int64_t vocabulary,
                              struct hrt_draw_rule rule, uint64_t index);

#endif
