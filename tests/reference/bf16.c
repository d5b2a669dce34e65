// A program of precision bf16 against the same model in double precision, on weights that bf16 holds
// exactly, and with the experts that the double program chose: they differ by the rounding of the rows
// that GEMMs multiply.
//
// Bound, relative to a tensor's L2 norm (and to that of an average one): 6 sqrt(n) u with u = 2^-9, half
// a unit in the last of 8 binary digits, and n the products on the longest chain, each of which rounds
// its rows once: stored.c argues the same for n roundings to single precision. Roundings of sums and other
// operations, to 2^-24, are nothing beside it.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/params/rounded.h"
#include "tests/reference/harness.h"

enum { LAYERS = 4, PRODUCTS = 7 }; // On a chain: of a model at most, of a layer at most.

static const double bound = 6 * 0x1p-9;

static double tolerance(void) {
    return bound * sqrt(2.0 * LAYERS * PRODUCTS + 3); // Backward doubles it; the head's three.
}

// ---- the file: ids of every layer that chooses, then losses, logits, gradients, as doubles

static void exchange(FILE *file, bool write, void *data, size_t bytes) {
    const size_t done = write ? fwrite(data, 1, bytes, file) : fread(data, 1, bytes, file);
    if (done == bytes) return;
    fprintf(stderr, "the file of reference values is too short, or full\n");
    exit(2);
}

static struct hrt_routing *routing_of(struct harness *h, const struct hrt_loads *loads) {
    return (struct hrt_routing *)((char *)h->model + loads->routing_offset);
}

// Writes what the routers chose in a forward pass, or forces what stands in the file.
static void exchange_choices(struct harness *h, FILE *file, bool write) {
    for (int s = 0; s < h->program->loads; s++) {
        const struct hrt_set *set = &h->program->set[h->program->load[s].set];
        const size_t picks = (size_t)(h->batch * h->program->positions * set->topk);
        for (int64_t layer = 0; layer < set->layers; layer++) {
            struct hrt_routing *routing = &routing_of(h, &h->program->load[s])[layer];
            int32_t *ids = malloc(picks * sizeof *ids);
            if (write) routing->record = ids;
            if (write) harness_forward(h);
            exchange(file, write, ids, picks * sizeof *ids);
            routing->record = NULL;
            if (write) free(ids);
            if (!write) routing->forced = ids; // Until the program ends.
        }
    }
}

static void compare(struct harness *h, const char *what, const double *got, const double *want,
                    int64_t size, double floor) {
    double apart = 0, norm = 0;
    for (int64_t i = 0; i < size; i++) {
        apart += pow(got[i] - want[i], 2);
        norm += pow(want[i], 2);
    }
    harness_check(h, what, sqrt(apart), 0, tolerance() * (sqrt(norm) + floor));
}

static void exchange_values(struct harness *h, FILE *file, bool write, const char *what,
                            double *value, int64_t size, double floor) {
    const size_t bytes = (size_t)size * sizeof *value;
    double *want = malloc(bytes);
    for (int64_t i = 0; write && i < size; i++) {
        harness_check(h, what, isfinite(value[i]), true, 0);
        want[i] = value[i];
    }
    exchange(file, write, want, bytes);
    if (!write) compare(h, what, value, want, size, floor);
    free(want);
}

static double *read_gradient(const struct harness *h, const struct hrt_tensor *tensor) {
    const int64_t size = hrt_params_size(tensor->param);
    double *value = malloc((size_t)size * sizeof *value);
    for (int64_t i = 0; i < size; i++) {
        value[i] = hrt_params_element(h->grads, h->program->precision,
                                      tensor->offset + hrt_params_stored_index(tensor->param, i));
    }
    return value;
}

// Root mean square of the tensors' norms.
static double average_norm(const struct harness *h) {
    double squares = 0;
    int64_t tensors = 0;
    struct hrt_tensor tensor = {0};
    while (hrt_params_tensor_next(h->program, &tensor)) {
        if (!tensor.param->trainable) continue;
        double *value = read_gradient(h, &tensor);
        for (int64_t i = 0; i < hrt_params_size(tensor.param); i++) squares += pow(value[i], 2);
        tensors++;
        free(value);
    }
    return sqrt(squares / (double)tensors);
}

static void exchange_gradients(struct harness *h, FILE *file, bool write) {
    const double floor = average_norm(h);
    struct hrt_tensor tensor = {0};
    while (hrt_params_tensor_next(h->program, &tensor)) {
        if (!tensor.param->trainable) continue;
        char path[HRT_PATH_MAX];
        hrt_params_tensor_path(&tensor, path);
        double *value = read_gradient(h, &tensor);
        exchange_values(h, file, write, path, value, hrt_params_size(tensor.param), floor);
        free(value);
    }
}

// ---- products read the copies

// Overwrites parameters that only products read: results have to stay as they are, bit by bit.
static void check_copies(struct harness *h, const double *logits, int64_t size) {
    int64_t spoilt = 0;
    struct hrt_tensor tensor = {0};
    while (hrt_params_tensor_next(h->program, &tensor)) {
        const struct hrt_param *param = tensor.param;
        if (!param->rounded || param->layout != HRT_PANELS) continue;
        for (int64_t i = 0; i < param->elements; i++)
            hrt_params_element_set(h->params, h->program->precision, tensor.offset + i, NAN);
        spoilt++;
    }
    harness_check(h, "parameters with a copy", spoilt > 0, 1, 0);
    harness_forward(h);
    double *again = harness_logits(h, h->batch);
    for (int64_t i = 0; i < size; i++)
        harness_check(h, "logit without the parameters", again[i], logits[i], 0);
    free(again);
}

void hec_test_bf16(struct harness *h, const char *path, bool write) {
    const int64_t size = h->batch * h->program->positions * h->program->vocabulary;
    if ((h->program->precision == HRT_FP64) != write || (!write && !h->program->bind_rounded)) {
        fprintf(stderr, "needs a program of %s\n", write ? "fp64" : "bf16");
        exit(2);
    }
    FILE *file = fopen(path, write ? "wb" : "rb");
    if (!file) {
        perror(path);
        exit(2);
    }
    exchange_choices(h, file, write);
    harness_backward(h);
    const struct hrt_losses losses = harness_forward(h);
    double loss[] = {losses.loss, losses.cross_entropy};
    exchange_values(h, file, write, "losses", loss, 2, 0);
    double *logits = harness_logits(h, h->batch);
    exchange_values(h, file, write, "logits", logits, size, 0);
    exchange_gradients(h, file, write);
    if (!write) check_copies(h, logits, size);
    free(logits);
    fclose(file);
}
