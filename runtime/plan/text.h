// text.h: every noun of the planner as text, that people read and diff and programs read back.
//
// A form is a head line, then lines "key: items", one per node, expert, device or transfer:
//
//   topology nodes=2 devices=3      plan experts=2          loads devices=2 experts=3
//   0: 1 1                          0: 0 2                  0: 10 0 7
//   1: 2                            1: 1                    1: 3 4 5
//   (speeds of the node's devices)  (holders of an expert)  (rows of each expert)
//
//   route rank=1 experts=2          schedule segments=2 transfers=2
//   0: 0=10 2=5                     0: 3.0 0>4 1
//   1: 1=7                          1: 3.0 4>5 2
//   (rows for each holder)          (expert.segment sender>receiver round)
//
// A sharding is a plan with one holder each. Blank lines and lines that begin with # are skipped;
// keys may come in any order, and holders too: reading gives the one canonical form.
#ifndef HECATE_RUNTIME_PLAN_TEXT_H
#define HECATE_RUNTIME_PLAN_TEXT_H

#include "runtime/plan/schedule.h"
#include "runtime/plan/types.h"

#ifdef __cplusplus
extern "C" {
#endif

// Printing: write at most `room` bytes with a NUL at the end, and return the length of the whole
// text without it, like snprintf; so a first call with room 0 tells what to allocate.
size_t hpl_print_topology(const struct hpl_topology *topology, char *out, size_t room);
size_t hpl_print_plan(const struct hpl_plan *plan, char *out, size_t room);
size_t hpl_print_loads(const struct hpl_loads *loads, char *out, size_t room);
size_t hpl_print_schedule(const struct hpl_schedule *schedule, char *out, size_t room);

// The rows of rank's quotas, [holders of the plan].
size_t hpl_print_route(const struct hpl_plan *plan, int32_t rank, const uint32_t *rows, char *out,
                       size_t room);

// Reading: fills arrays that the caller gives. On HPL_BAD_TEXT, and HPL_NO_ROOM when an array is
// too small, `line` is the line at fault, from 1; the output is then undefined.
struct hpl_topology_memory {
    int32_t capacity; // Devices for which there is room.
    int32_t *first;   // [capacity + 1]
    int32_t *node;    // [capacity]
    int32_t *speed;   // [capacity]
};
enum hpl_status hpl_read_topology(const char *text, const struct hpl_topology_memory *memory,
                                  struct hpl_topology *topology, int32_t *line);

// `first` must have room for `experts_max` + 1.
enum hpl_status hpl_read_plan(const char *text, int32_t experts_max, struct hpl_plan *plan,
                              int32_t *line);

// rows: [capacity]
enum hpl_status hpl_read_loads(const char *text, uint32_t *rows, int64_t capacity,
                               struct hpl_loads *loads, int32_t *line);
enum hpl_status hpl_read_schedule(const char *text, struct hpl_schedule *schedule, int32_t *line);

// rows: [holders of the plan]; every holder named must be one of the plan's.
enum hpl_status hpl_read_route(const char *text, const struct hpl_plan *plan, int32_t *rank,
                               uint32_t *rows, int32_t *line);

// Two texts of one form, as lines: "- line" only in `a`, "+ line" only in `b`, in the order of the
// texts; "" when they say the same. Returns the length, as printing does.
size_t hpl_text_diff(const char *a, const char *b, char *out, size_t room);

#ifdef __cplusplus
}
#endif
#endif
