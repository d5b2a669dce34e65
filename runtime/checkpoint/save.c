// Writing a checkpoint, all ranks together.
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/folder.h"
#include "runtime/checkpoint/values.h"
#include "runtime/train/dense.h"
#include "runtime/train/ranks.h"

struct saving {
    struct hrt_state *state;
    struct hrt_comm *comm;
    char folder[PATH_MAX];
    struct hrt_part part[HRT_VALUE_FILES]; // This rank's files.
    struct hrt_error *error;
};

// What one file gets.
struct filling {
    const struct hrt_program *program;
    struct hrt_listing listing;
    const void *values;
};

static const void *bring(void *context, const struct hrt_tensor *tensor) {
    const struct filling *filling = context;
    const int64_t bytes = hrt_element_bytes(filling->program->precision);
    return (const char *)filling->values + tensor->offset * bytes;
}

static bool fill(struct hrt_sink *sink, void *context) {
    struct filling *filling = context;
    return hrt_safetensors_write(sink, filling->program, &filling->listing, bring, filling);
}

// Experts are written by their owner; what all ranks have is shared out by the order of names.
static bool is_mine(const struct saving *saving, const struct hrt_tensor *tensor, size_t at) {
    const struct hrt_placement *placement = saving->state->placement;
    if (placement->owner && tensor->param->set >= 0) return hrt_tensor_is_here(placement, tensor);
    return (int64_t)at % saving->comm->size == saving->comm->rank;
}

static bool list_mine(const struct saving *saving, enum hrt_values values,
                      struct hrt_listing *listing) {
    if (!hrt_listing_create(listing, saving->state->program, values, saving->error)) return false;
    size_t kept = 0;
    for (size_t i = 0; i < listing->entries; i++) {
        if (!is_mine(saving, &listing->entry[i].tensor, i)) continue;
        if (kept != i) listing->entry[kept] = listing->entry[i];
        kept++;
    }
    listing->entries = kept;
    return true;
}

static bool write_values(struct saving *saving, int number) {
    const enum hrt_values values = hrt_value_files[number].values;
    struct hrt_part *part = &saving->part[number];
    struct filling filling = {.program = saving->state->program};
    snprintf(part->name, sizeof part->name, "%s.%d.safetensors", hrt_value_files[number].name,
             saving->comm->rank);
    if (!list_mine(saving, values, &filling.listing)) return false;
    void *borrowed = hrt_state_borrow(saving->state, values);
    filling.values = borrowed;
    const bool written = borrowed
                             ? hrt_part_write(saving->folder, part, fill, &filling, saving->error)
                             : hrt_fail(saving->error, "cannot save: out of memory");
    hrt_state_hand_back(saving->state, values, borrowed, false);
    hrt_listing_free(&filling.listing);
    return written;
}

static bool write_all_values(struct saving *saving) {
    bool written = true;
    for (int i = 0; written && i < HRT_VALUE_FILES; i++) written = write_values(saving, i);
    return written;
}

static bool fill_facts(struct hrt_sink *sink, void *context) {
    char *text = json_dumps(context, JSON_COMPACT | JSON_SORT_KEYS);
    if (!text) return errno = ENOMEM, false;
    const bool written = hrt_sink_put(sink, text, strlen(text)) && hrt_sink_put(sink, "\n", 1);
    free(text);
    return written;
}

// Sizes and checksums of all ranks' files, [ranks][files][2]; freed by the caller.
static int64_t *collect(const struct saving *saving) {
    const int64_t ranks = saving->comm->size, each = 2 * HRT_VALUE_FILES;
    int64_t *all = calloc((size_t)(ranks * each), sizeof *all);
    if (!all) hrt_comm_abort(saving->comm, HRT_EXIT_FAILED); // The others are in the sum.
    for (int i = 0; i < HRT_VALUE_FILES; i++) {
        int64_t *own = all + saving->comm->rank * each + 2 * (int64_t)i;
        own[0] = saving->part[i].bytes;
        own[1] = saving->part[i].crc;
    }
    hrt_comm_all_reduce(saving->comm, all, ranks * each, HRT_INT64);
    return all;
}

// Rank 0's: what is no tensor, and the index.
static bool complete(const struct saving *saving, int64_t step, json_t *facts,
                     const int64_t *collected) {
    const int ranks = saving->comm->size, parts = ranks * HRT_VALUE_FILES;
    struct hrt_part *part = calloc((size_t)parts + 1, sizeof *part);
    if (!part) return hrt_fail(saving->error, "out of memory");
    for (int i = 0; i < parts; i++) {
        snprintf(part[i].name, sizeof part[i].name, "%s.%d.safetensors",
                 hrt_value_files[i % HRT_VALUE_FILES].name, i / HRT_VALUE_FILES);
        part[i].bytes = collected[2 * i];
        part[i].crc = (uint32_t)collected[2 * i + 1];
    }
    snprintf(part[parts].name, sizeof part[parts].name, "%s", HRT_FACTS_FILE);
    const struct hrt_index index = {step, ranks, part, parts + 1};
    const bool written =
        hrt_part_write(saving->folder, &part[parts], fill_facts, facts, saving->error) &&
        hrt_index_write(saving->folder, &index, saving->error);
    free(part);
    return written;
}

// With dense = shard the states of what all ranks have lie in parts; those of the others are only here for the file.
static void make_whole(const struct hrt_state *state, bool whole) {
    if (!state->program->dense_shard || !state->dense) return;
    for (int values = HRT_MEANS; values <= HRT_VARIANCES; values++) {
        if (whole)
            hrt_dense_gather(state->dense, state->values[values]);
        else
            hrt_dense_forget(state->dense, state->values[values]);
    }
}

static bool write_folder(struct saving *saving, const struct hrt_checkpoints *checkpoints,
                         int64_t step, json_t *facts) {
    const char *dir = checkpoints->dir;
    struct hrt_comm *comm = saving->comm;
    const bool begun = hrt_folder_of_partial(saving->folder, dir, step, saving->error) &&
                       (comm->rank > 0 || hrt_folder_begin(dir, step, saving->error));
    if (!hrt_ranks_agree(comm, begun, saving->error) ||
        !hrt_ranks_agree(comm, write_all_values(saving), saving->error))
        return false;
    int64_t *collected = collect(saving);
    const bool done =
        comm->rank > 0 ||
        (complete(saving, step, facts, collected) && hrt_folder_publish(dir, step, saving->error) &&
         hrt_folder_prune(dir, checkpoints->keep, checkpoints->keep_every, saving->error));
    free(collected);
    return hrt_ranks_agree(comm, done, saving->error);
}

bool hrt_checkpoint_save(const struct hrt_checkpoints *checkpoints, struct hrt_state *state,
                         int64_t step, json_t *facts, struct hrt_error *error) {
    struct hrt_comm self;
    struct saving saving = {.state = state, .comm = state->comm, .error = error};
    if (!saving.comm) {
        hrt_comm_open_self(&self);
        saving.comm = &self;
    }
    make_whole(state, true);
    const bool saved = write_folder(&saving, checkpoints, step, facts);
    make_whole(state, false);
    if (!saved && saving.comm->rank == 0) hrt_folder_drop(checkpoints->dir, step);
    return saved;
}
