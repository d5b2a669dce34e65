// How far a run has come, by its checkpoints.
#ifndef HECATE_TOOLS_RESTART_PROGRESS_H
#define HECATE_TOOLS_RESTART_PROGRESS_H

#include <stdint.h>

// The step of the newest checkpoint in a folder; 0 where there is none, or no folder. Checkpoints are folders named
// step-N, which appear when they are whole; whether they are sound is seen when a run resumes.
int64_t restart_newest(const char *folder);

#endif
