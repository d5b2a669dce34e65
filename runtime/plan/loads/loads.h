// loads.h: recorded loads, read whole: hecate-replay replays them and the compiler plans with them
// (--profile). Programs write them with --record-loads; runtime/route/loads_file.h has the format.
//
// A leaf library: it prints nothing; `why` gets one line without a newline that names the file.
#ifndef HECATE_RUNTIME_PLAN_LOADS_LOADS_H
#define HECATE_RUNTIME_PLAN_LOADS_LOADS_H

#include <stdbool.h>
#include <stdint.h>

enum { LOADS_WHY = 512 };

// rows[iteration][layer][device][microbatch][expert]
struct loads {
    uint32_t iterations, layers, devices, microbatches, experts;
    uint16_t *rows;
};

// Reads a file, plain or compressed by zstd; "-" is standard input. False sets `why`: it cannot be
// read, is damaged, or has more devices or experts than the planner takes. Free with loads_free.
bool loads_read(struct loads *loads, const char *path, char why[LOADS_WHY]);

// Writes one, compressed when the name ends in .zst; "-" is standard output. False sets `why`.
bool loads_write(const struct loads *loads, const char *path, char why[LOADS_WHY]);

void loads_free(struct loads *loads);

// Copies one layer-step as the planner wants it: rows[device][expert].
void loads_step(const struct loads *loads, uint32_t iteration, uint32_t layer, uint32_t microbatch,
                uint32_t *rows);

#endif
