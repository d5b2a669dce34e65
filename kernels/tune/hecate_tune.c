// hecate-tune FILE [ROUNDS [ROWS]]: measures block sizes of the GEMMs on this machine and writes those
// that beat the default, for HECATE_BLOCKING. `hecatec --tune` runs it. OMP_NUM_THREADS and HECATE_ISA
// apply: set them as for training. ROWS: of the largest GEMM; fewer are a trial.
//
// Candidates are measured in turn, again and again, and the fastest run of each counts. The default is
// a candidate twice: how far its two figures lie apart is what a busy machine makes of equal sizes,
// and less than twice that counts as no gain. Exit status: 0 done, 1 no memory or the file cannot be
// written, 2 wrong command line.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "files/files.h"
#include "kernels/cpu/blocking.h"
#include "kernels/cpu/isa.h"
#include "kernels/matmul/matmul.h"
#include "kernels/tune/tool.h"

enum {
    candidates_max = 8,
    rounds_default = 40,
    rounds_max = 10000,
    width_max = 2048,
    rows_max = 1536
};

enum form { NN, NT, TN };

// Products, rows by k by n, for which a choice matters: all forms are measured by them.
enum { shape_count = 2 };

// Inputs and outputs for the largest shape; weights of either precision. How often all is measured.
struct arrays {
    float *a, *b, *c;
    hk_bf16 *weights;
    int rounds;
    struct hk_matmul_dims shapes[shape_count];
};

static bool make_arrays(struct arrays *x) {
    const size_t size = sizeof(float) * width_max * (size_t)rows_max; // Weights are smaller.
    x->a = aligned_alloc(64, size);
    x->b = aligned_alloc(64, size);
    x->c = aligned_alloc(64, size);
    x->weights = aligned_alloc(64, size);
    if (!x->a || !x->b || !x->c || !x->weights) return false;
    for (size_t i = 0; i < size / sizeof(float); i++) {
        x->a[i] = x->b[i] = x->c[i] = (float)(i % 1000) * 1e-3f;
    }
    hk_round_bf16(x->weights, x->b, (int64_t)(size / sizeof(float)));
    return true;
}

static void free_arrays(struct arrays *x) {
    free(x->a);
    free(x->b);
    free(x->c);
    free(x->weights);
}

static void run(const struct arrays *x, enum hk_precision precision, enum form form,
                struct hk_matmul_dims dims) {
    const bool bf16 = precision == HK_BF16;
    if (form == NN && bf16)
        hk_matmul_nn_bf16(x->c, x->a, x->weights, HK_PANELS, dims, HK_STORE, NULL);
    if (form == NN && !bf16) hk_matmul_nn_f32(x->c, x->a, x->b, HK_PANELS, dims, HK_STORE, NULL);
    if (form == NT && bf16)
        hk_matmul_nt_bf16(x->a, x->c, x->weights, HK_PANELS, dims, HK_STORE, NULL);
    if (form == NT && !bf16) hk_matmul_nt_f32(x->a, x->c, x->b, HK_PANELS, dims, HK_STORE, NULL);
    if (form == TN && bf16) hk_matmul_tn_bf16(x->b, x->a, x->c, HK_PANELS, dims, HK_STORE);
    if (form == TN && !bf16) hk_matmul_tn_f32(x->b, x->a, x->c, HK_PANELS, dims, HK_STORE);
}

// Seconds of `repeats` runs.
static double timed(const struct arrays *x, enum hk_precision precision, enum form form,
                    struct hk_matmul_dims dims, int repeats) {
    const double start = now(omp_get_max_threads());
    for (int i = 0; i < repeats; i++) run(x, precision, form, dims);
    return now(omp_get_max_threads()) - start;
}

static double smaller(double a, double b) {
    return a < b ? a : b;
}

// Values to try: the default twice, for the noise between them, then `others`, without the default.
static int candidates(int values[candidates_max], int standard, const int *others, int count) {
    values[0] = values[1] = standard;
    int tried = 2;
    for (int i = 0; i < count && tried < candidates_max; i++) {
        if (others[i] != standard) values[tried++] = others[i];
    }
    return tried;
}

// Sets `*size`, which is part of the table in use, to one of `others` or leaves the default, which stays
// unless another is faster over all shapes by a hundredth and by more than noise.
static void choose_rows(const struct arrays *x, enum hk_precision precision, enum form form,
                        int *size, const int *others, int other_count) {
    int values[candidates_max];
    const int count = candidates(values, *size, others, other_count);
    double best[candidates_max][shape_count];
    for (int v = 0; v < count; v++) {
        for (int s = 0; s < shape_count; s++) best[v][s] = 1e30;
    }
    for (int i = 0; i < x->rounds * count * shape_count; i++) {
        const int v = i % count, s = i / count % shape_count;
        *size = values[v];
        best[v][s] = smaller(best[v][s], timed(x, precision, form, x->shapes[s], 1));
    }
    double shares[candidates_max] = {0}; // Parts of the default's time.
    for (int v = 0; v < count; v++) {
        for (int s = 0; s < shape_count; s++) shares[v] += best[v][s] / best[0][s] / shape_count;
    }
    const double noise = shares[1] > 1 ? shares[1] - 1 : 1 - shares[1];
    int chosen = 0;
    for (int v = 2; v < count; v++) {
        const double gain = 1 - shares[v];
        if (gain > 0.01 && gain > 2 * noise && shares[v] < shares[chosen]) chosen = v;
    }
    *size = values[chosen];
    for (int v = 1; v < count; v++) {
        printf("  %4d rows %5.1f %%%s", values[v], 100 * shares[v],
               v == chosen || (v == 1 && chosen == 0) ? " *" : "");
    }
    printf("\n");
}

// The smallest size from which on a team is faster than one thread; the default's where even the
// largest is not, because then the threads do not have a processor each.
static int choose_team(const struct arrays *x, struct hk_blocking *table,
                       enum hk_precision precision) {
    const int standard = table[precision].team;
    int team = 0;
    for (int exponent = 22; exponent >= 14; exponent--) { // 64 x 64 x n.
        const struct hk_matmul_dims dims = {.m = 64, .n = 64, .k = (int64_t)1 << (exponent - 12)};
        double alone = 1e30, together = 1e30;
        for (int i = 0; i < x->rounds; i++) {
            table[precision].team = HK_TEAM_MAX;
            alone = smaller(alone, timed(x, precision, NN, dims, 100));
            table[precision].team = HK_TEAM_MIN;
            together = smaller(together, timed(x, precision, NN, dims, 100));
        }
        if (together > 0.95 * alone) break;
        team = exponent;
    }
    if (team == 0) team = standard;
    printf("  a team of %d threads from 2^%d multiplications on\n", omp_get_max_threads(), team);
    return team;
}

static void tune(const struct arrays *x, struct hk_blocking *table, enum hk_precision precision) {
    static const int nn[] = {96, 144, 192, 288, 384}, nt[] = {96, 192, 288, 384};
    static const int tn[] = {192, 384, 576, 768};
    struct hk_blocking *b = &table[precision];
    printf("%s, time by block size, of the default's:\n", precision == HK_BF16 ? "bf16" : "f32");
    printf("  nn");
    choose_rows(x, precision, NN, &b->nn_rows, nn, sizeof nn / sizeof *nn);
    printf("  nt");
    choose_rows(x, precision, NT, &b->nt_rows, nt, sizeof nt / sizeof *nt);
    printf("  tn");
    choose_rows(x, precision, TN, &b->tn_rows, tn, sizeof tn / sizeof *tn);
    if (omp_get_max_threads() > 1) b->team = choose_team(x, table, precision);
}

static bool read_command_line(int argc, char **argv, struct arrays *x) {
    x->rounds = number(argc, argv, 2, 1, rounds_max, rounds_default);
    const int rows = number(argc, argv, 3, 1, rows_max, rows_max);
    x->shapes[0] = (struct hk_matmul_dims){.m = rows, .n = 1024, .k = 512};
    x->shapes[1] = (struct hk_matmul_dims){.m = (rows + 1) / 2, .n = 512, .k = 2048};
    return argc >= 2 && argc <= 4 && argv[1][0] != '-' && x->rounds > 0 && rows > 0;
}

static const char help[] =
    "usage: hecate-tune FILE [ROUNDS [ROWS]]\n"
    "\n"
    "Measures block sizes of GEMMs on this processor and writes into FILE those that beat the\n"
    "default: HECATE_BLOCKING=FILE makes programs use them. hecatec --tune=FILE does the same.\n"
    "\n"
    "  ROUNDS  how often each is timed, 40 by default, at most 10000; the least time counts\n"
    "  ROWS    of the largest GEMM, at most 1536; fewer are a trial\n";

int main(int argc, char **argv) {
    static struct hk_blocking table[HK_PRECISIONS];
    struct arrays x = {0};
    hf_hold_standard();
    if (gives_help(argc, argv, help)) return 0;
    if (!read_command_line(argc, argv, &x)) {
        fprintf(stderr, "usage: hecate-tune FILE [ROUNDS [ROWS]], at most %d and %d of them\n",
                rounds_max, rows_max);
        return 2;
    }
    const char *why;
    FILE *out = hf_output(argv[1], &why);
    if (!out) {
        fprintf(stderr, "%s: %s\n", argv[1], why);
        return 1;
    }
    if (!make_arrays(&x)) {
        fprintf(stderr, "hecate-tune: no memory\n");
        free_arrays(&x);
        fclose(out);
        return 1;
    }
    hk_blocking_default(table);
    hk_blocking_use(table);
    printf("%s, %d threads\n", hk_isa_name(hk_isa()), omp_get_max_threads());
    tune(&x, table, HK_F32);
    tune(&x, table, HK_BF16);
    free_arrays(&x);
    hk_blocking_write(out, table);
    if (ferror(out) | (fclose(out) != 0)) {
        perror(argv[1]);
        return 1;
    }
    printf("written to %s; HECATE_BLOCKING=%s makes programs use it\n", argv[1], argv[1]);
    return 0;
}
