// Moves of chunks under way, the replicas of each layer and set, and the state that the files of runtime/experts work
// on. Nobody else includes this.
#ifndef HECATE_RUNTIME_EXPERTS_MOVES_H
#define HECATE_RUNTIME_EXPERTS_MOVES_H

#include "runtime/experts/fssdp.h"
#include "runtime/experts/fssdp_run.h"
#include "runtime/net/transport.h"
#include "runtime/plan/episode.h"
#include "runtime/plan/schedule.h"
#include "runtime/plan/slots.h"
#include "runtime/program.h"

// Where chunks lie: at their places in the state's buffers, or in the slots of replicas.
enum hrt_chunk_kind { HRT_CHUNK_PARAMS, HRT_CHUNK_ROUNDED, HRT_CHUNK_GRADS, HRT_CHUNK_KINDS };

// A part of every chunk that travels as one message.
struct hrt_piece {
    enum hrt_chunk_kind kind;
    size_t at, bytes;
};

enum hrt_move_kind { HRT_MOVE_GATHER, HRT_MOVE_ADDED, HRT_MOVE_REDUCE, HRT_MOVES };

// A schedule under way, as far as this rank takes part (move.c).
struct hrt_move {
    struct hrt_steps steps;
    struct hrt_mark mark;
    int32_t *brought; // [experts][pieces]
    uint64_t *heard;  // [ranks] NULL on a device with separate memory.
    char *staging;    // HPL_STAGED pieces; NULL: data is received where it belongs.
    size_t staged;    // Bytes of one.
    bool under_way;
    int set;
    int64_t layer; // The moving layer.
};

struct hrt_moving_layer {
    struct hpl_plan plan;   // The holders; the owners have their chunks anyway.
    struct hpl_plan placed; // The computing ranks, as the policy chose them.
    struct hpl_plan ahead;  // The policy's plan for the next iteration, from a forecast.
    bool is_ahead;          // It does.
    int64_t told;           // Words that had been compared when it said so.
    int32_t *slot;          // [experts] of this rank's replicas; -1: it has none.
    int32_t used;           // Slots.
    bool prefetched;        // Planned and started before its turn.
    uint32_t *known;  // [ranks][experts] mean counts to come (hrt_experts_fssdp_foresee); or NULL.
    bool is_known;    // They are there.
    uint32_t *window; // [window][ranks][experts] counts of the last iterations
    int64_t seen;     // Iterations that entered it, ever.
    struct hrt_moved_layer moved;
    bool is_scheduled;
    struct hpl_schedule gather; // Brings the chunks of `plan`, once is_scheduled.
};

struct hrt_moving_set {
    const struct hrt_set *set;
    struct hpl_episode episode;
    void *memory; // The episode's.
    struct hpl_slots slots;
    struct hrt_piece *param_piece, *grad_piece;
    int param_pieces; // The first `slots.segments` follow the schedule's; the rest go with segment 0.
    size_t
        grads_at; // Bytes of a chunk before those of trained parameters: gradients' slots begin with these.
    char *pool[HRT_CHUNK_KINDS]; // Slots; NULL: none of the kind.
    size_t pool_bytes[HRT_CHUNK_KINDS], stride[HRT_CHUNK_KINDS];
    struct hrt_moving_layer *layer;
    struct hrt_move move[HRT_MOVES];
};

// Decisions of ranks, each for itself.
enum hrt_decided { HRT_DECIDED_PLAN, HRT_DECIDED_ROWS, HRT_DECIDED_OWNERS };

struct hrt_decision {
    enum hrt_decided what;
    int set;
    int64_t layer, iteration; // In training; iterations count from 1.
    uint64_t word;
};

// All of it in one word, and the part that no rank has heard of the others yet (agree.c).
struct hrt_agreement {
    uint64_t word;
    struct hrt_decision *open;
    int count, room;
    int64_t compared; // When `open` began.
};

struct hrt_fssdp {
    struct hrt_state *state;
    const struct hrt_program *program;
    const struct hpl_movement *movement;
    const struct hpl_policy *policy;
    struct hrt_comm *comm;
    struct hpl_topology topology;
    int32_t *node_first, *speed;
    struct hrt_moving_set *set;       // [program->sets]
    bool training, is_first, is_last; // The last two: in its step.
    int64_t left;                     // Iterations of it, this one included.
    int64_t iterations;               // Iterations of training since owners last changed.
    struct hrt_agreement agreement;
    struct hrt_moved moved;
    // Where routes are known before a step (foresee.c); else NULL.
    uint32_t *
        known; // [ranks][words] mean counts to come, [sets][layers][experts] of each (hrt_experts_told)
    size_t known_words;

    // Scratch of one call.
    struct hpl_schedule schedule;
    struct hpl_plan scratch;
    int64_t *order;      // [layers][experts] chunks that move, or [ranks] how many each owns
    uint32_t *cursor;    // [ranks]
    int32_t *next_owner; // [layers][experts]
};

// chunk.c: the owners of a layer.
const int32_t *hrt_experts_layer_owners(const struct hrt_fssdp *fssdp, int set, int64_t layer);

// plan_layer.c: plans all layers for their next iteration whose forecast is complete and has not been planned with.
void hrt_experts_plan_ahead(struct hrt_fssdp *fssdp);

// Ends the job when the planner refused, which only our own fault can make it do.
void hrt_experts_planned(const struct hrt_fssdp *fssdp, int set, int64_t layer,
                         enum hpl_status status);

// Bytes of an element.
int64_t hrt_experts_chunk_element(const struct hrt_program *program, enum hrt_chunk_kind kind);

// Where chunk (layer, expert) lies on this rank: its place if it owns it, else its slot.
char *hrt_experts_chunk(const struct hrt_fssdp *fssdp, int set, int64_t layer, int64_t expert,
                        enum hrt_chunk_kind kind);

// plan.c: the quota function of the exchange of rows.
void hrt_experts_quota(void *context, int set, int64_t layer, const struct hpl_plan *plan,
                       const struct hpl_loads *loads, const struct hpl_part *part);

// Begins the episode of a set whose layers are there: [holders] of a layer, at most. False: no memory.
bool hrt_experts_episode_create(struct hrt_fssdp *fssdp, int set, int64_t holders);

// foresee.c: takes memory for counts to come. False: there is none. hrt_experts_fssdp_destroy frees it.
bool hrt_experts_known_create(struct hrt_fssdp *fssdp);

// agree.c: every rank takes part in each decision, and the next exchange tells whether they are alike, of counts or
// of words alone (hrt_experts_compare); hrt_experts_agree_now makes one. Where they are not, the job ends.
bool hrt_experts_agreement_create(struct hrt_fssdp *fssdp);
void hrt_experts_agreement_destroy(struct hrt_fssdp *fssdp);
void hrt_experts_decide(struct hrt_fssdp *fssdp, struct hrt_decision decision);
void hrt_experts_decide_plan(struct hrt_fssdp *fssdp, int set, int64_t layer,
                             const struct hpl_plan *plan);
void hrt_experts_agree_now(struct hrt_fssdp *fssdp);

// FNV-1a of bytes, from a hash before them or 0.
uint64_t hrt_experts_hash(uint64_t hash, const void *data, size_t bytes);

// move_chunks.c
bool hrt_experts_move_create(struct hrt_move *move, const struct hrt_fssdp *fssdp, int set,
                             enum hrt_move_kind kind);
void hrt_experts_move_destroy(struct hrt_move *move, struct hrt_device *device);

// Begins a layer's schedule. HRT_MOVE_REDUCE: received values are added to gradients, in the schedule's order.
void hrt_experts_move_start(struct hrt_fssdp *fssdp, int set, int64_t layer,
                            enum hrt_move_kind kind, const struct hpl_schedule *schedule);

// Returns when the move, or only its receives here, is done; at once when nothing of the layer is under
// way. Any layer: -1.
void hrt_experts_move_wait(struct hrt_fssdp *fssdp, struct hrt_move *move, int64_t layer,
                           const char *what);
void hrt_experts_moves_finish(struct hrt_fssdp *fssdp);
void hrt_experts_move_await(struct hrt_fssdp *fssdp, struct hrt_move *move, int64_t layer,
                            const char *what);

#endif
