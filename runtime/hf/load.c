// Finds, checks and reads a program's tensors.
#include "runtime/hf/load.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/hf/folder.h"
#include "runtime/hf/mxfp4.h"
#include "runtime/hf/names.h"
#include "runtime/hf/predictors.h"
#include "runtime/params/listing.h"
#include "runtime/params/tensor.h"

enum {
    STRIP = 64,   // Rows of a tensor that are read together.
    SCALED = 128, // Rows and columns of a block with one scale.
    TEXT = 160,   // Of a shape.
};

struct loading {
    const struct hrt_placement *placement;
    const struct hrt_hf_family *family;
    struct hrt_hf_folder folder;
    json_t *left;  // Names of tensors of which nothing, or not all, was asked for;
    json_t *begun; // elements that are left of the latter.
    struct hrt_store_doubts *doubts;
    struct hrt_error *error;
};

// One of our tensors in the folder.
struct found {
    struct hrt_safetensors *file;
    const struct hrt_stored *entry, *scale;
    struct hrt_safetensors *scale_file;
    const struct hrt_hf_layout *layout;
    struct hrt_hf_view view;
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
    if (hrt_hf_has_shape(entry, shape, rank)) return true;
    shape_text(wanted, shape, rank);
    char *there = json_dumps(entry->shape, JSON_COMPACT);
    hrt_fail(loading->error, "'%s' is of another model: '%s' has shape %s there, and %s here",
             file->path, entry->name, there ? there : "?", wanted);
    free(there);
    return false;
}

// What is stored in 8 bits has a factor for each block, in a tensor of its own.
static bool find_scale(struct loading *loading, struct found *found) {
    const struct hrt_stored *entry = found->entry;
    char name[HRT_PATH_MAX + 16];
    if (entry->dtype->bits != 8) return true;
    snprintf(name, sizeof name, "%s_scale_inv", entry->name);
    found->scale = hrt_hf_find(&loading->folder, name, &found->scale_file);
    if (!found->scale || !found->view.turned || found->view.rank != 2)
        return hrt_fail(loading->error,
                        "'%s': tensor '%s' is %s without '%s' of its blocks' scales",
                        found->file->path, entry->name, entry->dtype->name, name);
    json_object_del(loading->left, name);
    const int64_t shape[] = {(found->view.rows + SCALED - 1) / SCALED,
                             (found->view.columns + SCALED - 1) / SCALED};
    if (!found->scale->dtype->value)
        return hrt_fail(loading->error, "'%s': tensor '%s' is %s", found->scale_file->path, name,
                        found->scale->dtype->name);
    return check_shape(loading, found->scale_file, found->scale, shape, 2);
}

static bool fail_missing(const struct loading *loading, const struct hrt_tensor *tensor,
                         const char *name) {
    char path[HRT_PATH_MAX];
    hrt_tensor_path(tensor, path);
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
    hrt_hf_name(loading->placement->program, tensor, layout->beside, name);
    const struct hrt_stored *beside = hrt_hf_find(&loading->folder, name, &file);
    hrt_hf_shape_beside(loading->placement->program, tensor, layout, shape);
    return beside && hrt_hf_has_shape(beside, shape, 3);
}

// Finds the layout in which the folder has a tensor: its name is there, and the shape fits. Where only the name is there,
// `found` is the first such.
static void find_layout(const struct loading *loading, const struct hrt_tensor *tensor,
                        const struct hrt_hf_rule *rule, struct found *found) {
    bool fits = false;
    *found = (struct found){0};
    for (int i = 0; i < HRT_HF_LAYOUTS && rule->layout[i].name; i++) {
        const struct hrt_hf_layout *layout = &rule->layout[i];
        struct found here = {.layout = layout,
                             .view = hrt_hf_view_of(loading->placement->program, tensor, layout)};
        char name[HRT_PATH_MAX];
        hrt_hf_name(loading->placement->program, tensor, layout->name, name);
        here.entry = hrt_hf_find(&loading->folder, name, &here.file);
        if (!here.entry) continue;
        const bool fits_too = hrt_hf_has_shape(here.entry, here.view.shape, here.view.rank);
        if (!found->entry || (fits_too && (!fits || is_meant(loading, tensor, layout))))
            *found = here;
        fits = fits || fits_too;
    }
}

// The scales of what is stored in MXFP4.
static bool find_exponents(struct loading *loading, const struct hrt_tensor *tensor,
                           struct found *found) {
    const struct hrt_stored *entry = found->entry;
    char name[HRT_PATH_MAX];
    hrt_hf_name(loading->placement->program, tensor, found->layout->scales, name);
    found->scale = hrt_hf_find(&loading->folder, name, &found->scale_file);
    if (!found->scale)
        return hrt_fail(loading->error, "'%s': tensor '%s' is there without '%s' of its scales",
                        found->file->path, entry->name, name);
    json_object_del(loading->left, name);
    if (strcmp(entry->dtype->name, "U8") != 0)
        return hrt_fail(loading->error, "'%s': tensor '%s' is %s; MXFP4 is U8", found->file->path,
                        entry->name, entry->dtype->name);
    if (strcmp(found->scale->dtype->name, "U8") != 0 &&
        strcmp(found->scale->dtype->name, "F8_E8M0") != 0)
        return hrt_fail(loading->error, "'%s': tensor '%s' is %s; scales of MXFP4 are U8",
                        found->scale_file->path, name, found->scale->dtype->name);
    return check_shape(loading, found->scale_file, found->scale, found->view.shape,
                       found->view.rank - 1);
}

// Notes that one of our tensors was asked for: the folder's one, or a part of it.
static void take(struct loading *loading, const struct found *found) {
    const struct hrt_hf_layout *layout = found->layout;
    const struct hrt_hf_view *view = &found->view;
    const char *name = found->entry->name;
    if (!json_object_get(loading->left, name)) return;
    const json_t *before = json_object_get(loading->begun, name);
    const int64_t all = view->slab * (layout->together ? view->shape[0] : 1);
    const int64_t own = view->slab / (layout->parts ? layout->parts : 1);
    const int64_t left = (before ? json_integer_value(before) : all) - own;
    if (left > 0)
        json_object_set_new(loading->begun, name, json_integer(left));
    else
        json_object_del(loading->left, name);
}

static bool find(struct loading *loading, const struct hrt_tensor *tensor, struct found *found) {
    const struct hrt_hf_rule *rule = hrt_hf_rule_of(loading->family, tensor->param);
    char name[HRT_PATH_MAX], path[HRT_PATH_MAX];
    hrt_tensor_path(tensor, path);
    if (!rule)
        return hrt_fail(loading->error, "parameter '%s' has no name in family %s", path,
                        loading->family->name);
    hrt_hf_name(loading->placement->program, tensor, rule->layout[0].name, name);
    find_layout(loading, tensor, rule, found);
    if (!found->entry) return fail_missing(loading, tensor, name);
    if (!check_shape(loading, found->file, found->entry, found->view.shape, found->view.rank))
        return false;
    take(loading, found);
    if (found->layout->scales) return find_exponents(loading, tensor, found);
    if (!found->entry->dtype->value)
        return hrt_fail(loading->error,
                        "'%s': tensor '%s' is %s; only F64, F32, BF16, F16 and F8_E4M3 can be read",
                        found->file->path, found->entry->name, found->entry->dtype->name);
    return find_scale(loading, found);
}

// What belongs to a layer that predicts a token more: copies of what it shares, or all of it where the program has none.
static bool settle_predictors(struct loading *loading) {
    const struct hrt_program *program = loading->placement->program;
    if (!loading->family->predictors) return true;
    if (hrt_hf_predicts(loading->family, program))
        return hrt_hf_check_copies(&loading->folder, loading->family, program, loading->left);
    const size_t passed = hrt_hf_pass_over(loading->left);
    if (passed && loading->doubts)
        snprintf(
            loading->doubts->left, sizeof loading->doubts->left,
            "'%.300s' has %zu tensors of layers that predict further tokens; they are not read",
            loading->folder.path, passed);
    return true;
}

// The folder's tensors and the program's must be the same.
static bool check_all(struct loading *loading) {
    struct hrt_tensor tensor = {0};
    struct found found;
    loading->left = json_copy(loading->folder.where);
    loading->begun = json_object();
    if (!loading->left || !loading->begun) return hrt_fail(loading->error, "out of memory");
    while (hrt_tensor_next(loading->placement->program, &tensor)) {
        if (hrt_is_stored(tensor.param, HRT_PARAMETERS) && !find(loading, &tensor, &found))
            return false;
    }
    if (!settle_predictors(loading)) return false;
    if (loading->folder.passed && loading->doubts)
        snprintf(loading->doubts->left, sizeof loading->doubts->left,
                 "'%.300s' has %zu tensors beside its text model; they are not read",
                 loading->folder.path, loading->folder.passed);
    void *rest = json_object_iter(loading->left);
    if (!rest) return true;
    struct hrt_safetensors *file;
    const struct hrt_stored *entry =
        hrt_hf_find(&loading->folder, json_object_iter_key(rest), &file);
    if (json_object_get(loading->begun, entry->name))
        return hrt_fail(loading->error,
                        "'%s' is of another model: this one has not all that is in tensor '%s'",
                        file->path, entry->name);
    return hrt_fail(loading->error,
                    "'%s' is of another model: this one has no tensor '%s' (%zu such in all)",
                    file->path, entry->name, json_object_size(loading->left));
}

// ---- reading

// Reads `count` elements of a file's tensor from `first` on, `step` apart there.
static bool read_run(const struct found *found, int64_t first, int64_t step, int64_t count,
                     double *values) {
    struct hrt_stored rest = *found->entry;
    double block[HRT_STORED_BLOCK];
    int64_t span = count > 0 ? (count - 1) * step + 1 : 0;
    rest.begin += first * rest.dtype->bits / 8;
    if (!hrt_safetensors_seek(found->file, &rest)) return false;
    for (int64_t skip = 0; span > 0;) {
        const int64_t some = span < HRT_STORED_BLOCK ? span : HRT_STORED_BLOCK;
        if (!hrt_safetensors_next(found->file, found->entry, some, block)) return false;
        for (; skip < some; skip += step) *values++ = block[skip];
        skip -= some;
        span -= some;
    }
    return true;
}

// The same of MXFP4, whose elements are side by side.
static bool read_packed(const struct found *found, int64_t first, int64_t count, double *values) {
    enum { BLOCKS = HRT_STORED_BLOCK / HRT_MXFP4_BLOCK };
    uint8_t bytes[BLOCKS * HRT_MXFP4_BYTES], scales[BLOCKS];
    double elements[BLOCKS * HRT_MXFP4_BLOCK];
    while (count > 0) {
        const int64_t block = first / HRT_MXFP4_BLOCK, skip = first % HRT_MXFP4_BLOCK;
        int64_t blocks = (skip + count + HRT_MXFP4_BLOCK - 1) / HRT_MXFP4_BLOCK;
        if (blocks > BLOCKS) blocks = BLOCKS;
        const int64_t read = blocks * HRT_MXFP4_BLOCK - skip, some = read < count ? read : count;
        if (!hrt_safetensors_bytes(found->file, found->entry, block * HRT_MXFP4_BYTES,
                                   (size_t)(blocks * HRT_MXFP4_BYTES), bytes) ||
            !hrt_safetensors_bytes(found->scale_file, found->scale, block, (size_t)blocks, scales))
            return false;
        hrt_mxfp4_decode(bytes, scales, blocks, elements);
        memcpy(values, elements + skip, (size_t)some * sizeof *values);
        first += some;
        count -= some;
        values += some;
    }
    return true;
}

// Reads `count` elements of the view's matrix from `first` on, row by row.
static bool read_some(const struct found *found, int64_t first, int64_t count, double *values) {
    const struct hrt_hf_view *view = &found->view;
    const bool even = view->row_step == view->columns * view->step; // Also from row to row.
    while (count > 0) {
        const int64_t row = first / view->columns, column = first % view->columns;
        const int64_t left = view->columns - column, run = even || count < left ? count : left;
        const int64_t at = view->first + row * view->row_step + column * view->step;
        if (!(found->layout->scales ? read_packed(found, at, run, values)
                                    : read_run(found, at, view->step, run, values)))
            return false;
        first += run;
        count -= run;
        values += run;
    }
    return true;
}

// Multiplies rows of a strip, from `row` on, with their blocks' scales.
static bool scale(const struct found *found, int64_t row, int64_t rows, double *strip) {
    const int64_t columns = found->view.columns, blocks = (columns + SCALED - 1) / SCALED;
    double *factor = malloc((size_t)(blocks + 1) * sizeof *factor);
    const struct found scales = {.file = found->scale_file, .entry = found->scale};
    if (!factor) return hrt_fail(found->file->error, "out of memory");
    bool read = true;
    for (int64_t r = 0; read && r < rows; r++) {
        if (r == 0 || (row + r) % SCALED == 0)
            read = read_run(&scales, (row + r) / SCALED * blocks, 1, blocks, factor);
        for (int64_t c = 0; read && c < columns; c++) strip[r * columns + c] *= factor[c / SCALED];
    }
    free(factor);
    return read;
}

// Notes the first tensor of this rank, of those that no lower one has, that is not finite.
static void doubt_values(const struct loading *loading, const struct hrt_tensor *tensor,
                         const struct found *found, double value) {
    struct hrt_store_doubts *doubts = loading->doubts;
    if (!doubts || *doubts->values) return;
    if (hrt_tensor_rank(loading->placement, tensor) != loading->placement->rank) return;
    snprintf(doubts->values, sizeof doubts->values,
             "'%.150s': tensor '%.200s' has values that are not finite (%g)", found->file->path,
             found->entry->name, value);
}

// Stores elements `first` .. of ours, `step` apart in `values`.
static void store(const struct loading *loading, void *params, const struct hrt_tensor *tensor,
                  const struct found *found, int64_t first, int64_t count, const double *values,
                  int64_t step) {
    const enum hrt_precision precision = loading->placement->program->precision;
    double elements[HRT_STORED_BLOCK]; // Or of a smaller type.
    for (int64_t i = 0; i < count; i++) {
        hrt_element_set(elements, precision, i, values[i * step]);
        const double value = hrt_element(elements, precision, i); // As it is here.
        if (!isfinite(value)) doubt_values(loading, tensor, found, value);
    }
    hrt_tensor_write(loading->placement->program, params, tensor, first, count, elements);
}

static bool read_turned(const struct loading *loading, const struct hrt_tensor *tensor,
                        const struct found *found, void *params) {
    const struct hrt_hf_view *view = &found->view;
    double *strip = malloc((size_t)(STRIP * view->columns + 1) * sizeof *strip);
    if (!strip) return hrt_fail(loading->error, "out of memory");
    bool read = true;
    for (int64_t row = 0; read && row < view->rows; row += STRIP) {
        const int64_t left = view->rows - row, rows = left < STRIP ? left : STRIP;
        read = read_some(found, row * view->columns, rows * view->columns, strip) &&
               (!found->scale || found->layout->scales || scale(found, row, rows, strip));
        for (int64_t c = 0; read && c < view->columns; c++)
            store(loading, params, tensor, found, c * view->rows + row, rows, strip + c,
                  view->columns);
    }
    free(strip);
    return read;
}

static bool read_tensor(const struct loading *loading, const struct hrt_tensor *tensor,
                        const struct found *found, void *params) {
    double block[HRT_STORED_BLOCK];
    if (found->view.turned) return read_turned(loading, tensor, found, params);
    const int64_t size = hrt_param_size(tensor->param);
    for (int64_t first = 0; first < size; first += HRT_STORED_BLOCK) {
        const int64_t left = size - first,
                      count = left < HRT_STORED_BLOCK ? left : HRT_STORED_BLOCK;
        if (!read_some(found, first, count, block)) return false;
        store(loading, params, tensor, found, first, count, block, 1);
    }
    return true;
}

static bool read_all(struct loading *loading, void *params) {
    struct hrt_tensor tensor = {0};
    struct found found;
    while (hrt_tensor_next_here(loading->placement, &tensor)) {
        if (!hrt_is_stored(tensor.param, HRT_PARAMETERS)) continue;
        if (!find(loading, &tensor, &found) || !read_tensor(loading, &tensor, &found, params))
            return false;
    }
    return true;
}

bool hrt_hf_load(const struct hrt_placement *placement, void *params, const char *path,
                 struct hrt_store_doubts *doubts, struct hrt_error *error) {
    struct loading loading = {.placement = placement,
                              .family = hrt_hf_family_of(placement->program),
                              .doubts = doubts,
                              .error = error};
    if (doubts) *doubts = (struct hrt_store_doubts){0};
    if (!loading.family)
        return hrt_fail(error,
                        "'%s' has names of Hugging Face's, and this program knows none: add names "
                        "hf { family = ... } to its model",
                        path);
    const bool loaded = hrt_hf_folder_open(&loading.folder, path, error) && check_all(&loading) &&
                        read_all(&loading, params);
    json_decref(loading.left);
    json_decref(loading.begun);
    hrt_hf_folder_close(&loading.folder);
    return loaded;
}
