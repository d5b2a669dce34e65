// Parameters into one file; on several ranks they come to rank 0.
#include "runtime/params/store.h"

#include <stdlib.h>

#include "files/files.h"
#include "runtime/params/listing.h"
#include "runtime/params/safetensors_write.h"
#include "runtime/params/tensor.h"
#include "runtime/transport/transport.h"

// Sends a tensor of this rank to rank 0, or receives it there; returns where it lies then.
static const void *move_tensor(const struct hrt_placement *placement, struct hrt_comm *comm,
                               const void *params, const struct hrt_tensor *tensor, void *room) {
    const size_t element = (size_t)hrt_element_bytes(placement->program->precision);
    const size_t bytes = (size_t)tensor->param->elements * element;
    const char *own = (const char *)params + (size_t)tensor->offset * element;
    const int owner = hrt_tensor_rank(placement, tensor);
    struct hrt_step step;
    struct hrt_steps steps = {.step = &step, .room = 1};
    if (owner == 0) return own;
    if (comm->rank == 0) {
        hrt_steps_receive(&steps, owner, room, bytes, -1);
    } else if (comm->rank == owner) {
        hrt_steps_send(&steps, 0, own, bytes, -1);
    } else {
        return NULL;
    }
    hrt_join(comm, hrt_submit(comm, HRT_LANE_SAVE, &steps), "the parameters to be saved");
    return room;
}

// What is written, and by whom.
struct saving {
    const struct hrt_placement *placement;
    const struct hrt_program *program; // Of that.
    struct hrt_comm *comm;             // NULL: everything is here.
    const void *params;
    void *room; // For one tensor of another rank.
    struct hrt_listing list;
    size_t brought; // Of the list.
};

// Brings the next tensor of the list.
static const void *bring(void *context, const struct hrt_tensor *tensor) {
    struct saving *saving = context;
    const size_t element = (size_t)hrt_element_bytes(saving->program->precision);
    saving->brought++;
    if (saving->comm)
        return move_tensor(saving->placement, saving->comm, saving->params, tensor, saving->room);
    return (const char *)saving->params + (size_t)tensor->offset * element;
}

// Those that nobody has asked for.
static void bring_rest(struct saving *saving) {
    while (saving->brought < saving->list.entries)
        bring(saving, &saving->list.entry[saving->brought].tensor);
}

static bool write_file(struct saving *saving, const char *path, struct hrt_error *error) {
    struct hf_replacement replacement;
    const char *why;
    if (!hf_replace_begin(&replacement, path, &why))
        return hrt_fail(error, "cannot write '%s': %s", path, why);
    struct hrt_sink sink = {.file = replacement.file};
    const bool written =
        hrt_safetensors_write(&sink, saving->program, &saving->list, bring, saving);
    return hf_replace_end(&replacement, written, &why) ||
           hrt_fail(error, "cannot write '%s': %s", path, why);
}

// The largest tensor, stored.
static size_t room_bytes(const struct hrt_program *program) {
    int64_t most = 1;
    for (int i = 0; i < program->params; i++) {
        if (program->param[i].elements > most) most = program->param[i].elements;
    }
    return (size_t)(most * hrt_element_bytes(program->precision));
}

static bool save(struct saving *saving, const char *path, struct hrt_error *error) {
    if (!hrt_listing_create(&saving->list, saving->program, HRT_PARAMETERS, error)) return false;
    bool saved = true;
    if (saving->comm && saving->comm->rank > 0) {
        bring_rest(saving);
    } else {
        if (saving->comm) saving->room = malloc(room_bytes(saving->program));
        saved = !saving->comm || saving->room ? write_file(saving, path, error)
                                              : hrt_fail(error, "out of memory");
        // A file that cannot be written keeps no other rank waiting.
        if (saving->room) bring_rest(saving);
        free(saving->room);
    }
    hrt_listing_free(&saving->list);
    return saved;
}

bool hrt_store_save(const struct hrt_placement *placement, const void *params, const char *path,
                    struct hrt_error *error) {
    struct saving saving = {
        .placement = placement, .program = placement->program, .params = params};
    return save(&saving, path, error);
}

bool hrt_store_gather(const struct hrt_placement *placement, const void *params,
                      struct hrt_comm *comm, const char *path, struct hrt_error *error) {
    struct saving saving = {
        .placement = placement, .program = placement->program, .params = params};
    if (placement->owner) saving.comm = comm;
    if (!placement->owner && comm->rank > 0) return true; // Rank 0 has everything.
    return save(&saving, path, error);
}

bool hrt_store_check_writable(const char *path, struct hrt_error *error) {
    const char *why;
    return hf_can_replace(path, &why) || hrt_fail(error, "cannot write '%s': %s", path, why);
}
