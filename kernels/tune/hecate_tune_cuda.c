// hecate-tune-cuda FILE [ROUNDS [WIDTH]]: measures dense GEMMs on this GPU, the own kernels against cuBLASLt, and writes
// which one computes which shape, for HECATE_PRODUCTS. `hecatec --tune --target=cuda` runs it. WIDTH: the most columns;
// fewer are a trial.
//
// Both are measured in turn, and the fastest run of each counts. The library has to be faster by a twentieth. Exit
// status: 0 done, 1 no GPU, no memory or the file cannot be written, 2 wrong command line.
#include <stdio.h>
#include <stdlib.h>

#include <cuda_runtime_api.h>

#include "files/files.h"
#include "kernels/cuda/choices.h"
#include "kernels/launchers.h"
#include "kernels/tune/tool.h"

enum { WIDTHS = 5, HEIGHTS = 3, ROUNDS = 10, ROUNDS_MAX = 1000, WIDTH = 8192, WIDTH_MIN = 16 };
static const double GAIN = 0.95;

struct bench {
    struct hkc_lane lane;
    struct hkc_library *library;
    void *a, *b, *c;
    cudaEvent_t from, to;
    int rounds, width;
    struct hkc_choices choices;
};

static bool good(cudaError_t error, const char *what) {
    if (error != cudaSuccess)
        fprintf(stderr, "hecate-tune-cuda: %s: %s\n", what, cudaGetErrorString(error));
    return error == cudaSuccess;
}

static size_t most_bytes(const struct bench *x) {
    return sizeof(float) * 4 * (size_t)x->width * (size_t)x->width;
}

static bool open_lane(struct bench *x) {
    int major = 0;
    const char *compiled_for;
    char why[256];
    const bool opened =
        good(cudaSetDevice(0), "no GPU") &&
        good(cudaStreamCreateWithFlags(&x->lane.stream, cudaStreamNonBlocking), "a stream") &&
        good(cudaDeviceGetAttribute(&x->lane.multiprocessors, cudaDevAttrMultiProcessorCount, 0),
             "the GPU's size") &&
        good(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0), "its kind") &&
        good((cudaError_t)hkc_library_code(&compiled_for, &x->lane.warpgroups), "its kernels") &&
        good(cudaEventCreateWithFlags(&x->from, 0), "an event") &&
        good(cudaEventCreateWithFlags(&x->to, 0), "an event") &&
        good(cudaMalloc(&x->lane.scratch, HKC_SCRATCH), "memory") &&
        good(cudaMalloc(&x->a, most_bytes(x)), "memory") &&
        good(cudaMalloc(&x->b, most_bytes(x)), "memory") &&
        good(cudaMalloc(&x->c, most_bytes(x)), "memory") &&
        good(cudaMemsetAsync(x->a, 0, most_bytes(x), x->lane.stream), "memory") &&
        good(cudaMemsetAsync(x->b, 0, most_bytes(x), x->lane.stream), "memory") &&
        good(cudaMemsetAsync(x->c, 0, most_bytes(x), x->lane.stream), "memory");
    x->lane.capability = 10 * major;
    if (!opened) return false;
    if (!hkc_library_open(&x->lane, NULL, why, sizeof why)) {
        fprintf(stderr, "hecate-tune-cuda: %s\n", why);
        return false;
    }
    x->library = x->lane.library;
    return true;
}

static void close_lane(struct bench *x) {
    if (x->library) x->library->close(x->library);
    cudaFree(x->c);
    cudaFree(x->b);
    cudaFree(x->a);
    cudaFree(x->lane.scratch);
    if (x->to) cudaEventDestroy(x->to);
    if (x->from) cudaEventDestroy(x->from);
    if (x->lane.stream) cudaStreamDestroy(x->lane.stream);
}

static void run(struct bench *x, const struct hkc_shape *s) {
    struct hkc_lane *lane = &x->lane;
    const struct hk_matmul_dims d = s->dims;
    if (s->form == HKC_NN && s->bf16)
        hkc_matmul_nn_bf16(lane, x->c, x->a, x->b, HK_ROWS, d, HK_STORE, NULL);
    if (s->form == HKC_NT && s->bf16)
        hkc_matmul_nt_bf16(lane, x->a, x->c, x->b, HK_ROWS, d, HK_STORE, NULL);
    if (s->form == HKC_TN && s->bf16)
        hkc_matmul_tn_bf16(lane, x->b, x->a, x->c, HK_ROWS, d, HK_STORE);
    if (s->form == HKC_NN && !s->bf16)
        hkc_matmul_nn_f32(lane, x->c, x->a, x->b, HK_ROWS, d, HK_STORE, NULL);
    if (s->form == HKC_NT && !s->bf16)
        hkc_matmul_nt_f32(lane, x->a, x->c, x->b, HK_ROWS, d, HK_STORE, NULL);
    if (s->form == HKC_TN && !s->bf16)
        hkc_matmul_tn_f32(lane, x->b, x->a, x->c, HK_ROWS, d, HK_STORE);
}

// Makes `*least` the microseconds of a run where it took fewer.
static bool time_one(struct bench *x, const struct hkc_shape *shape, struct hkc_library *library,
                     double *least) {
    float ms = 0;
    x->lane.library = library;
    if (!good(cudaEventRecord(x->from, x->lane.stream), "an event")) return false;
    run(x, shape);
    if (!good((cudaError_t)x->lane.error, x->lane.failed ? x->lane.failed : "a GEMM") ||
        !good(cudaEventRecord(x->to, x->lane.stream), "an event") ||
        !good(cudaEventSynchronize(x->to), "a GEMM") ||
        !good(cudaEventElapsedTime(&ms, x->from, x->to), "a time"))
        return false;
    if (1e3 * ms < *least) *least = 1e3 * ms;
    return true;
}

static bool measure(struct bench *x, struct hkc_shape shape) {
    struct hkc_choice *choice = &x->choices.choice[x->choices.count++];
    *choice = (struct hkc_choice){.shape = shape, .own = 1e30, .library = 1e30};
    for (int i = 0; i < x->rounds; i++) {
        if (!time_one(x, &shape, NULL, &choice->own) ||
            !time_one(x, &shape, x->library, &choice->library))
            return false;
    }
    choice->by_library = choice->library < GAIN * choice->own;
    return true;
}

static bool measure_all(struct bench *x) {
    for (int i = 0; i < 2 * HKC_FORMS * HEIGHTS * WIDTHS * WIDTHS; i++) {
        const int n = i % WIDTHS, k = i / WIDTHS % WIDTHS, m = i / WIDTHS / WIDTHS % HEIGHTS;
        const int form = i / WIDTHS / WIDTHS / HEIGHTS;
        const struct hkc_shape shape = {
            .form = (enum hkc_form)(form % HKC_FORMS),
            .bf16 = form >= HKC_FORMS,
            .dims = {.m = 4 * x->width >> 2 * m, .n = x->width >> n, .k = x->width >> k},
        };
        if (!measure(x, shape)) return false;
    }
    return true;
}

static void print_summary(const struct bench *x) {
    int chosen = 0;
    for (int i = 0; i < x->choices.count; i++) chosen += x->choices.choice[i].by_library;
    printf("sm_%d: cuBLASLt computes %d of %d shapes\n", x->lane.capability, chosen,
           x->choices.count);
}

static const char help[] =
    "usage: hecate-tune-cuda FILE [ROUNDS [WIDTH]]\n"
    "\n"
    "Measures dense GEMMs on this GPU, hecate's kernels against cuBLASLt, and writes into FILE "
    "which\n"
    "one computes which shape: HECATE_PRODUCTS=FILE makes programs use it. hecatec --tune=FILE\n"
    "--target=cuda does the same.\n"
    "\n"
    "  ROUNDS  how often each is timed, 10 by default, at most 1000; the least time counts\n"
    "  WIDTH   the most columns, 16 to 8192; fewer are a trial\n";

int main(int argc, char **argv) {
    static struct bench x;
    const char *why;
    hf_hold_standard();
    if (gives_help(argc, argv, help)) return 0;
    x.rounds = number(argc, argv, 2, 1, ROUNDS_MAX, ROUNDS);
    x.width = number(argc, argv, 3, WIDTH_MIN, WIDTH, WIDTH);
    if (argc < 2 || argc > 4 || argv[1][0] == '-' || !x.rounds || !x.width) {
        fprintf(stderr, "usage: hecate-tune-cuda FILE [ROUNDS [WIDTH]], at most %d and %d to %d\n",
                ROUNDS_MAX, WIDTH_MIN, WIDTH);
        return 2;
    }
    FILE *out = hf_output(argv[1], &why);
    if (!out) {
        fprintf(stderr, "%s: %s\n", argv[1], why);
        return 1;
    }
    const bool measured = open_lane(&x) && measure_all(&x);
    close_lane(&x);
    if (measured) hkc_choices_write(out, &x.choices, x.lane.capability);
    if (ferror(out) | (fclose(out) != 0)) {
        perror(argv[1]);
        return 1;
    }
    if (!measured) return 1;
    print_summary(&x);
    printf("written to %s; HECATE_PRODUCTS=%s makes programs use it\n", argv[1], argv[1]);
    return 0;
}
