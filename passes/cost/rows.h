// Counts the rows that each device computes, sends and receives under the plan that a stage has made.
#ifndef HECATE_PASSES_COST_ROWS_H
#define HECATE_PASSES_COST_ROWS_H

#include "passes/cost/stage.h"

struct hec_rows {
    int64_t *load, *sent, *got;    // [devices] rows computed, sent to and got from others
    int64_t *node_sent, *node_got; // [nodes] rows across
    int64_t *lacked;               // [nodes]
};

// Memory is the stage's.
struct hec_rows hec_rows_take(struct hec_stage *stage);

// After hec_stage_plan. False: the planner refuses.
bool hec_rows_count(struct hec_stage *stage, struct hec_rows *rows);

// The rows from each device to each, its own included: pair [devices][devices]. `once`, unless NULL: tokens of each
// device that have a row for each node, [devices][nodes], as many as are expected where a token's experts are
// independent of each other but for being different. After hec_stage_plan.
bool hec_rows_pairs(struct hec_stage *stage, double *pair, double *once);

// Tokens that have a row for a node, of `tokens`, where `rows` of their `picks` rows each go there, independently.
double hec_rows_once(double tokens, double rows, int32_t picks);

// The rows of `once` tokens if each of their rows went there with probability `part` alone: the number of tokens.
double hec_rows_once_part(double tokens, double once, int32_t picks, double part);

#endif
