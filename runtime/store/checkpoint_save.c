// Writing a checkpoint, all ranks together.
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/params/gather.h"
#include "runtime/params/snapshot.h"
#include "runtime/store/checkpoint.h"
#include "runtime/store/checkpoint_folder.h"
#include "runtime/store/checkpoint_states.h"
#include "runtime/store/checkpoint_values.h"
#include "runtime/store/checkpoint_writer.h"
#include "runtime/train/ranks.h"

struct hrt_saving {
    const struct hrt_checkpoints *to;
    struct hrt_state *state;
    struct hrt_comm *comm, self;
    int64_t step;
    json_t *facts;
    struct hrt_writer writer; // Writes this rank's files.
};

// Owners write their experts; the ranks share out the other tensors by the order of names.
static bool is_mine(const struct hrt_saving *saving, const struct hrt_tensor *tensor, size_t at) {
    const struct hrt_placement *placement = saving->state->placement;
    if (placement->owner && tensor->param->set >= 0)
        return hrt_params_tensor_is_here(placement, tensor);
    return (int64_t)at % saving->comm->size == saving->comm->rank;
}

static bool list_mine(const struct hrt_saving *saving, enum hrt_values values,
                      struct hrt_listing *listing, struct hrt_error *error) {
    if (!hrt_params_listing_create(listing, saving->state->program, values, error)) return false;
    size_t kept = 0;
    for (size_t i = 0; i < listing->entries; i++) {
        if (!is_mine(saving, &listing->entry[i].tensor, i)) continue;
        if (kept != i) listing->entry[kept] = listing->entry[i];
        kept++;
    }
    listing->entries = kept;
    return true;
}

// Lists this rank's files and their tensors.
static bool list_all(struct hrt_saving *saving, struct hrt_error *error) {
    struct hrt_writer *writer = &saving->writer;
    writer->program = saving->state->program;
    for (int i = 0; i < HRT_RANK_FILES; i++)
        hrt_store_file_name(writer->file[i].part.name, i, saving->comm->rank);
    for (int i = 0; i < HRT_VALUE_FILES; i++) {
        if (!list_mine(saving, hrt_value_files[i].values, &writer->file[i].listing, error))
            return false;
    }
    return true;
}

// All ranks bring their parts of a tensor to the one that writes it, which copies them at once.
static bool add_parts(const struct hrt_saving *saving, struct hrt_gather *gather,
                      const struct hrt_tensor *tensor, int writer) {
    bool added = true;
    gather->to = writer;
    hrt_params_gather_tensor(gather, tensor, 0);
    while (hrt_params_gather_next(gather)) {
        if (writer == saving->comm->rank)
            added = added && hrt_params_snapshot_add_gathered(saving->writer.snapshot,
                                                              &gather->buffer, &gather->slice);
    }
    return added;
}

// This rank's tensors among all that files of these values have. Collective.
static bool add_values(const struct hrt_saving *saving, struct hrt_gather *gather,
                       const struct hrt_listing *all) {
    const struct hrt_program *program = saving->state->program;
    struct hrt_snapshot *snapshot = saving->writer.snapshot;
    bool added = true;
    for (size_t i = 0; i < all->entries; i++) {
        const struct hrt_tensor *tensor = &all->entry[i].tensor;
        if (hrt_params_is_cut(program, tensor->param, gather->buffer.kind))
            added =
                add_parts(saving, gather, tensor, (int)(i % (size_t)saving->comm->size)) && added;
        else if (is_mine(saving, tensor, i))
            added = added && hrt_params_snapshot_add(snapshot, &gather->buffer, tensor);
    }
    return added;
}

// Opens what adding takes. All ranks open it, or none adds.
static bool open_values(struct hrt_saving *saving, int number, struct hrt_gather *gather,
                        struct hrt_listing *all, struct hrt_error *error) {
    const enum hrt_values values = hrt_value_files[number].values;
    *gather = (struct hrt_gather){.buffer = hrt_params_state_buffer(saving->state, values)};
    if (hrt_params_gathers(&gather->buffer)) gather->comm = saving->comm;
    const bool opened =
        (saving->writer.snapshot || hrt_fail(error, "cannot save: out of memory")) &&
        hrt_params_listing_create(all, saving->state->program, values, error) &&
        hrt_params_gather_open(gather, error);
    return hrt_train_ranks_agree(saving->comm, opened, error);
}

// From here on values are copied before they change. Collective.
static bool take_snapshot(struct hrt_saving *saving, struct hrt_error *error) {
    struct hrt_writer *writer = &saving->writer;
    writer->snapshot = hrt_params_snapshot_create(writer->program, saving->to->copies);
    bool taken = true, opened = true;
    for (int i = 0; opened && i < HRT_VALUE_FILES; i++) {
        struct hrt_written *file = &writer->file[i];
        struct hrt_gather gather = {0};
        struct hrt_listing all = {0};
        opened = open_values(saving, i, &gather, &all, error);
        file->first = opened ? hrt_params_snapshot_slices(writer->snapshot) : 0;
        if (opened) taken = add_values(saving, &gather, &all) && taken;
        file->slices = opened ? hrt_params_snapshot_slices(writer->snapshot) - file->first : 0;
        hrt_params_gather_close(&gather);
        hrt_params_listing_free(&all);
    }
    if (!opened) return false;
    const bool sealed = (taken && hrt_params_snapshot_seal(writer->snapshot)) ||
                        hrt_fail(error, "cannot save: out of memory");
    if (!hrt_train_ranks_agree(saving->comm, sealed, error)) return false;
    saving->state->snapshot = writer->snapshot;
    return true;
}

static bool fill_facts(struct hrt_sink *sink, void *context) {
    char *text = json_dumps(context, JSON_COMPACT | JSON_SORT_KEYS);
    if (!text) return errno = ENOMEM, false;
    const bool written =
        hrt_params_sink_put(sink, text, strlen(text)) && hrt_params_sink_put(sink, "\n", 1);
    free(text);
    return written;
}

// Sizes and checksums of all ranks' files, [ranks][files][2]; freed by the caller.
static int64_t *collect(const struct hrt_saving *saving) {
    const int64_t ranks = saving->comm->size, each = 2 * HRT_RANK_FILES;
    int64_t *all = calloc((size_t)(ranks * each), sizeof *all);
    if (!all) hrt_net_comm_abort(saving->comm, HRT_EXIT_FAILED); // The others are in the sum.
    for (int i = 0; i < HRT_RANK_FILES; i++) {
        int64_t *own = all + saving->comm->rank * each + 2 * (int64_t)i;
        own[0] = saving->writer.file[i].part.bytes;
        own[1] = saving->writer.file[i].part.crc;
    }
    hrt_net_comm_all_reduce(saving->comm, all, ranks * each, HRT_INT64);
    return all;
}

// Rank 0 writes the other data, and the index.
static bool complete(const struct hrt_saving *saving, const int64_t *collected,
                     struct hrt_error *error) {
    const int ranks = saving->comm->size;
    struct hrt_part *part = calloc((size_t)ranks * HRT_RANK_FILES + 1, sizeof *part);
    int parts = 0;
    if (!part) return hrt_fail(error, "out of memory");
    for (int i = 0; i < ranks * HRT_RANK_FILES; i++) {
        if (collected[2 * i] == 0) continue; // There is none.
        hrt_store_file_name(part[parts].name, i % HRT_RANK_FILES, i / HRT_RANK_FILES);
        part[parts].bytes = collected[2 * i];
        part[parts++].crc = (uint32_t)collected[2 * i + 1];
    }
    snprintf(part[parts].name, sizeof part[parts].name, "%s", HRT_FACTS_FILE);
    const struct hrt_index index = {saving->step, ranks, part, parts + 1};
    const char *folder = saving->writer.folder;
    const bool written =
        hrt_store_part_write(folder, &part[parts], fill_facts, saving->facts, error) &&
        hrt_store_index_write(folder, &index, error);
    free(part);
    return written;
}

static void destroy(struct hrt_saving *saving) {
    struct hrt_writer *writer = &saving->writer;
    if (saving->state->snapshot == writer->snapshot) saving->state->snapshot = NULL;
    hrt_params_snapshot_destroy(writer->snapshot);
    for (int i = 0; i < HRT_VALUE_FILES; i++) hrt_params_listing_free(&writer->file[i].listing);
    free(writer->file[HRT_LOADS_FILE].whole.data);
    json_decref(saving->facts);
    free(saving);
}

static bool begin(struct hrt_saving *saving, struct hrt_error *error) {
    const char *dir = saving->to->dir;
    struct hrt_comm *comm = saving->comm;
    const bool listed =
        hrt_store_folder_of_partial(saving->writer.folder, dir, saving->step, error) &&
        (hrt_store_states_note(saving->facts, saving->state) ||
         hrt_fail(error, "cannot save: out of memory")) &&
        list_all(saving, error);
    if (!hrt_train_ranks_agree(comm, listed, error)) return false;
    if (!take_snapshot(saving, error)) return false;
    const bool begun = comm->rank > 0 || hrt_store_folder_begin(dir, saving->step, error);
    if (!hrt_train_ranks_agree(comm, begun, error)) return false;
    hrt_store_writer_start(&saving->writer);
    return true;
}

bool hrt_store_checkpoint_begin(struct hrt_saving **saving,
                                const struct hrt_checkpoints *checkpoints, struct hrt_state *state,
                                int64_t step, json_t *facts, struct hrt_whole_file loads,
                                struct hrt_error *error) {
    struct hrt_comm self;
    struct hrt_saving *own = calloc(1, sizeof *own);
    hrt_net_comm_open_self(&self);
    *saving = own;
    if (!hrt_train_ranks_agree(state->comm ? state->comm : &self,
                               own || hrt_fail(error, "out of memory"), error)) {
        free(loads.data);
        free(own);
        return *saving = NULL, false;
    }
    own->self = self;
    own->to = checkpoints;
    own->state = state;
    own->step = step;
    own->facts = json_incref(facts);
    own->writer.file[HRT_LOADS_FILE].whole = loads;
    own->comm = state->comm ? state->comm : &own->self;
    if (begin(own, error)) return true;
    if (own->comm->rank == 0) hrt_store_folder_drop(checkpoints->dir, step);
    destroy(own);
    return *saving = NULL, false;
}

bool hrt_store_checkpoint_is_written(const struct hrt_saving *saving) {
    return hrt_store_writer_has_ended(&saving->writer);
}

static bool make_visible(struct hrt_saving *saving, struct hrt_error *error) {
    const struct hrt_checkpoints *to = saving->to;
    if (!hrt_train_ranks_agree(saving->comm, hrt_store_writer_finish(&saving->writer, error),
                               error))
        return false;
    int64_t *collected = collect(saving);
    const bool done = saving->comm->rank > 0 ||
                      (complete(saving, collected, error) &&
                       hrt_store_folder_publish(to->dir, saving->step, error) &&
                       hrt_store_folder_prune(to->dir, to->keep, to->keep_every, error));
    free(collected);
    return hrt_train_ranks_agree(saving->comm, done, error);
}

bool hrt_store_checkpoint_finish(struct hrt_saving *saving, struct hrt_error *error) {
    const bool saved = make_visible(saving, error);
    if (!saved && saving->comm->rank == 0) hrt_store_folder_drop(saving->to->dir, saving->step);
    destroy(saving);
    return saved;
}

void hrt_store_checkpoint_abandon(struct hrt_saving *saving) {
    struct hrt_error ignored;
    if (!saving) return;
    hrt_store_writer_stop(&saving->writer);
    hrt_store_writer_finish(&saving->writer, &ignored);
    if (saving->comm->rank == 0) hrt_store_folder_drop(saving->to->dir, saving->step);
    destroy(saving);
}
