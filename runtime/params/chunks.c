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
    *bytes = (size_t)(of->chunk_elements * element);
    if (!base || !hpl_held_has_set(held, set, buffer)) return NULL;
    return base + (of->offset + chunk * of->chunk_elements) * element;
}

// The first `parts` parts of a chunk's parameters that are read as they are, or all of them (-1): touches or leaves
// them. Returns how many it has done.
static int read_parts(struct hrt_state *state, int set, char *at, int parts, bool touch) {
    const struct hpl_held *held = &state->placement->held;
    int done = 0;
    for (int i = 0; i < held->params && done != parts; i++) {
        const struct hpl_held_param *param = &held->param[i];
        char *part = at + param->offset * held->element;
        const size_t bytes = (size_t)(param->elements * held->element);
        if (param->set != set || param->copied) continue;
        if (!touch)
            hrt_device_leave(&state->device, part, bytes);
        else if (!hrt_device_touch(&state->device, part, bytes, HRT_AT_DEVICE))
            return done;
        done++;
    }
    return done;
}

static int count_read(const struct hpl_held *held, int set) {
    int parts = 0;
    for (int i = 0; i < held->params; i++)
        parts += held->param[i].set == set && !held->param[i].copied;
    return parts;
}

bool hrt_params_chunk_touch(struct hrt_state *state, enum hpl_buffer buffer, int set,
                            int64_t chunk) {
    size_t bytes;
    char *at = hrt_params_chunk_at(state, buffer, set, chunk, &bytes);
    const enum hrt_home home = hrt_params_home(state->program, buffer);
    if (!at) return true;
    if (home == HRT_AT_DEVICE || buffer != HPL_PARAMETERS)
        return hrt_device_touch(&state->device, at, bytes, home);
    const int parts = read_parts(state, set, at, -1, true);
    const bool touched = parts == count_read(&state->placement->held, set) &&
                         hrt_device_touch(&state->device, at, bytes, home);
    read_parts(state, set, at, parts, false); // The chunk's touch keeps their pages.
    return touched;
}

void hrt_params_chunk_leave(struct hrt_state *state, enum hpl_buffer buffer, int set,
                            int64_t chunk) {
    size_t bytes;
    char *at = hrt_params_chunk_at(state, buffer, set, chunk, &bytes);
    if (at) hrt_device_leave(&state->device, at, bytes);
}
