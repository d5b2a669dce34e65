// Finds, checks and reads a program's tensors.
#include "runtime/store/hf_load.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/params/listing.h"
#include "runtime/params/tensor.h"
#include "runtime/store/hf_folder.h"
#include "runtime/store/hf_names.h"
#include "runtime/store/hf_needless.h"
#include "runtime/store/hf_predictors.h"
#include "runtime/store/peft.h"
#include "runtime/store/strips.h"

enum { SCALED = HRT_SCALED, TEXT = 160 }; // Bytes of a shape's text.

// One of our tensors, and the layout in which it lies there.
struct sought {
    struct hrt_found at;
    const struct hrt_hf_layout *layout; // NULL: none was found.
    struct hrt_hf_view view;
};

struct loading {
    const struct hrt_placement *placement;
    const struct hrt_hf_family *family;
    struct hrt_hf_folder folder;
    bool adapters;          // They alone are read; else all others.
    json_t *left;           // Names of tensors of which nothing, or not all, was asked for;
    json_t *begun;          // elements that are left of the latter.
    struct hrt_found *here; // [count]: this rank's tensors.
    size_t count;
    struct hrt_store_doubts *doubts;
    struct hrt_error *error;
};

// ---- finding

static void shape_text(char text[TEXT], const int64_t *shape, int rank) {
    size_t used = (size_t)snprintf(text, TEXT, "[");
    for (int i = 0; i < rank && used < TEXT; i++)
        used += (size_t)snprintf(text + used, TEXT - used, "%s%" PRId64, i ? "," : "", shape[i]);
    if (used < TEXT) snprintf(text + used, TEXT - used, "]");
}

static bool check_shape(const struct loading *loading, const struct hrt_safetensors *file,
                        const struct hrt_stored *entry, const int64_t *shape, int rank) {
    char wanted[TEXT];
    if (hrt_store_hf_has_shape(entry, shape, rank)) return true;
    shape_text(wanted, shape, rank);
    char *there = json_dumps(entry->shape, JSON_COMPACT);
    hrt_fail(loading->error, "'%s' is of another model: '%s' has shape %s there, and %s here",
             file->path, entry->name, there ? there : "?", wanted);
    free(there);
    return false;
}

// An 8-bit tensor has a factor for each block, in a tensor of its own.
static bool find_scale(struct loading *loading, struct sought *found) {
    const struct hrt_stored *entry = found->at.entry;
    char name[HRT_PATH_MAX + 16];
    if (entry->dtype->bits != 8) return true;
    snprintf(name, sizeof name, "%s_scale_inv", entry->name);
    found->at.scale = hrt_store_hf_find(&loading->folder, name, &found->at.scale_file);
    if (!found->at.scale || !found->view.place.turned || found->view.rank != 2 ||
        found->layout->adapters)
        return hrt_fail(loading->error,
                        "'%s': tensor '%s' is %s without '%s' of its blocks' scales",
                        found->at.file->path, entry->name, entry->dtype->name, name);
    json_object_del(loading->left, name);
    const int64_t shape[] = {(found->view.place.rows + SCALED - 1) / SCALED,
                             (found->view.place.columns + SCALED - 1) / SCALED};
    if (!found->at.scale->dtype->value)
        return hrt_fail(loading->error, "'%s': tensor '%s' is %s", found->at.scale_file->path, name,
                        found->at.scale->dtype->name);
    return check_shape(loading, found->at.scale_file, found->at.scale, shape, 2);
}

static bool fail_missing(const struct loading *loading, const struct hrt_tensor *tensor,
                         const char *name) {
    char path[HRT_PATH_MAX];
    hrt_params_tensor_path(tensor, path);
    return hrt_fail(loading->error, "'%s' is of another model: it has no tensor '%s' ('%s' here)",
                    loading->folder.path, name, path);
}

// Whether a tensor beside this one says that it lies as `layout` says, which its own shape does not.
static bool is_meant(const struct loading *loading, const struct hrt_tensor *tensor,
                     const struct hrt_hf_layout *layout) {
    struct hrt_safetensors *file;
    char name[HRT_PATH_MAX];
    int64_t shape[3];
    if (!layout->beside) return true;
    hrt_store_hf_name(loading->placement->program, tensor, layout->beside, name);
    const struct hrt_stored *beside = hrt_store_hf_find(&loading->folder, name, &file);
    hrt_store_hf_shape_beside(loading->placement->program, tensor, layout, shape);
    return beside && hrt_store_hf_has_shape(beside, shape, 3);
}

// Finds the layout in which the folder has a tensor: its name is there, and the shape fits. Where only the name is
// there, `found` is the first such.
static void find_layout(const struct loading *loading, const struct hrt_tensor *tensor,
                        const struct hrt_hf_rule *rule, struct sought *found) {
    bool fits = false;
    *found = (struct sought){.at.tensor = *tensor};
    for (int i = 0; i < HRT_HF_LAYOUTS && rule->layout[i].name; i++) {
        const struct hrt_hf_layout *layout = &rule->layout[i];
        struct sought here = {
            .layout = layout,
            .view = hrt_store_hf_view_of(loading->placement->program, tensor, layout)};
        here.at = (struct hrt_found){
            .tensor = *tensor, .mxfp4 = layout->scales, .place = here.view.place};
        char name[HRT_PATH_MAX];
        hrt_store_hf_name(loading->placement->program, tensor, layout->name, name);
        here.at.entry = hrt_store_hf_find(&loading->folder, name, &here.at.file);
        if (!here.at.entry) continue;
        const bool fits_too =
            hrt_store_hf_has_shape(here.at.entry, here.view.shape, here.view.rank);
        if (!found->at.entry || (fits_too && (!fits || is_meant(loading, tensor, layout))))
            *found = here;
        fits = fits || fits_too;
    }
}

// The scales of what is stored in MXFP4.
static bool find_exponents(struct loading *loading, const struct hrt_tensor *tensor,
                           struct sought *found) {
    const struct hrt_stored *entry = found->at.entry;
    char name[HRT_PATH_MAX];
    hrt_store_hf_name(loading->placement->program, tensor, found->layout->scales, name);
    found->at.scale = hrt_store_hf_find(&loading->folder, name, &found->at.scale_file);
    if (!found->at.scale)
        return hrt_fail(loading->error, "'%s': tensor '%s' is there without '%s' of its scales",
                        found->at.file->path, entry->name, name);
    json_object_del(loading->left, name);
    if (strcmp(entry->dtype->name, "U8") != 0)
        return hrt_fail(loading->error, "'%s': tensor '%s' is %s; MXFP4 is U8",
                        found->at.file->path, entry->name, entry->dtype->name);
    if (strcmp(found->at.scale->dtype->name, "U8") != 0 &&
        strcmp(found->at.scale->dtype->name, "F8_E8M0") != 0)
        return hrt_fail(loading->error, "'%s': tensor '%s' is %s; scales of MXFP4 are U8",
                        found->at.scale_file->path, name, found->at.scale->dtype->name);
    return check_shape(loading, found->at.scale_file, found->at.scale, found->view.shape,
                       found->view.rank - 1);
}

// Notes that one of our tensors was asked for: the folder's one, or a part of it.
static void take(struct loading *loading, const struct sought *found) {
    const struct hrt_hf_layout *layout = found->layout;
    const struct hrt_hf_view *view = &found->view;
    const char *name = found->at.entry->name;
    if (!json_object_get(loading->left, name)) return;
    const json_t *before = json_object_get(loading->begun, name);
    const int64_t all = view->slab * view->slabs;
    const int64_t parts = layout->parts ? layout->parts : 1;
    const int64_t own =
        layout->joined ? view->place.rows * view->place.columns : view->slab / parts;
    const int64_t left = (before ? json_integer_value(before) : all) - own;
    if (left > 0)
        json_object_set_new(loading->begun, name, json_integer(left));
    else
        json_object_del(loading->left, name);
}

static bool find(struct loading *loading, const struct hrt_tensor *tensor, struct sought *found) {
    struct hrt_hf_adapter_rule made;
    const struct hrt_hf_rule *rule =
        hrt_store_hf_rule_for(loading->placement->program, loading->family, tensor->param, &made);
    char name[HRT_PATH_MAX], path[HRT_PATH_MAX];
    hrt_params_tensor_path(tensor, path);
    if (!rule)
        return hrt_fail(loading->error, "parameter '%s' has no name in family %s", path,
                        loading->family->name);
    hrt_store_hf_name(loading->placement->program, tensor, rule->layout[0].name, name);
    find_layout(loading, tensor, rule, found);
    if (!found->at.entry) return fail_missing(loading, tensor, name);
    if (!check_shape(loading, found->at.file, found->at.entry, found->view.shape, found->view.rank))
        return false;
    take(loading, found);
    if (found->layout->scales) return find_exponents(loading, tensor, found);
    if (!found->at.entry->dtype->value)
        return hrt_fail(loading->error,
                        "'%s': tensor '%s' is %s; only F64, F32, BF16, F16 and F8_E4M3 can be read",
                        found->at.file->path, found->at.entry->name, found->at.entry->dtype->name);
    return find_scale(loading, found);
}

// One warning says all that is not read.
static void warn_left(struct loading *loading, size_t count, const char *which) {
    struct hrt_store_doubts *doubts = loading->doubts;
    if (!doubts || count == 0) return;
    const size_t used = strlen(doubts->left);
    if (used)
        snprintf(doubts->left + used, sizeof doubts->left - used, "; nor are %zu %s", count, which);
    else
        snprintf(doubts->left, sizeof doubts->left,
                 "'%.150s' has %zu tensors %s; they are not read", loading->folder.path, count,
                 which);
}

// Settles tensors of a layer that predicts a token more: copies of shared tensors, or all of it where the program has
// no such layer.
static bool settle_predictors(struct loading *loading) {
    const struct hrt_program *program = loading->placement->program;
    if (!hrt_store_hf_may_predict(loading->family)) return true;
    if (hrt_store_hf_predicts(loading->family, program))
        return hrt_store_hf_check_copies(&loading->folder, loading->family, program, loading->left);
    warn_left(loading, hrt_store_hf_pass_over(loading->left),
              "of layers that predict further tokens");
    return true;
}

static bool settle_needless(struct loading *loading) {
    struct hrt_hf_needless needless;
    char which[HRT_PATH_MAX + 64];
    if (!hrt_store_hf_pass_needless(&loading->folder, loading->family, loading->placement->program,
                                    loading->left, &needless))
        return false;
    snprintf(which, sizeof which, "that no program needs, as '%.200s'", needless.first);
    warn_left(loading, needless.count, which);
    return true;
}

// The folder's tensors and the program's must be the same.
static bool check_all(struct loading *loading) {
    const struct hrt_placement *placement = loading->placement;
    struct hrt_tensor tensor = {0};
    size_t room = 1;
    while (hrt_params_tensor_next(placement->program, &tensor)) room++;
    loading->left = json_copy(loading->folder.where);
    loading->begun = json_object();
    loading->here = calloc(room, sizeof *loading->here);
    if (!loading->left || !loading->begun || !loading->here)
        return hrt_fail(loading->error, "out of memory");
    tensor = (struct hrt_tensor){0};
    while (hrt_params_tensor_next(placement->program, &tensor)) {
        struct sought sought;
        if (!hrt_params_is_stored(tensor.param, HRT_PARAMETERS) ||
            (tensor.param->lora != HRT_LORA_NONE) != loading->adapters)
            continue;
        if (!find(loading, &tensor, &sought)) return false;
        sought.at.watched = hrt_params_tensor_rank(placement, &tensor) == placement->rank;
        if (hrt_params_tensor_is_here(placement, &tensor))
            loading->here[loading->count++] = sought.at;
    }
    if (!loading->adapters && (!settle_predictors(loading) || !settle_needless(loading)))
        return false;
    warn_left(loading, loading->folder.passed, "beside its text model");
    void *rest = json_object_iter(loading->left);
    if (!rest) return true;
    struct hrt_safetensors *file;
    const struct hrt_stored *entry =
        hrt_store_hf_find(&loading->folder, json_object_iter_key(rest), &file);
    if (json_object_get(loading->begun, entry->name))
        return hrt_fail(loading->error,
                        "'%s' is of another model: this one has not all that is in tensor '%s'",
                        file->path, entry->name);
    return hrt_fail(loading->error,
                    "'%s' is of another model: this one has no tensor '%s' (%zu such in all)",
                    file->path, entry->name, json_object_size(loading->left));
}

static bool load(const struct hrt_buffer *params, const char *path, bool adapters,
                 struct hrt_store_doubts *doubts, struct hrt_error *error) {
    const struct hrt_placement *placement = params->placement;
    struct loading loading = {.placement = placement,
                              .family = hrt_store_hf_family_of(placement->program),
                              .adapters = adapters,
                              .doubts = doubts,
                              .error = error};
    if (doubts) *doubts = (struct hrt_store_doubts){0};
    if (!loading.family)
        return hrt_fail(error,
                        "'%s' has names of Hugging Face's, and this program knows none: add names "
                        "hf { family = ... } to its model",
                        path);
    const bool opened = adapters ? hrt_store_hf_folder_open_adapters(&loading.folder, path, error)
                                 : hrt_store_hf_folder_open(&loading.folder, path, error);
    const bool loaded = opened && check_all(&loading) &&
                        hrt_store_read_found(params, loading.here, loading.count, doubts, error);
    free(loading.here);
    json_decref(loading.left);
    json_decref(loading.begun);
    hrt_store_hf_folder_close(&loading.folder);
    return loaded;
}

bool hrt_store_hf_load(const struct hrt_buffer *params, const char *path,
                       struct hrt_store_doubts *doubts, struct hrt_error *error) {
    return load(params, path, false, doubts, error);
}

bool hrt_store_hf_load_adapters(const struct hrt_buffer *params, const char *path,
                                struct hrt_store_doubts *doubts, struct hrt_error *error) {
    return hrt_store_peft_check(path, params->placement->program, error) &&
           load(params, path, true, doubts, error);
}
