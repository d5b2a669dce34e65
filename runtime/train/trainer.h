// One optimizer step: iterations of forward and backward over drawn sequences, the norm, the update.
#ifndef HECATE_RUNTIME_TRAIN_TRAINER_H
#define HECATE_RUNTIME_TRAIN_TRAINER_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/error.h"
#include "runtime/config/config.h"
#include "runtime/data/data.h"
#include "runtime/experts/fssdp_run.h"
#include "runtime/net/comm.h"
#include "runtime/params/state.h"
#include "runtime/profile/profile.h"
#include "runtime/route/forced.h"
#include "runtime/train/batch.h"
#include "runtime/train/evaluate.h"
#include "runtime/train/flight.h"
#include "runtime/train/learning_rate.h"
#include "runtime/train/load_counts.h"
#include "runtime/train/optimizer.h"
#include "runtime/train/routers.h"
#include "runtime/train/watch.h"

// Means of the losses that a program has by name.
struct hrt_named_losses {
    int count;
    const struct hrt_loss *loss; // The program's.
    double value[HRT_NAMED_LOSSES];
};

// The report of a step. All losses are over all ranks.
struct hrt_step_report {
    int64_t step; // From 1.
    double loss, cross_entropy, auxiliary, grad_norm, lr;
    struct hrt_named_losses named;
    double seconds, tokens_per_s;
    struct hrt_routers routers;
    enum hrt_objective objective;
    double policy
        [HK_POLICY_SUMS]; // Sums of dpo or policy, of all iterations and ranks; 0 where a device computes.
    struct hrt_moved moved; // For programs that move experts: the mean of the ranks.
    int64_t resharded;      // Chunks that have a new owner.
    struct hrt_watch_sums watched;
    double left;  // Seconds until the last step, at this pace.
    double flops; // A second, of all ranks: those of GEMMs and attention.
    bool
        skipped; // The loss or the norm is not finite: the parameters are those of the step before.
    bool evaluated;
    struct hrt_validation validation;
};

// The evaluation with the lowest loss so far.
struct hrt_best {
    int64_t step; // 0: there was none.
    double loss;
    int64_t worse; // Evaluations since.
};

struct hrt_trainer {
    const struct hrt_program *program;
    const struct hrt_config *config;
    struct hrt_comm *comm;
    const struct hrt_data *data;
    struct hrt_state *state; // NULL: not created yet.
    struct hrt_route *route; // NULL: routers choose, and nothing is recorded.
    struct hrt_optimizer optimizer;
    struct hrt_rates rates;      // Learning rates; of hrt_train_rates, once the last step is known.
    struct hrt_profile *profile; // Borrowed; NULL: none.
    struct hrt_load_counts loads; // Loads of the last step that was reported, over all ranks.
    struct hrt_watch watch;       // The same step's numbers.
    double pace;                  // Seconds of a step, by those before.
    int64_t batch;                // Sequences of one iteration on this rank.
    struct hrt_batch passes;      // Forward and backward of them.
    struct hrt_graph squares;     // The graph of hrt_train_grad_clip's work.
    int64_t iterations;           // Iterations of one step.
    int64_t tokens;               // Tokens of one step, over all ranks.
    double targets;      // Predicted tokens of a step; with weights, their sum in the last one.
    int64_t from, drawn; // Steps that were taken before, and the sequences that they drew.
    // Steps that were asked for, and reported. Step n has step[n % 2] and, on a device with separate memory, flight[n %
    // flights]. `ahead`: of one rank such a device has two, as the host is a step ahead of it.
    int64_t asked, reported;
    bool ahead;
    int flights;
    struct hrt_step_report step[2];
    struct hrt_flight flight[2];
    int64_t skipped; // Steps, the last ones.
    struct hrt_best best;
    double
        since; // When the last report came, or before the first one the first step was asked for.
};

// Plans steps, before anything takes memory: divides train.tokens into iterations. Refuses tokens that are not a
// multiple of those of one iteration of all ranks, naming the nearest that are; fewer than one full microbatch are
// taken as one smaller one. All pointers are borrowed until hrt_train_trainer_destroy.
bool hrt_train_trainer_plan(struct hrt_trainer *trainer, const struct hrt_program *program,
                            const struct hrt_config *config, struct hrt_comm *comm,
                            const struct hrt_data *data, struct hrt_error *error);

// Creates a planned trainer, for the program's `state`, which is borrowed. The caller destroys it.
bool hrt_train_trainer_create(struct hrt_trainer *trainer, struct hrt_state *state,
                              struct hrt_error *error);

// The first step is number `from`, and earlier training has drawn `drawn` sequences, in steps of any size: so none is
// drawn again, and none is left out. The last `skipped` of these steps were skipped.
void hrt_train_trainer_go_on(struct hrt_trainer *trainer, int64_t from, int64_t drawn,
                             int64_t skipped);

// Takes note of an evaluation. Whether it has a lower loss than all before; one that is no number has not.
bool hrt_train_note_evaluation(struct hrt_trainer *trainer, int64_t step, double loss);

// The number of the last step of a run of so many epochs, at least 1: that step may begin a further epoch. The
// trainer is planned, and knows how much was drawn before.
int64_t hrt_train_last_step(const struct hrt_trainer *trainer, double epochs);

// The global number of this rank's first sequence in an iteration of a step, both from 0; `batch` sequences follow
// each other from it on. Numbers run over steps, iterations and ranks.
int64_t hrt_train_first_sequence(const struct hrt_trainer *trainer, int64_t step,
                                 int64_t iteration);

// Sequences that have been drawn in all when `step` steps are taken, of those before and of this trainer's.
int64_t hrt_train_trainer_sequences(const struct hrt_trainer *trainer, int64_t step);

void hrt_train_trainer_destroy(struct hrt_trainer *trainer);

// Takes step number `step`, from 0. The loss is the sum of token losses divided by the step's
// number of targets, plus the mean of the iterations' auxiliary losses, plus the named losses times their weights.
// False when the data cannot be read, or the loss or a gradient is not finite, and train.skip_max steps before were not
// either: the parameters are then those of the step before. A device with separate memory, of one rank, skips none.
bool hrt_train_trainer_step(struct hrt_trainer *trainer, int64_t step,
                            struct hrt_step_report *report, struct hrt_error *error);

// The same in two parts, of which the first only queues work on a device with separate memory. At most two steps may
// be without a report. The report, of the first one without, waits for that step, and fails if a loss or a gradient is
// not finite: then no queued step has changed the parameters, and none will report any more.
bool hrt_train_trainer_ask(struct hrt_trainer *trainer, int64_t step, struct hrt_error *error);
bool hrt_train_trainer_report(struct hrt_trainer *trainer, struct hrt_step_report *report,
                              struct hrt_error *error);

#endif
