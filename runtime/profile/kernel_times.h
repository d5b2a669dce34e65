// tally: the total time of kernels of one kind and shape. A table of fixed size: counting allocates
// nothing, however long a run is.
#ifndef HECATE_RUNTIME_PROFILE_KERNEL_TIMES_H
#define HECATE_RUNTIME_PROFILE_KERNEL_TIMES_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/cpu/observe.h"

// The phases of a step. Time in none of the others is HRT_PHASE_OTHER.
enum hrt_phase {
    HRT_PHASE_OTHER,
    HRT_PHASE_DATA,
    HRT_PHASE_FORWARD,
    HRT_PHASE_BACKWARD,
    HRT_PHASE_RANKS, // Sums over ranks, and waiting for them.
    HRT_PHASE_OPTIMIZER,
};
enum { HRT_PHASES = HRT_PHASE_OPTIMIZER + 1 };

// Where a row of the table belongs.
enum hrt_section {
    HRT_SECTION_PRODUCTS,
    HRT_SECTION_ATTENTION,
    HRT_SECTION_PASSES,    // The other kernels of forward and backward.
    HRT_SECTION_EPILOGUES, // Epilogues of GEMMs: emitted loops that run inside them.
    HRT_SECTION_BETWEEN,   // Time between two kernels: the loops that the compiler emitted.
    HRT_SECTION_OPTIMIZER, // Kernels of the update.
};
enum { HRT_SECTIONS = HRT_SECTION_OPTIMIZER + 1 };

struct hrt_tally_row {
    enum hrt_section section;
    const char *name;  // Name of the kernel; EPILOGUES: of the GEMM; BETWEEN: of the phase.
    const char *sizes; // As struct hk_work; NULL: none.
    // BETWEEN: the names of the kernels before and after, as rows; -1: the phase begins, ends.
    int64_t size[HK_DIMS_MAX];
    int64_t calls, ns;
    double varying; // Sum of the sizes that differ from call to call.
    double flops, bytes;
};

enum { HRT_TALLY_ROWS = 1024, HRT_TALLY_SLOTS = 2 * HRT_TALLY_ROWS };

struct hrt_tally {
    struct hrt_tally_row row[HRT_TALLY_ROWS]; // Row 0 takes calls that find no row: "(more)".
    int rows;
    int16_t slot[HRT_TALLY_SLOTS]; // Rows by hash; 0: free.
};

void hrt_profile_tally_init(struct hrt_tally *tally);

// The row of this name and shape; 0 when the table is full.
int hrt_profile_tally_row_of(struct hrt_tally *tally, enum hrt_section section, const char *name,
                             const struct hk_work *work);

// The first row with the name of `row`: stands for the name.
int hrt_profile_tally_family(const struct hrt_tally *tally, int row);

// Adds a call to `row`.
void hrt_profile_tally_add(struct hrt_tally *tally, int row, const struct hk_work *work,
                           int64_t ns);

// Zeroes the counts; rows keep their places.
void hrt_profile_tally_clear(struct hrt_tally *tally);

// Writes "2048 x 512 x 256" for the sizes of a row; where the first varies its mean, "~510.5 x 64",
// or the given one (not negative).
enum { HRT_SHAPE_MAX = 160 };
void hrt_profile_tally_shape(char out[HRT_SHAPE_MAX], const struct hrt_tally_row *row,
                             int64_t varying);

static inline bool hrt_tally_varies(const struct hrt_tally_row *row) {
    return row->sizes && row->sizes[0] == '~';
}

#endif
