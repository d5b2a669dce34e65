// hk_bench [--threads=N] [--rounds=N] [PART ...]: how fast the kernels are on this machine, as GF/s and
// as share of the measured multiply-add peak, next to oneDNN and libxsmm where the build found them.
// `table` is the GEMMs in short, without rivals. Without parts, everything. OMP_NUM_THREADS and
// HECATE_ISA apply.
#include "bench/kernels/bench.h"

#include <omp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "kernels/cpu/isa.h"

static const struct {
    const char *name;
    void (*add)(void);
    void (*print)(void);
} parts[] = {
    {"table", bench_add_table, bench_print_table},
    {"products", bench_add_products, bench_print},
    {"products_bf16", bench_add_products_bf16, bench_print},
    {"grouped", bench_add_grouped, bench_print},
    {"grouped_bf16", bench_add_grouped_bf16, bench_print},
    {"attention", bench_add_attention, bench_print},
    {"passes", bench_add_passes, bench_print},
};
enum { part_count = sizeof parts / sizeof *parts, threads_max = 1024, rounds_max = 1000 };

struct command_line {
    bool wanted[part_count];
    bool any;
    int threads, rounds;
};

// Whether `argument` is `name` and a number from 1 to `most`, which becomes `*value`.
static bool is_number(const char *argument, const char *name, int most, int *value) {
    int number, end = 0;
    const size_t length = strlen(name);
    if (strncmp(argument, name, length) != 0) return false;
    if (sscanf(argument + length, "%d%n", &number, &end) != 1 || argument[length + (size_t)end]) {
        return false;
    }
    if (number < 1 || number > most) return false;
    *value = number;
    return true;
}

// Obeys an argument; false when it is wrong.
static bool take(const char *argument, struct command_line *c) {
    if (is_number(argument, "--threads=", threads_max, &c->threads)) return true;
    if (is_number(argument, "--rounds=", rounds_max, &c->rounds)) return true;
    for (int i = 0; i < part_count; i++) {
        if (strcmp(argument, parts[i].name) != 0) continue;
        return c->wanted[i] = c->any = true;
    }
    return false;
}

int main(int argc, char **argv) {
    struct command_line c = {.threads = omp_get_max_threads(), .rounds = 30};
    for (int a = 1; a < argc; a++) {
        if (take(argv[a], &c)) continue;
        fprintf(stderr, "hk_bench: %s is neither --threads=1..%d, --rounds=1..%d nor one of",
                argv[a], threads_max, rounds_max);
        for (int i = 0; i < part_count; i++) fprintf(stderr, " %s", parts[i].name);
        fprintf(stderr, "\n");
        return 2;
    }
    omp_set_num_threads(c.threads);
    for (int i = 0; i < part_count; i++) {
        if (c.any && !c.wanted[i]) continue;
        parts[i].add();
        bench_measure(c.rounds);
        printf("\n%s: %s, %d threads, ", parts[i].name, hk_isa_name(hk_isa()), c.threads);
        bench_print_peaks();
        parts[i].print();
        fflush(stdout);
        bench_clear();
    }
    return 0;
}
