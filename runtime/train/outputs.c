// From the arena into files, block by block; those of other ranks come as messages.
#include "runtime/train/outputs.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "kernels/bf16.h"
#include "runtime/params/tensor.h"
#include "runtime/train/ranks.h"
#include "runtime/transport/transport.h"

enum { BLOCK_BYTES = 1 << 20 };

static int rank_of(const struct hrt_state *state) {
    return state->comm ? state->comm->rank : 0;
}

static bool begin(struct hrt_output *output, const char *name, const char *dtype,
                  const int64_t *shape, int rank, int64_t element, struct hrt_error *error) {
    const char *why;
    int64_t offset = 0, bytes = element;
    if (!output->path) return true;
    if (!hf_replace_begin(&output->replacement, output->path, &why))
        return hrt_fail(error, "cannot write '%s': %s", output->path, why);
    output->sink.file = output->replacement.file;
    for (int i = 0; i < rank; i++) bytes *= shape[i];
    json_t *header = json_object();
    const bool declared = hrt_safetensors_declare(header, name, dtype, shape, rank, bytes, &offset);
    if (!declared) errno = ENOMEM;
    if (!declared || !hrt_safetensors_begin(&output->sink, header)) output->failed = errno;
    json_decref(header);
    return true;
}

static void put(struct hrt_output *output, const void *data, size_t bytes) {
    if (!output->failed && !hrt_sink_put(&output->sink, data, bytes)) output->failed = errno;
}

// False: `error`, unless it is not whole.
static bool end(struct hrt_output *output, bool whole, struct hrt_error *error) {
    const char *why;
    if (!output->path || !output->replacement.file) return true;
    errno = output->failed;
    const bool ended = hf_replace_end(&output->replacement, whole && !output->failed, &why);
    return ended || !whole || hrt_fail(error, "cannot write '%s': %s", output->path, why);
}

static bool take_memory(struct hrt_outputs *outputs, const struct hrt_program *program,
                        struct hrt_error *error) {
    const int64_t row = program->vocabulary * hrt_element_bytes(program->precision);
    outputs->rows = row < BLOCK_BYTES ? BLOCK_BYTES / row : 1;
    if (outputs->rows > program->positions) outputs->rows = program->positions;
    outputs->block = malloc((size_t)(outputs->rows * row));
    outputs->values = malloc((size_t)(outputs->rows * row));
    outputs->loss = malloc((size_t)program->positions * sizeof *outputs->loss);
    return (outputs->block && outputs->values && outputs->loss) || hrt_fail(error, "out of memory");
}

static void free_memory(struct hrt_outputs *outputs) {
    free(outputs->block);
    free(outputs->values);
    free(outputs->loss);
}

bool hrt_outputs_open(struct hrt_outputs *outputs, const struct hrt_state *state, int64_t sequences,
                      struct hrt_error *error) {
    const struct hrt_program *program = state->program;
    const int64_t shape[] = {sequences, program->positions, program->vocabulary};
    const char *dtype = hrt_element_dtype(program->precision);
    const int64_t element = hrt_element_bytes(program->precision);
    const bool here = rank_of(state) == 0;
    bool sound =
        take_memory(outputs, program, error) &&
        (!here || (begin(&outputs->logits, "logits", dtype, shape, 3, element, error) &&
                   begin(&outputs->losses, "losses", "F64", shape, 2, sizeof(double), error)));
    if (state->comm) sound = hrt_ranks_agree(state->comm, sound, error);
    if (sound) return true;
    end(&outputs->logits, false, error);
    end(&outputs->losses, false, error);
    free_memory(outputs);
    return false;
}

// The logits of `rows` positions, from position `first` of the batch on, as `values`.
static void read_block(struct hrt_outputs *outputs, struct hrt_state *state, int64_t first,
                       int64_t rows) {
    const struct hrt_program *program = state->program;
    const int64_t wide = program->vocabulary, bytes = hrt_element_bytes(program->precision);
    const int64_t stored = program->logits_bf16 ? (int64_t)sizeof(hk_bf16) : bytes;
    const char *from = (const char *)state->arena + program->logits_offset + first * wide * stored;
    void *to = program->logits_bf16 ? outputs->block : outputs->values;
    hrt_device_read(&state->device, to, from, (size_t)(rows * wide * stored), HRT_WHY_VALUES);
    for (int64_t i = 0; program->logits_bf16 && i < rows * wide; i++)
        hrt_element_set(outputs->values, program->precision, i,
                        hk_bf16_float(((const hk_bf16 *)outputs->block)[i]));
}

// The cross-entropy of row `row` of `values`; NaN where nothing is to be predicted.
static double loss_of(const struct hrt_outputs *outputs, const struct hrt_program *program,
                      int64_t row, int32_t target) {
    const int64_t first = row * program->vocabulary;
    double most = -INFINITY, sum = 0;
    if (target < 0) return NAN;
    for (int64_t v = 0; v < program->vocabulary; v++)
        most = fmax(most, hrt_element(outputs->values, program->precision, first + v));
    for (int64_t v = 0; v < program->vocabulary; v++)
        sum += exp(hrt_element(outputs->values, program->precision, first + v) - most);
    return log(sum) + most - hrt_element(outputs->values, program->precision, first + target);
}

// What rank `from` has at `data` is there on rank 0, too. Only these two call it.
static void bring(const struct hrt_state *state, int from, void *data, size_t bytes) {
    struct hrt_step step;
    struct hrt_steps steps = {.step = &step, .room = 1};
    if (from == 0) return;
    if (rank_of(state) == 0)
        hrt_steps_receive(&steps, from, data, bytes, -1);
    else
        hrt_steps_send(&steps, 0, data, bytes, -1);
    hrt_join(state->comm, hrt_submit(state->comm, HRT_LANE_SAVE, &steps), "outputs of sequences");
}

// Adds sequence `index` of the batch of rank `from`.
static void add_sequence(struct hrt_outputs *outputs, struct hrt_state *state, int from,
                         int64_t index) {
    const struct hrt_program *program = state->program;
    const int64_t row = program->vocabulary * hrt_element_bytes(program->precision);
    const int64_t positions = program->positions;
    const bool here = rank_of(state) == 0;
    for (int64_t first = 0; first < positions; first += outputs->rows) {
        const int64_t left = positions - first, rows = left < outputs->rows ? left : outputs->rows;
        if (rank_of(state) == from) {
            read_block(outputs, state, index * positions + first, rows);
            for (int64_t i = 0; outputs->losses.path && i < rows; i++)
                outputs->loss[first + i] =
                    loss_of(outputs, program, i, state->targets[index * positions + first + i]);
        }
        if (!outputs->logits.path) continue;
        bring(state, from, outputs->values, (size_t)(rows * row));
        if (here) put(&outputs->logits, outputs->values, (size_t)(rows * row));
    }
    if (!outputs->losses.path) return;
    bring(state, from, outputs->loss, (size_t)positions * sizeof *outputs->loss);
    if (here) put(&outputs->losses, outputs->loss, (size_t)positions * sizeof *outputs->loss);
}

void hrt_outputs_add(struct hrt_outputs *outputs, struct hrt_state *state, int64_t all) {
    const int64_t batch = state->program->batch;
    for (int64_t i = 0; i < all; i++) {
        const int from = (int)(i / batch);
        if (rank_of(state) == 0 || rank_of(state) == from)
            add_sequence(outputs, state, from, i % batch);
    }
}

bool hrt_outputs_close(struct hrt_outputs *outputs, const struct hrt_state *state, bool whole,
                       struct hrt_error *error) {
    const bool logits = end(&outputs->logits, whole, error);
    const bool losses = end(&outputs->losses, whole && logits, error);
    free_memory(outputs);
    return state->comm ? hrt_ranks_agree(state->comm, logits && losses, error) : logits && losses;
}
