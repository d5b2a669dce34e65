// Anonymous mappings: zeroed, aligned to pages, committed on first touch.
#include "runtime/train/state.h"

#include <stdio.h>
#include <sys/mman.h>

#include "runtime/experts/experts.h"
#include "runtime/fssdp/run.h"
#include "runtime/params/rounded.h"
#include "runtime/train/dense.h"
#include "runtime/train/ranks.h"

size_t hrt_state_params_bytes(const struct hrt_program *program) {
    return (size_t)program->param_elements * (size_t)hrt_element_bytes(program->precision);
}

void hrt_format_bytes(char *out, size_t out_bytes, double bytes) {
    static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    int i = 0;
    for (; bytes >= 1024 && i < 4; i++) bytes /= 1024;
    snprintf(out, out_bytes, i == 0 ? "%.0f %s" : "%.1f %s", bytes, unit[i]);
}

static size_t mapped_bytes(size_t bytes) {
    return bytes ? bytes : 1;
}

// `sparse`: only part of it will ever be touched.
static bool reserve(void **buffer, size_t bytes, bool sparse, const char *what,
                    struct hrt_error *error) {
    void *mapped = mmap(NULL, mapped_bytes(bytes), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | (sparse ? MAP_NORESERVE : 0), -1, 0);
    if (mapped == MAP_FAILED) {
        char size[32];
        hrt_format_bytes(size, sizeof size, (double)bytes);
        return hrt_fail(error, "not enough memory: %s need %s", what, size);
    }
    // Only speed; may be refused. A huge page would take neighbours that are never touched with it.
    if (!sparse) madvise(mapped, mapped_bytes(bytes), MADV_HUGEPAGE);
    *buffer = mapped;
    return true;
}

static void release(void *buffer, size_t bytes) {
    if (buffer) munmap(buffer, mapped_bytes(bytes));
}

static size_t batch_bytes(const struct hrt_program *program) {
    return (size_t)(program->batch * program->positions) * sizeof(int32_t);
}

static size_t sums_bytes(const struct hrt_program *program) {
    return (size_t)(hrt_ranks_chunks(program) + program->world) * sizeof(double);
}

// Where experts live on several ranks, parameters keep their places, and a rank touches its own.
static bool reserve_all(struct hrt_state *state, bool training, struct hrt_error *error) {
    const struct hrt_program *program = state->program;
    const size_t params = hrt_state_params_bytes(program), batch = batch_bytes(program);
    const bool own = program->owned, part = own || program->dense_shard;
    void *ids = NULL, *targets = NULL, *sums = NULL;
    const size_t rounded = hrt_rounded_bytes(program);
    bool reserved =
        reserve(&state->model, program->model_bytes, false, "the model's tables", error) &&
        reserve(&state->values[HRT_PARAMETERS], params, own, "parameters", error) &&
        reserve(&state->values[HRT_GRADIENTS], params, own, "gradients", error) &&
        reserve(&state->arena, program->arena_bytes, false, "the arena's values", error) &&
        reserve(&ids, batch, false, "token ids", error) &&
        reserve(&targets, batch, false, "target ids", error) &&
        reserve(&sums, sums_bytes(program), false, "sums of squares", error);
    if (reserved && rounded)
        reserved = reserve(&state->rounded, rounded, own, "parameters rounded to bf16", error);
    if (reserved && training)
        reserved =
            reserve(&state->values[HRT_MEANS], params, part, "the optimizer's means", error) &&
            reserve(&state->values[HRT_VARIANCES], params, part, "the optimizer's variances",
                    error);
    state->ids = ids;
    state->targets = targets;
    state->chunk_sums = sums;
    return reserved;
}

bool hrt_state_create(struct hrt_state *state, struct hrt_placement *placement, bool training,
                      struct hrt_error *error) {
    const struct hrt_program *program = placement->program;
    *state = (struct hrt_state){.program = program, .placement = placement};
    if (!reserve_all(state, training, error)) {
        hrt_state_destroy(state);
        return false;
    }
    program->bind(state->model, state->values[HRT_PARAMETERS], state->values[HRT_GRADIENTS],
                  state->arena);
    if (program->bind_rounded) program->bind_rounded(state->model, state->rounded);
    return true;
}

void hrt_state_destroy(struct hrt_state *state) {
    const struct hrt_program *program = state->program;
    const size_t params = hrt_state_params_bytes(program);
    hrt_fssdp_destroy(state->fssdp); // Chunks may still be on their way to other ranks,
    hrt_dense_destroy(state->dense); // and gradients.
    release(state->model, program->model_bytes);
    for (int i = 0; i < HRT_VALUES; i++) release(state->values[i], params);
    release(state->rounded, hrt_rounded_bytes(program));
    release(state->arena, program->arena_bytes);
    release(state->ids, batch_bytes(program));
    release(state->targets, batch_bytes(program));
    release(state->chunk_sums, sums_bytes(program));
    hrt_experts_destroy(state->experts);
    *state = (struct hrt_state){.program = program};
}
