// live_flow.h: rows of experts on the devices that hold them, while holders change (inside the planner only).
//
// A largest flow from experts to devices that stays largest with little work when a replica gives way to another, or
// when devices may compute more or fewer rows. Distances do not count: shares (share.h) look at those.
#ifndef HECATE_RUNTIME_PLAN_LIVE_FLOW_H
#define HECATE_RUNTIME_PLAN_LIVE_FLOW_H

#include "runtime/plan/work.h"

// A place is a chunk that a device owns, or one of its slots. Those of a device follow each other.
struct hpl_live {
    int32_t experts, devices, places;
    const int32_t *speed; // [devices]
    const int64_t *rows;  // [experts]
    int32_t *first;       // [devices + 1] places of a device
    int32_t *device;      // [places]
    int32_t *expert;      // [places]  -1: an empty slot
    int64_t *share;       // [places]  rows that the expert has there
    int32_t *head;        // [experts] its places, in no order
    int32_t *next, *last; // [places]
    int64_t *left;        // [experts] rows that have no place yet
    int64_t *room;        // [devices]
    int64_t all_left;     // Sum of `left`.
    struct hpl_level level;
    int64_t steps; // Arcs looked at so far.

    // Searches: experts, then devices.
    int32_t *
        depth; // From experts with rows left; -1: out of reach. After a run, the cut that proves it.
    int32_t *arc;   // The next arc to try: a place.
    int32_t *queue; // Or a path.
    bool *open;     // From here room can be reached; set by hpl_live_find_open.
};

// Takes all arrays, for so many places. The caller sets experts, devices, speed and rows before, and after it
// first, device and expert (all of the devices' places).
bool hpl_live_take(struct hpl_live *f, int32_t places, struct hpl_work *work);

// Begins with no rows placed.
void hpl_live_begin(struct hpl_live *f, struct hpl_level level);

// Lets devices compute as many rows as `level` allows; rows that are too many are left over.
void hpl_live_set_level(struct hpl_live *f, struct hpl_level level);

// Places as many rows as can be placed. True: none is left. Otherwise `depth` is not -1 exactly for a set of experts
// and the devices that hold them, which are full.
bool hpl_live_run(struct hpl_live *f);

// Places as many rows of one expert as can be placed, so that others lose none.
void hpl_live_run_expert(struct hpl_live *f, int32_t expert);

// Raises the level to the least at which all rows have a place.
void hpl_live_raise(struct hpl_live *f);

// Sets `open` for the experts and devices from which a device with room can be reached.
void hpl_live_find_open(struct hpl_live *f);

// Gives the place so many rows more that its expert has left, or takes some back; the device must have the room.
void hpl_live_put(struct hpl_live *f, int32_t place, int64_t rows);

// Puts an expert (-1: none) in the place of the one that is there, whose rows there are left over.
void hpl_live_replace(struct hpl_live *f, int32_t place, int32_t expert);

#endif
