// A page is at home where the first touch has put it: the parts for the device come first.
#include "runtime/params/chunks.h"

enum hrt_home hrt_params_home(const struct hrt_program *program, enum hpl_buffer buffer) {
    const bool states = buffer == HPL_STATE || buffer == HPL_OTHER_STATE;
    const bool masters = buffer == HPL_PARAMETERS && program->bind_rounded;
    return program->host_states && (states || masters) ? HRT_AT_HOST : HRT_AT_DEVICE;
}

char *hrt_params_chunk_at(const struct hrt_state *state, enum hpl_buffer buffer, int set,
                          int64_t chunk, size_t *bytes) {
    const struct hpl_held *held = &state->placement->held;
    const struct hpl_held_set *of = &held->set[set];
    const int64_t element = hpl_held_element(held, buffer);
    char *base = buffer == HPL_COPIES ? state->rounded : state->values[buffer];
    int64_t first;
    *bytes = (size_t)(hpl_held_part(held, set, buffer, &first) * element);
    if (!base || *bytes == 0) return NULL;
    return base + (of->offset + chunk * of->chunk_elements + first) * element;
}

bool hrt_params_chunk_touch(struct hrt_state *state, enum hpl_buffer buffer, int set,
                            int64_t chunk) {
    size_t bytes;
    char *at = hrt_params_chunk_at(state, buffer, set, chunk, &bytes);
    const enum hrt_home home = hrt_params_home(state->program, buffer);
    if (!at) return true;
    if (home == HRT_AT_DEVICE || buffer != HPL_PARAMETERS)
        return hrt_device_touch(&state->device, at, bytes, home);
    const size_t read = (size_t)(hpl_held_chunk(&state->placement->held, set, HPL_READ) *
                                 state->placement->held.element);
    if (!hrt_device_touch(&state->device, at, read, HRT_AT_DEVICE)) return false;
    const bool touched = hrt_device_touch(&state->device, at, bytes, home);
    hrt_device_leave(&state->device, at, read); // The chunk's touch keeps the pages.
    return touched;
}

void hrt_params_chunk_leave(struct hrt_state *state, enum hpl_buffer buffer, int set,
                            int64_t chunk) {
    size_t bytes;
    char *at = hrt_params_chunk_at(state, buffer, set, chunk, &bytes);
    if (at) hrt_device_leave(&state->device, at, bytes);
}
