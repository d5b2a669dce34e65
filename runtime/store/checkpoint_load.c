// Finding a sound checkpoint, and reading it.
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files/files.h"
#include "runtime/store/checkpoint.h"
#include "runtime/store/checkpoint_folder.h"
#include "runtime/store/checkpoint_states.h"
#include "runtime/store/checkpoint_values.h"
#include "runtime/store/weights.h"
#include "runtime/train/ranks.h"

static bool read_facts(struct hrt_checkpoint *checkpoint, struct hrt_error *error) {
    char path[PATH_MAX];
    const char *why;
    json_error_t where;
    if (!hrt_store_part_path(path, checkpoint->folder, HRT_FACTS_FILE, error)) return false;
    FILE *file = hf_input(path, false, &why);
    if (!file) return hrt_fail(error, "cannot open '%s': %s", path, why);
    checkpoint->facts = json_loadf(file, JSON_REJECT_DUPLICATES, &where);
    fclose(file);
    if (json_is_object(checkpoint->facts)) return true;
    return hrt_fail(error, "'%s' is damaged: it is not an object of JSON", path);
}

// Ranks share out the files.
static bool verify(struct hrt_checkpoint *checkpoint, int64_t step, const struct hrt_comm *comm,
                   struct hrt_error *error) {
    if (!hrt_store_index_read(checkpoint->folder, &checkpoint->index, error)) return false;
    if (checkpoint->index.step != step)
        return hrt_fail(error, "'%s' holds step %" PRId64, checkpoint->folder,
                        checkpoint->index.step);
    for (int i = comm->rank; i < checkpoint->index.parts; i += comm->size) {
        if (!hrt_store_part_check(checkpoint->folder, &checkpoint->index.part[i], error))
            return false;
    }
    return read_facts(checkpoint, error);
}

// Whether all ranks find this one sound. Else the one that does not says why.
static bool try(struct hrt_checkpoint *checkpoint, const char *dir, int64_t step,
                const char *program, struct hrt_comm *comm) {
    struct hrt_error error = {0};
    *checkpoint = (struct hrt_checkpoint){.step = step};
    const bool sound = hrt_store_folder_of(checkpoint->folder, dir, step, &error) &&
                       verify(checkpoint, step, comm, &error);
    if (hrt_train_ranks_agree(comm, sound, &error)) return true;
    if (*error.text) hrt_warn(program, "step %" PRId64 " cannot be resumed: %s", step, error.text);
    hrt_store_checkpoint_free(checkpoint);
    return false;
}

// The steps that rank 0 sees; freed by the caller.
static bool list_together(const char *dir, struct hrt_comm *comm, int64_t **step, int64_t *steps,
                          struct hrt_error *error) {
    size_t seen = 0;
    int64_t *own = NULL;
    const bool listed = comm->rank > 0 || hrt_store_folder_list(dir, &own, &seen, error);
    if (!hrt_train_ranks_agree(comm, listed, error)) {
        free(own);
        return false;
    }
    *steps = (int64_t)seen;
    hrt_net_comm_all_reduce(comm, steps, 1, HRT_INT64);
    if (comm->rank > 0) own = calloc((size_t)*steps + 1, sizeof *own);
    if (!hrt_train_ranks_agree(comm, own || *steps == 0 || hrt_fail(error, "out of memory"),
                               error)) {
        free(own);
        return false;
    }
    if (*steps > 0) hrt_net_comm_all_reduce(comm, own, *steps, HRT_INT64);
    *step = own;
    return true;
}

bool hrt_store_checkpoint_find(struct hrt_checkpoint *checkpoint, const char *dir,
                               const char *program, struct hrt_comm *comm,
                               struct hrt_error *error) {
    int64_t *step, steps;
    *checkpoint = (struct hrt_checkpoint){0};
    if (!list_together(dir, comm, &step, &steps, error)) return false;
    for (int64_t i = 0; i < steps && checkpoint->step == 0; i++)
        try(checkpoint, dir, step[i], program, comm);
    free(step);
    if (checkpoint->step > 0 || steps == 0) return true;
    hrt_fail(error, "no checkpoint in '%s' can be resumed", dir);
    return hrt_train_ranks_agree(comm, false, error);
}

void hrt_store_checkpoint_free(struct hrt_checkpoint *checkpoint) {
    hrt_store_index_free(&checkpoint->index);
    json_decref(checkpoint->facts);
    *checkpoint = (struct hrt_checkpoint){0};
}

// ---- tensors

static bool is_of(const struct hrt_part *part, const char *kind) {
    const size_t length = strlen(kind);
    return strncmp(part->name, kind, length) == 0 && part->name[length] == '.';
}

// Paths of the files of one kind; freed by the caller. Returns how many; 0: none, or `error`.
static int list_files(const struct hrt_checkpoint *checkpoint, const char *kind,
                      char (**path)[PATH_MAX], struct hrt_error *error) {
    const struct hrt_index *index = &checkpoint->index;
    int count = 0;
    for (int i = 0; i < index->parts; i++) count += is_of(&index->part[i], kind);
    *path = count ? calloc((size_t)count, sizeof **path) : NULL;
    count = 0;
    for (int i = 0; *path && i < index->parts; i++) {
        if (!is_of(&index->part[i], kind)) continue;
        if (!hrt_store_part_path((*path)[count++], checkpoint->folder, index->part[i].name, error))
            return 0;
    }
    return count;
}

// Reads the files of one kind into `buffer`.
static bool restore(const struct hrt_checkpoint *checkpoint, const struct hrt_buffer *buffer,
                    int number, struct hrt_store_choice choice, struct hrt_store_doubts *doubts,
                    struct hrt_error *error) {
    const char *kind = hrt_value_files[number].name;
    char(*path)[PATH_MAX];
    *error->text = '\0';
    const int count = list_files(checkpoint, kind, &path, error);
    const char **name = calloc((size_t)count + 1, sizeof *name);
    for (int i = 0; name && i < count; i++) name[i] = path[i];
    bool read = name || hrt_fail(error, "out of memory");
    if (read && count == 0)
        read = *error->text ? false
                            : hrt_fail(error, "'%s' has no files of %s", checkpoint->folder, kind);
    read = read && hrt_store_restore_parts(buffer, hrt_value_files[number].values, name, count,
                                           choice, doubts, error);
    free(name);
    free(path);
    return read;
}

static bool load_values(const struct hrt_checkpoint *checkpoint, struct hrt_state *state,
                        int number, const struct hrt_states *states, struct hrt_error *error) {
    const enum hrt_values values = hrt_value_files[number].values;
    const struct hrt_store_choice choice = {values >= HRT_MEANS ? hrt_store_states_fit : NULL,
                                            states};
    const struct hrt_buffer buffer = hrt_params_state_buffer(state, values);
    return restore(checkpoint, &buffer, number, choice, NULL, error);
}

bool hrt_store_checkpoint_load(const struct hrt_checkpoint *checkpoint, struct hrt_state *state,
                               struct hrt_error *error) {
    struct hrt_states states = {.state = state};
    struct hrt_error unknown;
    if (state->training && !hrt_store_states_read(&states, checkpoint->facts, state, &unknown))
        return hrt_fail(error, "'%s' cannot be resumed: %s; --load takes its parameters",
                        checkpoint->folder, unknown.text);
    for (int i = 0; i < HRT_VALUE_FILES; i++) {
        const enum hrt_values values = hrt_value_files[i].values;
        if (!state->values[values]) continue; // Not in training.
        if (!load_values(checkpoint, state, i, &states, error)) return false;
    }
    if (state->training) hrt_store_states_warn(&states, checkpoint->folder);
    return true;
}

static bool check_parameters(const struct hrt_checkpoint *checkpoint, struct hrt_error *error) {
    const struct hrt_index *index = &checkpoint->index;
    for (int i = 0; i < index->parts; i++) {
        if (is_of(&index->part[i], hrt_value_files[0].name) &&
            !hrt_store_part_check(checkpoint->folder, &index->part[i], error))
            return false;
    }
    return true;
}

bool hrt_store_checkpoint_load_parameters(const char *folder, const struct hrt_buffer *params,
                                          struct hrt_store_doubts *doubts,
                                          struct hrt_error *error) {
    struct hrt_checkpoint checkpoint = {0};
    if (snprintf(checkpoint.folder, PATH_MAX, "%s", folder) >= PATH_MAX)
        return hrt_fail(error, "'%.200s...' is too long for a folder", folder);
    const bool loaded =
        hrt_store_index_read(folder, &checkpoint.index, error) &&
        check_parameters(&checkpoint, error) &&
        restore(&checkpoint, params, 0, (struct hrt_store_choice){0}, doubts, error);
    hrt_store_checkpoint_free(&checkpoint);
    return loaded;
}
