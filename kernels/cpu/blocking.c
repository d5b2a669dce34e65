// The sizes by which GEMMs cut their work: default, file, choice.
#include "kernels/cpu/blocking.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "files/files.h"
#include "kernels/cpu/isa.h"

static const char *const precisions[HK_PRECISIONS] = {"f32", "f64", "bf16"};

void hk_blocking_default(struct hk_blocking *table) {
    // Where GEMMs copy their rows (matmul/left.h), 384 of them fill a second-level cache of 512 KiB.
    const int nt_rows = hk_isa() == HK_ISA_AVX2 ? 288 : 384;
    for (int i = 0; i < HK_PRECISIONS; i++) table[i] = (struct hk_blocking){192, nt_rows, 768, 18};
}

static bool whole_tiles(int rows, int most) {
    return rows >= 2 * HK_TILE_ROWS && rows <= most && rows % HK_TILE_ROWS == 0;
}

static bool in_bounds(const struct hk_blocking *b) {
    return whole_tiles(b->nn_rows, HK_BLOCK_ROWS_MAX) &&
           whole_tiles(b->nt_rows, HK_BLOCK_ROWS_MAX) &&
           whole_tiles(b->tn_rows, HK_TURNED_ROWS_MAX) && b->team >= HK_TEAM_MIN &&
           b->team <= HK_TEAM_MAX;
}

static bool complain(const char *path, int line, const char *what) {
    fprintf(stderr, "%s:%d: %s; `hecatec --tune=%s` writes a new one\n", path, line, what, path);
    return false;
}

// A line of the file, without its end; false when there is none or it is too long.
static bool next_line(FILE *file, char *line, int size) {
    if (!fgets(line, size, file)) return false;
    const size_t length = strcspn(line, "\n");
    const bool ended = line[length] == '\n';
    line[length] = '\0';
    return ended;
}

static bool read_head(FILE *file, const char *path) {
    char line[128], isa[16];
    int end = 0;
    if (!next_line(file, line, sizeof line) ||
        sscanf(line, "hecate-blocking 1 %15s%n", isa, &end) != 1 || line[end]) {
        return complain(path, 1, "not a table of block sizes");
    }
    if (strcmp(isa, hk_isa_name(hk_isa())) == 0) return true;
    fprintf(stderr, "%s:1: measured for %s, but this process uses %s\n", path, isa,
            hk_isa_name(hk_isa()));
    return false;
}

static bool read_entry(FILE *file, const char *path, int i, struct hk_blocking *b) {
    char line[128], name[8];
    int end = 0;
    if (!next_line(file, line, sizeof line) ||
        sscanf(line, "%7s nn_rows=%d nt_rows=%d tn_rows=%d team=%d%n", name, &b->nn_rows,
               &b->nt_rows, &b->tn_rows, &b->team, &end) != 5 ||
        line[end] || strcmp(name, precisions[i]) != 0) {
        return complain(path, i + 2, "not the sizes that belong here");
    }
    return in_bounds(b) || complain(path, i + 2, "sizes out of bounds");
}

bool hk_blocking_read(const char *path, struct hk_blocking *table) {
    const char *why;
    FILE *file = hf_input(path, false, &why);
    if (!file) {
        fprintf(stderr, "%s: %s\n", path, why);
        return false;
    }
    bool good = read_head(file, path);
    for (int i = 0; i < HK_PRECISIONS && good; i++) good = read_entry(file, path, i, &table[i]);
    if (good && fgetc(file) != EOF) good = complain(path, HK_PRECISIONS + 2, "more than a table");
    fclose(file);
    return good;
}

void hk_blocking_write(FILE *out, const struct hk_blocking *table) {
    fprintf(out, "hecate-blocking 1 %s\n", hk_isa_name(hk_isa()));
    for (int i = 0; i < HK_PRECISIONS; i++) {
        fprintf(out, "%s nn_rows=%d nt_rows=%d tn_rows=%d team=%d\n", precisions[i],
                table[i].nn_rows, table[i].nt_rows, table[i].tn_rows, table[i].team);
    }
}

static _Atomic(const struct hk_blocking *) in_use;

static const struct hk_blocking *choose(void) {
    static struct hk_blocking table[HK_PRECISIONS];
    static atomic_flag busy = ATOMIC_FLAG_INIT; // Threads that race here take turns.
    while (atomic_flag_test_and_set(&busy)) continue;
    const struct hk_blocking *chosen = atomic_load(&in_use);
    if (!chosen) {
        const char *path = getenv("HECATE_BLOCKING");
        hk_blocking_default(table);
        if (path && *path && !hk_blocking_read(path, table)) exit(2);
        atomic_store(&in_use, chosen = table);
    }
    atomic_flag_clear(&busy);
    return chosen;
}

const struct hk_blocking *hk_blocking(void) {
    const struct hk_blocking *chosen = atomic_load_explicit(&in_use, memory_order_acquire);
    return chosen ? chosen : choose();
}

void hk_blocking_use(const struct hk_blocking *table) {
    atomic_store(&in_use, table);
}
