#include "runtime/train/memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/format.h"
#include "runtime/device/device.h"
#include "runtime/experts/fssdp_run.h"
#include "runtime/net/transport.h"
#include "runtime/params/chunks.h"
#include "runtime/params/placement.h"
#include "runtime/params/rounded.h"
#include "runtime/params/tensor.h"
#include "runtime/train/dense.h"
#include "runtime/train/muon.h"
#include "runtime/train/ranks.h"

enum { OPTIMIZER_STATES = 2, TEXT_MAX = 512 };

size_t hrt_train_memory_sums_bytes(const struct hrt_program *program) {
    int64_t tensors = 0;
    for (int i = 0; i < program->params; i++)
        tensors += program->param[i].set < 0 ? hrt_params_tensors(program, &program->param[i]) : 0;
    return (size_t)(tensors + hrt_train_ranks_chunks(program) + program->world) * sizeof(double);
}

// Bytes of parameters and of what has their layout.
struct places {
    size_t params, gradients, rounded, states;
    size_t read; // Parameters that are read as they are.
};

static size_t bytes_of(const struct hpl_held *held, enum hpl_buffer buffer, int64_t page,
                       bool *taken) {
    return (size_t)(taken ? hpl_held_page_bytes(held, buffer, page, taken)
                          : hpl_held_bytes(held, buffer));
}

// On the fullest rank, with the first owners; all of it where there is no memory to find out.
static struct places places_of(const struct hrt_program *program, bool apart) {
    const size_t all = hrt_params_state_bytes(program);
    const int64_t page = apart ? (int64_t)program->device->page_bytes : 0;
    struct places places = {all, all, hrt_params_rounded_bytes(program), all, all};
    struct hrt_placement placement;
    struct hrt_error error;
    if (!hrt_params_placement_create(&placement, program, 0, &error)) return places;
    const struct hpl_held *held = &placement.held;
    bool *taken = page ? malloc((size_t)hpl_held_pages(held, page)) : NULL;
    if (!page || taken)
        places = (struct places){
            bytes_of(held, HPL_PARAMETERS, page, taken), bytes_of(held, HPL_GRADIENTS, page, taken),
            program->bind_rounded ? bytes_of(held, HPL_COPIES, page, taken) : 0,
            bytes_of(held, HPL_STATE, page, taken), bytes_of(held, HPL_READ, page, taken)};
    free(taken);
    hrt_params_placement_destroy(&placement);
    return places;
}

int hrt_train_memory_list(const struct hrt_program *program, enum hrt_training training,
                          struct hrt_memory_line line[HRT_MEMORY_LINES]) {
    const struct hrt_device_backend *device = program->device;
    const bool apart = device && device->apart;
    const enum hrt_memory_place place = apart ? HRT_ON_DEVICE : HRT_ON_HOST;
    const struct places places = places_of(program, apart);
    const struct hrt_experts_bytes rows = hrt_train_ranks_moving_bytes(program);
    const bool leave = hrt_params_home(program, HPL_PARAMETERS) == HRT_AT_HOST;
    const size_t masters = leave ? places.params - places.read : 0;
    const size_t messages = program->executor ? program->executor->bytes((int)program->world) : 0;
    const size_t shared = program->model_bytes + 2 * hrt_params_state_ids_bytes(program) +
                          hrt_train_memory_sums_bytes(program) + rows.both;
    const struct hrt_memory_line all[] = {
        {"parameters", place, false, (double)(places.params - masters)},
        {"parameters beside copies", HRT_PINNED, false, (double)masters},
        {"bf16 copies", place, false, (double)places.rounded},
        {"gradients", place, false, (double)places.gradients},
        {training == HRT_BY_MUON ? "states" : "AdamW states",
         program->host_states ? HRT_PINNED : place, false,
         training ? OPTIMIZER_STATES * (double)places.states : 0},
        {"Muon's scratch", place, false,
         training == HRT_BY_MUON ? (double)hrt_train_muon_bytes(program) : 0},
        {"arena", place, false, (double)program->arena_bytes},
        {"rows under way", place, false,
         (double)(rows.there + (apart ? 0 : rows.here + rows.both))},
        {"replicas", place, false, (double)hrt_experts_fssdp_bytes(program)},
        {"sums under way", place, false, (double)hrt_train_dense_bytes(program)},
        {"messages, about", place, true, (double)messages},
        {"scratch", place, true, apart ? (double)device->lane_bytes : 0},
        {"tables, ids", HRT_PINNED, false, apart ? (double)shared : 0},
        {"staging buffer", HRT_PINNED, false,
         apart ? (double)hrt_params_staging_bytes(program) : 0},
        {program->world ? "program, its ranks" : "program", HRT_ON_HOST, false,
         (double)(hrt_train_ranks_process_bytes(program) + (apart ? rows.here : 0))},
    };
    _Static_assert(sizeof all / sizeof *all == HRT_MEMORY_LINES, "one line each");
    int lines = 0;
    for (int i = 0; i < HRT_MEMORY_LINES; i++) {
        if (all[i].bytes > 0) line[lines++] = all[i];
    }
    return lines;
}

double hrt_train_memory_saving(const struct hrt_program *program, int64_t copies) {
    const bool apart = program->device && program->device->apart;
    const struct places places = places_of(program, apart);
    const double values = (double)places.params + OPTIMIZER_STATES * (double)places.states;
    return values < (double)copies ? values : (double)copies;
}

// ---- before it is taken

__attribute__((format(printf, 2, 3))) static void add(char text[TEXT_MAX], const char *format,
                                                      ...) {
    const size_t used = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + used, TEXT_MAX - used, format, arguments);
    va_end(arguments);
}

static void add_settings(char text[TEXT_MAX], const struct hrt_program *program) {
    if (program->batch > 1)
        add(text, "; smaller steps need less: compile with --set parallel.microbatch=N, now %lld",
            (long long)program->batch);
    const char *again = hrt_program_setting(program, "parallel.recompute");
    if (again && strcmp(again, "all") != 0)
        add(text, "; recomputed values are not saved: --set parallel.recompute=all");
    if (program->precision == HRT_FP32 && !program->bind_rounded)
        add(text, "; values of tokens take half with --set train.precision=bf16");
}

bool hrt_train_memory_check(struct hrt_device *device, const struct hrt_program *program,
                            enum hrt_training training, struct hrt_error *error) {
    struct hrt_memory_line line[HRT_MEMORY_LINES];
    size_t left, all;
    double needed = 0;
    char text[TEXT_MAX] = "", size[32], free_bytes[32], all_bytes[32];
    if (!hrt_device_is_apart(device)) return true;
    const int lines = hrt_train_memory_list(program, training, line);
    device->backend->room(device, &left, &all);
    for (int i = 0; i < lines; i++) {
        if (line[i].place != HRT_ON_DEVICE || line[i].opened) continue;
        hrt_format_bytes(size, sizeof size, line[i].bytes);
        add(text, "%s%s %s", needed > 0 ? ", " : "", line[i].what, size);
        needed += line[i].bytes;
    }
    if (needed <= (double)left) return true;
    add_settings(text, program);
    hrt_format_bytes(size, sizeof size, needed);
    hrt_format_bytes(free_bytes, sizeof free_bytes, (double)left);
    hrt_format_bytes(all_bytes, sizeof all_bytes, (double)all);
    return hrt_fail(error, "not enough memory on %s: %s are needed, %s of %s are free: %s",
                    device->name, size, free_bytes, all_bytes, text);
}
