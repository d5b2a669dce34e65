// The planner's episode on loads: makes the plan that a program would make for a layer in an iteration. The cost model
// and the timeline stand on it.
#ifndef HECATE_PASSES_COST_STAGE_H
#define HECATE_PASSES_COST_STAGE_H

#include "lang/base/arena.h"
#include "passes/cost/setup.h"
#include "runtime/plan/episode.h"
#include "runtime/plan/policy.h"

// One set's episode, and the plan that was made last.
struct hec_stage {
    const struct hec_scene *scene; // Borrowed, as the movement is.
    const struct hpl_movement *movement;
    struct hec_arena arena;
    struct hpl_topology topology;
    struct hpl_episode episode;
    const struct hpl_plan *placed; // [layers] the plans of a periodic policy
    int64_t now;                   // The time of the newest loads that the episode knows.
    int64_t left; // Iterations that a plan made now serves where it lives for a step.
    struct hpl_plan plan, before; // The second: before it was calibrated.
    bool calibrated;
    uint32_t *exact; // [devices][experts] the counts planned for
    uint32_t *step;  // [devices][experts]
    uint32_t *quota; // [holders]
    uint64_t *sum;   // [devices][experts]
    int32_t *owner;  // [experts] of the layer at hand
    int64_t *chunks; // [devices]
};

// Memory is the stage's own until hec_stage_free.
void hec_stage_begin(struct hec_stage *stage, const struct hec_scene *scene,
                     const struct hpl_movement *movement);
void hec_stage_free(struct hec_stage *stage);

// Makes the plan of the layer at time `at` of the loads (iterations and their microbatches, one after the other),
// calibrated where it may be, and the shares of its holders. `kept`: that of the iteration before, to which
// calibration only adds; NULL: it is made anew. `left`: as of hpl_episode_calibrate. False: the planner refuses.
bool hec_stage_plan(struct hec_stage *stage, int64_t layer, int64_t at, int64_t left,
                    const struct hpl_plan *kept);

// Makes plans that it has made of the layer, with the owners of now, those at hand; they cannot be divided.
bool hec_stage_recall(struct hec_stage *stage, int64_t layer, const struct hpl_plan *before,
                      const struct hpl_plan *plan, bool calibrated);

#endif
