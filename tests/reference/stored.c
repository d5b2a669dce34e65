// Against PyTorch's numbers.
//
// Bounds, relative to an array's L2 norm (and, since some gradients are zero in theory, to that of
// an average one). fp64: 1e-10, far above the 1e-14 that rounding gives here and far below any
// mistake. fp32: 6 sqrt(n) u with u = 2^-24 and n the roundings on the longest chain of operations
// (Higham and Mary 2019, "A New Approach to Probabilistic Rounding Error Analysis": it fails with
// probability exp(-18)). A layer of these models has at most 7 products on a chain, of at most 70
// terms, and at most 60 other roundings (norms, softmax, activations); backward doubles the chain
// and adds the tokens' sum.
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/reference/harness.h"

enum { LAYERS = 5, PRODUCTS = 7, TERMS = 70, OTHERS = 60, TOKENS = 24 };

static double tolerance(const struct harness *h) {
    const double chain = 2.0 * LAYERS * (PRODUCTS * TERMS + OTHERS) + TOKENS;
    return h->program->precision == HRT_FP64 ? 1e-10 : 6 * sqrt(chain) * 0x1p-24;
}

static double number(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    assert(json_is_number(value));
    return json_number_value(value);
}

// `value` [size] against generate.py's summary; `floor`: norm below which errors are absolute.
static void check_summary(struct harness *h, const char *name, const double *value, int64_t size,
                          const json_t *summary, double floor) {
    char what[HRT_PATH_MAX + 64];
    snprintf(what, sizeof what, "size of %s", name);
    harness_check(h, what, (double)size, number(summary, "size"), 0);
    if (size != json_integer_value(json_object_get(summary, "size"))) return;

    char text[HRT_PATH_MAX + 16];
    snprintf(text, sizeof text, "project %s", name);
    double squares = 0, projection = 0;
    for (int64_t i = 0; i < size; i++) {
        squares += value[i] * value[i];
        projection += value[i] * harness_hashed(text, i);
    }
    const double norm = number(summary, "norm"), bound = tolerance(h) * (norm + floor);
    snprintf(what, sizeof what, "norm of %s", name);
    harness_check(h, what, sqrt(squares), norm, bound);
    // |sum of error * u| <= |error| |u|, and |u| <= sqrt(size).
    snprintf(what, sizeof what, "projection of %s", name);
    harness_check(h, what, projection, number(summary, "projection"), bound * sqrt((double)size));

    size_t i;
    json_t *at;
    json_array_foreach(json_object_get(summary, "at"), i, at) {
        const int64_t index = json_integer_value(at);
        assert(index >= 0 && index < size);
        snprintf(what, sizeof what, "%s[%" PRId64 "]", name, index);
        harness_check(h, what, value[index],
                      json_number_value(json_array_get(json_object_get(summary, "value"), i)),
                      bound);
    }
}

static void check_losses(struct harness *h, struct hrt_losses losses) {
    const double bound = tolerance(h) * (1 + number(h->stored, "loss"));
    harness_check(h, "loss", losses.loss, number(h->stored, "loss"), bound);
    harness_check(h, "cross entropy", losses.cross_entropy, number(h->stored, "cross_entropy"),
                  bound);
    harness_check(h, "auxiliary", losses.auxiliary, number(h->stored, "auxiliary"), bound);
    const json_t *named = json_object_get(h->stored, "losses");
    harness_check(h, "losses by name", h->program->losses, (double)json_object_size(named), 0);
    for (int i = 0; i < h->program->losses; i++) {
        const char *name = h->program->loss[i].name;
        harness_check(h, name, losses.named[i], number(named, name), bound);
    }
}

static void check_loads(struct harness *h) {
    const json_t *stored = json_object_get(h->stored, "loads");
    size_t found = 0;
    for (int s = 0; s < h->program->loads; s++) {
        const struct hrt_loads *loads = &h->program->load[s];
        const struct hrt_set *set = &h->program->set[loads->set];
        for (int64_t layer = 0; layer < set->layers; layer++) {
            char path[HRT_PATH_MAX], what[HRT_PATH_MAX + 64];
            harness_layer_path(h->program, loads->set, layer, path);
            const size_t at = loads->arena_offset + (size_t)layer * loads->arena_stride;
            const int32_t *count = (const int32_t *)((const char *)h->arena + at);
            const json_t *want = json_object_get(stored, path);
            found += want != NULL;
            for (int64_t e = 0; e < set->experts; e++) {
                const json_t *load = json_array_get(want, (size_t)e);
                snprintf(what, sizeof what, "load of %s, expert %" PRId64, path, e);
                harness_check(h, what, count[e], load ? json_number_value(load) : -1, 0);
            }
        }
    }
    harness_check(h, "number of MoE layers", (double)found, (double)json_object_size(stored), 0);
}

// A row's result does not depend on how many rows there are: one sequence alone gives the same bits.
// Unless a capacity lets rows compete.
static void check_logits(struct harness *h) {
    const int64_t one = h->program->positions * h->program->vocabulary, size = h->batch * one;
    double *logits = harness_logits(h, h->batch);
    check_summary(h, "logits", logits, size, json_object_get(h->stored, "logits"), 0);

    const bool compete = json_is_true(json_object_get(h->stored, "compete"));
    h->program->forward(h->model, 1, h->ids, h->targets, h->scale, h->auxiliary_scale);
    double *alone = harness_logits(h, 1);
    for (int64_t i = 0; !compete && i < one; i++) {
        harness_check(h, "logit of one sequence alone", alone[i], logits[i], 0);
    }
    free(alone);
    free(logits);
}

static void check_tensor(struct harness *h, const struct hrt_tensor *tensor, double times,
                         double floor) {
    char path[HRT_PATH_MAX];
    hrt_params_tensor_path(tensor, path);
    const int64_t size = hrt_params_size(tensor->param);
    double *grad = malloc((size_t)size * sizeof *grad);
    for (int64_t i = 0; i < size; i++) {
        grad[i] = hrt_params_element(h->grads, h->program->precision,
                                     tensor->offset + hrt_params_stored_index(tensor->param, i)) /
                  times;
    }
    const json_t *summary = json_object_get(json_object_get(h->stored, "gradients"), path);
    if (tensor->param->trainable) {
        if (!summary) fprintf(stderr, "PyTorch's model has no parameter %s\n", path);
        h->failures += !summary;
        if (summary) check_summary(h, path, grad, size, summary, floor);
    } else {
        for (int64_t i = 0; i < size; i++) harness_check(h, path, grad[i], 0, 0);
    }
    free(grad);
}

// `times`: how many backward passes have added to the gradients.
static void check_gradients(struct harness *h, double times) {
    const json_t *stored = json_object_get(h->stored, "gradients");
    const char *path;
    json_t *summary;
    double squares = 0;
    json_object_foreach((json_t *)stored, path, summary) squares += pow(number(summary, "norm"), 2);
    const double floor = sqrt(squares / (double)json_object_size(stored));

    size_t trainable = 0;
    struct hrt_tensor tensor = {0};
    while (hrt_params_tensor_next(h->program, &tensor)) {
        trainable += tensor.param->trainable;
        check_tensor(h, &tensor, times, floor);
    }
    harness_check(h, "number of tensors", (double)trainable, (double)json_object_size(stored), 0);
}

void hec_test_stored(struct harness *h) {
    check_losses(h, harness_forward(h));
    check_loads(h);
    check_logits(h);
    harness_backward(h);
    check_gradients(h, 1);
    harness_forward(h);
    h->program->backward(h->model, h->batch, h->ids, h->targets, h->scale, h->auxiliary_scale);
    check_gradients(h, 2);
}
