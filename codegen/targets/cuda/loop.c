// Kernels that the emitter writes: loops whose iterations are threads.
#include "codegen/targets/cuda/loop.h"

#include <assert.h>
#include <string.h>

#include "codegen/host/dims.h"
#include "codegen/host/function.h"
#include "codegen/host/literal.h"

// Words with another meaning in C++ and CUDA; no name is a word of C anyway.
static const char *const reserved[] = {
    "and",       "and_eq",      "bitand",
    "bitor",     "blockDim",    "blockIdx",
    "catch",     "char8_t",     "class",
    "compl",     "concept",     "consteval",
    "constinit", "co_await",    "co_return",
    "co_yield",  "const_cast",  "count",
    "decltype",  "delete",      "dynamic_cast",
    "explicit",  "export",      "friend",
    "gridDim",   "lane",        "mutable",
    "namespace", "new",         "noexcept",
    "not",       "not_eq",      "operator",
    "or",        "or_eq",       "private",
    "protected", "public",      "reinterpret_cast",
    "requires",  "static_cast", "template",
    "this",      "thread",      "threadIdx",
    "throw",     "try",         "typeid",
    "typename",  "using",       "virtual",
    "warpSize",  "wchar_t",     "xor",
    "xor_eq",
};

int hec_device_point(struct hec_device_loop *loop, MlirType type, const char *host,
                     const char *name, bool written) {
    assert(loop->pointers < HEC_DEVICE_POINTERS);
    loop->pointer[loop->pointers] =
        (struct hec_device_pointer){.type = type, .host = host, .name = name, .written = written};
    return loop->pointers++;
}

// How often the loops that are threads run, together.
static const char *count_text(struct hec_emitter *e, const struct hec_device_loop *loop) {
    return hec_product(e, &loop->nest.space, 0, loop->nest.first[loop->threads]);
}

// "thread / F % T": the variable of one of several loops.
static const char *variable_text(struct hec_emitter *e, const struct hec_device_loop *loop,
                                 int at) {
    const struct hec_nest *nest = &loop->nest;
    const char *text = "thread";
    if (at + 1 < loop->threads)
        text =
            HEC_TEXT(e, "%s / %s", text,
                     hec_factor(e, &nest->space, nest->first[at + 1], nest->first[loop->threads]));
    if (at > 0)
        text = HEC_TEXT(e, "%s %% %s", text,
                        hec_factor(e, &nest->space, nest->first[at], nest->first[at + 1]));
    return text;
}

// The heads of the loops: that over threads, and the variables that their number stands for.
static void write_threads(struct hec_emitter *e, const struct hec_device_loop *loop) {
    const char *one = loop->threads == 1 ? hec_nest_variable(&loop->nest, 0) : "thread";
    hec_statement(e, "HKC_FOR(%s, count) {", one);
    e->function->body.indent++;
    for (int i = 0; i < loop->threads && loop->threads > 1; i++)
        hec_statement(e, "const int64_t %s = %s;", hec_nest_variable(&loop->nest, i),
                      variable_text(e, loop, i));
}

void hec_device_loop_begin(struct hec_emitter *e, struct hec_device_loop *loop, const char *base) {
    const char *group = e->function->group->name;
    loop->name =
        hec_ident(&e->function->names,
                  HEC_STR(HEC_TEXT(e, "%s%s%s_loop", group, *base ? "_" : "", base)), "loop");
    hec_ident_reserve(&e->globals, loop->name);
    struct hec_function *f = hec_function_begin_device(e);
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
        hec_ident_reserve(&f->names, reserved[i]);
    for (int i = 0; i < loop->pointers; i++) {
        struct hec_device_pointer *p = &loop->pointer[i];
        p->name = hec_ident(&f->names, HEC_STR(p->name), p->written ? "to" : "from");
    }
    write_threads(e, loop);
}

const char *hec_device_element(struct hec_emitter *e, const struct hec_device_loop *loop,
                               int pointer) {
    const struct hec_device_pointer *p = &loop->pointer[pointer];
    const char *index = p->index ? p->index : hec_nest_index(e, &loop->nest, p->type);
    return HEC_TEXT(e, "%s[%s]", p->name, index);
}

const char *hec_device_number(struct hec_emitter *e, const struct hec_device_loop *loop,
                              int pointer) {
    const char *element = hec_device_element(e, loop, pointer);
    return hec_device_rounds(loop, pointer) ? HEC_TEXT(e, "hkc_float(%s)", element) : element;
}

const char *hec_device_rounds(const struct hec_device_loop *loop, int pointer) {
    return hec_type_is_rounded(loop->pointer[pointer].type) ? "hkc_bf16" : NULL;
}

// "float *x, const float *w, int64_t count"
static const char *parameters_text(struct hec_emitter *e, const struct hec_device_loop *loop,
                                   bool batch) {
    const char *text = "";
    for (int i = 0; i < loop->pointers; i++) {
        const struct hec_device_pointer *p = &loop->pointer[i];
        text = HEC_TEXT(e, "%s%s%s *%s, ", text, p->written ? "" : "const ",
                        hec_element_name(e, p->type), p->name);
    }
    return HEC_TEXT(e, "%s%sint64_t count", text, batch ? "int64_t batch, " : "");
}

// "x, w, "; as the kernel or as the host calls them.
static const char *arguments_text(struct hec_emitter *e, const struct hec_device_loop *loop,
                                  bool host, bool batch) {
    const char *text = "";
    for (int i = 0; i < loop->pointers; i++)
        text = HEC_TEXT(e, "%s%s, ", text, host ? loop->pointer[i].host : loop->pointer[i].name);
    return batch ? HEC_TEXT(e, "%sbatch, ", text) : text;
}

void hec_device_loop_end(struct hec_emitter *e, const struct hec_device_loop *loop) {
    hec_close(&e->function->body, "}");
    bool batch;
    const struct hec_writer *body = hec_function_leave(e, &batch);
    const char *parameters = parameters_text(e, loop, batch);
    struct hec_writer *out = &e->device;
    hec_blank(out);
    hec_open(out, "static __global__ void %s_kernel(%s) {", loop->name, parameters);
    hec_append(out, body);
    hec_close(out, "}");
    hec_blank(out);
    hec_open(out, "void %s(struct hkc_lane *lane, %s) {", loop->name, parameters);
    hec_line(out, "hkc_launch_loop(lane, %s_kernel, count, %scount);", loop->name,
             arguments_text(e, loop, false, batch));
    hec_close(out, "}");
    hec_line(&e->launchers, "void %s(struct hkc_lane *lane, %s);", loop->name, parameters);
    hec_statement(e, "%s(m->lane, %s%s);", loop->name, arguments_text(e, loop, true, batch),
                  count_text(e, loop));
}
