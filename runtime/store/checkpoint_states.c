// Muon's states by parameter; all others are AdamW's.
#include "runtime/store/checkpoint_states.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "runtime/net/comm.h"

static bool is_muons(const struct hrt_state *state, const struct hrt_param *param) {
    return state->training == HRT_BY_MUON && param->muon;
}

bool hrt_store_states_note(json_t *facts, const struct hrt_state *state) {
    json_t *muon = json_array();
    for (int i = 0; i < state->program->params; i++) {
        const struct hrt_param *param = &state->program->param[i];
        if (!is_muons(state, param)) continue;
        json_array_append_new(muon, json_pack("{s:s s:I s:I s:I}", "path", param->path, "first",
                                              (json_int_t)param->index_first, "stride",
                                              (json_int_t)param->index_stride, "layers",
                                              (json_int_t)param->layers));
    }
    return muon && json_object_set_new(facts, "muon", muon) == 0;
}

bool hrt_store_states_read(struct hrt_states *states, const json_t *facts,
                           const struct hrt_state *state, struct hrt_error *error) {
    const json_t *settings = json_object_get(facts, "settings");
    const char *optimizer = json_string_value(json_object_get(settings, "train.optimizer"));
    *states = (struct hrt_states){state, json_object_get(facts, "muon")};
    if (states->muon || !optimizer || strcmp(optimizer, "muon") != 0) return true;
    return hrt_fail(error, "it is of an older version, which does not say whose the optimizer's "
                           "states are, Muon's or AdamW's");
}

static int64_t number(const json_t *entry, const char *key) {
    return json_integer_value(json_object_get(entry, key));
}

// Whether an entry of the list is of a layer of this parameter. Layers are told by their index under the repeat.
static bool is_of(const json_t *entry, const struct hrt_param *param, int64_t layer) {
    const char *path = json_string_value(json_object_get(entry, "path"));
    if (!path || strcmp(path, param->path) != 0) return false;
    const int64_t index = param->index_first + layer * param->index_stride;
    const int64_t first = number(entry, "first"), stride = number(entry, "stride");
    const int64_t behind = index - first;
    if (behind == 0 || stride <= 0) return behind == 0;
    return behind > 0 && behind % stride == 0 && behind / stride < number(entry, "layers");
}

static bool was_muons(const struct hrt_states *states, const struct hrt_param *param,
                      int64_t layer) {
    for (size_t i = 0; i < json_array_size(states->muon); i++) {
        if (is_of(json_array_get(states->muon, i), param, layer)) return true;
    }
    return false;
}

bool hrt_store_states_fit(const void *context, const struct hrt_tensor *tensor) {
    const struct hrt_states *states = context;
    return was_muons(states, tensor->param, tensor->layer) ==
           is_muons(states->state, tensor->param);
}

// Layers of a parameter whose states are another optimizer's.
static int64_t count_others(const struct hrt_states *states, const struct hrt_param *param) {
    int64_t others = 0;
    for (int64_t layer = 0; layer < param->layers && param->trainable; layer++)
        others +=
            !hrt_store_states_fit(states, &(struct hrt_tensor){.param = param, .layer = layer});
    return others;
}

void hrt_store_states_warn(const struct hrt_states *states, const char *folder) {
    const struct hrt_state *state = states->state;
    const struct hrt_param *first = NULL;
    int64_t others = 0;
    for (int i = 0; i < state->program->params; i++) {
        const struct hrt_param *param = &state->program->param[i];
        const int64_t of_param = count_others(states, param);
        if (of_param && !first) first = param;
        others += of_param;
    }
    if (!first || (state->comm && state->comm->rank > 0)) return;
    hrt_warn(
        state->program->name,
        "'%s' has the optimizer's states of %" PRId64
        " parameters that are of another optimizer here, the first %.200s (%s there, %s here): "
        "these begin at zero",
        folder, others, first->path, is_muons(state, first) ? "AdamW's" : "Muon's",
        is_muons(state, first) ? "Muon's" : "AdamW's");
}
