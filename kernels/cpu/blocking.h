// blocking: the sizes by which GEMMs cut their work. They fit a processor's caches and the cost of
// its threads; no bit of a result depends on them.
//
// The default comes from measurements of two server processors. HECATE_BLOCKING=FILE names a
// table of sizes that `hecatec --tune=FILE` measured on this machine:
//
//   hecate-blocking 1 avx512
//   f32 nn_rows=192 nt_rows=384 tn_rows=768 team=18
//   f64 nn_rows=192 nt_rows=384 tn_rows=768 team=18
//   bf16 nn_rows=192 nt_rows=384 tn_rows=768 team=18
#ifndef HECATE_KERNELS_CPU_BLOCKING_H
#define HECATE_KERNELS_CPU_BLOCKING_H

#include <stdbool.h>
#include <stdio.h>

enum hk_precision { HK_F32, HK_F64, HK_BF16, HK_PRECISIONS };

// Bounds: the sizes of the GEMMs' scratch. Rows are whole tiles.
enum {
    HK_TILE_ROWS = 6,
    HK_BLOCK_ROWS_MAX = 384,
    HK_TURNED_ROWS_MAX = 768,
    HK_TEAM_MIN = 10,
    HK_TEAM_MAX = 30
};

struct hk_blocking {
    int nn_rows, nt_rows; // Rows of the left operand that share a panel.
    int tn_rows;          // Rows of the result that share a panel of the right operand.
    int team;             // From 2^team multiplications on, a team of threads.
};

// The sizes in use, HK_PRECISIONS of them. The first call decides: a file that is missing, broken, out of
// bounds or for another instruction set ends the process with exit code 2 and a message naming it.
const struct hk_blocking *hk_blocking(void);

// Uses `table`, HK_PRECISIONS entries that outlive it, from now on; for measurements.
void hk_blocking_use(const struct hk_blocking *table);

// The default, and the file. Reading complains to standard error and returns false.
void hk_blocking_default(struct hk_blocking *table);
bool hk_blocking_read(const char *path, struct hk_blocking *table);
void hk_blocking_write(FILE *out, const struct hk_blocking *table);

#endif
