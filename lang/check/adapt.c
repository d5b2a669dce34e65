// Adapters (LoRA, arXiv:2106.09685): x @ w of a weight w that a pattern matches becomes
//
//   x @ w + (x @ a * (alpha / rank)) @ b
//
// with parameters a [rank, in] and b [rank, out] of the weight's layers and experts; so kernels, which pad rows of
// weights, pad neither. Later stages find parameters and GEMMs like others, and
// do not know of adapters. b begins as zeros: the model begins as it was. With `experts = fused` matrices of an expert
// that multiply one input have one a.
#include "lang/check/adapt.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lang/check/groups.h"

static const char dim_name[] = "adapter_rank";

// ---- the section

// Splits "*.wq, *.wv" at commas.
static void add_patterns(struct hec_checker *checker, const char *text) {
    struct hec_adapt *adapt = &checker->adapt;
    while (true) {
        text += strspn(text, " ");
        const size_t length = strcspn(text, ",");
        size_t end = length;
        while (end > 0 && text[end - 1] == ' ') end--;
        const char *pattern = hec_intern(&checker->names, text, end);
        if (!hec_check_pattern(checker, pattern, adapt->of)) return;
        HEC_PUSH(checker->arena, &adapt->patterns, pattern);
        if (!text[length]) return;
        text += length + 1;
    }
}

void hec_read_adapt(struct hec_checker *checker, const struct hec_setting_values *values) {
    const struct hec_setting *of = &values->value[HEC_KEY_adapt_of];
    const struct hec_setting *rank = &values->value[HEC_KEY_adapt_rank];
    struct hec_adapt *adapt = &checker->adapt;
    for (int key = HEC_KEY_adapt_alpha; key <= HEC_KEY_adapt_rank && !*of->value; key++) {
        if (!values->value[key].given || key == HEC_KEY_adapt_base) continue;
        hec_error(checker, values->value[key].at,
                  "`adapt` names no parameters: `of = \"*.wq, *.experts.*\"` does");
        return;
    }
    if (!*of->value) return;
    const struct hec_entry *entry =
        hec_find_entry(checker, hec_intern_text(&checker->names, dim_name));
    if (entry) {
        hec_error(checker, entry->at, "`%s` is the dim of adapters: it needs another name",
                  dim_name);
        return;
    }
    adapt->of = of->at;
    adapt->rank_at = rank->given ? rank->at : of->at;
    adapt->rank = strtoll(rank->value, NULL, 10);
    adapt->scale = strtod(values->value[HEC_KEY_adapt_alpha].value, NULL) / (double)adapt->rank;
    adapt->dropout = strtod(values->value[HEC_KEY_adapt_dropout].value, NULL);
    adapt->fused = strcmp(values->value[HEC_KEY_adapt_experts].value, "fused") == 0;
    add_patterns(checker, of->value);
}

// ---- parameters

// Iterations of a repeat that patterns tell apart are no loop: all layers of a parameter are treated as its first.
static bool is_matched(struct hec_checker *checker, const char *pattern,
                       const struct hec_param *param) {
    return hec_group_takes(checker, pattern, checker->adapt.of, param, 0);
}

static bool is_adapted(struct hec_checker *checker, const struct hec_param *param) {
    for (int i = 0; i < checker->adapt.patterns.count; i++) {
        if (is_matched(checker, checker->adapt.patterns.item[i], param)) return true;
    }
    return false;
}

static int64_t elements(const struct hec_shape *shape) {
    int64_t count = 1;
    for (int i = 0; i < shape->rank; i++) count *= shape->dim[i].size;
    return count;
}

// An adapter that exists already divides the weight as this GEMM does; reports when not.
static bool divides_alike(struct hec_site *site, const struct hec_adapter *adapter,
                          const struct hec_shape *in, struct hec_span at) {
    bool alike = adapter->a_shape.rank == in->rank + 1;
    for (int i = 0; alike && i < in->rank; i++)
        alike = adapter->a_shape.dim[1 + i].name == in->dim[i].name;
    if (alike) return true;
    hec_error(site->checker, at,
              "not yet: an adapter of `%s`, which GEMMs divide in different ways",
              adapter->weight->path);
    return false;
}

static struct hec_shape behind(struct hec_dim first, const struct hec_shape *dims) {
    struct hec_shape shape = {.rank = 1, .dim = {first}};
    for (int i = 0; i < dims->rank; i++) shape.dim[shape.rank++] = dims->dim[i];
    return shape;
}

// The adapter of another matrix of the expert that multiplies x; NULL: there is none, or each has its own.
static const struct hec_adapter *shared_with(const struct hec_adapt *adapt,
                                             const struct hec_param *weight,
                                             const struct hec_node *x) {
    for (int i = 0; adapt->fused && weight->expert_of && i < adapt->adapters.count; i++) {
        const struct hec_adapter *other = adapt->adapters.item[i];
        if (other->weight->expert_of == weight->expert_of && other->input == x) return other;
    }
    return NULL;
}

static void add_matrices(struct hec_checker *checker, struct hec_adapter *adapter,
                         const struct hec_adapter *shared, long long rows) {
    const struct hec_param *weight = adapter->weight;
    // The variance of PEFT's uniform numbers.
    adapter->a = shared ? shared->a
                        : hec_add_param_of(checker, weight, HEC_LORA_A, &adapter->a_shape,
                                           HEC_INIT_NORMAL, 1 / sqrt(3 * (double)rows));
    struct hec_param *b =
        hec_add_param_of(checker, weight, HEC_LORA_B, &adapter->b_shape, HEC_INIT_ZEROS, 0);
    b->shares = shared ? shared->weight : NULL;
    adapter->b = b;
}

// The adapter of a weight by which a GEMM multiplies x: it sums the dims `in` and keeps `out`. NULL after an error.
static const struct hec_adapter *adapter_of(struct hec_site *site, const struct hec_param *weight,
                                            const struct hec_node *x, const struct hec_shape *in,
                                            const struct hec_shape *out, struct hec_span at) {
    struct hec_checker *checker = site->checker;
    struct hec_adapt *adapt = &checker->adapt;
    const long long rows = elements(in), columns = elements(out);
    for (int i = 0; i < adapt->adapters.count; i++) {
        const struct hec_adapter *known = adapt->adapters.item[i];
        if (known->weight == weight) return divides_alike(site, known, in, at) ? known : NULL;
    }
    if (adapt->rank > rows || adapt->rank > columns) {
        hec_error(checker, adapt->rank_at,
                  "`adapt.rank` is %lld, larger than the matrix %lld x %lld of `%s`",
                  (long long)adapt->rank, rows, columns, weight->path);
        return NULL;
    }
    const struct hec_dim dim = {hec_intern_text(&checker->names, dim_name), adapt->rank};
    struct hec_adapter *adapter = HEC_NEW(checker->arena, struct hec_adapter);
    *adapter = (struct hec_adapter){
        .weight = weight, .input = x, .a_shape = behind(dim, in), .b_shape = behind(dim, out)};
    add_matrices(checker, adapter, shared_with(adapt, weight, x), rows);
    HEC_PUSH(checker->arena, &adapt->adapters, adapter);
    return adapter;
}

// ---- GEMMs

static const struct hec_node *add(struct hec_site *site, enum hec_builtin builtin,
                                  const struct hec_node *x, const struct hec_node *y,
                                  const struct hec_shape *shape) {
    return hec_add_node(site, (struct hec_node){.kind = HEC_NODE_BUILTIN,
                                                .builtin = builtin,
                                                .shape = *shape,
                                                .batched = true,
                                                .at = x->at,
                                                .operands = 2,
                                                .operand = {x, y}});
}

static const struct hec_node *drop(struct hec_site *site, const struct hec_node *x,
                                   struct hec_span at) {
    struct hec_checker *checker = site->checker;
    if (checker->adapt.dropout == 0) return x;
    if (!site->expert_of && hec_shape_find(&x->shape, checker->positions) == 0)
        return hec_drop(site, x, checker->adapt.dropout, at);
    hec_error(checker, checker->adapt.of,
              "not yet: `adapt.dropout` of adapters inside of an expert");
    return NULL;
}

const struct hec_node *hec_adapt(struct hec_site *site, const struct hec_node *y,
                                 const struct hec_node *x, const struct hec_node *weight,
                                 int summed) {
    struct hec_checker *checker = site->checker;
    if (weight->kind != HEC_NODE_PARAM || !is_adapted(checker, weight->param)) return y;
    struct hec_shape in = {.rank = summed}, hidden = x->shape;
    hidden.rank -= summed;
    memcpy(in.dim, x->shape.dim + hidden.rank, (size_t)summed * sizeof *in.dim);
    struct hec_shape out = hec_shape_with(&weight->shape, &in, false);
    out.rank -= summed;
    memmove(out.dim, out.dim + summed, (size_t)out.rank * sizeof *out.dim);
    const struct hec_adapter *adapter = adapter_of(site, weight->param, x, &in, &out, y->at);
    x = adapter ? drop(site, x, y->at) : NULL;
    if (!x) return NULL;
    hidden.dim[hidden.rank++] = adapter->b_shape.dim[0];
    const struct hec_node *a = hec_param_node(site, adapter->a, &adapter->a_shape);
    const struct hec_node *b = hec_param_node(site, adapter->b, &adapter->b_shape);
    const struct hec_node *t = add(site, HEC_BUILTIN_contract, x, a, &hidden);
    if (checker->adapt.scale != 1) {
        const struct hec_node *scale = hec_add_node(
            site, (struct hec_node){
                      .kind = HEC_NODE_NUMBER, .number = checker->adapt.scale, .at = y->at});
        t = add(site, HEC_BUILTIN_mul, t, scale, &hidden);
    }
    return add(site, HEC_BUILTIN_add, y, add(site, HEC_BUILTIN_contract, t, b, &y->shape),
               &y->shape);
}

// ---- afterwards

static bool has_adapter(const struct hec_checker *checker, const struct hec_param *param) {
    for (int i = 0; i < checker->adapt.adapters.count; i++) {
        if (checker->adapt.adapters.item[i]->weight == param) return true;
    }
    return false;
}

// Vectors beside weights give no message, matrices that no GEMM reads as they are a warning.
static void check_pattern(struct hec_checker *checker, const char *pattern) {
    const struct hec_param *vector = NULL, *matrix = NULL;
    bool adapts = false;
    for (int i = 0; i < checker->params.count; i++) {
        const struct hec_param *param = checker->params.item[i];
        if (!param->trainable || param->lora || !is_matched(checker, pattern, param)) continue;
        adapts |= has_adapter(checker, param);
        if (has_adapter(checker, param)) continue;
        *(hec_group_is_matrix(param) ? &matrix : &vector) = param;
    }
    const struct hec_span at = checker->adapt.of;
    if (!adapts && !vector && !matrix)
        hec_group_unmatched(checker, pattern, at);
    else if (!adapts && !matrix)
        hec_error(checker, at,
                  "adapters are of matrices: `%s` has one dim, as all that `%s` matches",
                  vector->path, pattern);
    else if (!adapts)
        hec_error(checker, at, "`%s` gets no adapter: nothing is multiplied by it, as in `x @ w`",
                  matrix->path);
    else if (matrix)
        hec_warning(checker, at,
                    "`%s` matches `%s`, which gets no adapter: nothing is multiplied by it, as in "
                    "`x @ w`",
                    pattern, matrix->path);
}

void hec_check_adapt(struct hec_checker *checker) {
    const struct hec_adapt *adapt = &checker->adapt;
    for (int i = 0; i < adapt->patterns.count; i++) check_pattern(checker, adapt->patterns.item[i]);
    for (int i = 0; i < checker->params.count && adapt->patterns.count; i++) {
        struct hec_param *param = checker->params.item[i];
        param->frozen = !param->lora && (param->trainable || param->balances);
    }
}
