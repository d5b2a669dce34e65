// A log of JSON lines (docs/log.md), read for a report: numbers of all steps, and layers and ranks of some.
#ifndef HECATE_TOOLS_REPORT_LOG_H
#define HECATE_TOOLS_REPORT_LOG_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

// Numbers of a step, NaN where the log has none.
enum report_column {
    REPORT_STEP,
    REPORT_LOSS,
    REPORT_CROSS_ENTROPY,
    REPORT_VALIDATION,
    REPORT_GRAD_NORM,
    REPORT_LR,
    REPORT_MS,
    REPORT_TOKENS,
    REPORT_BEFORE,
    REPORT_AFTER,
    REPORT_REPLICAS,
    REPORT_RESHARDED,
    REPORT_WAITED,
    REPORT_SLOWEST,
    REPORT_EXPOSED,
    REPORT_TRANSFER,
    REPORT_MEMORY,
    REPORT_FLOPS,
    REPORT_ROUTER_LOAD,
    REPORT_ROUTER_ENTROPY,
    REPORT_ROUTER_DEAD,
    REPORT_CHOSEN,
    REPORT_REJECTED,
    REPORT_MARGIN,
    REPORT_ACCURACY,
    REPORT_ADVANTAGE,
    REPORT_RATIO,
    REPORT_CLIPPED,
    REPORT_KL_OLD,
    REPORT_KL,
    REPORT_COLUMNS
};

enum {
    REPORT_SNAPSHOTS = 96, // Fewer of long lines, so that a page has so many bytes of them:
    REPORT_SNAPSHOTS_BYTES = 6 << 20,
    REPORT_ROUTERS = 200,
    REPORT_WHY = 512,
    REPORT_LOSSES = 8,
    REPORT_TAIL = 64
};

// Lines that are kept of all that come, evenly spread over the run, and the last one.
struct report_kept {
    json_t *line[REPORT_ROUTERS];
    int lines;
    int64_t every, seen; // One of so many is kept; lines so far.
    json_t *newest;      // Kept or not.
};

struct report_row {
    double of[REPORT_COLUMNS];
    double loss[REPORT_LOSSES]; // Those that have names.
};

struct report_log {
    const char *path;
    json_t *run; // Description by the last process that wrote to it; NULL: there is none.
    char *loss[REPORT_LOSSES]; // Their names, as they appear; NULL: no further ones.
    struct report_row *row;
    int64_t rows, room;
    struct report_kept snapshots; // Lines with loads of all experts.
    struct report_kept routers; // {"step", "routers"} of lines with numbers of each layer's router.
    // Its faults, which were repaired.
    int64_t lines, spoilt, first_spoilt, repeated;
    bool cut; // Its last line.
    // Bytes read so far, and the content before: to see whether it has only grown since.
    dev_t device;
    ino_t inode;
    int64_t bytes;
    char tail[REPORT_TAIL];
    bool unended; // The last line that was taken had no end yet.
};

// Reads all of a log. Lines that are none are counted and left out; of steps that are there twice, as after a resume
// from an earlier one, the later stay. False: `why`.
bool report_log_read(struct report_log *log, const char *path, char why[REPORT_WHY]);

// Reads the lines added to it since; all of it where it was cut or replaced. *changed becomes true when there was
// anything to read. False: `why`, and `log` is freed, but for its path.
bool report_log_update(struct report_log *log, bool *changed, char why[REPORT_WHY]);

// A new list of the kept rows, the newest behind it.
json_t *report_kept_list(const struct report_kept *kept);

void report_log_free(struct report_log *log);

// Rows to show, at most about `most`: of each of as many stretches those with the least and the most loss. In order;
// the caller frees them.
int64_t *report_log_thin(const struct report_log *log, int64_t most, int64_t *count);

// The name of a column in the page.
const char *report_column_name(enum report_column column);

#endif
