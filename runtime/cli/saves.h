// The checkpoints of one run: where it goes on from, when it saves, and where.
#ifndef HECATE_RUNTIME_CLI_SAVES_H
#define HECATE_RUNTIME_CLI_SAVES_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/cli/command.h"
#include "runtime/log/jsonl.h"
#include "runtime/store/checkpoint.h"
#include "runtime/train/trainer.h"

struct hrt_saves {
    const struct hrt_run *run;
    struct hrt_checkpoints to;
    struct hrt_checkpoint from;  // Its step is 0: the run begins.
    bool recalls;                // It has the history of moving experts, on the terms of this run.
    int64_t saved;               // The step of the newest checkpoint of this run, or `from`.
    struct hrt_saving *saving;   // The save of step `begun`. NULL: none.
    int64_t begun, begun_at;     // hk_clock
    double since;                // The same in seconds; or when the run began.
    struct hrt_profile *profile; // Gets the times of saves; NULL: none.
};

// Finds the checkpoint of --resume, and takes checkpoint.dir for this run. A folder that has checkpoints which the run
// does not go on from is refused. Collective. Close it in either case.
bool hrt_cli_saves_open(struct hrt_saves *saves, const struct hrt_run *run,
                        struct hrt_error *error);
void hrt_cli_saves_close(struct hrt_saves *saves);

// Gives a loaded state the history of experts of the checkpoint's run: reads this rank's part. Not collective. When all
// have, they tell each other theirs: collective.
bool hrt_cli_saves_recall(const struct hrt_saves *saves, struct hrt_state *state,
                          struct hrt_error *error);
void hrt_cli_saves_share(const struct hrt_saves *saves, struct hrt_state *state);

// Tells a trainer that is planned where it goes on.
bool hrt_cli_saves_go_on(const struct hrt_saves *saves, struct hrt_trainer *trainer,
                         struct hrt_error *error);

// Gives experts the owners that they had, where they can have them. Whether the run is the one that was saved:
// differences are errors or, with --resume-changed, warnings.
bool hrt_cli_saves_check(struct hrt_saves *saves, const struct hrt_trainer *trainer,
                         struct hrt_error *error);

// Whether step `number`, which is done, is one to save after.
bool hrt_cli_saves_due(const struct hrt_saves *saves, int64_t number);

// Whether checkpoint.every_minutes have passed, by the clock of rank 0; false on other ranks.
bool hrt_cli_saves_late(const struct hrt_saves *saves);

// Begins to save step `number`, the last one of the trainer. No other is being saved. All ranks. False: it cannot; the
// checkpoint there stays.
bool hrt_cli_saves_begin(struct hrt_saves *saves, const struct hrt_trainer *trainer,
                         const struct hrt_jsonl *log, int64_t number, struct hrt_error *error);

// Whether this rank is still writing.
bool hrt_cli_saves_busy(const struct hrt_saves *saves);

// Waits for the save that has begun, if one has. All ranks. False: it has failed; older files stay.
bool hrt_cli_saves_finish(struct hrt_saves *saves, struct hrt_error *error);

#endif
