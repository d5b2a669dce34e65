// grid.h: devices as a grid, in which each tells all others something in few messages: across groups in rounds, each
// twice as far as the one before, then once inside its group (runtime/net/all_gather.c).
#ifndef HECATE_RUNTIME_PLAN_GRID_H
#define HECATE_RUNTIME_PLAN_GRID_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Up to so many devices tell each other directly: further rounds would take longer than the messages that they save.
enum { HPL_GRID_DIRECT = 32 };

// Device d is number d % inside of group d / inside.
struct hpl_grid {
    int32_t inside, groups;
};

// Groups are nodes where all have as many devices, else single devices; few devices are one group. `node` [devices]:
// those of a node follow each other.
struct hpl_grid hpl_grid_of(int32_t devices, int32_t nodes, const int32_t *node);

// Rounds across groups, and the messages that a device sends, and receives, in all.
int32_t hpl_grid_rounds(const struct hpl_grid *grid);
int32_t hpl_grid_messages(const struct hpl_grid *grid);

// Whether two devices tell each other something, or one follows the other.
bool hpl_grid_near(const struct hpl_grid *grid, int32_t a, int32_t b);

#ifdef __cplusplus
}
#endif
#endif
