// Tensors of a program in tensors of files: by the rules of its family.
#include "runtime/store/hf_names.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/text.h"
#include "runtime/params/merge.h"
#include "runtime/store/hf_page.h"
#include "runtime/store/mxfp4.h"

const struct hrt_hf_family *hrt_store_hf_family_of(const struct hrt_program *program) {
    // The page of the last program that had one: there is one in a process, but for tests.
    static struct hrt_hf_page page;
    static const struct hrt_program *of;
    const char *family = hrt_program_setting(program, "names.hf.family");
    const char *rules = hrt_program_setting(program, "names.hf.rules");
    char why[HRT_PATH_MAX];
    if (!family) family = "";
    if (!rules || !*rules) return hrt_store_hf_family_named(family);
    if (of == program) return &page.family;
    hrt_store_hf_free_page(&page);
    of = hrt_store_hf_read_page(&page, family, rules, why, sizeof why) ? program : NULL;
    return of ? &page.family : NULL;
}

static const struct hrt_param *find_param(const struct hrt_program *program, const char *path) {
    for (int i = 0; i < program->params; i++) {
        if (strcmp(program->param[i].path, path) == 0) return &program->param[i];
    }
    return NULL;
}

bool hrt_store_hf_predicts(const struct hrt_hf_family *family, const struct hrt_program *program) {
    bool found = false;
    for (int i = 0; i < program->params && !found; i++)
        found = hrt_store_hf_is_predictor(program->param[i].path);
    return found && hrt_store_hf_may_predict(family);
}

bool hrt_store_hf_next_copy(const struct hrt_hf_family *family, const struct hrt_program *program,
                            struct hrt_hf_copy *copy) {
    const size_t count = HRT_HF_COPIES;
    if (!hrt_store_hf_predicts(family, program)) return false;
    for (size_t i = copy->rule ? (size_t)(copy->rule - hrt_store_hf_copies) + 1 : 0; i < count;
         i++) {
        const struct hrt_param *param = find_param(program, hrt_store_hf_copies[i].ours);
        if (!param || (i == count - 1 && find_param(program, "head"))) continue;
        *copy = (struct hrt_hf_copy){.rule = &hrt_store_hf_copies[i],
                                     .tensor = hrt_params_tensor_at(program, param, 0, 0)};
        return true;
    }
    return false;
}

// ---- adapters

static const char weight_end[] = ".weight";

// The layout of a weight in one tensor, a member of a module, with those of all experts; NULL: it has none.
static const struct hrt_hf_layout *all_experts(const struct hrt_hf_rule *rule) {
    for (int i = 0; i < HRT_HF_LAYOUTS && rule->layout[i].name; i++) {
        const struct hrt_hf_layout *layout = &rule->layout[i];
        if (layout->together && !layout->scales && layout->form != HRT_HF_VECTOR &&
            strchr(layout->name, '.'))
            return layout;
    }
    return NULL;
}

bool hrt_store_hf_fuses(const struct hrt_program *program) {
    const char *experts = hrt_program_setting(program, "adapt.experts");
    return experts && strcmp(experts, "fused") == 0;
}

const struct hrt_hf_layout *hrt_store_hf_fused(const struct hrt_program *program,
                                               const struct hrt_hf_family *family,
                                               const struct hrt_param *weight) {
    const struct hrt_hf_rule *rule = hrt_store_hf_rule_of(family, weight->path);
    return rule && weight->set >= 0 && hrt_store_hf_fuses(program) ? all_experts(rule) : NULL;
}

// Whether the module of a tensor of all experts has an adapter of a later tensor, too: PEFT's module for the later one
// has that for the earlier one inside, as `base_layer`. Gates and up, the tensor of several parts, are the earlier.
static bool is_inside(const struct hrt_program *program, const struct hrt_hf_family *family,
                      const struct hrt_param *weight, const struct hrt_hf_layout *layout) {
    const size_t module = (size_t)(strrchr(layout->name, '.') - layout->name);
    for (int i = 0; layout->parts > 1 && i < program->params; i++) {
        const struct hrt_param *lora = &program->param[i];
        const struct hrt_param *other = lora->lora ? hrt_params_adapted(program, lora) : NULL;
        if (!other || other->set != weight->set) continue;
        const struct hrt_hf_layout *its = hrt_store_hf_fused(program, family, other);
        if (its && its->parts <= 1 && strncmp(its->name, layout->name, module + 1) == 0)
            return true;
    }
    return false;
}

// PEFT names adapters of a tensor after its module, and the rest of the tensor's name is lost.
static void fuse(const struct hrt_program *program, const struct hrt_hf_family *family,
                 const struct hrt_param *weight, const struct hrt_hf_layout *layout,
                 const struct hrt_param *param, struct hrt_hf_adapter_rule *made) {
    const bool a = param->lora == HRT_LORA_A, straight = a != layout->swapped;
    const int experts = (int)program->set[param->set].experts;
    snprintf(made->name, sizeof made->name, "base_model.model.%.*s%s.lora_%c.weight",
             (int)(strrchr(layout->name, '.') - layout->name), layout->name,
             is_inside(program, family, weight, layout) ? ".base_layer" : "", straight ? 'A' : 'B');
    made->rule.layout[0] = (struct hrt_hf_layout){
        .name = made->name,
        .form = straight ? HRT_HF_STRAIGHT : HRT_HF_TURNED,
        .adapters = true,
        .interleaved = layout->interleaved,
        .part = a ? 0 : layout->part,
        .parts = a || layout->parts <= 1 ? experts : experts * layout->parts,
    };
}

// PEFT names the modules of the whole model, base_model.model. Both its matrices are [out, in]; our first dim is the
// rank, which is lora_A's out and lora_B's in.
const struct hrt_hf_rule *hrt_store_hf_rule_for(const struct hrt_program *program,
                                                const struct hrt_hf_family *family,
                                                const struct hrt_param *param,
                                                struct hrt_hf_adapter_rule *made) {
    const struct hrt_param *weight = param->lora ? hrt_params_adapted(program, param) : param;
    const struct hrt_hf_rule *rule = weight ? hrt_store_hf_rule_of(family, weight->path) : NULL;
    if (!param->lora || !rule) return rule;
    const struct hrt_hf_layout *layout = hrt_store_hf_fused(program, family, weight);
    made->rule = (struct hrt_hf_rule){.ours = param->path};
    if (layout) {
        fuse(program, family, weight, layout, param, made);
        return &made->rule;
    }
    layout = &rule->layout[0];
    if (layout->together || layout->parts > 1 || !hrt_base_ends_with(layout->name, weight_end))
        return NULL;
    const int length = (int)(strlen(layout->name) - strlen(weight_end));
    snprintf(made->name, sizeof made->name, "base_model.model.%.*s.lora_%c.weight", length,
             layout->name, param->lora == HRT_LORA_A ? 'A' : 'B');
    made->rule.layout[0] = (struct hrt_hf_layout){
        .name = made->name, .form = param->lora == HRT_LORA_A ? HRT_HF_STRAIGHT : HRT_HF_TURNED};
    return &made->rule;
}

int64_t hrt_store_hf_layers(const struct hrt_program *program) {
    int64_t layers = 0;
    for (int i = 0; i < program->params; i++) {
        const struct hrt_param *param = &program->param[i];
        const int64_t last = param->index_first + (param->layers - 1) * param->index_stride;
        if (last >= layers) layers = last + 1;
    }
    return layers;
}

void hrt_store_hf_name(const struct hrt_program *program, const struct hrt_tensor *tensor,
                       const char *pattern, char name[HRT_PATH_MAX]) {
    struct hrt_param param = *tensor->param;
    struct hrt_tensor named = *tensor;
    named.param = &param;
    if (param.index_first < 0) param.index_first = hrt_store_hf_layers(program);
    hrt_params_tensor_name(&named, pattern, name);
}

// ---- shapes

struct matrix {
    int64_t in, out;
};

// The matrix that our dims form there.
static struct matrix matrix_of(const struct hrt_param *param, enum hrt_hf_form form) {
    const int64_t size = hrt_params_size(param);
    int64_t out = size;
    if (form == HRT_HF_TURNED_IN) out = param->shape[param->rank - 1];
    if (form == HRT_HF_TURNED || form == HRT_HF_STRAIGHT) out = size / (size ? param->shape[0] : 1);
    return (struct matrix){.in = out ? size / out : 0, .out = out};
}

static void push(struct hrt_hf_view *view, int64_t extent) {
    view->shape[view->rank++] = extent;
}

static void set_shape(struct hrt_hf_view *view, const struct hrt_param *param,
                      const struct hrt_hf_layout *layout, struct matrix all) {
    switch (layout->form) {
    case HRT_HF_SAME:
        for (int i = 0; i < param->rank; i++) push(view, param->shape[i]);
        break;
    case HRT_HF_VECTOR:
        push(view, all.out);
        break;
    case HRT_HF_DEPTHWISE:
        push(view, all.out / param->shape[param->rank - 1]);
        push(view, 1);
        push(view, param->shape[param->rank - 1]);
        break;
    case HRT_HF_ROW:
    case HRT_HF_STRAIGHT:
        push(view, all.in);
        push(view, all.out);
        break;
    case HRT_HF_TURNED:
    case HRT_HF_TURNED_IN:
        push(view, all.out);
        push(view, layout->scales ? all.in / HRT_MXFP4_BLOCK : all.in);
        if (layout->scales) push(view, HRT_MXFP4_BYTES);
        break;
    }
}

// One expert's matrix among the adapters of a tensor with all experts.
static struct hrt_hf_view view_of_adapters(const struct hrt_program *program,
                                           const struct hrt_tensor *tensor,
                                           const struct hrt_hf_layout *layout) {
    const int64_t experts = program->set[tensor->param->set].experts, expert = tensor->expert;
    const int64_t rank = tensor->param->shape[0], parts = layout->parts / experts;
    const int64_t width = hrt_params_size(tensor->param) / rank, all = parts * width;
    const int64_t apart = layout->interleaved ? parts : 1;
    const int64_t before = layout->part * (layout->interleaved ? 1 : width);
    struct hrt_hf_view view = {.rank = 2, .slab = rank * experts * all, .slabs = 1};
    if (layout->form == HRT_HF_STRAIGHT) {
        view.shape[0] = experts * rank, view.shape[1] = all;
        view.place = (struct hrt_place){.first = expert * rank * all + before,
                                        .rows = rank,
                                        .columns = width,
                                        .row_step = all,
                                        .step = apart};
    } else {
        view.shape[0] = all, view.shape[1] = rank * experts;
        view.place = (struct hrt_place){.first = before * rank * experts + expert,
                                        .turned = true,
                                        .rows = width,
                                        .columns = rank,
                                        .row_step = apart * rank * experts,
                                        .step = experts};
    }
    return view;
}

// The parameter beside this one, under the word `last` of `length` bytes; NULL: there is none.
static const struct hrt_param *sibling_of(const struct hrt_program *program,
                                          const struct hrt_param *param, const char *last,
                                          int length) {
    char path[HRT_PATH_MAX];
    const char *dot = strrchr(param->path, '.');
    const int owner = dot ? (int)(dot + 1 - param->path) : 0;
    snprintf(path, sizeof path, "%.*s%.*s", owner, param->path, length, last);
    return find_param(program, path);
}

// Where ours begins along `out`, and the `out` of all parts.
static int64_t place_among(const struct hrt_program *program, const struct hrt_param *param,
                           const struct hrt_hf_layout *layout, int64_t own, int64_t *all) {
    const int parts = layout->parts ? layout->parts : 1;
    *all = parts * own;
    if (!layout->joined) return layout->part * (layout->interleaved ? 1 : own);
    int64_t before = 0;
    const char *word = layout->joined;
    *all = 0;
    for (int i = 0; i < parts; i++) {
        const int length = (int)strcspn(word, " ");
        const struct hrt_param *part = sibling_of(program, param, word, length);
        if (i == layout->part) before = *all;
        *all += part ? matrix_of(part, layout->form).out : 0;
        word += length + (word[length] != '\0');
    }
    return before;
}

struct hrt_hf_view hrt_store_hf_view_of(const struct hrt_program *program,
                                        const struct hrt_tensor *tensor,
                                        const struct hrt_hf_layout *layout) {
    if (layout->adapters) return view_of_adapters(program, tensor, layout);
    const struct hrt_param *param = tensor->param;
    const enum hrt_hf_form form = layout->form;
    struct matrix own = matrix_of(param, form);
    const int64_t parts = layout->parts ? layout->parts : 1;
    // From an element of `out` to the next one of ours, and from our first to that of the part before.
    int64_t all;
    const int64_t apart = layout->interleaved ? parts : 1;
    const int64_t before = place_among(program, param, layout, own.out, &all);
    const bool turned = form == HRT_HF_TURNED || form == HRT_HF_TURNED_IN;
    struct hrt_hf_view view = {.place.turned = turned};
    view.place.rows = turned ? own.out : own.in;
    view.place.columns = turned ? own.in : own.out;
    if (layout->scales) // The last block of a row is whole.
        own.in = (own.in + HRT_MXFP4_BLOCK - 1) / HRT_MXFP4_BLOCK * HRT_MXFP4_BLOCK;
    view.place.row_step = turned ? apart * own.in : all;
    view.place.step = turned ? 1 : apart;
    view.place.first = turned ? before * own.in : before;
    view.slab = own.in * all;
    view.slabs = layout->together ? program->set[param->set].experts : 1;
    if (layout->together) {
        push(&view, view.slabs);
        view.place.first += tensor->expert * view.slab;
    }
    set_shape(&view, param, layout, (struct matrix){own.in, all});
    if (layout->stacked) {
        view.shape[1] *= view.shape[0];
        memmove(view.shape, view.shape + 1, (size_t)--view.rank * sizeof *view.shape);
    }
    return view;
}

void hrt_store_hf_shape_beside(const struct hrt_program *program, const struct hrt_tensor *tensor,
                               const struct hrt_hf_layout *layout, int64_t shape[3]) {
    const struct matrix own = matrix_of(tensor->param, layout->form);
    const bool turned = layout->form == HRT_HF_TURNED;
    const int64_t out = layout->beside_parts * own.in;
    shape[0] = program->set[tensor->param->set].experts;
    shape[1] = turned ? out : own.out;
    shape[2] = turned ? own.out : out;
}
