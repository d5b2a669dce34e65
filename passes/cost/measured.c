// Files of measurements, and times from them.
#include "passes/cost/measured.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ir/accessors.h"
#include "ir/core/kernel.h"
#include "passes/base/json_file.h"

enum { VERSION = 1, LOOP_BYTES = 12 }; // An element of the measured loop.

static const char *const kind_names[HEC_TIMED_KINDS] = {"matmul_nn", "matmul_nt", "matmul_tn",
                                                        "sdpa", "sdpa_grad"};
static const char *const form_names[HEC_TIMED_FORMS] = {"f32", "bf16"};

// ---- reading

static bool is_positive(const json_t *value) {
    const double number = json_number_value(value);
    return json_is_number(value) && number > 0 && number < 1e30;
}

// Positive numbers, which ascend where they have to.
static int read_numbers(const json_t *array, double *to, int most, bool ascend) {
    const int count = (int)json_array_size(array);
    if (count < 1 || count > most) return 0;
    for (int i = 0; i < count; i++) {
        const json_t *value = json_array_get(array, (size_t)i);
        if (!is_positive(value)) return 0;
        to[i] = json_number_value(value);
        if (ascend && i && to[i] <= to[i - 1]) return 0;
    }
    return count;
}

static bool read_grid(const json_t *from, int axes, struct hec_times *t) {
    const json_t *axis = json_object_get(from, "axes");
    int cells = 1;
    if ((int)json_array_size(axis) != axes) return false;
    for (int a = 0; a < HEC_TIMES_AXES; a++) {
        t->length[a] = 1;
        t->at[a][0] = 1;
        if (a < axes)
            t->length[a] =
                read_numbers(json_array_get(axis, (size_t)a), t->at[a], HEC_TIMES_POINTS, true);
        cells *= t->length[a];
    }
    return cells && read_numbers(json_object_get(from, "us"), t->us, cells, false) == cells;
}

static void read_times(struct hec_json_file *file, const char *name, int axes,
                       struct hec_times *t) {
    const json_t *from = json_object_get(json_object_get(file->root, "kernels"), name);
    if (read_grid(from, axes, t)) return;
    char text[256];
    snprintf(text, sizeof text,
             "`%s` is no grid of %d ax%ss of at most %d ascending sizes, with a time for each cell",
             name, axes, axes == 1 ? "i" : "e", HEC_TIMES_POINTS);
    hec_json_fail(file, (const char *const[]){"kernels", name, NULL}, text);
}

static void read_version(struct hec_json_file *file, const char *key, const char *text) {
    if (json_integer_value(json_object_get(file->root, key)) != VERSION)
        hec_json_fail(file, (const char *const[]){key, NULL}, text);
}

bool hec_measured_device(MlirOperation module, const char *path, struct hec_device_times *times) {
    struct hec_json_file file = hec_json_open(module, "cluster.device.measured", path);
    *times = (struct hec_device_times){0};
    read_version(&file, "hecate_device", "no times of kernels that this version of hecatec reads");
    const char *device = json_string_value(json_object_get(file.root, "device"));
    if (!device) hec_json_fail(&file, (const char *const[]){"device", NULL}, "names no device");
    snprintf(times->device, sizeof times->device, "%s", device ? device : "");
    for (int k = 0; k < HEC_TIMED_KINDS; k++) {
        for (int f = 0; f < HEC_TIMED_FORMS; f++) {
            char name[32];
            snprintf(name, sizeof name, "%s_%s", kind_names[k], form_names[f]);
            read_times(&file, name, k < HEC_TIMED_SDPA ? 3 : 2, &times->kernel[k][f]);
        }
    }
    read_times(&file, "loop", 1, &times->loop);
    hec_json_close(&file);
    return file.sound;
}

static void read_links(struct hec_json_file *file, const char *key, bool needed, double *bandwidth,
                       double *latency) {
    const json_t *from = json_object_get(file->root, key);
    if (!from && !needed) return;
    const json_t *rate = json_object_get(from, "bandwidth"),
                 *delay = json_object_get(from, "latency");
    if (!is_positive(rate) || !is_positive(delay)) {
        hec_json_fail(file, (const char *const[]){key, NULL},
                      "expected a positive `bandwidth` (bytes/s) and `latency` (s)");
        return;
    }
    *bandwidth = json_number_value(rate);
    *latency = json_number_value(delay);
}

bool hec_measured_links(MlirOperation module, const char *path, struct hec_link_rates *rates) {
    struct hec_json_file file = hec_json_open(module, "cluster.link.measured", path);
    *rates = (struct hec_link_rates){0};
    read_version(&file, "hecate_links", "no rates of links that this version of hecatec reads");
    const bool intra = json_object_get(file.root, "intra");
    read_links(&file, "intra", false, &rates->intra_bandwidth, &rates->intra_latency);
    read_links(&file, "inter", !intra, &rates->inter_bandwidth, &rates->inter_latency);
    hec_json_close(&file);
    return file.sound;
}

// ---- times

double hec_times_us(const struct hec_times *t, const double size[HEC_TIMES_AXES],
                    const double power[HEC_TIMES_AXES]) {
    int from[HEC_TIMES_AXES];
    double share[HEC_TIMES_AXES], beyond = 1, log_us = 0;
    for (int a = 0; a < HEC_TIMES_AXES; a++) {
        const int last = t->length[a] - 1;
        const double *at = t->at[a];
        from[a] = 0;
        share[a] = 0;
        if (size[a] > at[last]) beyond *= pow(size[a] / at[last], power[a]);
        if (last == 0 || size[a] <= at[0]) continue;
        while (from[a] < last - 1 && size[a] > at[from[a] + 1]) from[a]++;
        share[a] = size[a] >= at[last]
                       ? 1
                       : log(size[a] / at[from[a]]) / log(at[from[a] + 1] / at[from[a]]);
    }
    for (int corner = 0; corner < 1 << HEC_TIMES_AXES; corner++) {
        double weight = 1;
        int cell = 0;
        for (int a = 0; a < HEC_TIMES_AXES; a++) {
            const int up = corner >> a & 1;
            weight *= up ? share[a] : 1 - share[a];
            cell = cell * t->length[a] + from[a] + (up && t->length[a] > 1);
        }
        if (weight > 0) log_us += weight * log(t->us[cell]);
    }
    return beyond * exp(log_us);
}

// Whether GEMMs round what they read, or have values in bf16.
static bool is_bf16(MlirOperation op) {
    bool found = hec_has_attr(op, "rounds");
    for (int i = 0; i < mlirOperationGetNumOperands(op); i++)
        found |= hec_type_is_rounded(mlirValueGetType(hec_operand(op, i)));
    return found;
}

static double product_of(const struct hec_tensor *dims) {
    double product = 1;
    for (int i = 0; i < dims->rank; i++) product *= (double)dims->size[i];
    return product;
}

// The kernel of an operation and its sizes, called already or not yet.
struct sized {
    const struct hec_kernel *kernel;
    MlirOperation op;
    struct hec_choice choice; // For a GEMM that is no call yet.
};

static double size_of(const struct sized *s, const char *name) {
    struct hec_tensor dims;
    if (hec_op_is(s->op, HEC_OP_call))
        return hec_call_size(s->op, name, &dims) ? product_of(&dims) : 1;
    for (int i = 0; i < s->choice.sizes; i++) {
        if (strcmp(s->choice.size[i].name, name) == 0) return product_of(&s->choice.size[i].dims);
    }
    return 1;
}

static struct sized sized_of(MlirOperation op) {
    struct sized s = {.op = op};
    if (hec_op_is(op, HEC_OP_call)) {
        s.kernel = hec_kernel_of(op);
    } else {
        s.choice = hec_choose_kernel(op);
        s.kernel = s.choice.kernel;
    }
    return s;
}

static double product_us(const struct hec_times *t, double flops, double n, double k,
                         double experts) {
    static const double power[HEC_TIMES_AXES] = {1, 1, 1};
    const double rows = flops / (2 * n * k * experts);
    return experts * hec_times_us(t, (const double[]){rows, n, k}, power);
}

// The form of a GEMM by the name of its kernel: "matmul_nt", "grouped_nt", "gathered_tn_a".
static int form_of(const char *kernel) {
    const char *form = strchr(kernel, '_');
    for (int k = HEC_TIMED_NN; form && k <= HEC_TIMED_TN; k++) {
        if (strncmp(form + 1, kind_names[k] + strlen("matmul_"), 2) == 0) return k;
    }
    return HEC_TIMED_NN; // swiglu: two of them.
}

double hec_measured_us(const struct hec_device_times *times, MlirOperation op, int64_t devices) {
    const struct sized s = sized_of(op);
    const int form = is_bf16(op) ? HEC_TIMED_BF16 : HEC_TIMED_F32;
    if (!s.kernel || s.kernel->types != HEC_KERNEL_REAL) return -1;
    const double flops = hec_op_cost(op).flops;
    switch (s.kernel->computes) {
    case HEC_OP_contract:
        return product_us(&times->kernel[form_of(s.kernel->name)][form], flops, size_of(&s, "n"),
                          size_of(&s, "k"), 1);
    case HEC_OP_linear_cross_entropy:
    case HEC_OP_linear_cross_entropy_grad:
        return product_us(&times->kernel[HEC_TIMED_NN][form], flops, size_of(&s, "n"),
                          size_of(&s, "k"), 1);
    case HEC_OP_grouped_contract:
    case HEC_OP_gathered_contract:
    case HEC_OP_swiglu:
    case HEC_OP_gathered_swiglu: {
        const bool two = strstr(s.kernel->name, "swiglu");
        const double experts = size_of(&s, "experts") / (double)devices;
        return (two ? 2 : 1) * product_us(&times->kernel[form_of(s.kernel->name)][form],
                                          two ? flops / 2 : flops, size_of(&s, "n"),
                                          size_of(&s, "k"), experts > 1 ? experts : 1);
    }
    case HEC_OP_sdpa:
    case HEC_OP_sdpa_grad: {
        static const double power[HEC_TIMES_AXES] = {2, 1, 0};
        const bool back = s.kernel->computes == HEC_OP_sdpa_grad;
        const double size[HEC_TIMES_AXES] = {size_of(&s, "positions"), size_of(&s, "width"), 1};
        const double head = (back ? 4 : 2) * size[0] * size[0] * size[1]; // Causal, as measured.
        const int kind = back ? HEC_TIMED_SDPA_GRAD : HEC_TIMED_SDPA;
        return flops / head * hec_times_us(&times->kernel[kind][form], size, power);
    }
    default:
        return -1;
    }
}

double hec_measured_loop_us(const struct hec_device_times *times, double bytes) {
    static const double power[HEC_TIMES_AXES] = {1, 0, 0};
    const double least = times->loop.at[0][0], elements = bytes / LOOP_BYTES;
    const double us = hec_times_us(&times->loop, (const double[]){elements, 1, 1}, power);
    return elements < least ? us * elements / least : us; // Small ones stand in larger loops.
}

double hec_measured_flops(const struct hec_device_times *times) {
    double best = 0;
    for (int f = 0; f < HEC_TIMED_FORMS; f++) {
        const struct hec_times *t = &times->kernel[HEC_TIMED_NN][f];
        const int n = t->length[1], k = t->length[2];
        for (int i = 0; i < t->length[0] * n * k; i++) {
            const double rate =
                2e6 * t->at[0][i / (n * k)] * t->at[1][i / k % n] * t->at[2][i % k] / t->us[i];
            if (rate > best) best = rate;
        }
    }
    return best;
}

double hec_measured_bandwidth(const struct hec_device_times *times) {
    const int last = times->loop.length[0] - 1;
    return 1e6 * LOOP_BYTES * times->loop.at[0][last] / times->loop.us[last];
}
