// Command line: PROGRAM STORED.json stored|differences, or write|compare FILE: see bf16.c. Exit code:
// 0 equal, 1 not, 2 bad input.
#include "tests/reference/harness.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/bf16.h"
#include "kernels/distill/distill.h"
#include "runtime/params/init.h"
#include "runtime/params/rounded.h"

enum { ALIGNMENT = 64 };

static uint64_t fnv1a(const char *text) {
    uint64_t hash = 0xCBF29CE484222325;
    for (; *text; text++) hash = (hash ^ (unsigned char)*text) * 0x100000001B3;
    return hash;
}

double harness_hashed(const char *text, int64_t index) {
    uint64_t x = fnv1a(text) + (uint64_t)index + 0x9E3779B97F4A7C15; // splitmix64
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
    return (double)((x ^ (x >> 31)) >> 11) * 0x1p-52 - 1;
}

void harness_check(struct harness *h, const char *what, double got, double want, double bound) {
    const double error = fabs(got - want);
    h->checks++;
    if (bound > 0) h->worst = fmax(h->worst, error / bound);
    if (error <= bound) return; // A NaN fails.
    if (h->failures++ < 20) {
        fprintf(stderr, "%s = %.17g, want %.17g +- %.2g\n", what, got, want, bound);
    }
}

void harness_layer_path(const struct hrt_program *program, int set, int64_t layer,
                        char path[HRT_PATH_MAX]) {
    for (int i = 0; i < program->params; i++) {
        if (program->param[i].set != set) continue;
        hrt_params_tensor_path(&(struct hrt_tensor){.param = &program->param[i], .layer = layer},
                               path);
        char *end = strstr(path, ".experts.");
        if (end) *end = '\0';
        return;
    }
    path[0] = '\0';
}

struct hrt_losses harness_forward(struct harness *h) {
    return h->program->forward(h->model, h->batch, h->ids, h->targets, h->scale,
                               h->auxiliary_scale);
}

double *harness_logits(const struct harness *h, int64_t batch) {
    const struct hrt_program *p = h->program;
    const int64_t tokens = batch * p->positions, wide = p->vocabulary;
    const int64_t rows = p->logits_rows ? p->logits_rows : tokens;
    const void *stored = (const char *)h->arena + p->logits_offset;
    double *logits = malloc((size_t)(tokens * wide) * sizeof *logits);
    for (int64_t first = 0; first < tokens; first += rows) {
        const int64_t count = tokens - first < rows ? tokens - first : rows;
        if (p->logits_rows) p->logits(h->model, 0, first, count);
        for (int64_t i = 0; i < count * wide; i++)
            logits[first * wide + i] = hrt_params_element(stored, p->precision, i);
    }
    return logits;
}

void harness_backward(struct harness *h) {
    const int64_t bytes =
        h->program->param_elements * hrt_params_element_bytes(h->program->precision);
    memset(h->grads, 0, (size_t)bytes);
    harness_forward(h);
    h->program->backward(h->model, h->batch, h->ids, h->targets, h->scale, h->auxiliary_scale);
}

static void *allocate(size_t bytes, int byte) {
    void *memory = aligned_alloc(ALIGNMENT, (bytes + ALIGNMENT) / ALIGNMENT * ALIGNMENT);
    if (!memory) exit(2);
    return memset(memory, byte, (bytes + ALIGNMENT) / ALIGNMENT * ALIGNMENT);
}

// generate.py's `fill`. The rotary table is a parameter that only the runtime fills.
static void fill(struct harness *h) {
    const int64_t salt = json_integer_value(json_object_get(h->stored, "salt"));
    const struct hrt_placement here = {.program = h->program};
    const struct hrt_buffer params = {.placement = &here, .values = h->params};
    hrt_params_init(&params, 1);
    struct hrt_tensor tensor = {0};
    while (hrt_params_tensor_next(h->program, &tensor)) {
        const struct hrt_param *param = tensor.param;
        char path[HRT_PATH_MAX], text[HRT_PATH_MAX + 32];
        hrt_params_tensor_path(&tensor, path);
        snprintf(text, sizeof text, "%s#%" PRId64, path, salt);
        for (int64_t i = 0; param->init != HRT_INIT_ROPE && i < hrt_params_size(param); i++) {
            const double u = harness_hashed(text, i);
            double value = param->init == HRT_INIT_ONES    ? 1 + 0.25 * u
                           : param->init == HRT_INIT_ZEROS ? 0.25 * u
                                                           : 0.45 * u;
            if (h->in_bf16) value = hk_bf16_float(hk_bf16_round((float)value));
            hrt_params_element_set(h->params, h->program->precision,
                                   tensor.offset + hrt_params_stored_index(param, i), value);
        }
    }
}

static int32_t *read_tokens(const struct harness *h, const char *key) {
    const json_t *array = json_object_get(h->stored, key);
    const size_t count = (size_t)(h->batch * h->program->positions);
    if (json_array_size(array) != count) {
        fprintf(stderr, "%s: %zu tokens stored, the program takes %zu\n", key,
                json_array_size(array), count);
        exit(2);
    }
    int32_t *tokens = allocate(count * sizeof *tokens, 0);
    for (size_t i = 0; i < count; i++) {
        tokens[i] = (int32_t)json_integer_value(json_array_get(array, i));
    }
    return tokens;
}

// Reads teacher entries; null stands for an entry that is not there.
static void read_teacher(struct harness *h) {
    const json_t *teacher = json_object_get(h->stored, "teacher");
    if (!h->program->teacher_offset) return;
    const json_t *ids = json_object_get(teacher, "ids");
    const json_t *log_probs = json_object_get(teacher, "log_probs");
    const int64_t entries = json_integer_value(json_object_get(teacher, "entries"));
    const size_t count = (size_t)(h->batch * h->program->positions * entries);
    if (!count || json_array_size(ids) != count || json_array_size(log_probs) != count) {
        fprintf(stderr, "%zu teacher entries are missing\n", count);
        exit(2);
    }
    h->teacher_ids = allocate(count * sizeof *h->teacher_ids, 0);
    h->teacher_log_probs = allocate(count * sizeof *h->teacher_log_probs, 0);
    for (size_t i = 0; i < count; i++) {
        const json_t *value = json_array_get(log_probs, i);
        h->teacher_ids[i] = (int32_t)json_integer_value(json_array_get(ids, i));
        h->teacher_log_probs[i] = json_is_null(value) ? -INFINITY : (float)json_number_value(value);
    }
    *(struct hk_teacher *)((char *)h->model + h->program->teacher_offset) = (struct hk_teacher){
        .ids = h->teacher_ids, .log_probs = h->teacher_log_probs, .count = entries};
}

// The arena starts as NaN: reading a value before it is written shows.
static void prepare(struct harness *h) {
    const struct hrt_program *program = h->program;
    const size_t bytes =
        (size_t)(program->param_elements * hrt_params_element_bytes(program->precision));
    h->batch = json_integer_value(json_object_get(h->stored, "batch"));
    h->scale = json_number_value(json_object_get(h->stored, "scale"));
    h->auxiliary_scale = json_number_value(json_object_get(h->stored, "auxiliary_scale"));
    if (h->batch < 1 || h->batch > program->batch) {
        fprintf(stderr, "batch %" PRId64 " stored, the program takes %" PRId64 "\n", h->batch,
                program->batch);
        exit(2);
    }
    h->ids = read_tokens(h, "ids");
    h->targets = read_tokens(h, "targets");
    h->model = allocate(program->model_bytes, 0);
    h->params = allocate(bytes, 0);
    h->grads = allocate(bytes, 0);
    h->arena = allocate(program->arena_bytes, 0xFF);
    fill(h);
    read_teacher(h);
    program->bind(h->model, h->params, h->grads, h->arena);
    if (!program->bind_rounded) return;
    h->rounded = allocate(hrt_params_rounded_bytes(program), 0);
    const struct hrt_placement here = {.program = program};
    hrt_params_round(&here, h->params, h->rounded);
    program->bind_rounded(h->model, h->rounded);
}

int hrt_cli_main(int argc, char **argv, const struct hrt_program *program) {
    if (argc != 3 && argc != 4) {
        fprintf(stderr, "usage: %s STORED.json stored|differences|write FILE|compare FILE\n",
                argv[0]);
        return 2;
    }
    json_error_t error;
    json_t *stored = json_load_file(argv[1], 0, &error);
    if (!stored) {
        fprintf(stderr, "%s:%d: %s\n", argv[1], error.line, error.text);
        return 2;
    }
    struct harness h = {.program = program, .stored = stored, .in_bf16 = argc == 4};
    prepare(&h);
    if (argc == 4) {
        hec_test_bf16(&h, argv[3], strcmp(argv[2], "write") == 0);
    } else if (strcmp(argv[2], "stored") == 0) {
        hec_test_stored(&h);
    } else {
        hec_test_differences(&h);
    }
    printf("%s: %d checks, %d failures; largest error %.2g of its bound\n", program->name, h.checks,
           h.failures, h.worst);

    void *memory[] = {h.ids,   h.targets, h.model,       h.params,           h.grads,
                      h.arena, h.rounded, h.teacher_ids, h.teacher_log_probs};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) free(memory[i]);
    json_decref(stored);
    return h.failures || !h.checks;
}
