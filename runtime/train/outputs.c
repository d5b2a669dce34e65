// From the arena into files, block by block; those of other ranks come as messages.
#include "runtime/train/outputs.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "kernels/bf16.h"
#include "runtime/net/transport.h"
#include "runtime/params/tensor.h"
#include "runtime/train/ranks.h"

enum { BLOCK_BYTES = 1 << 20 };

static int rank_of(const struct hrt_state *state) {
    return state->comm ? state->comm->rank : 0;
}

// A tensor for each of the names "NAME" and, behind it, "NAME.LOSS" of the first `losses` that the program has by name.
static bool begin(struct hrt_output *output, const char *name, const char *dtype,
                  const int64_t *shape, int rank, int64_t element, const struct hrt_loss *loss,
                  int losses, struct hrt_error *error) {
    const char *why;
    char text[64];
    int64_t offset = 0, bytes = element;
    if (!output->path) return true;
    if (!hf_replace_begin(&output->replacement, output->path, &why))
        return hrt_fail(error, "cannot write '%s': %s", output->path, why);
    output->sink.file = output->replacement.file;
    for (int i = 0; i < rank; i++) bytes *= shape[i];
    json_t *header = json_object();
    bool declared =
        hrt_params_safetensors_declare(header, name, dtype, shape, rank, bytes, &offset);
    for (int i = 0; declared && i < losses; i++) {
        snprintf(text, sizeof text, "%s.%s", name, loss[i].name);
        declared = hrt_params_safetensors_declare(header, text, dtype, shape, rank, bytes, &offset);
    }
    if (!declared) errno = ENOMEM;
    if (!declared || !hrt_params_safetensors_begin(&output->sink, header)) output->failed = errno;
    json_decref(header);
    return true;
}

static bool begin_teacher(struct hrt_outputs *outputs, struct hrt_error *error) {
    struct hrt_output *output = &outputs->teacher;
    unsigned char header[HRT_TEACHER_HEADER];
    const char *why;
    if (!output->path) return true;
    if (!hf_replace_begin(&output->replacement, output->path, &why))
        return hrt_fail(error, "cannot write '%s': %s", output->path, why);
    output->sink.file = output->replacement.file;
    hrt_data_teacher_header(&outputs->said, header);
    if (!hrt_params_sink_put(&output->sink, header, sizeof header)) output->failed = errno;
    return true;
}

static void put(struct hrt_output *output, const void *data, size_t bytes) {
    if (!output->failed && !hrt_params_sink_put(&output->sink, data, bytes)) output->failed = errno;
}

// The losses of one sequence by loss number `loss`, whose tensor lies behind those of the losses before it.
static void put_losses(struct hrt_outputs *outputs, int loss, size_t bytes) {
    struct hrt_output *output = &outputs->losses;
    const int64_t row = loss * outputs->sequences + outputs->done;
    if (!output->failed &&
        (fseeko(output->sink.file, (off_t)(outputs->header + row * (int64_t)bytes), SEEK_SET) !=
             0 ||
         !hrt_params_sink_put(&output->sink, outputs->loss, bytes)))
        output->failed = errno;
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
    const int64_t row = program->vocabulary * hrt_params_element_bytes(program->precision);
    outputs->rows = row < BLOCK_BYTES ? BLOCK_BYTES / row : 1;
    if (outputs->rows > program->positions) outputs->rows = program->positions;
    for (int number = 0; number <= program->losses; number++) {
        const int64_t most = hrt_params_loss_at(program, number).logits_rows;
        if (most && outputs->rows > most) outputs->rows = most;
    }
    const int64_t losses = program->positions * hrt_params_element_bytes(program->precision);
    const int64_t bytes = outputs->rows * row;
    outputs->block = malloc((size_t)bytes);
    outputs->values = malloc((size_t)(bytes > losses ? bytes : losses));
    outputs->loss = malloc((size_t)program->positions * sizeof *outputs->loss);
    const int64_t entries = outputs->rows * outputs->said.entries;
    outputs->entries =
        malloc((size_t)(outputs->rows * hrt_train_entries_bytes(&outputs->said)) + 1);
    outputs->scratch = malloc((size_t)entries * sizeof *outputs->scratch + 1);
    return (outputs->block && outputs->values && outputs->loss && outputs->entries &&
            outputs->scratch) ||
           hrt_fail(error, "out of memory");
}

static void free_memory(struct hrt_outputs *outputs) {
    free(outputs->block);
    free(outputs->values);
    free(outputs->loss);
    free(outputs->entries);
    free(outputs->scratch);
}

bool hrt_train_outputs_open(struct hrt_outputs *outputs, const struct hrt_state *state,
                            int64_t sequences, struct hrt_error *error) {
    const struct hrt_program *program = state->program;
    const int64_t shape[] = {sequences, program->positions, program->vocabulary};
    const char *dtype = hrt_params_element_dtype(program->precision);
    const int64_t element = hrt_params_element_bytes(program->precision);
    const bool here = rank_of(state) == 0;
    bool sound =
        take_memory(outputs, program, error) &&
        (!here || (begin(&outputs->logits, "logits", dtype, shape, 3, element, NULL, 0, error) &&
                   begin(&outputs->losses, "losses", "F64", shape, 2, sizeof(double), program->loss,
                         program->losses, error) &&
                   begin_teacher(outputs, error)));
    outputs->sequences = sequences;
    outputs->header = outputs->losses.sink.bytes;
    if (state->comm) sound = hrt_train_ranks_agree(state->comm, sound, error);
    if (sound) return true;
    end(&outputs->logits, false, error);
    end(&outputs->losses, false, error);
    end(&outputs->teacher, false, error);
    free_memory(outputs);
    return false;
}

// The logits of `rows` positions, from position `first` of the batch on, as `values`.
static void read_block(struct hrt_outputs *outputs, struct hrt_state *state, int number,
                       int64_t first, int64_t rows) {
    const struct hrt_program *program = state->program;
    const bool bf16 = hrt_params_loss_at(program, number).logits_bf16;
    const int64_t wide = program->vocabulary, bytes = hrt_params_element_bytes(program->precision);
    const int64_t stored = bf16 ? (int64_t)sizeof(hk_bf16) : bytes;
    void *to = bf16 ? outputs->block : outputs->values;
    hrt_device_read(&state->device, to, hrt_params_state_logits(state, number, first, rows),
                    (size_t)(rows * wide * stored), HRT_WHY_VALUES);
    for (int64_t i = 0; bf16 && i < rows * wide; i++)
        hrt_params_element_set(outputs->values, program->precision, i,
                               hk_bf16_float(((const hk_bf16 *)outputs->block)[i]));
}

// The cross-entropy of row `row` of `values`; NaN where nothing is to be predicted.
static double loss_of(const struct hrt_outputs *outputs, const struct hrt_program *program,
                      int64_t row, int32_t target) {
    const int64_t first = row * program->vocabulary;
    double most = -INFINITY, sum = 0;
    if (target < 0) return NAN;
    for (int64_t v = 0; v < program->vocabulary; v++)
        most = fmax(most, hrt_params_element(outputs->values, program->precision, first + v));
    for (int64_t v = 0; v < program->vocabulary; v++)
        sum += exp(hrt_params_element(outputs->values, program->precision, first + v) - most);
    return log(sum) + most -
           hrt_params_element(outputs->values, program->precision, first + target);
}

// Copies `data` of rank `from` to rank 0. Only these two call it.
static void bring(const struct hrt_state *state, int from, void *data, size_t bytes) {
    struct hrt_step step;
    struct hrt_steps steps = {.step = &step, .room = 1};
    if (from == 0) return;
    if (rank_of(state) == 0)
        hrt_net_steps_receive(&steps, from, data, bytes, -1);
    else
        hrt_net_steps_send(&steps, 0, data, bytes, -1);
    hrt_net_lane_join(state->comm, hrt_net_lane_submit(state->comm, HRT_LANE_SAVE, &steps),
                      "outputs of sequences");
}

// Reads the losses of sequence `index`'s positions against a teacher.
static void read_losses(struct hrt_outputs *outputs, struct hrt_state *state,
                        const struct hrt_loss *loss, int64_t index) {
    const struct hrt_program *program = state->program;
    const int64_t bytes = program->positions * hrt_params_element_bytes(program->precision);
    const char *from = (const char *)state->arena + loss->losses_offset + index * bytes;
    hrt_device_read(&state->device, outputs->values, from, (size_t)bytes, HRT_WHY_VALUES);
    for (int64_t i = 0; i < program->positions; i++) {
        const double lost = hrt_params_element(outputs->values, program->precision, i);
        outputs->loss[i] = state->teacher.count ? lost : NAN;
    }
}

// Reads `rows` positions of sequence `index` of this rank's batch, from position `first` on, and their losses.
static void read_rows(struct hrt_outputs *outputs, struct hrt_state *state, int number,
                      int64_t index, int64_t first, int64_t rows) {
    const int64_t positions = state->program->positions;
    const int64_t ahead = hrt_params_loss_at(state->program, number).ahead;
    const int32_t *targets = state->targets + index * positions;
    read_block(outputs, state, number, index * positions + first, rows);
    for (int64_t i = 0; outputs->losses.path && i < rows; i++) {
        const int64_t at = first + i + ahead - 1;
        outputs->loss[first + i] =
            loss_of(outputs, state->program, i, at < positions ? targets[at] : -1);
    }
}

// Adds `rows` positions of rank `from`, from position `first` of its batch on, whose logits are there, to teacher
// entries; the first `skipped` ones are there already.
static void add_entries(struct hrt_outputs *outputs, const struct hrt_state *state, int from,
                        int64_t first, int64_t rows, int64_t skipped) {
    const int64_t row = hrt_train_entries_bytes(&outputs->said);
    if (skipped >= rows) return;
    if (rank_of(state) == from)
        hrt_train_entries_of(&outputs->said, outputs->values, state->program->precision, rows,
                             outputs->of_targets ? state->targets + first : NULL, outputs->scratch,
                             outputs->entries);
    bring(state, from, outputs->entries, (size_t)(rows * row));
    if (rank_of(state) == 0)
        put(&outputs->teacher, (const char *)outputs->entries + skipped * row,
            (size_t)((rows - skipped) * row));
}

// Positions that the last sequence repeats: the teacher file has only those that no sequence before holds.
static int64_t skipped_of(const struct hrt_outputs *outputs, int64_t positions) {
    if (!outputs->teacher.path) return positions;
    if (outputs->done < outputs->sequences) return 0;
    return positions - (outputs->said.tokens - outputs->sequences * positions);
}

// Adds sequence `index` of the batch of rank `from`, with loss number `number` of the program.
static void add_sequence(struct hrt_outputs *outputs, struct hrt_state *state, int from,
                         int64_t index, int number) {
    const struct hrt_program *program = state->program;
    const struct hrt_loss loss = hrt_params_loss_at(program, number);
    const size_t row = (size_t)(program->vocabulary * hrt_params_element_bytes(program->precision));
    const size_t losses = (size_t)program->positions * sizeof *outputs->loss;
    const bool here = rank_of(state) == 0, counts = outputs->done < outputs->sequences;
    const int64_t skipped = skipped_of(outputs, program->positions);
    if (loss.teacher && rank_of(state) == from) read_losses(outputs, state, &loss, index);
    for (int64_t first = 0; !loss.teacher && first < program->positions; first += outputs->rows) {
        const int64_t left = program->positions - first;
        const int64_t rows = left < outputs->rows ? left : outputs->rows;
        if (rank_of(state) == from) read_rows(outputs, state, number, index, first, rows);
        if (number > 0) continue;
        add_entries(outputs, state, from, index * program->positions + first, rows,
                    skipped > first ? skipped - first : 0);
        if (!outputs->logits.path || !counts) continue;
        bring(state, from, outputs->values, (size_t)rows * row);
        if (here) put(&outputs->logits, outputs->values, (size_t)rows * row);
    }
    if (!outputs->losses.path || !counts) return;
    bring(state, from, outputs->loss, losses);
    if (here) put_losses(outputs, number, losses);
}

void hrt_train_outputs_add(struct hrt_outputs *outputs, struct hrt_state *state, int64_t all) {
    const int64_t batch = state->program->batch;
    const int losses = outputs->losses.path ? state->program->losses : 0;
    for (int64_t i = 0; i < all; i++, outputs->done++) {
        const int from = (int)(i / batch);
        if (rank_of(state) != 0 && rank_of(state) != from) continue;
        for (int number = 0; number <= losses; number++)
            add_sequence(outputs, state, from, i % batch, number);
    }
}

bool hrt_train_outputs_close(struct hrt_outputs *outputs, const struct hrt_state *state, bool whole,
                             struct hrt_error *error) {
    const bool logits = end(&outputs->logits, whole, error);
    const bool losses = end(&outputs->losses, whole && logits, error);
    const bool sound = end(&outputs->teacher, whole && logits && losses, error) && logits && losses;
    free_memory(outputs);
    return state->comm ? hrt_train_ranks_agree(state->comm, sound, error) : sound;
}
