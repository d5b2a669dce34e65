// Parameters into one file.
#include "runtime/store/weights.h"

#include "files/files.h"
#include "runtime/params/gather.h"
#include "runtime/params/listing.h"
#include "runtime/params/safetensors_write.h"
#include "runtime/params/tensor.h"

// The tensors to write, and this rank's part.
struct saving {
    const struct hrt_program *program;
    struct hrt_gather gather;
    struct hrt_listing list;
    size_t brought; // Tensors of the list so far.
};

// Brings the next tensor of the list.
static const void *bring(void *context, const struct hrt_tensor *tensor) {
    struct saving *saving = context;
    saving->brought++;
    return hrt_gather_tensor(&saving->gather, tensor);
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

static bool save(struct saving *saving, const char *path, struct hrt_error *error) {
    if (!hrt_listing_create(&saving->list, saving->program, HRT_PARAMETERS, error)) return false;
    bool saved = hrt_gather_open(&saving->gather, error);
    if (saved) {
        saved = hrt_gather_sends(&saving->gather) || write_file(saving, path, error);
        bring_rest(saving); // A file that cannot be written keeps no other rank waiting.
        hrt_gather_close(&saving->gather);
    }
    hrt_listing_free(&saving->list);
    return saved;
}

bool hrt_store_save(const struct hrt_placement *placement, const void *params, const char *path,
                    struct hrt_error *error) {
    struct saving saving = {.program = placement->program,
                            .gather = {.placement = placement, .params = params}};
    return save(&saving, path, error);
}

bool hrt_store_gather(const struct hrt_placement *placement, const void *params,
                      struct hrt_comm *comm, const char *path, struct hrt_error *error) {
    struct saving saving = {.program = placement->program,
                            .gather = {.placement = placement, .params = params}};
    if (placement->owner) saving.gather.comm = comm;
    if (!placement->owner && comm->rank > 0) return true; // Rank 0 has everything.
    return save(&saving, path, error);
}

bool hrt_store_check_writable(const char *path, struct hrt_error *error) {
    const char *why;
    return hf_can_replace(path, &why) || hrt_fail(error, "cannot write '%s': %s", path, why);
}
