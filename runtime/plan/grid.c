#include "runtime/plan/grid.h"

struct hpl_grid hpl_grid_of(int32_t devices, int32_t nodes, const int32_t *node) {
    if (devices <= HPL_GRID_DIRECT || nodes == 1) return (struct hpl_grid){devices, 1};
    const int32_t inside = devices / nodes;
    for (int32_t d = 0; d < devices; d++) {
        if (node[d] != d / inside) return (struct hpl_grid){1, devices};
    }
    return (struct hpl_grid){inside, nodes};
}

int32_t hpl_grid_rounds(const struct hpl_grid *grid) {
    int32_t rounds = 0;
    for (int32_t have = 1; have < grid->groups; have *= 2) rounds++;
    return rounds;
}

int32_t hpl_grid_messages(const struct hpl_grid *grid) {
    return hpl_grid_rounds(grid) + grid->inside - 1;
}

bool hpl_grid_near(const struct hpl_grid *grid, int32_t a, int32_t b) {
    const int32_t inside = grid->inside, groups = grid->groups, devices = inside * groups;
    const int32_t next = (b - a + devices) % devices;
    const int32_t ahead = (b / inside - a / inside + groups) % groups;
    if (next == 1 || next == devices - 1 || ahead == 0) return true;
    bool near = false;
    for (int32_t have = 1; have < groups; have *= 2)
        near |= ahead == have || ahead == groups - have;
    return near && a % inside == b % inside;
}
