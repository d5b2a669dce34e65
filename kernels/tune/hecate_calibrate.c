// hecate-calibrate FILE [ROUNDS [LARGEST]]: measures how long this machine's kernels take, over a grid of shapes, and writes it
// as JSON for `cluster.device.measured` (passes/cost/measured.h). `hecatec --calibrate` runs it. OMP_NUM_THREADS, HECATE_ISA and
// HECATE_BLOCKING apply: set them as for training. LARGEST leaves out larger sizes of the grid: a trial.
//
// The least time of ROUNDS counts, since a busy machine only adds. Exit status: 0 done, 1 no memory or the file
// cannot be written, 2 wrong command line.
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "files/files.h"
#include "kernels/cpu/isa.h"
#include "kernels/matmul/matmul.h"
#include "kernels/sdpa/sdpa.h"
#include "kernels/tune/tool.h"

enum { rounds_default = 5, rounds_max = 1000, axes = 3, points = 4, largest_default = 1 << 20 };

// Sizes of the grid. GEMMs: rows, columns, summed dimension. Attention: positions, width of a head. Loops: elements.
static const long rows[points] = {4, 32, 256, 1024}, columns[points] = {16, 128, 512, 2048};
static const long positions[points] = {32, 128, 512, 1024}, widths[points] = {16, 32, 64, 128};
static const long elements[points] = {1 << 12, 1 << 16, 1 << 20, 1 << 24};

struct arrays {
    float *a, *b, *c, *d;
    hk_bf16 *weights;
    size_t count; // In each array.
};

// A measured call: runs a kernel of the given sizes.
typedef void kernel(const struct arrays *x, const long *size);

#define PRODUCT(name, call)                                                                        \
    static void name(const struct arrays *x, const long *size) {                                   \
        const struct hk_matmul_dims dims = {.m = size[0], .n = size[1], .k = size[2]};             \
        call;                                                                                      \
    }
PRODUCT(nn_f32, hk_matmul_nn_f32(x->c, x->a, x->b, HK_PANELS, dims, HK_STORE, NULL))
PRODUCT(nt_f32, hk_matmul_nt_f32(x->a, x->c, x->b, HK_PANELS, dims, HK_STORE, NULL))
PRODUCT(tn_f32, hk_matmul_tn_f32(x->b, x->a, x->c, HK_PANELS, dims, HK_STORE))
PRODUCT(nn_bf16, hk_matmul_nn_bf16(x->c, x->a, x->weights, HK_PANELS, dims, HK_STORE, NULL))
PRODUCT(nt_bf16, hk_matmul_nt_bf16(x->a, x->c, x->weights, HK_PANELS, dims, HK_STORE, NULL))
PRODUCT(tn_bf16, hk_matmul_tn_bf16(x->b, x->a, x->c, HK_PANELS, dims, HK_STORE))

// As many heads as threads, which share them out.
static struct hk_sdpa_dims attention(const long *size) {
    const int64_t heads = omp_get_max_threads();
    return (struct hk_sdpa_dims){.batch = 1,
                                 .positions = size[0],
                                 .heads = heads,
                                 .groups = heads,
                                 .width = size[1],
                                 .vwidth = size[1],
                                 .causal = true,
                                 .scale = 1 / sqrt((double)size[1])};
}

// Queries, keys and values, and the sums behind them: `part` of an array.
static float *part(float *array, const long *size, int number) {
    return array +
           (size_t)number * (size_t)omp_get_max_threads() * (size_t)size[0] * (size_t)size[1];
}

#define FORWARD(name, kernel)                                                                      \
    static void name(const struct arrays *x, const long *size) {                                   \
        kernel(x->c, x->d, x->a, part(x->a, size, 1), part(x->a, size, 2), NULL, attention(size)); \
    }
FORWARD(sdpa_f32, hk_sdpa_f32)
FORWARD(sdpa_bf16, hk_sdpa_bf16)

#define BACKWARD(name, kernel)                                                                     \
    static void name(const struct arrays *x, const long *size) {                                   \
        kernel(x->b, part(x->b, size, 1), part(x->b, size, 2), x->a, x->a, part(x->a, size, 1),    \
               part(x->a, size, 2), x->c, x->d, attention(size));                                  \
    }
BACKWARD(sdpa_grad_f32, hk_sdpa_grad_f32)
BACKWARD(sdpa_grad_bf16, hk_sdpa_grad_bf16)

// A loop over memory, as programs have between kernels.
static void loop(const struct arrays *x, const long *size) {
    float *c = x->c;
    const float *a = x->a, *b = x->b;
#pragma omp parallel for simd
    for (long i = 0; i < size[0]; i++) c[i] = a[i] + b[i];
}

static const struct measured {
    const char *name;
    kernel *run;
    const long *axis[axes];
    double work; // In the smallest units, so many in one call are enough to time it.
} kernels[] = {
    {"matmul_nn_f32", nn_f32, {rows, columns, columns}, 1},
    {"matmul_nt_f32", nt_f32, {rows, columns, columns}, 1},
    {"matmul_tn_f32", tn_f32, {rows, columns, columns}, 1},
    {"matmul_nn_bf16", nn_bf16, {rows, columns, columns}, 1},
    {"matmul_nt_bf16", nt_bf16, {rows, columns, columns}, 1},
    {"matmul_tn_bf16", tn_bf16, {rows, columns, columns}, 1},
    {"sdpa_f32", sdpa_f32, {positions, widths}, 32},
    {"sdpa_grad_f32", sdpa_grad_f32, {positions, widths}, 64},
    {"sdpa_bf16", sdpa_bf16, {positions, widths}, 32},
    {"sdpa_grad_bf16", sdpa_grad_bf16, {positions, widths}, 64},
    {"loop", loop, {elements}, 16},
};
enum { kernel_count = sizeof kernels / sizeof *kernels };

// Microseconds of one call; of attention, of one head. Small ones are called often enough to be timed.
static double measure(const struct measured *k, const struct arrays *x, const long *size,
                      int rounds) {
    const bool heads = k->axis[0] == positions;
    const double work = k->work * (double)size[0] * (double)size[1] * (double)size[2];
    const int repeats = 1 + (int)(1e6 / work);
    double best = 1e30;
    k->run(x, size); // Pages are touched.
    for (int i = 0; i < rounds; i++) {
        const double start = now(omp_get_max_threads());
        for (int r = 0; r < repeats; r++) k->run(x, size);
        const double us = 1e6 * (now(omp_get_max_threads()) - start) / repeats;
        if (us < best) best = us;
    }
    if (heads) best /= omp_get_max_threads();
    return best > 1e-3 ? best : 1e-3;
}

// Points of an axis that are not too large; of none, one.
static int length_of(const long *axis, long largest) {
    int length = 1;
    while (axis && length < points && axis[length] <= largest) length++;
    return axis ? length : 1;
}

static void write_axes(FILE *out, const struct measured *k, const int *length) {
    fprintf(out, "{\"axes\": [");
    for (int a = 0; a < axes && k->axis[a]; a++) {
        fprintf(out, "%s[", a ? ", " : "");
        for (int i = 0; i < length[a]; i++) fprintf(out, "%s%ld", i ? ", " : "", k->axis[a][i]);
        fputc(']', out);
    }
    fprintf(out, "],\n    \"us\": [");
}

static void write_kernel(FILE *out, const struct measured *k, const struct arrays *x, int rounds,
                         long largest) {
    int length[axes], at = 0;
    double fastest = 0;
    for (int a = 0; a < axes; a++)
        length[a] = length_of(k->axis[a], k->axis[0] == elements ? largest * largest : largest);
    fprintf(out, "  \"%s\": ", k->name);
    write_axes(out, k, length);
    for (int i = 0; i < length[0] * length[1] * length[2]; i++) {
        const int index[axes] = {i / (length[1] * length[2]), i / length[2] % length[1],
                                 i % length[2]};
        long size[axes];
        for (int a = 0; a < axes; a++) size[a] = k->axis[a] ? k->axis[a][index[a]] : 1;
        const double us = measure(k, x, size, rounds);
        const double rate = (double)size[0] * (double)size[1] * (double)size[2] / us;
        if (rate > fastest) fastest = rate;
        fprintf(out, "%s%.4g", at++ ? ", " : "", us);
    }
    fprintf(out, "]}");
    if (k->axis[2]) printf("  %-16s %8.1f GFLOPS at most\n", k->name, 2e-3 * fastest);
    if (k->axis[0] == elements) printf("  %-16s %8.1f GB/s at most\n", k->name, 12e-3 * fastest);
}

static bool make_arrays(struct arrays *x) {
    const size_t heads = (size_t)omp_get_max_threads();
    const size_t attended = 3 * heads * (size_t)positions[points - 1] * (size_t)widths[points - 1];
    x->count = (size_t)elements[points - 1];
    if (attended > x->count) x->count = attended;
    float **const all[] = {&x->a, &x->b, &x->c, &x->d};
    for (int i = 0; i < 4; i++) {
        *all[i] = aligned_alloc(64, x->count * sizeof(float));
        if (!*all[i]) return false;
        for (size_t k = 0; k < x->count; k++) (*all[i])[k] = (float)(k % 1000) * 1e-3f;
    }
    const size_t weights = (size_t)columns[points - 1] * (size_t)columns[points - 1];
    x->weights = aligned_alloc(64, weights * sizeof *x->weights);
    if (x->weights) hk_round_bf16(x->weights, x->b, (int64_t)weights);
    return x->weights;
}

static void free_arrays(struct arrays *x) {
    free(x->a);
    free(x->b);
    free(x->c);
    free(x->d);
    free(x->weights);
}

static int calibrate(const char *path, int rounds, long largest) {
    const char *why;
    struct arrays x = {0};
    FILE *out = hf_output(path, &why);
    if (!out) {
        fprintf(stderr, "%s: %s\n", path, why);
        return 1;
    }
    const bool room = make_arrays(&x);
    if (room) {
        const char *isa = hk_isa_name(hk_isa());
        const int threads = omp_get_max_threads();
        printf("%s, %d thread%s\n", isa, threads, threads == 1 ? "" : "s");
        fprintf(out, "{\"hecate_device\": 1,\n \"device\": \"%s, %d thread%s\",\n \"kernels\": {\n",
                isa, threads, threads == 1 ? "" : "s");
        for (int i = 0; i < kernel_count; i++) {
            write_kernel(out, &kernels[i], &x, rounds, largest);
            fputs(i + 1 < kernel_count ? ",\n" : "}}\n", out);
        }
    } else {
        fprintf(stderr, "hecate-calibrate: no memory\n");
    }
    free_arrays(&x);
    if (ferror(out) | (fclose(out) != 0)) {
        perror(path);
        return 1;
    }
    return room ? 0 : 1;
}

static const char help[] =
    "usage: hecate-calibrate FILE [ROUNDS [LARGEST]]\n"
    "\n"
    "Measures the kernels of this processor and writes into FILE how long they take, for the\n"
    "simulations of clusters: cluster { device NAME { measured = \"FILE\" } }.\n"
    "hecatec --calibrate=FILE does the same.\n"
    "\n"
    "  ROUNDS   how often each is timed, 5 by default, at most 1000; the least time counts\n"
    "  LARGEST  leaves out larger sizes of the grid: a trial\n";

int main(int argc, char **argv) {
    hf_hold_standard();
    if (gives_help(argc, argv, help)) return 0;
    const int rounds = number(argc, argv, 2, 1, rounds_max, rounds_default);
    const int largest = number(argc, argv, 3, 1, largest_default, largest_default);
    if (argc < 2 || argc > 4 || argv[1][0] == '-' || !rounds || !largest) {
        fprintf(stderr, "usage: hecate-calibrate FILE [ROUNDS [LARGEST]], at most %d rounds\n",
                rounds_max);
        return 2;
    }
    const int status = calibrate(argv[1], rounds, largest);
    if (status == 0)
        printf("written to %s; cluster { device NAME { measured = \"%s\" } } makes simulations use "
               "it\n",
               argv[1], argv[1]);
    return status;
}
