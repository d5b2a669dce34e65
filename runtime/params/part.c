// Cuts tensors.
#include "runtime/params/part.h"

#include "runtime/plan/held.h"

bool hrt_params_is_cut(const struct hrt_program *program, const struct hrt_param *param,
                       enum hrt_values values) {
    if (program->dense == HRT_DENSE_REPLICATE) return false;
    if (program->dense == HRT_DENSE_STATES && values < HRT_MEANS) return false;
    return param->set < 0 ? param->trainable || param->frozen : !program->owned;
}

int64_t hrt_params_cut(int64_t elements, int64_t ranks, int rank, int64_t *count) {
    const int64_t part = hpl_part(elements, ranks);
    const int64_t begin = rank * part < elements ? rank * part : elements;
    *count = part < elements - begin ? part : elements - begin;
    return begin;
}

int64_t hrt_params_kept(const struct hrt_program *program, const struct hrt_param *param) {
    const bool cut = hrt_params_is_cut(program, param, HRT_PARAMETERS);
    return cut ? hpl_part(param->elements, program->world) : param->elements;
}

int64_t hrt_params_kept_chunk(const struct hrt_program *program, const struct hrt_set *set) {
    const bool cut = program->dense == HRT_DENSE_SHARD && !program->owned;
    return cut ? hpl_part(set->chunk_elements, program->world) : set->chunk_elements;
}

static int64_t inside(int64_t at, int64_t elements) {
    return at < 0 ? 0 : at < elements ? at : elements;
}

struct hrt_params_part hrt_params_part(const struct hrt_program *program,
                                       const struct hrt_tensor *tensor, enum hrt_values values,
                                       int rank) {
    const struct hrt_param *param = tensor->param;
    const struct hrt_set *set = param->set < 0 ? NULL : &program->set[param->set];
    const int64_t before = set ? param->offset : 0; // In what is cut.
    if (!hrt_params_is_cut(program, param, values))
        return (struct hrt_params_part){tensor->offset, 0, param->elements};
    int64_t count;
    const int64_t begin =
        hrt_params_cut(set ? set->chunk_elements : param->elements, program->world, rank, &count);
    const int64_t first = inside(begin - before, param->elements);
    const int64_t end = inside(begin + count - before, param->elements);
    const bool whole = program->dense == HRT_DENSE_STATES; // Others' places stand between.
    return (struct hrt_params_part){tensor->offset + (whole ? first : before + first - begin),
                                    first, end - first};
}
