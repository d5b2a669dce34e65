// Parameters into one file.
#include "runtime/store/weights.h"

#include "files/files.h"
#include "runtime/params/gather.h"
#include "runtime/params/listing.h"
#include "runtime/params/safetensors_write.h"
#include "runtime/params/tensor.h"

enum { BLOCK = 4096 };

// The tensors to write, and this rank's part.
struct saving {
    const struct hrt_program *program;
    struct hrt_gather gather;
    struct hrt_listing list;
    size_t begun; // Tensors of the list so far.
};

static void begin_next(struct saving *saving) {
    hrt_params_gather_tensor(&saving->gather, &saving->list.entry[saving->begun++].tensor, 0);
}

static bool write_slice(const struct saving *saving, struct hrt_sink *sink) {
    const struct hrt_slice *slice = &saving->gather.slice;
    const size_t bytes = (size_t)hrt_params_element_bytes(saving->program->precision);
    double block[BLOCK]; // Or floats.
    for (int64_t at = 0; at < slice->run; at += BLOCK) {
        const int64_t left = slice->run - at, count = left < BLOCK ? left : BLOCK;
        hrt_params_slice_read(saving->program, slice, slice->first + at, count, block);
        if (!hrt_params_sink_put(sink, block, bytes * (size_t)count)) return false;
    }
    return true;
}

static bool write_all(struct saving *saving, struct hrt_sink *sink) {
    if (!hrt_params_safetensors_begin_listing(sink, saving->program, &saving->list)) return false;
    while (saving->begun < saving->list.entries) {
        begin_next(saving);
        while (hrt_params_gather_next(&saving->gather)) {
            if (!write_slice(saving, sink)) return false;
        }
    }
    return true;
}

// Brings the slices that are not written.
static void bring_rest(struct saving *saving) {
    while (hrt_params_gather_next(&saving->gather)) continue;
    while (saving->begun < saving->list.entries) {
        begin_next(saving);
        while (hrt_params_gather_next(&saving->gather)) continue;
    }
}

static bool write_file(struct saving *saving, const char *path, struct hrt_error *error) {
    struct hf_replacement replacement;
    const char *why;
    if (!hf_replace_begin(&replacement, path, &why))
        return hrt_fail(error, "cannot write '%s': %s", path, why);
    struct hrt_sink sink = {.file = replacement.file};
    const bool written = write_all(saving, &sink);
    return hf_replace_end(&replacement, written, &why) ||
           hrt_fail(error, "cannot write '%s': %s", path, why);
}

static bool save(struct saving *saving, const char *path, struct hrt_error *error) {
    if (!hrt_params_listing_create(&saving->list, saving->program, HRT_PARAMETERS, error))
        return false;
    bool saved = hrt_params_gather_open(&saving->gather, error);
    if (saved) {
        saved = hrt_params_gather_sends(&saving->gather) || write_file(saving, path, error);
        bring_rest(saving); // A file that cannot be written keeps no other rank waiting.
        hrt_params_gather_close(&saving->gather);
    }
    hrt_params_listing_free(&saving->list);
    return saved;
}

bool hrt_store_save(const struct hrt_buffer *params, const char *path, struct hrt_error *error) {
    struct saving saving = {.program = params->placement->program, .gather = {.buffer = *params}};
    return save(&saving, path, error);
}

bool hrt_store_gather(const struct hrt_buffer *params, struct hrt_comm *comm, const char *path,
                      struct hrt_error *error) {
    struct saving saving = {.program = params->placement->program, .gather = {.buffer = *params}};
    const bool gathers = hrt_params_gathers(params);
    if (gathers) saving.gather.comm = comm;
    if (!gathers && comm->rank > 0) return true; // Rank 0 has everything.
    return save(&saving, path, error);
}

bool hrt_store_check_writable(const char *path, struct hrt_error *error) {
    const char *why;
    return hf_can_replace(path, &why) || hrt_fail(error, "cannot write '%s': %s", path, why);
}
