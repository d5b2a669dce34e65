// From the arena into a file, block by block.
#include "runtime/train/logits.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "kernels/bf16.h"
#include "runtime/params/tensor.h"

enum { BLOCK = 4096 };

bool hrt_logits_open(struct hrt_logits *logits, const char *path, const struct hrt_program *program,
                     int64_t sequences, struct hrt_error *error) {
    const int64_t shape[] = {sequences, program->positions, program->vocabulary};
    const int64_t bytes = shape[0] * shape[1] * shape[2] * hrt_element_bytes(program->precision);
    const char *why;
    int64_t offset = 0;
    *logits = (struct hrt_logits){.path = path};
    if (!hf_replace_begin(&logits->replacement, path, &why))
        return hrt_fail(error, "cannot write '%s': %s", path, why);
    logits->sink.file = logits->replacement.file;
    json_t *header = json_object();
    const bool declared = hrt_safetensors_declare(
        header, "logits", hrt_element_dtype(program->precision), shape, 3, bytes, &offset);
    if (!declared) errno = ENOMEM;
    if (!declared || !hrt_safetensors_begin(&logits->sink, header)) logits->failed = errno;
    json_decref(header);
    return true;
}

void hrt_logits_add(struct hrt_logits *logits, struct hrt_state *state, int64_t batch) {
    const struct hrt_program *program = state->program;
    const int64_t bytes = hrt_element_bytes(program->precision);
    const int64_t stored = program->logits_bf16 ? (int64_t)sizeof(hk_bf16) : bytes;
    const int64_t count = batch * program->positions * program->vocabulary;
    const char *from = (const char *)state->arena + program->logits_offset;
    double block[BLOCK], values[BLOCK]; // Or of smaller types.
    for (int64_t first = 0; first < count && !logits->failed; first += BLOCK) {
        const int64_t left = count - first, some = left < BLOCK ? left : BLOCK;
        hrt_device_read(&state->device, block, from + first * stored, (size_t)(some * stored),
                        HRT_WHY_VALUES);
        for (int64_t i = 0; i < some; i++)
            hrt_element_set(values, program->precision, i,
                            program->logits_bf16 ? hk_bf16_float(((const hk_bf16 *)block)[i])
                                                 : hrt_element(block, program->precision, i));
        if (!hrt_sink_put(&logits->sink, values, (size_t)(some * bytes))) logits->failed = errno;
    }
}

bool hrt_logits_close(struct hrt_logits *logits, bool whole, struct hrt_error *error) {
    const char *why;
    errno = logits->failed;
    const bool ended = hf_replace_end(&logits->replacement, whole && !logits->failed, &why);
    return ended || !whole || hrt_fail(error, "cannot write '%s': %s", logits->path, why);
}
